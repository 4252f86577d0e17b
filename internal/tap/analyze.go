package tap

import (
	"context"
	"errors"
	"fmt"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// Analyze reads recordings and says what it found in all of them together.
func Analyze(ctx context.Context, dirs []string, o analyzer.Options) (*analyzer.Result, error) {
	a := analyzer.New(o)
	for _, dir := range dirs {
		if err := add(ctx, a, dir, func(history.Run) bool { return true }); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", dir, err)
		}
	}
	return a.Finish()
}

// AnalyzeRun reads one run of a recording and says what it found in it alone.
func AnalyzeRun(ctx context.Context, dir string, run history.Run, o analyzer.Options) (*analyzer.Result, error) {
	a := analyzer.New(o)
	if err := add(ctx, a, dir, func(r history.Run) bool { return r == run }); err != nil {
		return nil, fmt.Errorf("analyze %s: %w", dir, err)
	}
	return a.Finish()
}

// add gives the analyzer the runs of a recording that are wanted.
func add(ctx context.Context, a *analyzer.Analyzer, dir string, wanted func(history.Run) bool) (err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, run := range r.Runs() {
		if !wanted(run.Run) {
			continue
		}
		if err := a.Add(run); err != nil {
			return err
		}
	}
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return err
		}
		if !wanted(s.Run) {
			continue
		}
		if err := a.AddSession(s); err != nil {
			return err
		}
	}
	for t, err := range r.Txns(ctx) {
		if err != nil {
			return err
		}
		if !wanted(t.ID.Run()) {
			continue
		}
		if err := a.AddTxn(t); err != nil {
			return err
		}
	}
	return nil
}
