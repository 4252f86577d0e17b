//go:build !linux

package proxyserver

import (
	"errors"
	"net"
)

// listenShared is Linux's alone: elsewhere a process cannot have another one get the clients that are still to come.
func listenShared(string) (net.Listener, error) {
	return nil, errors.New("reuse_port is for Linux only")
}
