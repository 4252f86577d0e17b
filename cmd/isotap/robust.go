package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/enginecheck"
	"github.com/isotap/isotap/internal/programs"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/program"
)

const robustHelp = `Says which transaction programs are safe together at READ COMMITTED and at SNAPSHOT ISOLATION (PostgreSQL's
REPEATABLE READ): whether every execution of them, in any number, is serializable; which is the cheapest level
for each; and, where they are not safe, an execution that shows it (docs/robustness.md).

FILE is of programs in SQL (docs/robustness.md has the format); --schema names a file that defines their tables,
--upstream a database that has them. With --recording the programs are those behind the transactions of a recording that
has values (--record-values), and which says how its tables were defined. --builtin takes the benchmarks of the literature: smallbank, tpcc, auction, or auction:N with N
items.

Exit status:
  0   all programs together are robust against READ COMMITTED, in the last setting
  1   they are not, or not found to be`

// settings are the names of --setting, in the order of the paper's figures.
var settings = []struct {
	name string
	robust.Setting
}{
	{"tpl", robust.Setting{Tuples: true}},
	{"attr", robust.Setting{}},
	{"tpl+fk", robust.Setting{Tuples: true, ForeignKeys: true}},
	{"attr+fk", robust.Setting{ForeignKeys: true}},
}

// robustFlags are those of isotap robust.
type robustFlags struct {
	builtin      string
	from         programs.Options
	upstream     string
	checkEngine  bool
	settings     []string
	json         bool
	verbose      bool
	html         string
	scenarios    string
	dot, mermaid string
	limits       robust.Limits
}

func robustCommand() *cobra.Command {
	var o robustFlags
	c := &cobra.Command{
		Use:   "robust [FILE...]",
		Short: "Say which transaction programs are safe at a weaker isolation level",
		Long:  robustHelp,
		Example: "  isotap robust programs.sql --schema schema.sql\n  isotap robust --recording ./rec\n" +
			"  isotap robust --builtin smallbank\n  isotap robust --builtin tpcc --setting attr+fk --json\n" +
			"  isotap robust --builtin auction:100",
	}
	f := c.Flags()
	f.StringSliceVar(&o.from.Recordings, "recording", nil,
		"take the programs behind the transactions of this recording")
	f.StringVar(&o.from.Schema, "schema", "",
		"file that defines the tables (CREATE TABLE, ALTER TABLE ... ADD); with --upstream or --recording: "+
			"what these lack, foreign keys for one")
	f.StringVar(&o.upstream, "upstream", "",
		"database that has the tables, as a URL; in place of what a recording says of them")
	f.BoolVar(&o.checkEngine, "check-engine", false,
		"ask the server at --upstream whether it keeps what the answers assume, in databases (PostgreSQL: schemas) "+
			"that are made for it and dropped")
	f.StringVar(&o.from.Dialect, "dialect", "",
		"of FILE: postgresql or mysql (default: that of --upstream, or the one that reads them)")
	f.IntVar(&o.from.MinCalls, "min-calls", 1, "of a recording: leave out programs with fewer calls")
	f.StringVar(&o.builtin, "builtin", "", "programs of the literature: smallbank, tpcc, auction or auction:N")
	f.StringSliceVar(&o.settings, "setting", nil,
		"what counts as a conflict: tpl, attr, tpl+fk, attr+fk (tuples or attributes, with foreign keys); all when not set")
	f.BoolVar(&o.json, "json", false, "print the answers as JSON (docs/robustness.md)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print all programs and sets, and why each is not robust: of a recording, too")
	f.StringVar(&o.html, "html", "", "write the HTML report to this file")
	f.StringVar(&o.scenarios, "scenarios", "",
		"write the executions that show what is not robust in the last setting to this directory, "+
			"as scenarios for isotap replay")
	f.StringVar(&o.dot, "dot", "", "write the summary graph of the last setting as a Graphviz graph to this file")
	f.StringVar(&o.mermaid, "mermaid", "", "write it as a Mermaid flowchart to this file")
	f.IntVar(&o.limits.Subsets, "limit", 1000, "how many maximal robust subsets are looked for; 0 for all")
	o.limits.Witnesses = 100
	complete(c, "builtin", "smallbank", "tpcc", "auction", "auction:")
	complete(c, "setting", "tpl", "attr", "tpl+fk", "attr+fk")
	must(c.MarkFlagFilename("html", "html"))
	must(c.MarkFlagDirname("scenarios"))
	must(c.MarkFlagFilename("dot", "dot"))
	must(c.MarkFlagFilename("mermaid", "mmd"))
	complete(c, "dialect", "postgresql", "mysql")
	must(c.MarkFlagDirname("recording"))
	must(c.MarkFlagFilename("schema", "sql"))
	c.RunE = func(c *cobra.Command, files []string) error {
		o.from.Files = files
		return o.run(c)
	}
	return c
}

// programs returns the programs, wherever they come from.
func (o *robustFlags) programs(c *cobra.Command) (*programs.Programs, error) {
	given := 0
	for _, is := range []bool{o.builtin != "", len(o.from.Files) > 0, len(o.from.Recordings) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give one of: files of programs, --recording DIR, " +
			"--builtin smallbank, tpcc, auction or auction:N")
	}
	if o.checkEngine && (o.upstream == "" || o.builtin != "") {
		return nil, errors.New("--check-engine is for programs of your own, and asks the server at --upstream")
	}
	if o.builtin != "" {
		return o.benchmark()
	}
	if o.upstream != "" {
		target, err := parseUpstream(o.upstream)
		if err != nil {
			return nil, err
		}
		o.from.Upstream = &target
		if o.checkEngine {
			if o.from.Answers, err = enginecheck.Ask(c.Context(), target); err != nil {
				return nil, fmt.Errorf("--check-engine: %w", err)
			}
		}
	}
	return programs.Load(c.Context(), o.from)
}

func (o *robustFlags) run(c *cobra.Command) error {
	p, err := o.programs(c)
	if err != nil {
		return err
	}
	chosen, err := chosenSettings(o.settings)
	if err != nil {
		return err
	}
	page := len(o.from.Recordings) > 0 && !o.verbose && !o.json
	if page && o.html == "" {
		chosen = chosen[len(chosen)-1:]
	}
	var answers []*robust.Answer
	for _, s := range chosen {
		answers = append(answers, robust.Assess(p.Programs, s, o.limits))
	}
	last := answers[len(answers)-1]
	if err := errors.Join(
		o.writeScenarios(p, last),
		writeFile(o.html, func(out io.Writer) error { return report.RobustnessHTML(out, p.Workload, answers) }),
		writeFile(o.dot, func(out io.Writer) error { return report.RobustnessDOT(out, last) }),
		writeFile(o.mermaid, func(out io.Writer) error { return report.RobustnessMermaid(out, last) }),
	); err != nil {
		return err
	}
	opts := report.TerminalOptions{Color: report.UseColor(c.OutOrStdout()), Verbose: o.verbose}
	switch {
	case o.json:
		err = report.RobustnessJSON(c.OutOrStdout(), p.Workload, answers)
	case page:
		err = report.RobustnessPage(c.OutOrStdout(), p.Workload, last, opts)
	default:
		err = report.Robustness(c.OutOrStdout(), p.Workload, answers, opts)
	}
	if err == nil && !last.Of(robust.TypeII).Robust {
		return exitStatus(statusFound)
	}
	return err
}

// benchmark returns the programs of --builtin; from their SQL where that is asked for.
func (o *robustFlags) benchmark() (*programs.Programs, error) {
	w, err := builtin(o.builtin)
	if err != nil || o.scenarios == "" {
		return &programs.Programs{Workload: w}, err
	}
	name := w.Name
	if w, err = program.Benchmark(o.builtin); err != nil {
		return nil, err
	}
	w.Name = name
	_, definitions, err := program.BenchmarkFiles(o.builtin)
	return &programs.Programs{Workload: w, Family: dbms.PostgreSQLFamily, Definitions: definitions.Text}, err
}

// builtin returns a benchmark by the name that --builtin has for it.
func builtin(name string) (*robust.Workload, error) {
	kind, items, many := strings.Cut(name, ":")
	switch {
	case name == "smallbank":
		return robust.SmallBank(), nil
	case name == "tpcc":
		return robust.TPCC(), nil
	case kind == "auction" && !many:
		return robust.Auction(1)
	case kind == "auction":
		n, err := strconv.Atoi(items)
		if err != nil {
			return nil, fmt.Errorf("--builtin: %q is no number of items", items)
		}
		return robust.Auction(n)
	}
	return nil, fmt.Errorf("--builtin: %q is none of smallbank, tpcc, auction, auction:N", name)
}

// chosenSettings returns the settings of these names in their order, all where there is no name.
func chosenSettings(names []string) ([]robust.Setting, error) {
	var chosen []robust.Setting
	known := map[string]bool{}
	for _, s := range settings {
		known[s.name] = true
		if len(names) == 0 || slices.Contains(names, s.name) {
			chosen = append(chosen, s.Setting)
		}
	}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("--setting: %q is none of tpl, attr, tpl+fk, attr+fk", name)
		}
	}
	return chosen, nil
}
