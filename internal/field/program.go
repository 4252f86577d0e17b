package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A program is an application's server.
type program struct {
	path string
	args []string
	env  []string // added to the process's own
	dir  string   // where it runs; empty for here
	log  string   // the file for what it prints
	// ready is where a server that runs answers a request; any answer below 500 will do.
	ready string
	stop  os.Signal // what ends it; nil is os.Interrupt
}

// while starts the program, calls f once it answers, and stops it, with what it has started.
func (p program) while(ctx context.Context, f func() error) (err error) {
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close()
	stop := p.stop
	if stop == nil {
		stop = os.Interrupt
	}
	c := exec.CommandContext(ctx, p.path, p.args...)
	group(c)
	c.Cancel = func() error { return signalGroup(c, stop) }
	c.WaitDelay = 20 * time.Second
	c.Dir, c.Env, c.Stdout, c.Stderr = p.dir, append(os.Environ(), p.env...), log, log
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }() // received below
	defer func() {
		signalGroup(c, stop)
		select {
		case <-ended:
		case <-time.After(c.WaitDelay):
			signalGroup(c, os.Kill)
			<-ended
		}
	}()
	for range 1200 {
		select {
		case came := <-ended:
			ended <- came
			return fmt.Errorf("it ended by itself (%w): see %s", errors.Join(came, errEnded), p.log)
		case <-time.After(100 * time.Millisecond):
		}
		if r, err := http.Get(p.ready); err == nil {
			if r.Body.Close(); r.StatusCode < http.StatusInternalServerError {
				return f()
			}
		}
	}
	return fmt.Errorf("it does not answer at %s: see %s", p.ready, p.log)
}

// errEnded is of a server that does not run any more.
var errEnded = errors.New("no server")

// freeAddress returns one of this host at which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// command runs a program, with its output in the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	return commandWith(ctx, dir, nil, name, args...)
}

// commandWith does so with more in its environment.
func commandWith(ctx context.Context, dir string, env []string, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, out)
	}
	return nil
}
