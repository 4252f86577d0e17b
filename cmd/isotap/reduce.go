package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/fuzz"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/fromrecording"
	"github.com/isotap/isotap/scenario/runner"
)

const reduceHelp = `Makes a scenario small: fewest transactions, then statements, rows and tables, then simpler SQL, as long as
its replay on a server still shows the same anomaly, or an oracle (--oracle) still finds the same wrong answer. The smaller
scenario goes to standard output.

FILE is a scenario (docs/scenarios.md) of isotap fuzz or of your own. DIR is the directory of a hunt, whose findings are all
made small, into that of --out; or a recording, of which a finding is played again (--finding, or the first): on the tables as
the recording says they were defined, with the rows that earlier transactions wrote, or those of --rows.`

// reducing is what isotap reduce is told.
type reducing struct {
	on                 servers
	seen               observing
	isolation          string
	oracle, anomaly    string // what must stay
	finding, rows, out string
	levels             asked[history.Level]
}

func reduceCommand() *cobra.Command {
	o := reducing{seen: observing{mode: predicatesMode, identity: columnsIdentity}}
	c := &cobra.Command{
		Use:   "reduce FILE|DIR",
		Short: "Make a scenario small that shows an anomaly or a wrong answer",
		Long:  reduceHelp,
		Example: "  isotap reduce --engine mariadb --anomaly 'lost update' found.yaml > small.yaml\n" +
			"  isotap reduce --engine mariadb --oracle serial wrong.yaml > small.yaml\n" +
			"  isotap reduce --engine mariadb --out small isotap-fuzz\n" +
			"  isotap reduce --engine postgres --finding 3980209713b2 ./rec > small.yaml",
		Args: needs("FILE", 1),
	}
	f := c.Flags()
	o.on.flags(c, "play")
	o.seen.flags(c)
	f.StringVar(&o.isolation, "isolation", "", "the level to play at; the file's own when not set")
	f.StringVar(&o.anomaly, "anomaly", "",
		"what must stay, by isotap's name; when not set the first that the file expects, or else that the replay shows")
	f.StringVar(&o.oracle, "oracle", "", "what finds what must stay: graph, alone, serial, views or forms; "+
		"when not set the one that the file names, or else graph; of a hunt: only what this one found")
	f.StringVar(&o.finding, "finding", "", "of a recording: the finding's id, as isotap analyze prints it")
	f.StringVar(&o.rows, "rows", "", "of a recording: file of statements, one a line, that make the rows, "+
		"in place of what was written before")
	f.StringVarP(&o.out, "out", "o", "",
		"write the smaller scenario to this file; of a hunt: all of them to this directory")
	must(c.MarkFlagFilename("rows", "sql"))
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args[0]) }
	return c
}

func (o *reducing) run(c *cobra.Command, path string) error {
	if o.oracle != "" && !slices.Contains(fuzz.Oracles(), fuzz.Oracle(o.oracle)) {
		return fmt.Errorf("--oracle: there is no oracle %q: %v", o.oracle, fuzz.Oracles())
	}
	from, err := o.read(c, path)
	if err != nil {
		return err
	}
	var oddLevels, oddMode error
	var onStage runner.Options
	o.levels, oddLevels = parseAsked("--isolation", o.isolation, history.ParseLevel)
	onStage, oddMode = o.seen.options()
	if err := errors.Join(oddLevels, oddMode, o.on.one()); err != nil {
		return err
	}
	if from.hunt {
		if o.out == "" {
			return fmt.Errorf("%s is a directory of %d findings: --out names one for what becomes of them", path,
				len(from.scenarios))
		}
		if err := private.MkdirAll(o.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return o.on.eachStage(c, onStage, func(s *runner.Runner) (err error) {
		for i, sc := range from.scenarios {
			err = errors.Join(err, o.reduce(c, s, sc, from.names[i], from.hunt))
			if c.Context().Err() != nil {
				break
			}
		}
		return err
	})
}

// reduce makes one scenario small and writes what is left.
func (o *reducing) reduce(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, name string, hunt bool) error {
	anomaly := analyzer.Anomaly(o.anomaly)
	if anomaly == "" && len(sc.Expect.Anomalies) > 0 {
		anomaly = analyzer.Anomaly(sc.Expect.Anomalies[0])
	}
	at, sc := levelsOf(s, sc, o.levels)
	if len(at) != 1 {
		return fmt.Errorf("%s names no one isolation level that %s has: set --isolation", name, s.Server.Engine)
	}
	by, err := o.judgeOf(sc)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var small *scenario.Scenario
	if by == fuzz.Graph {
		small, err = reduceTo(c, s, sc, at[0], anomaly)
	} else {
		small, err = reduceDifference(c, s, by, sc, at[0])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case hunt:
		return writeFile(filepath.Join(o.out, filepath.Base(name)), small.Write)
	case o.out != "":
		return writeFile(o.out, small.Write)
	}
	return small.Write(c.OutOrStdout())
}

// judgeOf returns the oracle that tells what must stay of a scenario: that of --oracle, or the one that it names.
func (o *reducing) judgeOf(sc *scenario.Scenario) (fuzz.Oracle, error) {
	by, err := oracleOf(sc)
	if err != nil {
		return "", err
	}
	if o.oracle != "" {
		by = fuzz.Oracle(o.oracle)
	}
	if o.anomaly != "" && by != fuzz.Graph {
		return "", fmt.Errorf("--anomaly is for what the oracle graph finds, and %s finds other things", by)
	}
	return by, nil
}

// reducible is what is to be made small.
type reducible struct {
	scenarios []*scenario.Scenario
	names     []string
	hunt      bool // they are the findings of a hunt
}

// read finds what a path names.
func (o *reducing) read(c *cobra.Command, path string) (*reducible, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		r, err := recorder.Open(path)
		if err == nil {
			defer r.Close()
			sc, err := o.recorded(c.Context(), path, r)
			return &reducible{scenarios: []*scenario.Scenario{sc}, names: []string{path}}, err
		}
		if !errors.Is(err, recorder.ErrNotRecording) {
			return nil, err
		}
	}
	if o.finding != "" || o.rows != "" {
		return nil, fmt.Errorf("--finding and --rows are for a recording, and %s is none", path)
	}
	scripts, err := readScripts([]string{path})
	if err != nil {
		return nil, err
	}
	from := &reducible{hunt: info != nil && info.IsDir()}
	for _, script := range scripts {
		name := script[0].File
		switch {
		case from.hunt && len(script[0].Expect.Anomalies) == 0 && script[0].Oracle == "":
			continue // of something abnormal
		case from.hunt && o.oracle != "" && cmp.Or(script[0].Oracle, string(fuzz.Graph)) != o.oracle:
			continue // another oracle's
		case len(script) != 1:
			return nil, fmt.Errorf("%s holds %d scenarios, and one is reduced: name one permutation", name, len(script))
		}
		from.scenarios, from.names = append(from.scenarios, script[0]), append(from.names, name)
	}
	if len(from.scenarios) == 0 {
		return nil, fmt.Errorf("%s holds no finding's scenario", path)
	}
	return from, nil
}

// recorded makes a scenario of a recording's finding.
func (o *reducing) recorded(ctx context.Context, dir string, r *recorder.Reader) (*scenario.Scenario, error) {
	result, err := analysis.Analyze(ctx, []string{dir}, analyzer.Options{Scope: analyzer.GuessedScope})
	if err != nil {
		return nil, err
	}
	var rows []string
	if o.rows != "" {
		text, err := os.ReadFile(o.rows)
		if err != nil {
			return nil, fmt.Errorf("--rows: %w", err)
		}
		rows = slices.DeleteFunc(strings.Split(string(text), "\n"),
			func(line string) bool { return strings.TrimSpace(line) == "" })
	}
	for _, f := range result.Findings {
		if o.finding != "" && f.ID != o.finding || o.anomaly != "" && string(f.Anomaly) != o.anomaly {
			continue
		}
		if f.Class == analyzer.Unprotected {
			if o.finding == "" {
				continue
			}
			return nil, fmt.Errorf("finding %s is between transactions of one request: a play knows no requests", f.ID)
		}
		return fromrecording.Scenario(ctx, r, f, rows)
	}
	return nil, fmt.Errorf("%s has no such finding: isotap analyze %s names %d", dir, dir, len(result.Findings))
}

// reduceTo makes a scenario small that shows an anomaly; with no name, the first that it shows.
func reduceTo(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario, level history.Level,
	anomaly analyzer.Anomaly) (*scenario.Scenario, error) {
	p, err := s.Play(c.Context(), sc.At(), level)
	if err != nil {
		return nil, err
	}
	for _, f := range p.Result.Findings {
		if anomaly != "" && f.Anomaly != anomaly {
			continue
		}
		small, tried, err := fuzz.Reduce(c.Context(), s.Server.Engine.Family(), sc, level, f.Anomaly,
			fuzz.Shows(s, level, fuzz.Like(f.Anomaly, f.Class)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s: %d statements of %d; %d tries; shown %d times of 10\n", f.Anomaly,
			len(small.Scenario.Steps), len(sc.Steps), tried, small.Shown)
		return small.Scenario, nil
	}
	if anomaly == "" {
		return nil, fmt.Errorf("its replay at %s shows no anomaly", level)
	}
	return nil, fmt.Errorf("its replay at %s does not show %q, but %v", level, anomaly, p.Anomalies())
}

// reduceDifference makes a script small in which an oracle finds a difference.
func reduceDifference(c *cobra.Command, s *runner.Runner, by fuzz.Oracle, sc *scenario.Scenario,
	level history.Level) (*scenario.Scenario, error) {
	small, d, tried, err := fuzz.ReduceDifference(c.Context(), judgeOn(s), by, sc, level)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %d statements of %d; %d tries; shown %d times of 10\nwrong: %s\n", small.Scenario.Name,
		len(small.Scenario.Steps), len(sc.Steps), tried, small.Shown, d)
	return small.Scenario, nil
}
