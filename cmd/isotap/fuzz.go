package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/internal/fuzz"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

const fuzzHelp = `Hunts a server for isolation anomalies: round after round it makes a small random database, has a few
sessions run random transactions on it through isotap, and analyses what was recorded. A finding that no
earlier round has shown is kept: the report on its round, and a scenario (docs/scenarios.md) that is then
made small and can be played again with isotap replay.

A seed gives the same databases and transactions each time; how the sessions' statements fall in between
each other is the server's.

The server is a throw-away one of --engine, or the one at --upstream, where it makes and drops databases
whose names begin with isotap_fuzz_ and eight letters that are drawn. What a hunt that was killed left there the next one
drops that begins in its directory, or goes on with it.

With --oracle alone there is nobody beside a transaction: what it answers has to be what its statements answer in
autocommit, in a fresh database like its own. It is played on the server itself. With --oracle serial concurrent
transactions have to answer what their statements do in autocommit, in orders that their dependencies allow. With
--oracle views each statement of concurrent transactions is run once more by itself, on tables that hold what its level
lets it see. With --oracle forms each statement of single transactions has to do what it does in other forms: rolled
back, and with its condition in a CASE, negated twice, or with EXISTS for IN.

Exit status:
  0   no violation was found: nothing that the level, as the server documents it, forbids
  1   there was one, an answer that is wrong, or the server did what no healthy server does, or isotap itself failed`

func fuzzCommand() *cobra.Command {
	h := hunting{Options: fuzz.Options{Dir: "isotap-fuzz", Duration: time.Minute, Reduce: 3, ReduceTime: 3 * time.Minute,
		Lanes: 2}, seen: observing{mode: itemsMode, identity: systemIdentity}}
	o := &h.Options
	c := &cobra.Command{
		Use:   "fuzz",
		Short: "Hunt a server for isolation anomalies with random transactions",
		Long:  fuzzHelp,
		Example: "  isotap fuzz --engine mariadb --isolation all --duration 10m\n" +
			"  isotap fuzz --upstream postgres://postgres@127.0.0.1/ --isolation SERIALIZABLE --seed 7",
		Args: noArguments,
	}
	f := c.Flags()
	h.on.flags(c, "hunt")
	h.seen.flags(c)
	f.StringVar(&h.isolation, "isolation", "all",
		"levels, separated by commas, or all that the server has: they take turns; OPTIMISTIC behind one is for TiDB")
	f.StringVar(&h.oracles, "oracle", string(fuzz.Graph), "what tells that the server is wrong, separated by commas, or all: graph finds "+
		"anomalies among concurrent transactions; alone holds each transaction against its own statements in autocommit; "+
		"serial holds concurrent ones against those, in orders that their dependencies allow; "+
		"views holds each statement against itself on what it has to see; forms holds each against itself in other forms")
	f.DurationVar(&o.Duration, "duration", o.Duration,
		"how long to hunt, whatever the profile says; making small what was found has a time of its own (--reduce-time)")
	f.IntVar(&o.Rounds, "rounds", 0, "end after so many rounds")
	f.Uint64Var(&o.Seed, "seed", 1, "the first round's seed; each further one has the next")
	f.IntVar(&o.Lanes, "lanes", o.Lanes, "how many rounds go on at the same time, each in a database of its own")
	f.StringVar(&h.profile, "profile", "shallow",
		"shallow (IsoRel's statements), deep (more forms, further nested, and transactions that meet), conflicts (writes of the same few "+
			"rows), or a YAML file that says how large everything is and how often each kind of statement comes (docs/fuzz.md)")
	f.StringSliceVar(&h.templates, "templates", nil, "scenarios, or directories of them, as of what another hunt found: "+
		"the transactions of every second dozen of rounds have the kinds of statements of one of them (docs/fuzz.md)")
	f.StringVar(&o.Dir, "out", o.Dir, "directory for what is found")
	f.DurationVar(&o.Patience, "patience", random.Patience,
		"how long a statement may take until the server counts as hung")
	f.IntVar(&o.Reduce, "reduce", o.Reduce, "how many findings of each anomaly and level to make small")
	f.DurationVar(&o.ReduceTime, "reduce-time", o.ReduceTime, "how long findings are made small after the hunt, all together, "+
		"wrong answers and violations first; 0: until all are small")
	f.BoolVar(&h.json, "json", false, "print the tally as JSON (docs/fuzz-json.md)")
	f.StringVar(&h.resume, "resume", "",
		"go on with the hunt whose findings are in this directory: with its next round, and what it did not make small yet")
	must(c.MarkFlagDirname("resume"))
	c.MarkFlagsMutuallyExclusive("resume", "out")
	c.MarkFlagsMutuallyExclusive("resume", "templates")
	c.RunE = func(c *cobra.Command, _ []string) error { return h.run(c) }
	return c
}

// A hunting is what the flags of `isotap fuzz` say.
type hunting struct {
	fuzz.Options
	on                          servers
	seen                        observing
	isolation, profile, oracles string
	templates                   []string
	json                        bool
	resume                      string
	levels                      asked[workload.Isolation]
	tallies                     []*fuzz.Tally // of servers that are done
}

// run hunts on all servers.
func (h *hunting) run(c *cobra.Command) error {
	if err := h.read(c); err != nil {
		return err
	}
	onStage, err := h.seen.options()
	if err != nil {
		return err
	}
	h.Version, h.Log = onStage.Version, c.ErrOrStderr()
	var status exitStatus
	out := h.Dir
	err = h.on.eachStage(c, onStage, func(s *runner.Runner) error {
		if len(h.on.engines)+len(h.on.upstreams) > 1 {
			h.Dir = filepath.Join(out, fmt.Sprintf("%d-%s", len(h.tallies)+1, s.Server.Engine))
		}
		tally, err := h.hunt(c, s, onStage)
		if tally == nil {
			return err
		}
		h.tallies = append(h.tallies, tally)
		if tally.Failed() {
			status = 1
		}
		h.Profile.Templates = fuzz.AddTemplates(h.Profile.Templates, tally.Templates()...)
		if !h.json {
			err = errors.Join(err, tally.Text(c.OutOrStdout()))
		}
		if err == nil && tally.End == fuzz.Interrupted {
			return errInterrupted
		}
		return err
	})
	if errors.Is(err, errInterrupted) {
		err = nil
	}
	if h.json && len(h.tallies) > 0 {
		err = errors.Join(err, fuzz.JSON(c.OutOrStdout(), h.tallies))
	}
	if err != nil {
		return err
	}
	return status.orNil()
}

// errInterrupted keeps a hunt that was interrupted from going on with the next server.
var errInterrupted = errors.New("the hunt was interrupted")

// read makes options of the flags, and of those of the hunt that is gone on with.
func (h *hunting) read(c *cobra.Command) (err error) {
	if h.resume != "" {
		if err := h.recall(c); err != nil {
			return err
		}
	}
	if h.ReduceTime < 0 {
		return fmt.Errorf("--reduce-time: %s is less than none", h.ReduceTime)
	}
	if h.levels, err = parseAsked("--isolation", h.isolation, workload.ParseIsolation); err != nil {
		return err
	}
	if h.Oracles, err = parseOracles(h.oracles); err != nil {
		return err
	}
	if h.From == nil {
		if h.Profile, err = readProfile(h.profile); err != nil {
			return err
		}
		if len(h.templates) > 0 {
			if h.Profile.Templates, err = readTemplates(h.templates); err != nil {
				return fmt.Errorf("--templates: %w", err)
			}
		}
		if h.Profile.Duration > 0 && !c.Flags().Changed("duration") {
			h.Duration = h.Profile.Duration
		}
	}
	h.Asked = map[string]string{"duration": h.Duration.String(), "rounds": strconv.Itoa(h.Rounds)}
	for _, name := range append(slices.Clone(sameFlags), freeFlags...) {
		h.Asked[name] = c.Flags().Lookup(name).Value.String()
	}
	return nil
}

// hunt hunts on one server.
func (h *hunting) hunt(c *cobra.Command, s *runner.Runner, onStage runner.Options) (*fuzz.Tally, error) {
	h.Levels = h.levels.of(workload.Isolations(s.Server.Engine))
	if len(h.Levels) == 0 {
		return nil, fmt.Errorf("--isolation: %s %s has none of these levels", s.Server.Engine, s.Server.Version)
	}
	h.ServerLog, h.Restart, h.Asked["engine"] = nil, nil, ""
	var others []*runner.Runner
	if h.on.started != nil {
		h.Asked["engine"] = h.on.engine.String()
		h.ServerLog = func() string { return h.on.started.Log() }
		h.Restart = func(context.Context) (*runner.Runner, error) {
			s, err := h.on.restart(c, onStage)
			if err == nil {
				others = append(others, s)
			}
			return s, err
		}
	}
	tally, err := fuzz.Run(c.Context(), s, h.Options)
	for _, s := range others {
		_ = s.Close() // it fails where the server is gone
	}
	return tally, err
}

// readTemplates makes templates of the scenarios of files and directories, or of isotap's catalogue.
func readTemplates(names []string) (all []random.Template, err error) {
	files, err := readScripts(names)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		for _, s := range f {
			if t, ok := fuzz.TemplateOf(s, s.File); ok {
				all = fuzz.AddTemplates(all, t)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no scenario of %s has transactions", strings.Join(names, ", "))
	}
	return all, nil
}

// parseOracles reads the names of oracles.
func parseOracles(text string) ([]fuzz.Oracle, error) {
	if text == "all" {
		return fuzz.Oracles(), nil
	}
	var all []fuzz.Oracle
	for name := range strings.SplitSeq(text, ",") {
		o := fuzz.Oracle(strings.TrimSpace(name))
		if !slices.Contains(fuzz.Oracles(), o) {
			return nil, fmt.Errorf("--oracle: there is no oracle %q: %v, or all", o, fuzz.Oracles())
		}
		all = append(all, o)
	}
	return all, nil
}

// readProfile returns the profile of a name, or reads that of a file.
func readProfile(name string) (p random.Profile, err error) {
	if p, ok := random.Named(name); ok {
		return p, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return p, fmt.Errorf("--profile: %w", err)
	}
	defer file.Close()
	d := yaml.NewDecoder(file)
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return p, fmt.Errorf("--profile: %s: %w", name, err)
	}
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("--profile: %s: %w", name, err)
	}
	return p, nil
}
