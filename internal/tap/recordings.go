package tap

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
	// Statements that read or wrote rows, by how well they were observed.
	Exact, Inexact, Opaque int
}

// Summaries says what the runs of a recording hold, in the order in which they started.
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
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		if run := of[s.Run]; run != nil {
			run.Sessions++
		}
	}
	for t, err := range r.Txns(ctx) {
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
