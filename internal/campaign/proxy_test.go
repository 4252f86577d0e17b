//go:build linux

package main

import (
	"os"
	"path/filepath"
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
