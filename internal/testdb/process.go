package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// A process is a child that a goroutine of ours waits for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended and err is set
	err  error         // how it ended
}

// startProcess starts a program in dir as the user (nil: our own). What it prints goes to log.
func startProcess(user *account, dir string, log *os.File, program string, args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	prepare(cmd, user, dir)
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux ends the child when the thread that started it ends. Locked, this one lives as long
		// as the goroutine: as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return p, nil
}

// kill ends the process and its children and returns when it is gone.
func (p *process) kill() {
	killGroup(p.cmd.Process)
	<-p.done
}

// run runs a program to its end, in dir as the user, and gives what it printed. When ctx is done
// first, the program and its children are killed.
func run(ctx context.Context, user *account, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	prepare(cmd, user, dir)
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// prepare makes cmd run in dir as the user, in a process group of its own: so a Ctrl-C at the
// terminal reaches isotap alone, which then stops its server in its own time.
func prepare(cmd *exec.Cmd, user *account, dir string) {
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "LC_ALL=C")
	cmd.SysProcAttr = attributes(user)
}
