package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// runChild runs the command in the environment env with isotap's own input and output, passes signals on, and returns
// the status the command ended with. With quiet, standard output is kept for the report, and the command's goes to
// standard error.
func runChild(c *cobra.Command, command, env []string, quiet bool) (exitStatus, error) {
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	if quiet {
		child.Stdout = c.ErrOrStderr()
	}
	child.Env = env
	// From before the start, so that none is lost; a signal before it ended isotap's context.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if err := c.Context().Err(); err != nil {
		return 0, fmt.Errorf("run %s: %w", command[0], err)
	}
	if err := child.Start(); err != nil {
		return 0, notRun(command[0], err)
	}
	ended := make(chan struct{})
	go forward(child.Process, signals, ended)
	err := child.Wait()
	close(ended)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return statusOf(exit.ProcessState), nil
	}
	return 0, fmt.Errorf("run %s: %w", command[0], err)
}

// patience is how many times a command may be asked to end before it is killed.
const patience = 3

// forward passes signals on until the process has ended. What a terminal sends on Ctrl-C reaches the
// command by itself, and twice would be once too often.
func forward(p *os.Process, signals <-chan os.Signal, ended <-chan struct{}) {
	for asked := 0; ; {
		select {
		case <-ended:
			return
		case s := <-signals:
			if s == os.Interrupt || s == syscall.SIGTERM {
				asked++
			}
			switch {
			case asked >= patience:
				_ = p.Kill() // an error: it has just ended
			case fromTerminal(s):
			default:
				_ = p.Signal(s)
			}
		}
	}
}

// statusOf is a process's exit status as shells have it: 128 and the number of the signal that ended
// it.
func statusOf(p *os.ProcessState) exitStatus {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + exitStatus(w.Signal())
	}
	return exitStatus(p.ExitCode())
}
