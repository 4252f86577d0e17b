package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/explore"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/clone"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/report"
)

const exploreHelp = `Shows which requests race, from a run in which each ran alone: the writing transactions of a recording are
played once more in their order, on a copy of the database as it was before the run, and beside each program a twin of
itself, then of the other programs that use the same rows. What a twin reads and writes at the same time as the
transaction, and what it reads once that has committed, shows lost updates, double inserts and write skew. No twin commits.

URL names the database as it was before the run; it is copied on its own server, and stays as it is. isotap run makes
that copy by itself.

Exit status 1 says that a race is shown.`

// exploring is what isotap explore is told.
type exploring struct {
	recording, upstream, database string
	time                          time.Duration
	json                          bool
}

func exploreCommand() *cobra.Command {
	var o exploring
	c := &cobra.Command{
		Use:     "explore --recording DIR --upstream URL",
		Short:   "Play a recorded run again, and show which of its requests race",
		Long:    exploreHelp,
		Example: "  isotap explore --recording ./rec --upstream postgres://app@127.0.0.1/shop_before",
		Args:    noArguments,
	}
	f := c.Flags()
	f.StringVar(&o.recording, "recording", "", "the recording, with its values; its last run is played")
	f.StringVar(&o.upstream, "upstream", "", "the database as it was before the run")
	f.StringVar(&o.database, "database", "", "the database's name in the recording, if it is another one there")
	exploreTimeFlag(c, &o.time)
	f.BoolVar(&o.json, "json", false, "print the result as JSON (docs/explore.md)")
	must(c.MarkFlagRequired("recording"))
	must(c.MarkFlagRequired("upstream"))
	must(c.MarkFlagDirname("recording"))
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func exploreTimeFlag(c *cobra.Command, to *time.Duration) {
	c.Flags().DurationVar(to, "explore-time", explore.DefaultTime, "how long transactions are played beside twins at most")
}

func (o *exploring) run(c *cobra.Command) error {
	target, err := parseUpstream(o.upstream)
	if err != nil {
		return err
	}
	if target.Database == "" {
		return fmt.Errorf("--upstream %s names no database", target)
	}
	r, err := recorder.Open(o.recording)
	if err != nil {
		return err
	}
	defer r.Close()
	runs := r.Runs()
	if len(runs) == 0 {
		return fmt.Errorf("%s has no run", o.recording)
	}
	there, err := clone.Databases(c.Context(), target)
	if err != nil {
		return err
	}
	options := exploreOptions(target, cmp.Or(o.database, target.Database), runs[len(runs)-1].Run, there, o.time)
	result, err := explore.Explore(c.Context(), r, options)
	if err != nil {
		return err
	}
	print := result.Text
	if o.json {
		print = result.JSON
	}
	if err := print(c.OutOrStdout()); err != nil {
		return err
	}
	if slices.ContainsFunc(result.Races, func(r explore.Race) bool { return !r.Idle() }) {
		return exitStatus(statusFound)
	}
	return nil
}

// exploreOptions are those of playing a run on copies of a database. Database is the database's name in the recording,
// and there are those that were on the server before the run.
func exploreOptions(was dsn.Target, database string, run history.Run, there []string,
	limit time.Duration) explore.Options {
	return explore.Options{Was: was, Database: database, Run: run, Time: limit, Copy: clone.Temporary,
		Made:  func(name string) bool { return !slices.Contains(there, name) },
		Empty: func(ctx context.Context) (dsn.Target, func() error, error) { return clone.TemporaryEmpty(ctx, was) }}
}

// An exploreUse says when isotap run shows what could have happened.
type exploreUse string

// The uses.
const (
	exploreAuto    exploreUse = "auto" // where the database can be copied
	exploreRequire exploreUse = "require"
	exploreOff     exploreUse = "off"
)

// String, Set and Type make it a flag's value.
func (u *exploreUse) String() string { return string(*u) }

// Set reads one.
func (u *exploreUse) Set(text string) error {
	switch *u = exploreUse(text); *u {
	case exploreAuto, exploreRequire, exploreOff:
		return nil
	}
	return fmt.Errorf("it is %s, %s or %s", exploreAuto, exploreRequire, exploreOff)
}

// Type names what it is in the list of flags.
func (u *exploreUse) Type() string { return "use" }

// saysAfter is how long an exploration goes on without a word.
const saysAfter = 2 * time.Second

// exploreBytes is the size of the largest database that is copied where nobody has asked for it.
const exploreBytes = 64 << 20

// explorePatience is how long isotap run waits then until nobody else is connected to a PostgreSQL database.
const explorePatience = time.Second

// An exploringRun is what isotap run does beside running a command, to show what could have happened.
type exploringRun struct {
	use  exploreUse
	time time.Duration
	was  *clone.Clone // nil: nothing is to be explored
	of   string       // the database's name
	// there are the server's databases before the command starts.
	there []string
	races []report.Race // what was shown; nil: nothing was played
	twin  twinRun
}

func (e *exploringRun) flags(c *cobra.Command) {
	e.use = exploreAuto
	c.Flags().Var(&e.use, "explore", "show which requests race, by playing them again on a copy of the database (isotap explore): "+
		"auto, where it can be copied and has less than 64 MiB; require; or off")
	c.Flags().Lookup("explore").NoOptDefVal = string(exploreRequire)
	complete(c, "explore", string(exploreAuto), string(exploreRequire), string(exploreOff))
	exploreTimeFlag(c, &e.time)
	e.twin.flags(c)
}

// plays reports whether the command's transactions are played, on a copy or beside it.
func (e *exploringRun) plays() bool { return e.was != nil || e.twin.live != nil }

// begin copies the command's database, as it is before the command starts. Where that cannot be done it says why; it is
// an error where the exploration is required.
func (e *exploringRun) begin(c *cobra.Command, o *proxyserver.Options) error {
	if e.twin.on {
		return e.twin.begin(c, o)
	}
	if e.use == exploreOff {
		return nil
	}
	err := e.copy(c.Context(), o)
	var missing *needError
	switch {
	case err == nil || c.Context().Err() != nil:
		return err
	case e.use == exploreRequire:
		return fmt.Errorf("--explore: %w", err)
	}
	if !errors.As(err, &missing) { // those are what a flag of the user's says
		fmt.Fprintf(c.ErrOrStderr(), "isotap: what could have happened will not be shown (--explore=off leaves this out): %v\n", err)
	}
	return nil
}

// A needError is why there can be no exploration with a run's flags.
type needError struct{ text string }

func (e *needError) Error() string { return e.text }

func (e *exploringRun) copy(ctx context.Context, o *proxyserver.Options) error {
	switch {
	case o.Off || !o.Args:
		return &needError{"it plays what was recorded with its values: not with --mode off, nor with --record-values=false"}
	case o.Upstream.Database == "":
		return &needError{"it copies the database that --upstream names, and --upstream names none"}
	}
	var most clone.Options
	if e.use == exploreAuto {
		most.MaxBytes, most.Patience = exploreBytes, explorePatience
	}
	var err error
	e.of = o.Upstream.Database
	if e.there, err = clone.Databases(ctx, o.Upstream); err != nil {
		return err
	}
	e.was, err = clone.Make(ctx, o.Upstream, most)
	return err
}

// report plays what the command did, on copies of the copy. That it cannot is an error where it is required; that it
// was interrupted is none.
func (e *exploringRun) report(c *cobra.Command, recording string, run history.Run) error {
	if !e.plays() || c.Context().Err() != nil {
		return nil
	}
	if e.twin.live != nil {
		result, err := e.twin.result(c, recording, run)
		if err != nil {
			return err
		}
		return e.print(c, result)
	}
	err := e.explore(c, recording, run)
	if err == nil || e.use == exploreRequire && c.Context().Err() == nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: what could have happened is not shown: %v\n", err)
	return nil
}

func (e *exploringRun) explore(c *cobra.Command, recording string, run history.Run) error {
	r, err := recorder.Open(recording)
	if err != nil {
		return err
	}
	defer r.Close()
	patience := time.AfterFunc(saysAfter, func() {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: what could have happened is played on a copy, for %v at most "+
			"(--explore=off leaves it out)\n", e.time)
	})
	defer patience.Stop()
	result, err := explore.Explore(c.Context(), r, exploreOptions(e.was.Target(), e.of, run, e.there, e.time))
	patience.Stop()
	if err != nil {
		return fmt.Errorf("explore: %w", err)
	}
	if e.use == exploreAuto && result.Empty() {
		return nil // there is nothing to say that somebody asked for
	}
	return e.print(c, result)
}

// print shows what was played.
func (e *exploringRun) print(c *cobra.Command, result *explore.Result) error {
	e.races = result.Page()
	if _, err := fmt.Fprintln(c.ErrOrStderr()); err != nil {
		return err
	}
	return result.Text(c.ErrOrStderr())
}

// end drops the copy. Where nobody asked for it, what keeps it from that is said, and no error.
func (e *exploringRun) end(c *cobra.Command) error {
	if err := e.twin.end(); err != nil {
		return err
	}
	if e.was == nil {
		return nil
	}
	err := e.was.Drop(context.WithoutCancel(c.Context()))
	if err == nil || e.use == exploreRequire {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: a copy of the database is left: %v\n", err)
	return nil
}
