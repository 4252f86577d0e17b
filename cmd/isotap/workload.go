package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/trial"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
)

const workloadHelp = `Runs a workload that is well known, through isotap, and holds two witnesses against each other: the
workload's own books, with the invariants that its authors hold to be so, and isotap's report.

The server is a throw-away one of --engine, or the one at --upstream, where it makes and drops the database
isotap_workload.

Exit status:
  0   the workload ran
  1   there are findings that --fail-on names, or an invariant is broken and isotap found nothing, or isotap
      itself failed`

func workloadCommand() *cobra.Command {
	out := output{failOn: "violation"}
	o := trial.Options{Options: known.Options{Scale: 1}}
	var on places
	var isolation string
	c := &cobra.Command{
		Use:     "workload NAME",
		Short:   "Run a known workload, and hold its invariants against the findings",
		Long:    workloadHelp + "\n\nWorkloads:\n" + workloads(),
		Example: "  isotap workload counter --engine mariadb --isolation 'READ COMMITTED'\n  isotap workload bank --upstream postgres://postgres@127.0.0.1/ --isolation SERIALIZABLE --clients 16",
		Args:    needs("NAME", 1),
	}
	for _, k := range known.Kinds {
		c.ValidArgs = append(c.ValidArgs, k.Name+"\t"+k.Short)
	}
	out.flags(c)
	on.flags(c, "run")
	f := c.Flags()
	f.StringVar(&isolation, "isolation", "", "the clients' isolation level; the server's default when not set")
	f.IntVar(&o.Config.Clients, "clients", workload.DefaultClients, "how many clients work at the same time")
	f.DurationVar(&o.Config.Duration, "duration", workload.DefaultDuration, "how long they begin transactions; 0 with --transactions for no bound")
	f.IntVar(&o.Config.Transactions, "transactions", 0, "how many transactions they run together; 0 for no bound")
	f.Float64Var(&o.Config.Rate, "rate", 0, "transactions a second of all together; 0 for as many as they can")
	f.DurationVar(&o.Config.Think, "think", workload.DefaultThink, "time between reading and writing, and up to as much again")
	f.Uint64Var(&o.Config.Seed, "seed", 1, "chooses what the clients do")
	f.IntVar(&o.Scale, "scale", o.Scale, "how much there is of everything")
	f.BoolVar(&o.Plant, "plant", false, "plant a mistake in a workload that has none")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := out.check(); err != nil {
			return err
		}
		if isolation != "" {
			if o.Config.Level, err = history.ParseLevel(strings.ToUpper(isolation)); err != nil {
				return fmt.Errorf("--isolation: %w", err)
			}
		}
		o.Workload, o.Version = args[0], isotapVersion()
		if _, err := known.New(o.Workload, o.Options); err != nil {
			return err
		}
		targets, stop, err := on.open(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		var status exitStatus
		for _, target := range targets {
			failed, err := out.try(c, target, o)
			if err != nil {
				return err
			}
			if failed {
				status = 1
			}
		}
		return status.orNil()
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

// try runs a workload on one server, prints what both witnesses say, and says whether that is a failure. The report as JSON has standard output for
// itself.
func (o *output) try(c *cobra.Command, target catalog.Target, t trial.Options) (failed bool, err error) {
	did, err := trial.Run(c.Context(), target, t)
	if err != nil {
		return false, err
	}
	books := c.OutOrStdout()
	if o.json {
		books = c.ErrOrStderr()
	}
	fmt.Fprintf(books, "%s, by its own books:\n%v\n", did.Workload, did.Outcome)
	if err := o.write(c, did.Result); err != nil {
		return false, err
	}
	fmt.Fprintf(books, "\n%s\n", did.Verdict())
	return did.Missed() || o.status(did.Result) != nil, nil
}
