//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A sample is what a proxy holds at one time.
type sample struct {
	memory     int64 // resident, in bytes
	private    int64 // of it what is no file's, as the recording's are
	sockets    int64
	files      int64 // open descriptors, with the sockets, but for the recording's tables
	goroutines int64 // by its metrics, as are clients
	clients    int64
}

// sample looks at the process.
func (p *proxy) sample(ctx context.Context) (s sample, err error) {
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return s, fmt.Errorf("look at the proxy: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case name != "VmRSS" && name != "RssAnon":
		case err != nil:
			return s, fmt.Errorf("read the proxy's memory: %w", err)
		case name == "VmRSS":
			s.memory = kilobytes << 10
		default:
			s.private = kilobytes << 10
		}
	}
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		return s, fmt.Errorf("look at the proxy's files: %w", err)
	}
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(dir, "fd", f.Name()))
		if err == nil && filepath.Ext(to) == ".sst" { // there are as many as the recording is long
			continue
		}
		s.files++
		if err == nil && strings.HasPrefix(to, "socket:") {
			s.sockets++
		}
	}
	all, err := p.readMetrics(ctx)
	s.goroutines, s.clients = int64(all["go_goroutines"]), int64(all["isotap_connections_open"])
	return s, err
}

// readMetrics reads the metrics that have no labels, and the sums of those that have. A proxy on a starved machine
// closes a connection whose request it has not read after 5 s: it is asked again.
func (p *proxy) readMetrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		values, err := p.askForMetrics(ctx)
		broke := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
		if !broke || ctx.Err() != nil {
			return values, err
		}
	}
}

// askForMetrics asks once.
func (p *proxy) askForMetrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	request.Close = true // a connection that stays would count
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for metrics: %w", err)
	}
	defer reply.Body.Close()
	values := make(map[string]float64)
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if i := strings.LastIndexByte(lines.Text(), ' '); strings.Contains(name, "{") && i > 0 {
			value = lines.Text()[i+1:]
		}
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			name, _, _ = strings.Cut(name, "{")
			values[name] += n
		}
	}
	return values, lines.Err()
}

// longestSync is how long the proxy's longest sync of its recording has taken.
func (p *proxy) longestSync(ctx context.Context) (time.Duration, error) {
	all, err := p.readMetrics(ctx)
	return time.Duration(all["isotap_recorder_longest_sync_seconds"] * float64(time.Second)), err
}

// returnsTo waits until the proxy holds no more than before, but for so many descriptors and goroutines, and returns
// what it holds too much of when that does not come.
func (p *proxy) returnsTo(ctx context.Context, before sample, spare int64, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		now, err := p.sample(ctx)
		if err != nil {
			return err
		}
		if now.clients == 0 && now.sockets <= before.sockets+spare && now.goroutines <= before.goroutines+spare {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v after its clients left it has %d clients, %d sockets (before them %d) "+
				"and %d goroutines (%d)", limit, now.clients, now.sockets, before.sockets,
				now.goroutines, before.goroutines)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
