//go:build !unix

package proxy

import "net"

// newSocketReader returns nil: a read needs its buffer while it waits.
func newSocketReader(net.Conn) socketReader { return nil }
