// Command bench measures what isotap costs: the same load on the database directly, through HAProxy
// (where it is installed), through a bare copy of bytes, through isotap that is off, and through isotap
// that records.
//
//	go run ./internal/bench [-quick] [-json]
//
// The server is a throw-away MariaDB, the load sysbench's oltp_point_select and oltp_read_write, with
// text and with prepared statements. Server, load and proxies are processes of their own on one
// machine. The paths take turns in short slices, and every figure is the median over the rounds of a
// ratio inside one round, so that a machine that is busy with something else is so for all of them.
// Afterwards the recordings that came about are measured and analysed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

// settings are what the command line says.
type settings struct {
	rounds  int
	seconds int
	clients []int
	load    string // part of the names of the loads to run
	against string // another isotap to compare with
	json    bool
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
	clients := f.String("clients", "1,16", "numbers of clients, separated by commas")
	f.StringVar(&s.load, "load", "", "only the loads whose name holds this, such as 'prepared'")
	f.StringVar(&s.against, "against", "", "another isotap program, to compare with")
	f.BoolVar(&s.json, "json", false, "print JSON")
	quick := f.Bool("quick", false, "about a minute: two rounds")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	for n := range strings.SplitSeq(*clients, ",") {
		c, err := strconv.Atoi(n)
		if err != nil || c < 1 {
			fmt.Fprintf(f.Output(), "-clients: %q is not a number of clients\n", n)
			return s, errors.New("bad number of clients")
		}
		s.clients = append(s.clients, c)
	}
	if *quick {
		s.rounds = 2
	}
	if s.rounds < 1 || s.seconds < 1 {
		fmt.Fprintln(f.Output(), "-rounds and -seconds begin at 1")
		return s, errors.New("bad rounds or seconds")
	}
	return s, nil
}

// run measures everything and prints it to out. What it is doing goes to progress.
func run(ctx context.Context, s settings, out, progress io.Writer) (err error) {
	b, err := newBench(ctx, s, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r := report{Server: b.server.Version(), Rounds: s.rounds, Seconds: s.seconds}
	for _, l := range loads(s.clients) {
		if !strings.Contains(l.String(), s.load) {
			continue
		}
		fmt.Fprintf(progress, "%s ...\n", l)
		results, err := b.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
		r.Results = append(r.Results, results...)
	}
	if len(r.Results) == 0 {
		return fmt.Errorf("no load has %q in its name", s.load)
	}
	fmt.Fprintln(progress, "analysis ...")
	if r.Recording, err = analyse(ctx, b.recordings); err != nil {
		return err
	}
	if s.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	_, err = io.WriteString(out, r.table())
	return err
}
