//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestProxyIsAwaitedUntilItsMetricsAre has a proxy whose log is seen when only half of it is written.
func TestProxyIsAwaitedUntilItsMetricsAre(t *testing.T) {
	p := &proxy{log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.WriteString("isotap: clients connect to 127.0.0.1:1, the server is x\n"); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		log.WriteString("isotap: metrics and health are at http://127.0.0.1:2/metrics, /healthz, /readyz\n")
	})
	if err := p.awaitAddress(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if p.address != "127.0.0.1:1" || p.metrics != "http://127.0.0.1:2/metrics" {
		t.Errorf("clients at %s, metrics at %q", p.address, p.metrics)
	}
}

// TestMetricsAreAskedForAgainWhenConnectionsBreak has a proxy that resets the first connection, as one does that is
// starved.
func TestMetricsAreAskedForAgainWhenConnectionsBreak(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		first, err := l.Accept()
		if err != nil {
			return
		}
		first.(*net.TCPConn).SetLinger(0)
		first.Close()
		http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "go_goroutines 7\n") }))
	}()
	p := &proxy{metrics: "http://" + l.Addr().String() + "/metrics"}
	values, err := p.readMetrics(t.Context())
	if err != nil || values["go_goroutines"] != 7 {
		t.Errorf("got %v, %v", values, err)
	}
	l.Close()
	if _, err := p.readMetrics(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("of a proxy that is gone: %v", err)
	}
}
