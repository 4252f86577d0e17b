package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/proxy"
)

// ownAddresses returns this machine's addresses beyond loopback, as a URL has them.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, a := range all {
		ip := a.(*net.IPNet).IP
		switch {
		case ip.IsLoopback() || ip.IsLinkLocalUnicast():
		case ip.To4() != nil:
			own = append(own, ip.String())
		default:
			own = append(own, "["+ip.String()+"]")
		}
	}
	return own
}

// TestALocalServerIsRefusedHoweverSpelled starts isotaps in mode off, which connect to nothing.
func TestALocalServerIsRefusedHoweverSpelled(t *testing.T) {
	hosts := append(ownAddresses(t), "127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "0.0.0.0", "[::]", "[::1]",
		"[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]")
	for _, name := range []string{"localhost.", "127.1",
		"2130706433"} { // whether they mean anything hangs on the system's resolver
		if found, err := net.LookupHost(name); err == nil && net.ParseIP(found[0]).IsLoopback() {
			hosts = append(hosts, name)
		}
	}
	if name, err := os.Hostname(); err == nil {
		if _, err := net.LookupHost(name); err == nil {
			hosts = append(hosts, name)
		}
	}
	var upstreams []string
	for _, host := range hosts {
		upstreams = append(upstreams, "mysql://app@"+host+":3306/", "postgres://app@"+host+":5432/shop")
	}
	upstreams = append(upstreams, "mysql://app@unix(/run/db.sock)/", "mysql://app@/?socket=%40db",
		"postgres://app@/shop?host=/run/postgresql")
	reachable := append([]string{"0.0.0.0:0", "[::]:0", ":0"}, listenable(ownAddresses(t))...)
	loopback := []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "[::ffff:127.0.0.1]:0", "unix:" +
		filepath.Join(t.TempDir(), "s")}
	start := func(upstream, listen string, allow bool) error {
		t.Helper()
		target, err := dsn.Parse(upstream)
		if err != nil {
			t.Fatal(err)
		}
		srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: listen,
			Off: true, AllowLocal: allow})
		if err == nil {
			err = srv.Stop()
		}
		return err
	}
	for _, upstream := range upstreams {
		for _, listen := range reachable {
			if err := start(upstream, listen, false); !errors.Is(err, proxy.ErrLocalUpstream) {
				t.Errorf("listen on %s, server %s: %v", listen, upstream, err)
			}
		}
		for _, listen := range loopback {
			if err := start(upstream, listen, false); err != nil {
				t.Errorf("listen on %s, server %s: %v", listen, upstream, err)
			}
		}
		if err := start(upstream, "0.0.0.0:0", true); err != nil {
			t.Errorf("server %s, allowed: %v", upstream, err)
		}
	}
	for _, elsewhere := range []string{"mysql://app@192.0.2.1:3306/", "postgres://app@no-such-host.invalid/shop"} {
		if err := start(elsewhere, "0.0.0.0:0", false); err != nil {
			t.Errorf("server %s: %v", elsewhere, err)
		}
	}
}

func listenable(hosts []string) []string {
	for i, host := range hosts {
		hosts[i] = host + ":0"
	}
	return hosts
}
