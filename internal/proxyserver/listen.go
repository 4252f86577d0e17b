package proxyserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
)

// defaultSocketMode lets only isotap's own user connect to a unix socket: servers that go by who connects
// take isotap's clients for isotap.
const defaultSocketMode fs.FileMode = 0o600

// systemdAddress is the address of the sockets that systemd opened, all of them or, behind a colon, those of one name.
const systemdAddress = "systemd"

// listen opens the addresses of a list: "host:port", "unix:/path", "systemd" or "systemd:name", separated by commas. A
// TCP address is shared with other processes if share is set.
func listen(addresses string, mode fs.FileMode, share bool) ([]net.Listener, error) {
	var all []net.Listener
	for address := range strings.SplitSeq(addresses, ",") {
		some, err := listenAt(strings.TrimSpace(address), mode, share)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for clients: %w", err), closeAll(all))
		}
		all = append(all, some...)
	}
	return all, nil
}

func listenAt(address string, mode fs.FileMode, share bool) ([]net.Listener, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	var l net.Listener
	var err error
	switch {
	case scheme == systemdAddress:
		return inherited(rest)
	case scheme == "unix":
		l, err = listenUnix(rest, mode)
	case share:
		l, err = listenShared(address)
	default:
		l, err = net.Listen("tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return []net.Listener{l}, nil
}

// inherited returns the sockets that systemd opened for this process (sd_listen_fds(3)), all of them or those of one
// name (FileDescriptorName=). They stay open in systemd when they are closed here.
func inherited(name string) ([]net.Listener, error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("take over systemd's sockets: %w", err)
	}
	var taken, left []net.Listener
	for n, listeners := range named {
		if name == "" || n == name {
			taken = append(taken, listeners...)
		} else {
			left = append(left, listeners...)
		}
	}
	if len(taken) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: systemd has passed no such socket on to this process "+
			"(LISTEN_FDS, LISTEN_FDNAMES)", strings.TrimSuffix(systemdAddress+":"+name, ":")), closeAll(left))
	}
	return taken, closeAll(left)
}

// listenUnix listens on a socket at path. One in the abstract namespace has no permissions.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if strings.HasPrefix(path, "@") {
		return nil, fmt.Errorf("unix:%s: a socket in the abstract namespace has no permissions, "+
			"so that every user could connect: give a path", path)
	}
	if err := replaceStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// replaceStale removes a socket at path that nobody listens on any more: its process was killed. What
// else is there stays.
func replaceStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", path)
	case inUse(path):
		return fmt.Errorf("%s: another process listens there: %w", path, syscall.EADDRINUSE)
	}
	// Another process may be about to do the same. What is moved aside is looked at again, so that its
	// new socket is not taken for the stale one.
	aside := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	if inUse(aside) {
		return errors.Join(fmt.Errorf("%s: another process listens there: %w", path, syscall.EADDRINUSE),
			os.Rename(aside, path))
	}
	return os.Remove(aside)
}

// inUse reports whether a process listens on a socket, or may do so.
func inUse(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED)
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Addr is where clients connect: the first TCP address there is, or else the first socket.
func (srv *Server) Addr() net.Addr {
	if tcp := srv.addrOf("tcp"); tcp != nil {
		return tcp
	}
	return srv.listeners[0].Addr()
}

func (srv *Server) addrOf(network string) net.Addr {
	for _, l := range srv.listeners {
		if l.Addr().Network() == network {
			return l.Addr()
		}
	}
	return nil
}

// Addresses names all the places where clients connect, for people to read.
func (srv *Server) Addresses() string {
	names := make([]string, len(srv.listeners))
	for i, l := range srv.listeners {
		names[i] = l.Addr().String()
	}
	return strings.Join(names, " and ")
}
