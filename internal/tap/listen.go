package tap

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// defaultSocketMode lets only isotap's own user connect to a unix socket: servers that go by who connects
// take isotap's clients for isotap.
const defaultSocketMode fs.FileMode = 0o600

// listen opens the addresses of a list: "host:port" or "unix:/path", separated by commas.
func listen(addresses string, mode fs.FileMode) ([]net.Listener, error) {
	var all []net.Listener
	for address := range strings.SplitSeq(addresses, ",") {
		l, err := listenAt(strings.TrimSpace(address), mode)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for clients: %w", err), closeAll(all))
		}
		all = append(all, l)
	}
	return all, nil
}

func listenAt(address string, mode fs.FileMode) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
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
		return errors.Join(fmt.Errorf("%s: another process listens there: %w", path, syscall.EADDRINUSE), os.Rename(aside, path))
	}
	return os.Remove(aside)
}

// inUse says whether a process listens on a socket, or may do so.
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
func (t *Tap) Addr() net.Addr {
	if tcp := t.addrOf("tcp"); tcp != nil {
		return tcp
	}
	return t.listeners[0].Addr()
}

func (t *Tap) addrOf(network string) net.Addr {
	for _, l := range t.listeners {
		if l.Addr().Network() == network {
			return l.Addr()
		}
	}
	return nil
}

// Addresses names all the places where clients connect, for people to read.
func (t *Tap) Addresses() string {
	names := make([]string, len(t.listeners))
	for i, l := range t.listeners {
		names[i] = l.Addr().String()
	}
	return strings.Join(names, " and ")
}
