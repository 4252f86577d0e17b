package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

const workloadHelp = `Runs a workload that is well known, through isotap, and holds two witnesses against each other: the
workload's own books, with the invariants that its authors hold to be so, and isotap's report.

The server is a throw-away one of --engine, or the one at --upstream, where it makes and drops the database
isotap_workload; where there is one of that name already, isotap_workload_2, and so on: it drops only what it
made. With several levels or servers, files of reports hold the last run.

Exit status:
  0   the workload ran
  1   there are findings that --fail-on names, or an invariant is broken and isotap found nothing, or isotap
      itself failed`

func workloadCommand() *cobra.Command {
	out := output{failOn: "violation"}
	o := tempdb.WorkloadOptions{Options: known.Options{Scale: 1}}
	var on servers
	var isolation string
	c := &cobra.Command{
		Use:   "workload NAME",
		Short: "Run a known workload, and hold its invariants against the findings",
		Long:  workloadHelp + "\n\nWorkloads:\n" + workloads(),
		Example: "  isotap workload counter --engine mariadb --isolation 'READ COMMITTED'\n" +
			"  isotap workload bank --upstream postgres://postgres@127.0.0.1/ --isolation SERIALIZABLE --clients 16",
		Args: needs("NAME", 1),
	}
	for _, k := range known.Kinds {
		c.ValidArgs = append(c.ValidArgs, k.Name+"\t"+k.Short)
	}
	out.flags(c)
	on.flags(c, "run")
	f := c.Flags()
	f.StringVar(&isolation, "isolation", "",
		"the clients' isolation levels, one run for each, separated by commas, or all that the server has; "+
			"the server's default when not set; OPTIMISTIC behind one is for TiDB")
	f.IntVar(&o.Config.Clients, "clients", workload.DefaultClients, "how many clients work at the same time")
	f.DurationVar(&o.Config.Duration, "duration", workload.DefaultDuration,
		"how long they begin transactions; 0 with --transactions for no bound")
	f.IntVar(&o.Config.Transactions, "transactions", 0, "how many transactions they run together; 0 for no bound")
	f.Float64Var(&o.Config.Rate, "rate", 0, "transactions a second of all together; 0 for as many as they can")
	f.DurationVar(&o.Config.Think, "think", workload.DefaultThink,
		"time between reading and writing, and up to as much again")
	f.Uint64Var(&o.Config.Seed, "seed", 1, "chooses what the clients do")
	f.IntVar(&o.Scale, "scale", o.Scale, "how much there is of everything")
	f.StringVar(&o.Recording, "recording", "",
		"keep what is recorded in this directory, for isotap analyze and isotap robust")
	f.BoolVar(&o.Plant, "plant", false, "plant a mistake in a workload that has none")
	must(c.MarkFlagDirname("recording"))
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := out.check(); err != nil {
			return err
		}
		levels, err := parseAsked("--isolation", isolation, workload.ParseIsolation)
		if err != nil {
			return err
		}
		o.Workload, o.Version = args[0], isotapVersion()
		if _, err := known.New(o.Workload, o.Options); err != nil {
			return err
		}
		t := trying{output: &out, command: c, options: o, levels: levels}
		if err := on.each(c, t.at); err != nil {
			return err
		}
		return t.end()
	}
	return c
}

// workloads lists them, a line each.
func workloads() string {
	var b strings.Builder
	for _, k := range known.Kinds {
		fmt.Fprintf(&b, "  %-12s %s\n", k.Name, k.Short)
	}
	return b.String()
}

// A trying is what the flags of `isotap workload` ask for, and what came of it.
type trying struct {
	*output
	command *cobra.Command
	options tempdb.WorkloadOptions
	levels  asked[workload.Isolation]
	said    []string // of each run
	failed  bool
}

// at runs the workload on one server, at each of its levels that are asked for.
func (t *trying) at(target dsn.Target) error {
	server, err := engine.Identify(t.command.Context(), target)
	if err != nil {
		return err
	}
	isolations := []workload.Isolation{{}} // the server's default
	if !t.levels.none() {
		isolations = t.levels.of(workload.Isolations(server.Engine))
	}
	if len(isolations) == 0 {
		return fmt.Errorf("--isolation: %s %s has none of these levels", server.Engine, server.Version)
	}
	for _, i := range isolations {
		t.options.Config.Isolation = i
		if err := t.once(target, server); err != nil {
			return err
		}
	}
	return nil
}

// books is where the workload's own word goes: the report as JSON has standard output for itself.
func (t *trying) books() io.Writer {
	if t.json {
		return t.command.ErrOrStderr()
	}
	return t.command.OutOrStdout()
}

// once runs the workload once, and prints what both witnesses say.
func (t *trying) once(target dsn.Target, server history.Server) error {
	did, err := tempdb.RunWorkload(t.command.Context(), target, t.options)
	if err != nil {
		return err
	}
	at := "its default level"
	if i := t.options.Config.Isolation; i != (workload.Isolation{}) {
		at = i.String()
	}
	where := fmt.Sprintf("%s %s at %s", server.Engine, server.Version, at)
	fmt.Fprintf(t.books(), "%s on %s, by its own books:\n%v\n", did.Workload, where, did.Outcome)
	if err := t.write(t.command, did.Result); err != nil {
		return err
	}
	fmt.Fprintf(t.books(), "\n%s\n\n", did.Verdict())
	t.said = append(t.said, where+": "+did.Verdict())
	t.failed = t.failed || did.Missed() || t.status(did.Result) != nil
	return nil
}

// end sums several runs up, and returns the exit status.
func (t *trying) end() error {
	if len(t.said) > 1 {
		fmt.Fprintln(t.books(), strings.Join(t.said, "\n"))
	}
	if t.failed {
		return exitStatus(statusFound)
	}
	return nil
}
