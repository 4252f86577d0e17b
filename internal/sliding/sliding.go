// Package sliding analyzes the last stretch of a recording while it is written, every so often: the next stretch
// overlaps this one by half. It has what is known later than transactions are, which package analyzer's Live lacks:
// what the server's log tells, which versions match a condition that did not find them, and what lies between the
// transactions of one request.
//
// What is not in a stretch counts as not recorded ([analysis.AnalyzePart]), so that what is found is true whatever went
// before. An anomaly that takes longer than half a stretch may be missed.
package sliding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/recorder"
)

// Options say what a Window looks at.
type Options struct {
	// Every is the time between two analyses at least; they take a quarter of the time at most.
	Every time.Duration
	// Limit is how many transactions, with those of the server's log and the rows that these wrote, are analyzed at
	// once at most. Where more come, stretches are shorter than Every.
	Limit uint64
	// Scope says which transactions are of one request.
	Scope analyzer.Scope
	// Tell takes what a stretch has. It is called by the Window's own goroutine.
	Tell func(*analyzer.Result)
	// Complain takes why a stretch was not analyzed.
	Complain func(error)
}

// lag is how long a reply, the log and the test of a condition may be behind, where there is time for that.
func (o *Options) lag() time.Duration { return min(time.Second, o.Every/5) }

// poll is how often a Window looks whether an analysis is due, and quarter bounds the time that these take.
const (
	poll    = 250 * time.Millisecond
	quarter = 4
)

// A Recording is what a Window looks at: a run that is being recorded.
type Recording struct {
	Dir    string
	Writer *recorder.Writer
	Clock  func() int64 // nanoseconds since the run's start
}

// A Window slides over a run until it is closed. Its methods may be called from several goroutines.
type Window struct {
	opts Options
	of   Recording
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	ended []ended // in the order in which they were recorded

	// The rest is the goroutine's.
	steps []step // the last three, oldest first: where stretches begin
	left  uint64 // of the log's transactions, how many no analysis had
}

// ended is when a transaction ended, and where it is.
type ended struct {
	at  int64
	key recorder.TxnKey
}

// A step is how far the run was recorded at a time: all of its log that stands before mark was read by then.
type step struct {
	at     int64
	mark   recorder.Mark
	logged uint64 // transactions of the log, and the rows that they wrote, since the run began
	txns   uint64 // of the log, likewise
	// unseen is how many of the log's transactions came between the step before and this one, and no analysis had them.
	unseen uint64
}

// Slide begins to look at a run, from its beginning.
func Slide(of Recording, o Options) *Window {
	w := newWindow(of, o)
	go w.run()
	return w
}

func newWindow(of Recording, o Options) *Window {
	return &Window{opts: o, of: of, stop: make(chan struct{}), done: make(chan struct{}), steps: make([]step, 3)}
}

// Txn takes note of a transaction that is recorded.
func (w *Window) Txn(t *history.Txn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, ended{t.End, recorder.TxnKey{ID: t.ID, Session: t.Session}})
}

// Close ends the analyses and returns how many of the log's transactions none of them had. Where last is set it has the
// rest analyzed before, all of which is recorded. It is called before the Writer is closed.
func (w *Window) Close(last bool) (left uint64) {
	close(w.stop)
	<-w.done
	if last {
		w.try(context.Background(), 0)
	}
	for _, s := range w.steps {
		w.left += s.unseen
	}
	return w.left
}

// run is the Window's goroutine.
func (w *Window) run() {
	defer close(w.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-w.stop
		cancel()
	}()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	began, took := time.Now(), time.Duration(0)
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		since := time.Since(began)
		if since < quarter*took || since < w.opts.Every && !w.crowded() {
			continue
		}
		began = time.Now()
		w.try(ctx, w.opts.lag())
		took = time.Since(began)
	}
}

// crowded reports whether as much has come as a stretch may have.
func (w *Window) crowded() bool {
	stats := w.of.Writer.Stats()
	last := w.steps[len(w.steps)-1]
	w.mu.Lock()
	defer w.mu.Unlock()
	txns := len(w.ended) - w.endedBefore(last.at)
	return uint64(txns)+stats.LogTxns+stats.LogWrites-last.logged > w.opts.Limit/uint64(len(w.steps))
}

// endedBefore returns how many transactions were recorded, about, before a time.
func (w *Window) endedBefore(at int64) int {
	if n := slices.IndexFunc(w.ended, func(e ended) bool { return e.at >= at }); n >= 0 {
		return n
	}
	return len(w.ended)
}

// try analyzes the last stretch, and says why it could not.
func (w *Window) try(ctx context.Context, lag time.Duration) {
	if err := w.look(ctx, lag); err != nil && ctx.Err() == nil {
		w.opts.Complain(fmt.Errorf("what the server's log, conditions and requests tell of the last stretch is not known: %w", err))
	}
}

// look analyzes the last stretch.
func (w *Window) look(ctx context.Context, lag time.Duration) error {
	now := w.of.Clock()
	if err := w.of.Writer.Flush(ctx); err != nil {
		return err
	}
	r, err := w.of.Writer.Snapshot()
	if err != nil {
		return err
	}
	to, err := w.reached(ctx, r)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	defer w.slide(&to)
	oldest, from, last := &w.steps[0], &w.steps[1], &w.steps[2]
	p := analysis.Part{Part: recorder.Part{Run: w.of.Writer.Run(), Txns: w.txns(oldest.at), From: from.mark},
		From: oldest.at, To: now - int64(lag), LogFrom: from.at, LogTo: now - 2*int64(lag)}
	if uint64(len(p.Txns))+to.logged-from.logged > w.opts.Limit {
		return r.Close()
	}
	result, err := analysis.AnalyzePart(ctx, r, w.of.Dir, p, analyzer.Options{Scope: w.opts.Scope})
	if err != nil {
		return err
	}
	if last.unseen = 0; lag == 0 {
		to.unseen = 0
	}
	if len(result.Findings) > 0 {
		w.opts.Tell(result)
	}
	return nil
}

// reached returns how far a recording goes.
func (w *Window) reached(ctx context.Context, r *recorder.Reader) (step, error) {
	stats, last := w.of.Writer.Stats(), &w.steps[2]
	mark, err := r.Mark(ctx, w.of.Writer.Run(), last.mark)
	return step{at: w.of.Clock(), mark: mark, logged: stats.LogTxns + stats.LogWrites, txns: stats.LogTxns,
		unseen: stats.LogTxns - last.txns}, err
}

// slide has the next stretch begin one step later.
func (w *Window) slide(to *step) {
	w.left += w.steps[0].unseen
	w.steps = append(w.steps[1:], *to)
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := w.steps[0].at
	w.ended = slices.DeleteFunc(w.ended, func(e ended) bool { return e.at < oldest })
}

// txns returns the transactions that ended from a time on.
func (w *Window) txns(from int64) (keys []recorder.TxnKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ended {
		if e.at >= from {
			keys = append(keys, e.key)
		}
	}
	return keys
}
