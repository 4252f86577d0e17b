package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/levels"
	"github.com/isotap/isotap/scenario/runner"
)

const levelsHelp = `Says which anomalies each isolation level of a server permits: Hermitage's scenarios are played at all of them,
and a table says what came of it, with a sentence or two on each level. It takes some seconds.

MariaDB's REPEATABLE READ and SERIALIZABLE are played with innodb_snapshot_isolation off and on, TiDB's levels with
pessimistic and optimistic transactions.

No table of yours is touched: all happens in databases (on PostgreSQL: schemas) named isotap_replay_..., which are made
for it and dropped at the end, after an error and after Ctrl-C, too (a second Ctrl-C leaves them). That takes the right
to make them and, on MariaDB, MySQL and TiDB, the right PROCESS: the server is asked who waits for a lock. What is
written there is in the server's own log and goes to its replicas, as all that is written.

FILE is a scenario, or anything else that isotap replay plays, in place of isotap's own. One without a witness
(docs/scenarios.md) is played through isotap, which is slower, and permitted is what isotap finds of its anomalies.`

// A measuring is what the flags of `isotap levels` say.
type measuring struct {
	on      servers
	levels  string
	timeout time.Duration
	json    bool
}

func levelsCommand() *cobra.Command {
	var o measuring
	c := &cobra.Command{
		Use:   "levels URL [FILE...]",
		Short: "Say which anomalies each isolation level of a server permits",
		Long:  levelsHelp,
		Example: "  isotap levels mysql://root@127.0.0.1:3306/\n" +
			"  isotap levels --level 'READ COMMITTED,SERIALIZABLE' postgres://postgres@127.0.0.1/\n" +
			"  isotap levels --engine mariadb --json",
	}
	f := c.Flags()
	o.on.flags(c, "measure")
	f.StringVar(&o.levels, "level", "", "these levels alone, separated by commas; all that the server has when not set")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long all of it may take")
	f.BoolVar(&o.json, "json", false, "print the table as JSON (docs/levels-json.md)")
	complete(c, "level", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
	c.RunE = o.run
	return c
}

// run measures one server.
func (o *measuring) run(c *cobra.Command, args []string) error {
	if len(o.on.engines)+len(o.on.upstreams) == 0 {
		if err := needs("URL", 0)(c, args); err != nil {
			return err
		}
		if _, err := dsn.Parse(args[0]); err != nil {
			return err
		}
		o.on.upstreams, args = args[:1], args[1:]
	}
	for _, file := range args {
		if strings.Contains(file, "://") { // which may hold a password, so that it is not printed
			return errors.New("the address of a server stands where a file is to be: levels are of one server")
		}
	}
	if err := o.on.one(); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return errors.New("--timeout must be more than 0")
	}
	asked, err := parseAsked("--level", o.levels, history.ParseLevel)
	if err != nil {
		return err
	}
	scripts, err := readScripts(args)
	if err != nil {
		return err
	}
	seen := observing{mode: predicatesMode, identity: columnsIdentity, log: "off"}
	options, err := seen.options()
	if err != nil {
		return err
	}
	return o.on.eachStage(c, options, func(s *runner.Runner) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), o.timeout,
			fmt.Errorf("it was not done within %v (--timeout)", o.timeout))
		defer cancel()
		var own levels.Own
		if o.on.started != nil {
			own = func(ctx context.Context, args []string) (*runner.Runner, func() error, error) {
				return o.on.startOwn(ctx, options, args)
			}
		}
		t, err := measure(ctx, s, scripts, asked, own)
		if err != nil {
			return err
		}
		if o.json {
			return t.JSON(c.OutOrStdout())
		}
		return t.Text(c.OutOrStdout())
	})
}

// measure makes the table of a server, of isotap's own rows or of the scripts.
func measure(ctx context.Context, on *runner.Runner, scripts []script, asked asked[history.Level],
	own levels.Own) (*levels.Table, error) {
	columns, err := levels.Columns(on, asked.names)
	if err != nil {
		return nil, fmt.Errorf("--level: %w", err)
	}
	rows, err := levels.Catalogue()
	if len(scripts) > 0 {
		rows, err = levels.Each(scenariosFor(on, scripts)), nil
	}
	if err != nil {
		return nil, err
	}
	return levels.Measure(ctx, on, columns, rows, own)
}

// scenariosFor are those of the scripts that are written for a server.
func scenariosFor(on *runner.Runner, scripts []script) []*scenario.Scenario {
	var all []*scenario.Scenario
	for _, s := range scripts {
		for _, sc := range s {
			if sc.RunsOn(on.Server) {
				all = append(all, sc)
			}
		}
	}
	return all
}
