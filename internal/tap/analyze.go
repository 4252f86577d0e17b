package tap

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// Analyze reads recordings and says what it found in all of them together. Transactions are read
// one after the other, and those of a finding's witness once more, so that recordings may be larger
// than memory.
func Analyze(ctx context.Context, dirs []string, o analyzer.Options) (*analyzer.Result, error) {
	return analyze(ctx, dirs, o, func(history.Run) bool { return true })
}

// AnalyzeRun reads one run of a recording and says what it found in it alone.
func AnalyzeRun(ctx context.Context, dir string, run history.Run, o analyzer.Options) (*analyzer.Result, error) {
	return analyze(ctx, []string{dir}, o, func(r history.Run) bool { return r == run })
}

func analyze(ctx context.Context, dirs []string, o analyzer.Options, wanted func(history.Run) bool) (_ *analyzer.Result, err error) {
	s := sources{byRun: make(map[history.Run]*recorder.Lookup)}
	defer func() { err = errors.Join(err, s.close()) }()
	o.Load = func(id history.TxnID, session history.SessionID) (*history.Txn, error) {
		return s.byRun[id.Run()].Txn(ctx, id, session)
	}
	a := analyzer.New(o)
	for _, dir := range dirs {
		if err := s.add(ctx, a, dir, wanted); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", dir, err)
		}
	}
	return a.Finish()
}

// sources are the recordings of an analysis, open until it ends.
type sources struct {
	readers []*recorder.Reader
	lookups []*recorder.Lookup
	byRun   map[history.Run]*recorder.Lookup
}

func (s *sources) close() error {
	var errs []error
	for _, l := range s.lookups {
		l.Close()
	}
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// add gives the analyzer the runs of a recording that are wanted.
func (s *sources) add(ctx context.Context, a *analyzer.Analyzer, dir string, wanted func(history.Run) bool) error {
	r, err := recorder.Open(dir)
	if err != nil {
		return err
	}
	s.readers = append(s.readers, r)
	lookup, err := r.Lookup()
	if err != nil {
		return err
	}
	s.lookups = append(s.lookups, lookup)
	for _, run := range r.Runs() {
		if !wanted(run.Run) {
			continue
		}
		if err := a.Add(run); err != nil {
			return err
		}
		s.byRun[run.Run] = lookup
	}
	for session, err := range r.Sessions(ctx) {
		if err != nil {
			return err
		}
		if !wanted(session.Run) {
			continue
		}
		if err := a.AddSession(session); err != nil {
			return err
		}
	}
	return addTxns(ctx, a, r, wanted)
}

// batchTxns is how many transactions go from the reading goroutine to the analysing one at once.
const batchTxns = 256

// addTxns decodes transactions in a goroutine of its own, while the ones before them are analysed.
func addTxns(ctx context.Context, a *analyzer.Analyzer, r *recorder.Reader, wanted func(history.Run) bool) error {
	ctx, stop := context.WithCancel(ctx)
	batches := make(chan []*history.Txn, 4)
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(batches)
		unread = readTxns(ctx, r, wanted, batches)
	})
	defer reading.Wait() // the reader is not closed under it
	defer stop()
	for batch := range batches {
		for _, t := range batch {
			if err := a.AddTxn(t); err != nil {
				return err
			}
		}
	}
	return unread
}

// readTxns sends the transactions that are wanted, until the context ends.
func readTxns(ctx context.Context, r *recorder.Reader, wanted func(history.Run) bool, batches chan<- []*history.Txn) error {
	batch := make([]*history.Txn, 0, batchTxns)
	send := func() error {
		select {
		case batches <- batch:
			batch = make([]*history.Txn, 0, batchTxns)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for t, err := range r.Outlines(ctx) {
		if err != nil {
			return err
		}
		if !wanted(t.ID.Run()) {
			continue
		}
		if batch = append(batch, t); len(batch) == batchTxns {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}
