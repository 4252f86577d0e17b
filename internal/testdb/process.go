package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A process is a child that a goroutine of ours waits for.
type process struct {
	cmd  *exec.Cmd
	last syscall.Signal // ends it
	done chan struct{}  // closed once the process has ended and err is set
	err  error          // how it ended
}

// startProcess starts a program in dir as the user (nil: our own). What it prints goes to log. The signal
// last is what ends it, at the end of our own process too.
func startProcess(user *account, dir string, log *os.File, last syscall.Signal, program string,
	args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	prepare(cmd, user, dir, last)
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, last: last, done: make(chan struct{})}
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

// start starts the server's program with its log in the directory; last is the signal that ends it.
func (at installation) start(last syscall.Signal, args ...string) (*process, error) {
	log, err := os.Create(logFile(at.dir))
	if err != nil {
		return nil, fmt.Errorf("making the server's log: %w", err)
	}
	defer log.Close() // the server has its own handle
	return startProcess(at.user, at.dir, log, last, at.bin.server, args...)
}

// prepare runs the program that fills a data directory.
func (at installation) prepare(ctx context.Context, args ...string) error {
	if out, err := run(ctx, at.user, at.dir, at.bin.install, args...); err != nil {
		return fmt.Errorf("preparing a data directory with %s: %w\n%s", at.bin.install, err, tail(out))
	}
	return nil
}

// endTimeout is how long a process has to obey its signal.
const endTimeout = 15 * time.Second

// kill ends the process and its children and returns when it is gone.
func (p *process) kill() {
	signalGroup(p.cmd.Process, p.last)
	patience := time.NewTimer(endTimeout)
	defer patience.Stop()
	select {
	case <-p.done:
	case <-patience.C:
		signalGroup(p.cmd.Process, syscall.SIGKILL)
		<-p.done
	}
}

// askEvery is the time between two questions whether a server is there.
const askEvery = 20 * time.Millisecond

// await returns once ask, which looks whether the server answers, gives no error; with an error once the
// process has ended or ctx is done.
func (p *process) await(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended at once: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer: %w (%w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// run runs a program to its end, in dir as the user, and returns what it printed. When ctx is done
// first, the program and its children are killed.
func run(ctx context.Context, user *account, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	prepare(cmd, user, dir, syscall.SIGKILL)
	cmd.Cancel = func() error { signalGroup(cmd.Process, syscall.SIGKILL); return nil }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// prepare makes cmd run in dir as the user, in a process group of its own: so a Ctrl-C at the
// terminal reaches isotap alone, which then stops its server in its own time.
func prepare(cmd *exec.Cmd, user *account, dir string, last syscall.Signal) {
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "LC_ALL=C")
	cmd.SysProcAttr = attributes(user, last)
}
