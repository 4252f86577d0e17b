package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/config"
	"github.com/isotap/isotap/internal/proxyserver"
)

const runHelp = `Starts a proxy on a free port, runs COMMAND with the proxy's address in its environment, and says
what its transactions risk.

COMMAND finds the proxy in DATABASE_URL (the --upstream URL with the proxy's address), in MYSQL_HOST and
MYSQL_TCP_PORT (or MYSQL_UNIX_PORT) and MYSQL_DSN (for Go programs), or for PostgreSQL in PGHOST, PGPORT
and PGSSLMODE, and in PGUSER, PGPASSWORD and PGDATABASE where these are not set. --env NAME=TEMPLATE sets a further variable, in which {host} {port} {user} {password}
{database} {url} {dsn} {socket} are filled in, and {{ and }} stand for braces.

Tables of MariaDB, MySQL and TiDB get isotap's columns first, unless --instrument=false says otherwise;
isotap strip removes them. PostgreSQL's stay as they are, but with --row-identity columns.

The report goes to standard error, with --json to standard output, and then COMMAND's output to
standard error.

A database of less than 64 MiB is copied on its server before COMMAND starts, if the login may. After the report COMMAND's
transactions are played again there, each beside a twin, which shows which requests race although they ran one after the
other (isotap explore). The copies are dropped. What is shown so has not happened, and leaves the exit status as it is.
--explore asks for it at any size up to 1 GiB, and fails where the database cannot be copied; --explore=off leaves it out.

With --twin no copy is made, and a database of any size is played on itself: isotap holds each COMMIT for up to a second,
and plays the same once more on a connection of its own, before and after it. That is rolled back. It leaves gaps in
sequences (AUTO_INCREMENT), which a test that asserts keys notices, and dead rows. Each program is played three times at most.

With --provoke isotap holds clients back for moments, between what they have read and what they write by it, until another
client comes that has read the same: races of clients that run at once show in seconds which take hours by chance. No
statement waits for longer than --provoke-max, nor do those of one transaction together. What is found so did happen: the
times alone were changed.

What statements looked for and did not find is recorded, too (--mode auto), but with
--record-values=false. The summary then says where --mode predicates would tell more.

Signals are passed on to COMMAND; the report follows once it has ended. Asked three times to end, it is
killed.

Exit status:
  0       COMMAND ended with 0, and there is no finding that --fail-on names
  1       there is such a finding
  2       isotap was used wrongly, or failed (a message says so)
  3       nothing was observed, or less than --min-coverage asks for
  N       COMMAND ended with N, whatever was found
  126     COMMAND cannot be run
  127     COMMAND is not there
  128+N   signal N ended COMMAND`

func runCommand() *cobra.Command {
	out := output{html: "isotap-report.html"}
	instrument := true
	var templates []string
	var also exploringRun
	var provokes provoking
	c := &cobra.Command{
		Use:   "run --upstream URL -- COMMAND [ARGUMENT...]",
		Short: "Run a command against its database through isotap, and report",
		Long:  runHelp,
		Example: "  isotap run --upstream mysql://root@127.0.0.1:3306/shop -- go test ./...\n" +
			"  isotap run --upstream postgres://app@127.0.0.1/shop -- pytest\n" +
			"  isotap run --upstream $DATABASE_URL --env 'DB_HOST={host}' --env 'DB_PORT={port}' -- npm test",
		Args: needs("COMMAND", 0),
	}
	defaults := config.Default()
	defaults.LogLevel, defaults.Mode = "warn", "auto"
	load := settingsFlags(c, defaults)
	// What follows COMMAND is COMMAND's own, with or without the --.
	c.Flags().SetInterspersed(false)
	out.flags(c)
	out.coverageFlag(c, 50)
	out.scope.add(c, "")
	var live watching
	live.flags(c, "live", "print findings as they are made, to standard error")
	c.Flags().BoolVar(&instrument, "instrument", instrument,
		"add isotap's columns to the tables first (on PostgreSQL: with --row-identity columns)")
	c.Flags().StringArrayVar(&templates, "env", nil,
		"NAME=TEMPLATE: a further variable for COMMAND, such as DB_HOST={host}; may be repeated")
	also.flags(c)
	provokes.flags(c)
	c.RunE = func(c *cobra.Command, command []string) error {
		s, err := load()
		if err != nil {
			return err
		}
		if err := errors.Join(checkRun(command[0], templates, &out), also.twin.check(c, also.use)); err != nil {
			return err
		}
		if s.Recording == "" {
			dir, err := os.MkdirTemp("", "isotap-")
			if err != nil {
				return fmt.Errorf("make a directory for the recording: %w", err)
			}
			defer os.RemoveAll(dir)
			s.Recording = filepath.Join(dir, "recording")
		}
		o, err := options(&s.Settings)
		if err != nil {
			return err
		}
		if o.Provoke, err = provokes.options(c, o.Off); err != nil {
			return err
		}
		if o.Logger, _, err = newLogger(s.LogLevel); err != nil {
			return err
		}
		live.scope = out.requests()
		if err := live.watch(&o, c.ErrOrStderr()); err != nil {
			return err
		}
		if instrument && !o.Off {
			if err := instrumentTarget(c, &o); err != nil {
				return err
			}
		}
		if err := also.begin(c, &o); err != nil {
			return err
		}
		o.Texts = also.plays()
		err = watch(c, command, templates, o, &out, &live, !instruments(&o) || !instrument, &also)
		if dropErr := also.end(c); err == nil {
			err = dropErr
		} else if dropErr != nil {
			fmt.Fprintln(c.ErrOrStderr(), "isotap:", dropErr)
		}
		return err
	}
	return c
}

// checkRun returns what is wrong with a run before anything is done for it.
func checkRun(program string, templates []string, out *output) error {
	for _, template := range templates {
		if err := proxyserver.CheckTemplate(template); err != nil {
			return fmt.Errorf("--env: %w", err)
		}
	}
	if err := out.check(); err != nil {
		return err
	}
	if _, err := exec.LookPath(program); err != nil {
		return notRun(program, err)
	}
	return nil
}

// notRun is why a program was not run, with the status that shells give for it.
func notRun(program string, err error) failure {
	status := exitStatus(notRunnable)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = notThere
	}
	return failure{fmt.Errorf("run %s: %w", program, err), status}
}

// The exit statuses of a command that was not run, as shells have them.
const (
	notRunnable = 126
	notThere    = 127
)

// watch runs the command through a proxy and reports. Says has it say first what the proxy cannot watch.
func watch(c *cobra.Command, command, templates []string, o proxyserver.Options, out *output, live *watching,
	says bool, also *exploringRun) error {
	// A signal ends the command. The proxy outlives it, and what was seen until then is reported.
	ctx := context.WithoutCancel(c.Context())
	srv, err := proxyserver.Start(ctx, o)
	if err != nil {
		return err
	}
	live.sayLate(c, srv)
	if says {
		sayUnwatched(c, srv)
	}
	env, err := environment(srv, templates)
	if err == nil && !o.Off {
		err = out.open()
	}
	var status exitStatus
	if err == nil {
		status, err = runChild(c, command, env, out.json)
	}
	if err := errors.Join(err, srv.Stop()); err != nil {
		return err
	}
	if o.Off {
		return status.orNil()
	}
	result, err := analysis.AnalyzeRun(ctx, o.Recording, srv.Run(), analyzer.Options{Scope: out.requests()})
	if err != nil {
		return err
	}
	result.Provoked = provoked(o.Provoke, srv.Provoked())
	live.rest(result)
	out.exploring = also.plays()
	if err := out.summarize(c, result); err != nil {
		return err
	}
	exploreErr := also.report(c, o.Recording, srv.Run())
	if out.exploring {
		out.races = also.races
		if err := out.writeHTML(result); err != nil {
			return err
		}
	}
	err = out.status(result)
	if status != 0 {
		err = status
	}
	if err != nil && exploreErr != nil { // the status is COMMAND's, or that of what was found
		fmt.Fprintln(c.ErrOrStderr(), "isotap:", exploreErr)
		exploreErr = nil
	}
	return cmp.Or(err, exploreErr)
}

// environment is a command's environment: isotap's own, and where the proxy is.
func environment(srv *proxyserver.Server, templates []string) ([]string, error) {
	place, err := srv.Environment()
	if err != nil {
		return nil, err
	}
	env := place.Environment(os.Environ())
	for _, template := range templates {
		variable, err := place.Expand(template)
		if err != nil {
			return nil, fmt.Errorf("--env: %w", err)
		}
		env = append(env, variable)
	}
	return env, nil
}
