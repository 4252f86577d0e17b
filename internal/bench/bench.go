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
		cpu, stopErr := p.stop()
		if err = errors.Join(err, stopErr); err == nil {
			results = append(results, newResult(l, p.name, cpu, turns[i], names, turns))
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
			t, err := l.turn(ctx, p.address, b.settings.seconds)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// A result is what one path did under one load.
type result struct {
	Load    string  `json:"load"`
	Path    string  `json:"path"`
	Rate    float64 `json:"statements_per_second"`  // median
	Latency float64 `json:"median_latency_us"`      // microseconds: of what the load repeats, a statement or a transaction
	Added   float64 `json:"added_latency_us"`       // to that of the direct path
	CPU     float64 `json:"cpu_seconds_per_100000"` // of the proxy's process, for each 100,000 statements
	// Ratio of this path's rate to another's, by the other's name: the median of the rounds.
	Ratio map[string]float64 `json:"ratio"`
}

// newResult sums a path's turns up. all are the turns of all paths, whose names are given, the direct one
// first.
func newResult(l load, name string, cpu time.Duration, own []roundResult, names []string, all [][]roundResult) result {
	r := result{Load: l.String(), Path: name, Ratio: make(map[string]float64)}
	r.Rate = medianOf(own, func(i int) float64 { return own[i].rate })
	r.Latency = medianOf(own, func(i int) float64 { return microseconds(own[i].latency) })
	r.Added = medianOf(own, func(i int) float64 { return microseconds(own[i].latency - all[0][i].latency) })
	statements := 0
	for _, t := range own {
		statements += t.statements
	}
	r.CPU = cpu.Seconds() * 100_000 / float64(max(statements, 1))
	for i, other := range names {
		r.Ratio[other] = medianOf(own, func(k int) float64 { return own[k].rate / all[i][k].rate })
	}
	return r
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
