package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/fuzz"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

const replayHelp = `Plays interleaved scripts on a server, through isotap: each step is sent in its turn and runs to its end or
until the server says that it waits for a lock. What came of each step is printed, and what isotap found.

FILE is a scenario (docs/scenarios.md), as isotap analyze --scenarios writes them, a .spec file of PostgreSQL's
isolationtester, of which each permutation is played, a script of ReplBug (conn_0> SQL), or a directory of scenarios.
Where there is no file of the name, catalogue/... are those that come with isotap.

The server is a throw-away one of --engine, or the one at --upstream; both may be repeated. Everything
happens in databases (on PostgreSQL: schemas) that are dropped afterwards.

With --oracle alone each session's transactions are also held against their own statements in autocommit, without
the others: what they answer has to be the same. With --oracle serial those of all sessions are held together against
their statements in autocommit, one behind the other, in orders that their dependencies allow. With --oracle views each
statement is run once more by itself, on tables that hold what its level lets it see. With --oracle forms each statement
of a session's transactions, without the others, has to do what it does in other forms.

Exit status:
  0   everything was played; with --expect: and all came as the files expect it
  1   it did not, or an oracle says that an answer is wrong
  2   isotap itself failed, or was used wrongly (a message says so)`

// A replaying is what the flags of `isotap replay` say.
type replaying struct {
	on        servers
	seen      observing
	isolation string
	expect    bool
	direct    bool
	format    string
	compare   bool
	json      bool
	junit     string
	html      string
	set       []string
	oracles   string
	judged    []fuzz.Oracle
	// ownOracles says that scripts which name an oracle are judged by that one.
	ownOracles bool
	wrong      bool             // an oracle says that an answer is
	played     []*runner.Result // when something is said of all
	verdicts   []*runner.Judged
}

// The forms of `isotap replay`'s output.
const (
	textFormat            = "text"
	isolationTesterFormat = "isolationtester"
)

// A script is a file's scenarios.
type script []*scenario.Scenario

func replayCommand() *cobra.Command {
	o := replaying{seen: observing{mode: predicatesMode, identity: columnsIdentity}}
	c := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Play interleaved scripts, and say what they show",
		Long:  replayHelp,
		Example: "  isotap replay lost-update.yaml\n" +
			"  isotap replay --engine mariadb --engine postgres --isolation all scenarios/*.yaml\n" +
			"  isotap replay --upstream postgres://postgres@127.0.0.1/ --expect scenarios/*.yaml\n" +
			"  isotap replay catalogue/hermitage/p4.yaml",
	}
	f := c.Flags()
	o.on.flags(c, "play")
	o.seen.flags(c)
	f.StringVar(&o.isolation, "isolation", "",
		"levels, separated by commas, or all that the server has; the files' own when not set")
	f.BoolVar(&o.direct, "direct", false, "play on the server itself, not through isotap; nothing is found then")
	f.StringVar(&o.format, "format", textFormat, "text, or isolationtester: as PostgreSQL's expected/*.out have it")
	f.BoolVar(&o.expect, "expect", false, "exit with 1 when something is not what the files expect")
	f.BoolVar(&o.compare, "compare", false, "print only in what the servers and levels differ")
	f.BoolVar(&o.json, "json", false, "print all that was played as JSON (docs/replay-json.md)")
	f.StringVar(&o.junit, "junit", "", "write JUnit XML to this file: "+
		"a test case for each scenario and level of a server, which fails where something is not expected")
	must(c.MarkFlagFilename("junit", "xml"))
	f.StringVar(&o.html, "html", "", "write what the oracles beside graph say to this file, as a page")
	must(c.MarkFlagFilename("html", "html"))
	f.StringArrayVar(&o.set, "set", nil,
		"set a variable of the server in every session, as tidb_txn_mode=optimistic; may be repeated")
	f.StringVar(&o.oracles, "oracle", string(fuzz.Graph),
		"what judges the scripts, separated by commas, or all, in place of the one that a script names: "+
			"graph says what is found when they are played, alone "+
			"holds each transaction against its own statements in autocommit, serial all of them against those, in orders "+
			"that their dependencies allow, views each statement against itself on what it has to see, "+
			"forms against itself in other forms")
	c.MarkFlagsMutuallyExclusive("compare", "direct")
	for _, form := range []string{"compare", "junit", "format"} {
		c.MarkFlagsMutuallyExclusive(form, "oracle")
	}
	c.MarkFlagsMutuallyExclusive("compare", "expect")
	c.MarkFlagsMutuallyExclusive("compare", "json", "format")
	c.Args = needs("FILE", 0)
	c.RunE = o.run
	return c
}

// run plays the files on all servers.
func (o *replaying) run(c *cobra.Command, files []string) error {
	if o.format != textFormat && o.format != isolationTesterFormat {
		return fmt.Errorf("--format: %q is neither %s nor %s", o.format, textFormat, isolationTesterFormat)
	}
	scripts, err := readScripts(files)
	if err != nil {
		return err
	}
	levels, err := parseAsked("--isolation", o.isolation, history.ParseLevel)
	if err != nil {
		return err
	}
	if o.judged, err = parseOracles(o.oracles); err != nil {
		return err
	}
	if o.ownOracles, err = o.namedOracles(c, scripts); err != nil {
		return err
	}
	if o.html != "" && !o.ownOracles &&
		!slices.ContainsFunc(o.judged, func(by fuzz.Oracle) bool { return by != fuzz.Graph }) {
		return errors.New("--html needs an --oracle beside graph: of what graph finds isotap analyze writes the page")
	}
	onStage, err := o.onStage()
	if err != nil {
		return err
	}
	var status exitStatus
	err = o.on.eachStage(c, onStage, func(s *runner.Runner) error {
		unexpected, err := o.play(c, s, scripts, levels)
		if unexpected && o.expect || o.wrong {
			status = 1
		}
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(o.sum(c), status.orNil())
}

// namedOracles reports whether scripts are judged by the oracles that they name: some do, and the command line asks for
// neither others nor a form that has no place for a verdict.
func (o *replaying) namedOracles(c *cobra.Command, scripts []script) (bool, error) {
	named := false
	for _, sc := range slices.Concat(scripts...) {
		if sc.Oracle == "" {
			continue
		}
		if _, err := oracleOf(sc); err != nil {
			return false, err
		}
		named = true
	}
	return named && !slices.ContainsFunc([]string{"oracle", "compare", "junit", "format", "direct", "expect"},
		c.Flags().Changed), nil
}

// onStage returns how scripts are played.
func (o *replaying) onStage() (runner.Options, error) {
	s, err := o.seen.options()
	if err != nil {
		return s, err
	}
	if s.Settings, err = scenario.ParseSettings(o.set); err != nil {
		return s, fmt.Errorf("--set: %w", err)
	}
	if o.format == isolationTesterFormat { // it shows no findings, and tables as they are
		s.Columns, s.Predicates = false, false
	}
	s.Direct = o.direct
	return s, nil
}

// sum says what is said of all that was played.
func (o *replaying) sum(c *cobra.Command) error {
	if err := writeFile(o.junit, func(w io.Writer) error { return runner.JUnit(w, o.played) }); err != nil {
		return err
	}
	if err := writeFile(o.html, func(w io.Writer) error { return runner.HTML(w, o.verdicts) }); err != nil {
		return err
	}
	switch {
	case o.compare:
		return runner.Compare(c.OutOrStdout(), o.played)
	case o.json:
		return runner.JSON(c.OutOrStdout(), o.played, o.verdicts)
	}
	return nil
}

// readScripts reads all files before any is played.
func readScripts(files []string) ([]script, error) {
	var all []script
	found, err := findScenarios(files)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		file, err := f.fsys.Open(f.path)
		if err != nil {
			return nil, err
		}
		s, err := scenario.ReadFile(file, f.name)
		file.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// play plays the scripts on one server.
func (o *replaying) play(c *cobra.Command, s *runner.Runner, scripts []script,
	levels asked[history.Level]) (unexpected bool, err error) {
	for _, script := range scripts {
		o.begin(c, script[0])
		for _, sc := range script {
			differs, err := o.playAt(c, s, sc, levels)
			if err != nil {
				return unexpected, err
			}
			unexpected = unexpected || differs
		}
	}
	return unexpected, nil
}

// begin says what there is to say of a file's scenarios before they are played; one of them speaks for all.
func (o *replaying) begin(c *cobra.Command, sc *scenario.Scenario) {
	if o.format != isolationTesterFormat {
		if len(sc.Unused) > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%s: no permutation has: %s\n", sc.File, strings.Join(sc.Unused, ", "))
		}
		return
	}
	for _, step := range sc.Unused {
		fmt.Fprintln(c.OutOrStdout(), "unused step name:", step)
	}
	fmt.Fprintf(c.OutOrStdout(), "Parsed test spec with %d sessions\n", len(sc.Sessions))
}

// playAt plays one scenario at its levels.
func (o *replaying) playAt(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario,
	levels asked[history.Level]) (unexpected bool, err error) {
	if !sc.RunsOn(s.Server) {
		fmt.Fprintf(c.ErrOrStderr(), "%s: not for %s %s\n", sc.Name, s.Server.Engine, s.Server.Version)
		return false, nil
	}
	at, sc := levelsOf(s, sc, levels)
	for _, level := range at {
		differs, err := o.judgeAt(c, s, sc, level)
		if err != nil {
			return unexpected, err
		}
		unexpected = unexpected || differs
	}
	return unexpected, nil
}

// judgeAt plays one scenario at one level for each of the judges. One that needs a server of its own has one for each
// level, and is not played on somebody else's.
func (o *replaying) judgeAt(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario,
	level history.Level) (unexpected bool, err error) {
	if sc.OwnServer() {
		if o.on.started == nil {
			fmt.Fprintf(c.ErrOrStderr(), "%s: not played: it needs a throw-away server of its own (--engine)\n", sc.Name)
			return false, nil
		}
		own, end, failed := o.on.startOwn(c.Context(), s.Options(), sc.Server.Args)
		if failed != nil {
			return false, fmt.Errorf("%s: %w", sc.Name, failed)
		}
		defer func() { err = errors.Join(err, end()) }()
		s = own
	}
	judged := o.judged
	if o.ownOracles && sc.Oracle != "" {
		judged = []fuzz.Oracle{fuzz.Oracle(sc.Oracle)}
	}
	for _, by := range judged {
		var differs bool
		if by == fuzz.Graph {
			differs, err = o.perform(c, s, sc, level)
		} else {
			err = o.judge(c, s, by, sc, level)
		}
		if err != nil {
			return unexpected, err
		}
		unexpected = unexpected || differs
	}
	return unexpected, nil
}

// levelsOf returns the levels that a scenario is played at: where none are asked for its sessions' own, or all if they
// have none.
func levelsOf(s *runner.Runner, sc *scenario.Scenario,
	levels asked[history.Level]) ([]history.Level, *scenario.Scenario) {
	if levels.none() && len(sc.Sessions) > 0 && sc.Sessions[0].Level != "" {
		if level, err := history.ParseLevel(sc.Sessions[0].Level); err == nil {
			return []history.Level{level}, sc
		}
	}
	levels.all = levels.all || levels.none()
	return levels.of(s.Levels()), sc.At()
}

// perform plays one scenario at one level, and says what came of it.
func (o *replaying) perform(c *cobra.Command, s *runner.Runner, sc *scenario.Scenario,
	level history.Level) (unexpected bool, err error) {
	p, err := s.Play(c.Context(), sc, level)
	if err != nil {
		return false, err
	}
	summed := o.compare || o.json
	if summed || o.junit != "" {
		o.played = append(o.played, p)
	}
	if summed {
		return len(p.Unexpected()) > 0, nil
	}
	if o.format == isolationTesterFormat {
		return len(p.Unexpected()) > 0, p.Trace.IsolationTester(c.OutOrStdout(), sc)
	}
	if err := p.Text(c.OutOrStdout()); err != nil {
		return false, err
	}
	all := p.Unexpected()
	if o.expect {
		for _, text := range all {
			fmt.Fprintln(c.OutOrStdout(), "unexpected:", text)
		}
	}
	fmt.Fprintln(c.OutOrStdout())
	return len(all) > 0, nil
}
