// Command bench measures what isotap costs: the same load on the database directly, through other proxies
// (those of PgBouncer and HAProxy that are installed), through a bare copy of bytes, through isotap that is
// off, and through isotap that records.
//
//	go run ./internal/bench [-engine mariadb|postgresql|all] [-quick] [-json]
//	go run ./internal/bench -load fuzz [-seconds N] [-cpuprofile FILE]
//	go run ./internal/bench -load ddl [-engine ...] [-tables 0,500,2000] [-kinds] [-quick] [-json]
//
// The second compares the random generator of isotap fuzz with sysbench's oltp_read_write, both through isotap
// that records. The third measures statements that define tables, among many tables that nobody touches.
//
// The servers are a throw-away MariaDB under sysbench's oltp_point_select and oltp_read_write, with text and
// with prepared statements, and a throw-away PostgreSQL under pgbench's select-only, simple-update and
// tpcb-like, in the simple, the extended and the prepared protocol. Server, load and proxies are processes of
// their own on one machine. The paths take turns in short slices, and every figure is the median over the
// rounds of a ratio inside one round, so that a machine that is busy with something else is so for all of
// them; how busy is told, too, and the processor time of proxy and server for a statement (Linux). A statement
// that fails, and under pgbench a transaction that is not in the database afterwards, ends the bench. At the
// end of each engine stands how far isotap is from its goals, and the recordings that came about are measured
// and analyzed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/internal/jsondoc"
)

// settings are what the command line says.
type settings struct {
	rounds  int
	seconds int
	clients []int
	engines []engine
	load    string   // part of the names of the loads to run
	paths   []string // empty: all
	quick   bool
	against string // another isotap to compare with
	json    bool
	profile string // file for the processor profile of the hunts
	kinds   bool   // with -load ddl
	tables  []int  // with -load ddl: numbers of tables that the server has beside those of the load
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == copyCommand {
		exit(serveCopies(os.Args[2], os.Stderr))
	}
	s, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = run(ctx, s, os.Stdout, os.Stderr)
	stop()
	exit(err)
}

func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// parse reads the command line, and says itself what is wrong with it.
func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&s.rounds, "rounds", 5, "how often each path has its turn at each load")
	f.IntVar(&s.seconds, "seconds", 1, "how long a turn lasts")
	clients := f.String("clients", "1,8,16", "numbers of clients, separated by commas")
	engine := f.String("engine", allEngines, "mariadb, postgresql or all")
	f.StringVar(&s.load, "load", "", "only the loads whose name holds this, such as 'prepared'; "+
		"fuzz: the random generator beside sysbench; ddl: statements that define tables")
	tables := f.String("tables", "0,500,2000", "with -load ddl: numbers of tables on the server, separated by commas")
	paths := f.String("paths", "", "only these paths, separated by commas, of "+strings.Join(pathOrder, ","))
	f.StringVar(&s.against, "against", "", "another isotap program, to compare with")
	f.StringVar(&s.profile, "cpuprofile", "",
		"with -load fuzz: file for the processor profile of the hunts, clients and isotap in one")
	f.BoolVar(&s.kinds, "kinds", false, "with -load ddl: measure each kind of a program's statements, too")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.BoolVar(&s.quick, "quick", false, "a few minutes: two rounds of fewer loads")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var err error
	if s.clients, err = parseNumbers("-clients", *clients, 1); err == nil {
		s.tables, err = parseNumbers("-tables", *tables, 0)
	}
	if s.quick {
		s.rounds = 2
		s.tables = s.tables[:min(len(s.tables), 2)]
	}
	err = errors.Join(err, s.takeEngine(*engine), s.takePaths(*paths))
	if s.rounds < 1 || s.seconds < 1 {
		err = errors.Join(err, errors.New("-rounds and -seconds begin at 1"))
	}
	if err != nil {
		fmt.Fprintln(f.Output(), err)
	}
	return s, err
}

// parseNumbers reads a list of numbers that are separated by commas; none may be below least.
func parseNumbers(flag, list string, least int) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return nil, fmt.Errorf("%s: %q is not a number from %d on", flag, text, least)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// allEngines is the value of -engine for all of them.
const allEngines = "all"

func (s *settings) takeEngine(name string) error {
	for _, e := range engines {
		if name == e.name || name == allEngines {
			s.engines = append(s.engines, e)
		}
	}
	if s.engines == nil {
		return fmt.Errorf("-engine: there is no %q", name)
	}
	return nil
}

func (s *settings) takePaths(list string) error {
	if list == "" {
		return nil
	}
	s.paths = strings.Split(list, ",")
	for _, p := range s.paths {
		if !slices.Contains(pathOrder, p) {
			return fmt.Errorf("-paths: there is no %q", p)
		}
	}
	return nil
}

// wants reports whether a path is to be measured.
func (s *settings) wants(path string) bool {
	if path == pathAgainst && s.against == "" {
		return false
	}
	// Everything is compared with the direct path.
	return path == pathDirect || s.paths == nil || slices.Contains(s.paths, path)
}

// run measures everything and prints it to out. What it is doing goes to progress.
func run(ctx context.Context, s settings, out, progress io.Writer) error {
	if s.load == fuzzLoad {
		return runFuzz(ctx, s, out, progress)
	}
	if s.load == ddlLoad {
		return runDDL(ctx, s, out, progress)
	}
	var reports []report
	for _, e := range s.engines {
		r, err := runEngine(ctx, s, e, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		// With -load, one of the engines may have nothing of that name.
		if len(r.Results) > 0 {
			reports = append(reports, r)
		}
	}
	if len(reports) == 0 {
		return fmt.Errorf("no load has %q in its name", s.load)
	}
	return printReports(s, out, reports)
}

// printReports prints what was measured, as JSON or as a table for each engine.
func printReports[R interface{ table() string }](s settings, out io.Writer, reports []R) error {
	if s.json {
		return jsondoc.Write(out, "the measurements", reports)
	}
	for _, r := range reports {
		if _, err := io.WriteString(out, r.table()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// runEngine measures one engine.
func runEngine(ctx context.Context, s settings, e engine, progress io.Writer) (r report, err error) {
	b, err := newBench(ctx, s, e.start, progress)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r = report{Server: b.target.product(), Rounds: s.rounds, Seconds: s.seconds, explain: b.target.explain()}
	for _, l := range b.target.loads(s.clients) {
		if !strings.Contains(l.String(), s.load) || s.quick && !l.quick() {
			continue
		}
		fmt.Fprintf(progress, "%s ...\n", l)
		results, err := b.measure(ctx, l)
		if err != nil {
			return r, fmt.Errorf("%s: %w", l, err)
		}
		r.Results = append(r.Results, results...)
	}
	r.Goals = attainments(r.Results)
	fmt.Fprintln(progress, "analysis ...")
	r.Recording, err = analyse(ctx, b.recordings)
	return r, err
}
