package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/tap"
)

func runCommand() *cobra.Command {
	out := output{html: "isotap-report.html"}
	instrument := true
	c := &cobra.Command{
		Use:   "run --upstream URL -- COMMAND [ARGUMENT...]",
		Short: "Run a command against its database through isotap, and report",
		Long: `Starts a proxy on a free port, runs COMMAND with the proxy's address in its environment, and says
what its transactions risk.

COMMAND finds the proxy in DATABASE_URL (the --upstream URL with the proxy's address), MYSQL_HOST and
MYSQL_TCP_PORT, and MYSQL_DSN (for Go programs). Tables get isotap's invisible columns first, unless
--instrument=false says otherwise; isotap strip removes them.

The report goes to standard error, with --json to standard output, and then COMMAND's output to
standard error.

The exit status is COMMAND's own when that is not 0, otherwise 1 when there are findings (see --fail-on).`,
		Example: "  isotap run --upstream mysql://root@127.0.0.1:3306/shop -- go test ./...",
		Args:    cobra.MinimumNArgs(1),
	}
	defaults := defaultSettings()
	defaults.LogLevel = "warn"
	load := settingsFlags(c, defaults)
	out.flags(c)
	c.Flags().BoolVar(&instrument, "instrument", instrument, "add isotap's columns to the tables first")
	c.RunE = func(c *cobra.Command, command []string) error {
		s, err := load()
		if err != nil {
			return err
		}
		if err := out.check(); err != nil {
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
		o, err := s.options()
		if err != nil {
			return err
		}
		if instrument && !o.Off {
			if err := instrumentTarget(c, o.Upstream); err != nil {
				return err
			}
		}
		t, err := tap.Start(c.Context(), o)
		if err != nil {
			return err
		}
		failed := runChild(c, command, t.Environment(), out.json)
		if err := errors.Join(t.Stop(), ifNotExit(failed)); err != nil || o.Off {
			return errors.Join(err, failed)
		}
		result, err := tap.Analyze(c.Context(), []string{o.Recording}, analyzer.Options{})
		if err != nil {
			return err
		}
		if err := out.summarize(c, result); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		return out.status(result)
	}
	return c
}

// runChild runs the command with isotap's own input and output; with quiet, standard output is kept
// for the report, and the command's goes to standard error. A status other than 0 comes back as
// exitStatus.
func runChild(c *cobra.Command, command, env []string, quiet bool) error {
	child := exec.CommandContext(c.Context(), command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	if quiet {
		child.Stdout = c.ErrOrStderr()
	}
	child.Env = append(os.Environ(), env...)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	err := child.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitStatus(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}

func ifNotExit(err error) error {
	var status exitStatus
	if errors.As(err, &status) {
		return nil
	}
	return err
}
