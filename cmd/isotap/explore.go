package main

import (
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
)

const exploreHelp = `Shows which requests race, from a run in which each ran alone: the writing transactions of a recording are
played once more in their order, on a copy of the database as it was before the run, and beside each program a twin of
itself, then of the other programs that use the same rows. What a twin reads and writes at the same time as the
transaction, and what it reads once that has committed, shows lost updates, double inserts and write skew. No twin commits.

URL names the database as it was before the run; it is copied on its own server, and stays as it is. isotap run --explore
makes that copy by itself.

Exit status 1 says that a race is shown.`

// exploring is what isotap explore is told.
type exploring struct {
	recording, upstream string
	time                time.Duration
	json                bool
}

func exploreCommand() *cobra.Command {
	var o exploring
	c := &cobra.Command{
		Use:     "explore --recording DIR --upstream URL",
		Short:   "Play a recorded run again, and show which of its requests race",
		Long:    exploreHelp,
		Example: "  isotap explore --recording ./rec --upstream postgres://app@127.0.0.1/shop_before",
		Args:    cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVar(&o.recording, "recording", "", "the recording, with its values; its last run is played")
	f.StringVar(&o.upstream, "upstream", "", "the database as it was before the run")
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
	result, err := exploreOn(c.Context(), r, runs[len(runs)-1].Run, target, o.time)
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
	if slices.ContainsFunc(result.Races, func(r explore.Race) bool { return r.Kind != explore.SameAgain }) {
		return exitStatus(statusFound)
	}
	return nil
}

// exploreOn plays a run on copies of a database.
func exploreOn(ctx context.Context, r *recorder.Reader, run history.Run, was dsn.Target,
	limit time.Duration) (*explore.Result, error) {
	return explore.Explore(ctx, r, explore.Options{Family: was.Family, Run: run, Time: limit,
		Fresh: func(ctx context.Context) (dsn.Target, func() error, error) {
			copied, err := clone.Make(ctx, was, clone.Options{})
			if err != nil {
				return dsn.Target{}, nil, err
			}
			return copied.Target(), func() error { return copied.Drop(context.WithoutCancel(ctx)) }, nil
		}})
}

// An exploringRun is what isotap run --explore does beside running a command.
type exploringRun struct {
	wanted bool
	time   time.Duration
	was    *clone.Clone // nil: nothing is to be explored
}

// begin copies the command's database, as it is before the command starts.
func (e *exploringRun) begin(ctx context.Context, o *proxyserver.Options) error {
	switch {
	case !e.wanted:
		return nil
	case o.Off || !o.Args:
		return errors.New("--explore plays what was recorded with its values: not with --mode off, nor with --record-values=false")
	case o.Upstream.Database == "":
		return errors.New("--explore copies the database that --upstream names, and it names none")
	}
	var err error
	if e.was, err = clone.Make(ctx, o.Upstream, clone.Options{}); err != nil {
		return fmt.Errorf("--explore: %w", err)
	}
	return nil
}

// report plays what the command did, on copies of the copy.
func (e *exploringRun) report(c *cobra.Command, recording string, run history.Run) error {
	if e.was == nil {
		return nil
	}
	r, err := recorder.Open(recording)
	if err != nil {
		return err
	}
	defer r.Close()
	result, err := exploreOn(c.Context(), r, run, e.was.Target(), e.time)
	if err != nil {
		return fmt.Errorf("--explore: %w", err)
	}
	if _, err := fmt.Fprintln(c.ErrOrStderr()); err != nil {
		return err
	}
	return result.Text(c.ErrOrStderr())
}

// end drops the copy.
func (e *exploringRun) end(ctx context.Context) error {
	if e.was == nil {
		return nil
	}
	return e.was.Drop(context.WithoutCancel(ctx))
}
