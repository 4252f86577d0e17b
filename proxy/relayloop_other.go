//go:build !linux

package proxy

import "net"

// RelayedBy says what moves the bytes of plain connections that are not observed.
const RelayedBy = "goroutines"

// relays are on Linux alone: elsewhere goroutines copy.
type relays struct{}

type relayPair struct{ spoke, done chan struct{} }

func (*relays) take(net.Conn, net.Conn, []byte) *relayPair { return nil }

func (*relays) stop() {}

func (*relayPair) stop() {}
