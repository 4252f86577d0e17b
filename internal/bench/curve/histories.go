package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/histgen"
	"github.com/isotap/isotap/recorder"
)

// clean fails where there are findings: what one transaction after the other did has none.
func clean(r *analyzer.Result, err error) error {
	if err == nil && len(r.Findings) > 0 {
		err = fmt.Errorf("a serial history has %d findings, %s first", len(r.Findings), r.Findings[0].Anomaly)
	}
	return err
}

// inMemory analyzes transactions as they are made.
func inMemory(m *meter, n, rows int) error {
	load := histgen.NewLoad(rows)
	defer m.watch()()
	a := analyzer.New(analyzer.Options{Load: func(id history.TxnID, _ history.SessionID) (*history.Txn, error) {
		return nil, fmt.Errorf("%s is part of a finding", id)
	}})
	if err := a.Add(histgen.LoadInfo()); err != nil {
		return err
	}
	a.Grow(n)
	for txns := load.Next(n); len(txns) > 0; txns = load.Next(n) {
		if err := m.start(); err != nil {
			return err
		}
		for i := range txns {
			if err := a.AddTxn(&txns[i]); err != nil {
				return err
			}
		}
		if err := m.stop(); err != nil {
			return err
		}
	}
	if err := m.start(); err != nil {
		return err
	}
	return errors.Join(clean(a.Finish()), m.stop())
}

// onDisk analyzes a recording.
func onDisk(ctx context.Context, m *meter, n, rows int) (err error) {
	dir, err := os.MkdirTemp("", "isotap-curve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recording := filepath.Join(dir, "recording")
	if err := record(ctx, recording, n, rows); err != nil {
		return err
	}
	defer m.watch()()
	if err := m.start(); err != nil {
		return err
	}
	return errors.Join(clean(analysis.Analyze(ctx, []string{recording}, analyzer.Options{})), m.stop())
}

// record makes a recording.
func record(ctx context.Context, dir string, n, rows int) error {
	w, err := recorder.Restore(dir, histgen.LoadInfo(), recorder.Options{})
	if err != nil {
		return err
	}
	err = histgen.NewLoad(rows).Each(n, func(t *history.Txn) error { return w.Txn(ctx, kept(t)) })
	return errors.Join(err, w.Close())
}

// kept copies a transaction.
func kept(t *history.Txn) *history.Txn {
	c := *t
	c.Stmts = slices.Clone(t.Stmts)
	for i := range c.Stmts {
		c.Stmts[i].Accesses = slices.Clone(c.Stmts[i].Accesses)
	}
	return &c
}

// componentSize is how many transactions a component has.
const componentSize = 100_000

// components analyzes histories that are one component, and prints how long that took.
func components() error {
	for _, c := range []struct {
		name string
		make func(int) []*history.Txn
		want analyzer.Anomaly
	}{
		{"lost updates of one row", histgen.HotRow, analyzer.LostUpdate},
		{"one cycle of rw", histgen.Ring, analyzer.G2Item},
	} {
		txns, m := c.make(componentSize), meter{}
		stop := m.watch()
		if err := m.start(); err != nil {
			return err
		}
		r, err := analyzer.Analyze([]history.Info{histgen.LoadInfo()}, txns)
		if err := errors.Join(err, m.stop()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		stop()
		if len(r.Findings) != 1 || r.Findings[0].Anomaly != c.want {
			return fmt.Errorf("%s: %d findings, want one %s", c.name, len(r.Findings), c.want)
		}
		fmt.Printf("| a component of %s: %s | | %.2f | %.2f | %s | %.0f |\n", thousands(componentSize), c.name,
			m.wall.Seconds(), m.cpu.Seconds(),
			thousands(int(componentSize/m.cpu.Seconds())/1000*1000), m.bytes/componentSize)
	}
	return nil
}
