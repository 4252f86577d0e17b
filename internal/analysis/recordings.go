package analysis

import (
	"context"
	"errors"
	"fmt"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// A RunSummary says what one run of a recording holds.
type RunSummary struct {
	Recording string // its directory
	Info      history.Info
	Sessions  int
	Txns      int
	// Unrecorded are transactions that ended while the disk took nothing, and Unreadable those that are damaged.
	Unrecorded, Unreadable uint64
	// Statements that read or wrote rows, by how well they were observed.
	Exact, Inexact, Opaque int
}

// Summaries returns what the runs of a recording hold, in the order in which they started.
func Summaries(ctx context.Context, dir string) (runs []RunSummary, err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	of := map[history.Run]*RunSummary{}
	infos := r.Runs()
	runs = make([]RunSummary, len(infos))
	for i, info := range infos {
		runs[i] = RunSummary{Recording: dir, Info: info}
		of[info.Run] = &runs[i]
	}
	checked, err := r.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	for i := range runs {
		for _, g := range runs[i].Info.Gaps {
			runs[i].Unrecorded += g.Txns
		}
		runs[i].Unreadable = runs[i].Info.Unreadable + checked.Of(runs[i].Info.Run)
	}
	for s, err := range r.Sessions(ctx) {
		if errors.Is(err, recorder.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		if run := of[s.Run]; run != nil {
			run.Sessions++
		}
	}
	for t, err := range r.Txns(ctx) {
		if errors.Is(err, recorder.ErrCorrupt) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		if run := of[t.ID.Run()]; run != nil {
			run.add(t)
		}
	}
	return runs, nil
}

func (r *RunSummary) add(t *history.Txn) {
	r.Txns++
	for i := range t.Stmts {
		switch t.Stmts[i].Observation {
		case history.Exact:
			r.Exact++
		case history.Inexact:
			r.Inexact++
		case history.Opaque:
			r.Opaque++
		}
	}
}

// Check reads all of a recording and returns what of it is damaged.
func Check(ctx context.Context, dir string) (c *recorder.Checked, err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Check(ctx)
}
