package tap

import (
	"context"
	"errors"
	"fmt"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/recorder"
)

// Analyze reads recordings and says what it found in all of them together.
func Analyze(ctx context.Context, dirs []string, o analyzer.Options) (*analyzer.Result, error) {
	a := analyzer.New(o)
	for _, dir := range dirs {
		if err := add(ctx, a, dir); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", dir, err)
		}
	}
	return a.Finish()
}

func add(ctx context.Context, a *analyzer.Analyzer, dir string) (err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, run := range r.Runs() {
		if err := a.Add(run); err != nil {
			return err
		}
	}
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return err
		}
		if err := a.AddSession(s); err != nil {
			return err
		}
	}
	for t, err := range r.Txns(ctx) {
		if err != nil {
			return err
		}
		if err := a.AddTxn(t); err != nil {
			return err
		}
	}
	return nil
}
