package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrLocalUpstream is returned when a listener beyond loopback would lend its clients a local login.
var ErrLocalUpstream = errors.New("the listener can be reached from other hosts, " +
	"and the server would take their logins for local ones: listen on a loopback address, " +
	"or allow it with --allow-local-upstream")

// resolving bounds how long the start waits for the server's name to be resolved.
const resolving = 5 * time.Second

// Permits returns nil, or an error that wraps [ErrLocalUpstream] if clients of the listener's address may not be
// served. It resolves the server's name and sends nothing. A name may mean another address later, so every connection
// to the server is judged again.
func (c *Config) Permits(ctx context.Context, listener net.Addr) error {
	if !c.AllowLocal && reachable(listener) && leadsHere(ctx, c.Network, c.Address) {
		return fmt.Errorf("serve on %s: %w", listener, ErrLocalUpstream)
	}
	return nil
}

// reachable reports whether a listener's clients may be on other hosts.
func reachable(listener net.Addr) bool {
	switch a := listener.(type) {
	case *net.UnixAddr:
		return false
	case *net.TCPAddr:
		return !a.IP.IsLoopback()
	}
	return true
}

// leadsHere reports whether a server's address, or one of those that its name means now, is on this host. An address
// that cannot be resolved is not.
func leadsHere(ctx context.Context, network, address string) bool {
	if network == "unix" {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	if host == "" || err != nil {
		hosts = []string{host}
	}
	for _, h := range hosts {
		// A UDP socket that is connected has the addresses that a TCP connection would have, and has sent nothing.
		var d net.Dialer
		conn, err := d.DialContext(ctx, "udp", net.JoinHostPort(h, port))
		if err != nil {
			continue
		}
		conn.Close()
		if isLocal(conn.LocalAddr(), conn.RemoteAddr()) {
			return true
		}
	}
	return false
}

// isLocal reports whether a server takes a connection with these ends for one from its own host: over a unix socket,
// from or to a loopback address, or to the address that it comes from.
func isLocal(local, remote net.Addr) bool {
	if remote.Network() == "unix" {
		return true
	}
	from, to := ipOf(local), ipOf(remote)
	return from.IsLoopback() || to.IsLoopback() || to.IsUnspecified() || from.Equal(to)
}

// ipOf returns the address's IP; nil if it has none.
func ipOf(a net.Addr) net.IP {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP
	case *net.UDPAddr:
		return a.IP
	}
	return nil
}

// dial connects to the server for a client. lends is set for clients of a listener that may not lend them a local
// login.
func (p *Proxy) dial(ctx context.Context, lends bool) (net.Conn, error) {
	d := net.Dialer{Timeout: p.cfg.LoginTimeout}
	conn, err := d.DialContext(ctx, p.cfg.Network, p.cfg.Address)
	if err == nil && lends && isLocal(conn.LocalAddr(), conn.RemoteAddr()) {
		conn.Close()
		err = fmt.Errorf("%s is on this host now: %w", conn.RemoteAddr(), ErrLocalUpstream)
	}
	p.meter.dialed(err)
	return conn, err
}
