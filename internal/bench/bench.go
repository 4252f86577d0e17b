package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// A bench is the server, the program and the directory that all measurements share.
type bench struct {
	settings   settings
	server     *testdb.Server
	dir        string
	isotap     string   // the program
	recordings []string // of the read-write loads through isotap items
}

// newBench builds isotap, starts a server and fills its tables. All paths use the same tables, which
// carry isotap's columns.
func newBench(ctx context.Context, s settings, progress io.Writer) (*bench, error) {
	if _, err := exec.LookPath("sysbench"); err != nil {
		return nil, errNoSysbench
	}
	fmt.Fprintln(progress, "build, server, tables ...")
	dir, err := os.MkdirTemp("", "isotap-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	b := &bench{settings: s, dir: dir, isotap: filepath.Join(dir, "isotap")}
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) prepare(ctx context.Context) error {
	if err := build(ctx, b.isotap); err != nil {
		return err
	}
	var err error
	if b.server, err = testdb.Start(ctx, testdb.Options{}); err != nil {
		return err
	}
	db, err := b.server.DB("")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+database)
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	if _, err := sysbench(ctx, b.server.Addr(), readWrite, "prepare"); err != nil {
		return err
	}
	return b.instrument(ctx)
}

func (b *bench) instrument(ctx context.Context) error {
	target, err := catalog.ParseTarget(b.upstream())
	if err != nil {
		return err
	}
	conn, err := catalog.Connect(ctx, target)
	if err != nil {
		return err
	}
	_, err = catalog.Instrument(ctx, conn, catalog.Options{Schemas: []string{database}, WListBytes: sqlmysql.DefaultWListBytes})
	return errors.Join(err, conn.Close())
}

func (b *bench) upstream() string { return b.server.URL() + database }

// close stops the server and removes everything.
func (b *bench) close() error {
	var err error
	if b.server != nil {
		err = b.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// measure lets the paths take turns at a load.
func (b *bench) measure(ctx context.Context, l load) ([]result, error) {
	paths, err := b.startPaths()
	var turns [][]turn
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
		if p.name == pathItems && l.script == readWrite {
			b.recordings = append(b.recordings, p.recording)
		}
	}
	return results, err
}

// rounds gives the turns of each path.
func (b *bench) rounds(ctx context.Context, l load, paths []*path) ([][]turn, error) {
	turns := make([][]turn, len(paths))
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
	Latency float64 `json:"median_latency_us"`      // microseconds: of a statement, in read-write of a transaction
	Added   float64 `json:"added_latency_us"`       // to that of the direct path
	CPU     float64 `json:"cpu_seconds_per_100000"` // of the proxy's process, for each 100,000 statements
	// Ratio of this path's rate to another's, by the other's name: the median of the rounds.
	Ratio map[string]float64 `json:"ratio"`
}

// newResult sums a path's turns up. all are the turns of all paths, whose names are given, the direct one
// first.
func newResult(l load, name string, cpu time.Duration, own []turn, names []string, all [][]turn) result {
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

// medianOf gives the median of a figure over the turns.
func medianOf(turns []turn, figure func(i int) float64) float64 {
	v := make([]float64, len(turns))
	for i := range v {
		v[i] = figure(i)
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
