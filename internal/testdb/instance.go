package testdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An instance is a server and how to log in to it: one that this process started, with its process and
// everything that it wrote, or somebody else's, which has neither.
type instance struct {
	dir     string
	process *process
	again   func(context.Context) error // launches the server once more, for Restart
	stop    sync.Once
	stopErr error

	host           string
	port           int
	user, password string
	version        string
}

// Addr is the server's TCP address, "host:port".
func (i *instance) Addr() string { return net.JoinHostPort(i.host, strconv.Itoa(i.port)) }

// Version is what the server says of itself: "10.11.19-MariaDB-0+deb12u1" in answer to SELECT VERSION(), or
// PostgreSQL's server_version, as "15.18 (Debian 15.18-0+deb12u1)".
func (i *instance) Version() string { return i.version }

// login are the user and the password as a URL has them.
func (i *instance) login() *url.Userinfo {
	if i.password != "" {
		return url.UserPassword(i.user, i.password)
	}
	return url.User(i.user)
}

// locate sets where the server at a URL is, and its login.
func (i *instance) locate(u *url.URL, defaultPort int) (err error) {
	i.host, i.port, i.user = u.Hostname(), defaultPort, u.User.Username()
	i.password, _ = u.User.Password()
	if u.Port() != "" {
		if i.port, err = strconv.Atoi(u.Port()); err != nil {
			return fmt.Errorf("port of the server's URL: %w", err)
		}
	}
	return nil
}

// Stop ends the server and removes everything it wrote. Further calls do nothing and give the
// first one's error.
func (i *instance) Stop() error {
	i.stop.Do(func() {
		if i.process != nil {
			i.process.kill()
		}
		if err := os.RemoveAll(i.dir); err != nil {
			i.stopErr = fmt.Errorf("removing a throw-away server's directory: %w", err)
		}
	})
	return i.stopErr
}

// Restart starts a server that this process started, and that has ended (see Signal), once more, on the same data and
// the same port, and waits until it answers. No other method may be called meanwhile. TiDB keeps nothing and is not
// started again.
func (i *instance) Restart(ctx context.Context) error {
	if i.again == nil {
		return errors.New("restart a throw-away server: this one keeps its data in memory, or is not ours")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		err := i.again(ctx)
		if err == nil {
			return nil
		}
		// What the killed server left may be in use for a moment: PostgreSQL's sessions, and the memory that they
		// share.
		select {
		case <-ctx.Done():
			return fmt.Errorf("restart a throw-away server: %w\n%s", err, i.Log())
		case <-tick.C:
		}
	}
}

// Log returns the end of what a server logged that this process started.
func (i *instance) Log() string { return logTail(i.dir) }

// Signal sends a signal to a server that this process started: to see what becomes of its clients.
func (i *instance) Signal(s syscall.Signal) { signalGroup(i.process.cmd.Process, s) }

// PID is the process of a server that this process started.
func (i *instance) PID() int { return i.process.cmd.Process.Pid }

// Done is closed when the server has ended, stopped or crashed.
func (i *instance) Done() <-chan struct{} { return i.process.done }

// A kind is what servers differ in when they are started: the engine's name in errors, the account that they run
// under where we are root (empty: our own), where their programs are, and what the log says of a port that is taken.
type kind struct {
	engine, account string
	find            func() (programs, error)
	taken           string
}

// An installation is what a server is started with: its programs, the user that runs it (nil: our own), and its
// directory.
type installation struct {
	bin  programs
	user *account
	dir  string
}

// startTimeout bounds how long a server may take until it answers: a second is usual; where fifty processes
// shared two cores, MariaDB's tables alone took more than a minute to install.
const startTimeout = 3 * time.Minute

// begin makes a directory, has prepare fill it, and has launch start a server there on a free port and wait
// until it answers. When that fails nothing is left.
func begin[S any](ctx context.Context, k kind, prepare func(context.Context, installation) error,
	launch func(context.Context, installation, int) (S, error)) (s S, err error) {
	var at installation
	if at.bin, err = k.find(); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if k.account != "" {
		if at.user, err = unprivilegedUser(k.account); err != nil {
			return s, err
		}
	}
	if at.dir, err = makeDirectory(at.user); err != nil {
		return s, err
	}
	if err = prepare(ctx, at); err == nil {
		s, err = onFreePort(ctx, k, at, launch)
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("starting %s: %w", k.engine, err), os.RemoveAll(at.dir))
	}
	return s, nil
}

// onFreePort launches a server until its port is its own: between the search for a free one and its use
// another process may take it.
func onFreePort[S any](ctx context.Context, k kind, at installation, launch func(context.Context, installation, int) (S,
	error)) (s S, err error) {
	for {
		port, err := freePort()
		if err != nil {
			return s, err
		}
		if s, err = launch(ctx, at, port); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !strings.Contains(logTail(at.dir), k.taken) {
			return s, fmt.Errorf("%w\n%s", err, logTail(at.dir))
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return port, nil
}
