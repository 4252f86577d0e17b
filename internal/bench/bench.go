package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A bench is the server, the program and the directory that all measurements of an engine share.
type bench struct {
	settings   settings
	target     target
	dir        string
	isotap     string   // the program
	recordings []string // of the read-write loads through isotap items
}

// newBench builds isotap, starts a server and fills its tables. All paths use the same tables.
func newBench(ctx context.Context, s settings, start starter, progress io.Writer) (*bench, error) {
	fmt.Fprintln(progress, "build, server, tables ...")
	dir, err := os.MkdirTemp("", "isotap-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	b := &bench{settings: s, dir: dir, isotap: filepath.Join(dir, "isotap")}
	if b.target, err = start(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if err := build(ctx, b.isotap); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close stops the server and removes everything.
func (b *bench) close() error {
	var err error
	if b.target != nil {
		err = b.target.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// measure lets the paths take turns at a load.
func (b *bench) measure(ctx context.Context, l load) ([]result, error) {
	paths, err := b.startPaths()
	var turns [][]roundResult
	if err == nil {
		turns, err = b.rounds(ctx, l, paths)
	}
	var results []result
	var names []string
	for _, p := range paths {
		names = append(names, p.name)
	}
	for i, p := range paths {
		if err = errors.Join(err, p.stop()); err == nil {
			results = append(results, newResult(l, p.name, turns[i], names, turns))
		}
		if p.name == pathItems && l.analysed() {
			b.recordings = append(b.recordings, p.recording)
		}
	}
	return results, err
}

// rounds returns the turns of each path.
func (b *bench) rounds(ctx context.Context, l load, paths []*path) ([][]roundResult, error) {
	turns := make([][]roundResult, len(paths))
	for range b.settings.rounds {
		for i, p := range paths {
			t, err := b.turn(ctx, l, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// turn measures a load on a path for one slice of time.
func (b *bench) turn(ctx context.Context, l load, p *path) (t roundResult, err error) {
	m, err := newMeter(p.pid(), b.target.PID())
	if err != nil { // elsewhere than on Linux: rates and latencies are told all the same
		return l.turn(ctx, p.address, b.settings.seconds)
	}
	used, err := m.during(func() (err error) {
		t, err = l.turn(ctx, p.address, b.settings.seconds)
		return err
	})
	t.used = used
	return t, err
}

// A result is what one path did under one load. Figures are medians of the rounds.
type result struct {
	Load    string  `json:"load"`
	Clients int     `json:"clients"`
	Path    string  `json:"path"`
	Rate    float64 `json:"statements_per_second"`
	Latency float64 `json:"median_latency_us"` // microseconds: of what the load repeats, a statement or a transaction
	Tail    float64 `json:"p99_latency_us"`
	Added   float64 `json:"added_latency_us"` // to that of the direct path
	// CPU and Server are the processor seconds of the proxy and of the server for each 100,000 statements.
	CPU    float64 `json:"cpu_seconds_per_100000"`
	Server float64 `json:"server_cpu_seconds_per_100000"`
	// Others is how many processors were busy with something else than the load, the proxy and the server.
	Others float64 `json:"other_processors"`
	// Ratio of this path's rate to another's, by the other's name; CPURatio and ServerRatio of the processor time for a
	// statement, LatencyRatio and TailRatio of the median and of the 99th percentile of latency.
	Ratio        map[string]spread `json:"ratio"`
	LatencyRatio map[string]spread `json:"median_latency_ratio"`
	CPURatio     map[string]spread `json:"cpu_ratio"`
	ServerRatio  map[string]spread `json:"server_cpu_ratio"`
	TailRatio    map[string]spread `json:"p99_ratio"`
}

// A spread is the median of a figure over the rounds, with its quartiles.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// newSpread returns the spread of figures, which it leaves as they are. Without one it is nothing.
func newSpread(figures []float64) spread {
	if len(figures) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(figures))
	return spread{Median: median(v), Low: v[(len(v)-1)/4], High: v[len(v)-1-(len(v)-1)/4]}
}

// newResult sums a path's turns up. all are the turns of all paths, whose names are given, the direct one first.
func newResult(l load, name string, own []roundResult, names []string, all [][]roundResult) result {
	r := result{Load: l.String(), Clients: l.concurrency(), Path: name,
		Ratio: make(map[string]spread), CPURatio: make(map[string]spread),
		ServerRatio: make(map[string]spread), LatencyRatio: make(map[string]spread), TailRatio: make(map[string]spread)}
	r.Rate = medianOf(own, func(i int) float64 { return own[i].rate })
	r.Latency = medianOf(own, func(i int) float64 { return microseconds(own[i].latency) })
	r.Tail = medianOf(own, func(i int) float64 { return microseconds(own[i].tail) })
	r.Added = medianOf(own, func(i int) float64 { return microseconds(own[i].latency - all[0][i].latency) })
	r.CPU = medianOf(own, func(i int) float64 { return 100_000 * own[i].proxyTime() })
	r.Server = medianOf(own, func(i int) float64 { return 100_000 * own[i].serverTime() })
	r.Others = medianOf(own, func(i int) float64 { return own[i].used.otherProcessors() })
	for i, other := range names {
		r.Ratio[other] = ratios(own, all[i], func(t roundResult) float64 { return t.rate })
		r.CPURatio[other] = ratios(own, all[i], roundResult.proxyTime)
		r.ServerRatio[other] = ratios(own, all[i], roundResult.serverTime)
		r.LatencyRatio[other] = ratios(own, all[i], func(t roundResult) float64 { return microseconds(t.latency) })
		r.TailRatio[other] = ratios(own, all[i], func(t roundResult) float64 { return microseconds(t.tail) })
	}
	return r
}

// ratios are those of a figure in the same rounds. Rounds in which the other has none, as the direct path has no proxy,
// are left out.
func ratios(own, other []roundResult, figure func(roundResult) float64) spread {
	var all []float64
	for i := range own {
		if to := figure(other[i]); to > 0 {
			all = append(all, figure(own[i])/to)
		}
	}
	return newSpread(all)
}

// otherProcessors is how many processors were busy with something else.
func (u usage) otherProcessors() float64 {
	if u.wall == 0 {
		return 0 // it is not known
	}
	return u.others.Seconds() / u.wall.Seconds()
}

// proxyTime is the proxy's processor time for a statement, in seconds.
func (t roundResult) proxyTime() float64 {
	return t.used.proxy.Seconds() / float64(max(t.statements, 1))
}

// serverTime is the server's.
func (t roundResult) serverTime() float64 {
	return t.used.server.Seconds() / float64(max(t.statements, 1))
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// medianOf returns the median of a figure over the turns.
func medianOf(turns []roundResult, figure func(i int) float64) float64 {
	v := make([]float64, len(turns))
	for i := range v {
		v[i] = figure(i)
	}
	return median(v)
}

// median returns the median of figures, which it leaves as they are.
func median(figures []float64) float64 {
	v := slices.Sorted(slices.Values(figures))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
