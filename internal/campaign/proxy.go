//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// patience is how long a campaign waits for what must come.
const patience = 2 * time.Minute

// A proxy is an "isotap proxy" that runs as a process of its own. It dies with the campaign.
type proxy struct {
	cmd     *exec.Cmd
	log     string        // the file of what it prints
	address string        // where clients connect
	metrics string        // the URL of its metrics
	done    chan struct{} // closed once it has ended and err is set
	err     error
}

var (
	clientsConnect = regexp.MustCompile(`isotap: clients connect to (\S+),.*\n`)
	metricsAt      = regexp.MustCompile(`isotap: metrics and health are at (\S+/metrics),`)
)

// startProxy runs "isotap proxy" with arguments, its output in the file log, and waits until it serves clients.
func startProxy(ctx context.Context, program, log string, args ...string) (*proxy, error) {
	return startCommand(ctx, exec.Command(program,
		append([]string{"proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...), log)
}

// startCommand is startProxy with the whole command. The proxy has an admin address.
func startCommand(ctx context.Context, cmd *exec.Cmd, log string) (*proxy, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the proxy's log: %w", err)
	}
	defer out.Close() // the proxy has its own handle
	before, err := out.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at the proxy's log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &proxy{cmd: cmd, log: log, done: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, err
	}
	if err := p.awaitAddress(ctx, before.Size()); err != nil {
		p.end(syscall.SIGKILL, patience)
		return nil, err
	}
	return p, nil
}

// start starts the process and leaves a goroutine that waits for its end.
func (p *proxy) start() error {
	started := make(chan error)
	go func() {
		// The kernel kills the process when the thread that started it ends: this one lives as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start isotap: %w", err)
	}
	return nil
}

// awaitAddress waits for the lines that say where the proxy listens. What the log had before, offset bytes, is not of
// this proxy.
func (p *proxy) awaitAddress(ctx context.Context, offset int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return fmt.Errorf("read the proxy's log: %w", err)
		}
		text = text[offset:]
		if clients, metrics := clientsConnect.FindSubmatch(text), metricsAt.FindSubmatch(text); clients != nil &&
			metrics != nil {
			p.address, p.metrics = string(clients[1]), string(metrics[1])
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the proxy ended at once: %w\n%s", p.err, text)
		case <-ctx.Done():
			return fmt.Errorf("the proxy does not serve: %w\n%s", ctx.Err(), text)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// alive reports whether the process runs.
func (p *proxy) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

var errEndedByItself = errors.New("the proxy had ended by itself")

// kill ends the process with SIGKILL and returns when it is gone. The error is errEndedByItself where it was before.
func (p *proxy) kill() error {
	alive := p.alive()
	err := p.end(syscall.SIGKILL, patience)
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !alive || ok && !status.Signaled() {
		return fmt.Errorf("%w: %v", errEndedByItself, p.err)
	}
	return err
}

// stop ends the process as an operator does, and returns what it said at its end: nil for exit status 0.
func (p *proxy) stop(limit time.Duration) error {
	if err := p.end(syscall.SIGTERM, limit); err != nil {
		return errors.Join(err, p.end(syscall.SIGKILL, patience))
	}
	return p.err
}

// end sends the signal and waits until the process is gone, an error after the limit.
func (p *proxy) end(s syscall.Signal, limit time.Duration) error {
	if p.alive() {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal the proxy: %w", err)
		}
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("the proxy did not end within %v of signal %v", limit, s)
	}
}

// wentUnobserved reports whether a proxy printed that a session goes on unobserved.
func wentUnobserved(log string) (bool, error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return false, fmt.Errorf("read the proxy's log: %w", err)
	}
	return bytes.Contains(text, []byte("the session goes on unobserved")), nil
}

// panics counts the panics in what a proxy printed.
func panics(log string) (n int64, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, fmt.Errorf("read the proxy's log: %w", err)
	}
	for _, sign := range []string{"panic: ", "fatal error: ", "isotap failed", "DATA RACE"} {
		n += int64(bytes.Count(text, []byte(sign)))
	}
	return n, nil
}
