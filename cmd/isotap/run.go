package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/config"
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

SIGINT and SIGTERM interrupt COMMAND; the report follows once it has ended.

The exit status is COMMAND's own when that is not 0 (128 and the signal's number when a signal ended
it), otherwise 1 when there are findings (see --fail-on).`,
		Example: "  isotap run --upstream mysql://root@127.0.0.1:3306/shop -- go test ./...",
		Args:    needs("COMMAND", 0),
	}
	defaults := config.Default()
	defaults.LogLevel = "warn"
	load := settingsFlags(c, defaults)
	// What follows COMMAND is COMMAND's own, with or without the --.
	c.Flags().SetInterspersed(false)
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
		if _, err := exec.LookPath(command[0]); err != nil {
			return fmt.Errorf("run %s: %w", command[0], err)
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
		if o.Logger, _, err = newLogger(s.LogLevel); err != nil {
			return err
		}
		if instrument && !o.Off {
			if err := instrumentTarget(c, o.Upstream); err != nil {
				return err
			}
		}
		return watch(c, command, o, &out)
	}
	return c
}

// watch runs the command through a proxy and reports.
func watch(c *cobra.Command, command []string, o tap.Options, out *output) error {
	// A signal ends the command. The proxy outlives it, and what was seen until then is reported.
	ctx := context.WithoutCancel(c.Context())
	t, err := tap.Start(ctx, o)
	if err != nil {
		return err
	}
	status, err := runChild(c, command, t.Environment(), out.json)
	if err := errors.Join(err, t.Stop()); err != nil {
		return err
	}
	if o.Off {
		return status.orNil()
	}
	result, err := tap.AnalyzeRun(ctx, o.Recording, t.Run(), analyzer.Options{})
	if err != nil {
		return err
	}
	if err := out.summarize(c, result); err != nil {
		return err
	}
	if status != 0 {
		return status
	}
	return out.status(result)
}

// runChild runs the command with isotap's own input and output, and gives the status it ended with.
// With quiet, standard output is kept for the report, and the command's goes to standard error.
func runChild(c *cobra.Command, command, env []string, quiet bool) (exitStatus, error) {
	child := exec.CommandContext(c.Context(), command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	if quiet {
		child.Stdout = c.ErrOrStderr()
	}
	child.Env = append(os.Environ(), env...)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	err := child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, child.ProcessState != nil && errors.Is(err, context.Canceled):
		return 0, nil
	case errors.As(err, &exit):
		return statusOf(exit.ProcessState), nil
	}
	return 0, fmt.Errorf("run %s: %w", command[0], err)
}

// statusOf is a process's exit status as shells have it: 128 and the number of the signal that ended
// it.
func statusOf(p *os.ProcessState) exitStatus {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + exitStatus(w.Signal())
	}
	return exitStatus(p.ExitCode())
}
