// Package tail lets other processes watch a recording while it is written, which only one process may open: the one
// that writes serves the recording's transactions on a unix socket in its directory, as the JSON lines that isotap
// export writes (package jsonlines), from the beginning or from now on.
//
// server.go serves; follower.go is what it does for one who follows, through queue.go: what does not fit there is read
// from the recording instead, so that a slow follower costs the writer nothing. client.go follows.
package tail

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// socketName is the socket's name in the recording's directory, or that of a link to it.
const socketName = "follow.sock"

// maxPath is the longest name that every system takes for a socket.
const maxPath = 100

// ErrNobody says that nobody writes the recording, or serves what is written.
var ErrNobody = errors.New("nobody is writing the recording")

// listen makes the socket of a recording that the process has opened: nobody else serves it. One whose name would be
// too long is made in a directory for temporary files, with a link to it.
func listen(dir string) (l net.Listener, remove func() error, err error) {
	path := filepath.Join(dir, socketName)
	remove = func() error { return os.RemoveAll(path) }
	if err := remove(); err != nil { // of a process that was killed
		return nil, nil, fmt.Errorf("serve followers: %w", err)
	}
	at := path
	if len(path) > maxPath {
		temp, err := os.MkdirTemp("", "isotap-follow-")
		if err != nil {
			return nil, nil, fmt.Errorf("serve followers: %w", err)
		}
		remove = func() error { return errors.Join(os.RemoveAll(temp), os.RemoveAll(path)) }
		at = filepath.Join(temp, socketName)
		if err := os.Symlink(at, path); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("serve followers: %w", err), remove())
		}
	}
	if l, err = net.Listen("unix", at); err == nil {
		err = os.Chmod(at, 0o600)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("serve followers: %w", err), remove())
	}
	return l, remove, nil
}

// Dial connects to whoever writes a recording, given its directory or the socket. The error is ErrNobody where there is
// none.
func Dial(path string) (net.Conn, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, socketName)
	}
	if at, err := os.Readlink(path); err == nil {
		path = at
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNobody
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	return c, nil
}
