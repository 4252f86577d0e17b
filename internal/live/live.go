// Package live watches a history while it comes: it hands what is recorded to an [analyzer.Live], looks a few times a
// second, and tells what was found.
//
// live.go is the watch; opens.go knows from the transactions' counters which of them have begun and not ended.
package live

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// Options of a Watch. The zero value of a field means its default.
type Options struct {
	analyzer.LiveOptions
	// Every is the time between two looks.
	Every time.Duration
	// Clock gives the time since the first run's start; nil: that is when the last transaction ended, as it is for what
	// was recorded earlier.
	Clock func() int64
	// Begin takes the runs, and Tell what was found. They are called by the Watch's own goroutine.
	Begin func(history.Info)
	Tell  func([]analyzer.News)
}

// The defaults of Options: a finding is told a second after its last commit at the latest, whatever else is open.
const (
	DefaultEvery    = 200 * time.Millisecond
	DefaultWindow   = 5 * time.Second
	DefaultPatience = 500 * time.Millisecond
)

// slack is how far apart two clients' transactions may be counted and timed.
const slack = 50 * time.Millisecond

// queued is how many transactions and sessions may wait while a look goes on. Who finds the queue full waits.
const queued = 8192

// A Watch watches until it is closed. Its methods may be called from several goroutines.
type Watch struct {
	opts  Options
	live  *analyzer.Live
	opens *opens
	last  int64 // when the last transaction ended
	fresh bool  // something came since the last look
	until int64 // how long findings may still wait
	since int64 // when the watch began, by the Clock

	queue chan item
	done  chan struct{} // closed when the watching goroutine has ended
	err   error         // set before done is closed

	mu     sync.Mutex
	counts map[Kind]int
	byID   map[string]int
	stats  analyzer.LiveStats
	delay  Delay
}

// Delay says how long after the commit that completed it a finding was told for the first time, by the Clock. What was found
// in what had been recorded before the watch began is not in it.
type Delay struct {
	Findings int
	Sum, Max time.Duration
}

// A Kind is what findings are counted by.
type Kind struct {
	Anomaly analyzer.Anomaly
	Class   analyzer.Class
}

// An item is one of what a Watch takes in.
type item struct {
	info    *history.Info
	session *history.Session
	txn     *history.Txn
	upTo    history.TxnID // see Skip
}

// Start begins to watch.
func Start(o Options) *Watch {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Limit == 0 {
		o.Limit = analyzer.DefaultLimit
	}
	if o.Tell == nil {
		o.Tell = func([]analyzer.News) {}
	}
	w := &Watch{opts: o, live: analyzer.NewLive(o.LiveOptions), opens: newOpens(o.Limit), queue: make(chan item, queued), done: make(chan struct{}),
		counts: make(map[Kind]int), byID: make(map[string]int)}
	if o.Clock != nil {
		w.since = o.Clock()
	}
	go w.run()
	return w
}

// Run takes a run: when it begins, before its transactions, and again when it has ended.
func (w *Watch) Run(ctx context.Context, info history.Info) error {
	return w.put(ctx, item{info: &info})
}

// Session takes a session: see proxy.Recorder.
func (w *Watch) Session(ctx context.Context, s history.Session) error {
	return w.put(ctx, item{session: &s})
}

// Txn takes a transaction, which nobody may change from then on: see proxy.Recorder.
func (w *Watch) Txn(ctx context.Context, t *history.Txn) error {
	return w.put(ctx, item{txn: t})
}

// Skip says, before the first of the run's transactions, that those up to this one are not given: they are left out.
func (w *Watch) Skip(ctx context.Context, upTo history.TxnID) error {
	return w.put(ctx, item{upTo: upTo})
}

func (w *Watch) put(ctx context.Context, it item) error {
	select {
	case <-w.done:
		return w.err
	default:
	}
	select {
	case w.queue <- it:
		return nil
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the watch and gives the result of all that it was given. Nobody gives it anything after the call.
func (w *Watch) Close() (*analyzer.Result, error) {
	close(w.queue)
	<-w.done
	if w.err != nil {
		return nil, w.err
	}
	return w.live.Finish()
}

// Counts says how often anomalies have been seen.
func (w *Watch) Counts() map[Kind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := make(map[Kind]int, len(w.counts))
	for k, n := range w.counts {
		counts[k] = n
	}
	return counts
}

// Stats says how much is kept, as of the last look.
func (w *Watch) Stats() analyzer.LiveStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Delay says how quickly findings were told.
func (w *Watch) Delay() Delay {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.delay
}

// timed counts how long findings took that are told for the first time.
func (w *Watch) timed(news []analyzer.News) {
	if w.opts.Clock == nil || w.live.Runs() > 1 {
		return // several runs' findings are timed by several clocks
	}
	now := w.opts.Clock()
	for _, n := range news {
		if took := time.Duration(now - n.Finding.First); n.First && n.Finding.First >= w.since {
			w.delay.Findings++
			w.delay.Sum += took
			w.delay.Max = max(w.delay.Max, took)
		}
	}
}

// run is the watching goroutine. It ends when the queue is closed or something went wrong.
func (w *Watch) run() {
	defer close(w.done)
	tick := time.NewTicker(w.opts.Every)
	defer tick.Stop()
	for w.err == nil {
		select {
		case it, more := <-w.queue:
			if !more {
				w.step(math.MaxInt64, math.MaxInt64) // nothing is open any more
				return
			}
			w.err = w.take(it)
		case <-tick.C:
			w.look()
		}
	}
}

func (w *Watch) take(it item) error {
	switch {
	case it.info != nil:
		w.live.Add(*it.info)
		if w.opts.Begin != nil {
			w.opts.Begin(*it.info)
		}
	case it.session != nil:
		w.live.AddSession(*it.session)
	case it.upTo != 0:
		w.live.Skip(it.upTo)
		w.opens.skip(it.upTo, w.live.Offset(it.upTo.Run()))
	default:
		return w.takeTxn(it.txn)
	}
	return nil
}

func (w *Watch) takeTxn(t *history.Txn) error {
	offset := w.live.Offset(t.ID.Run())
	if err := w.live.AddTxn(t); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	w.opens.ended(t, offset)
	w.last, w.fresh = max(w.last, t.End+offset), true
	if w.live.Stats().Kept >= 2*w.opts.Limit {
		w.look()
	}
	return nil
}

// look has what is kept analysed, if that may tell anything.
func (w *Watch) look() {
	now := w.last
	if w.opts.Clock != nil {
		now = max(now, w.opts.Clock())
	}
	if w.fresh {
		w.until = now + int64(w.opts.Patience+2*w.opts.Every)
	}
	if !w.fresh && now > w.until || w.err != nil {
		return
	}
	w.fresh = false
	w.step(now, w.opens.since()-int64(slack))
}

func (w *Watch) step(now, open int64) {
	news, err := w.live.Step(now, open)
	if err != nil {
		w.err = fmt.Errorf("watch: %w", err)
		return
	}
	w.count(news)
	if len(news) > 0 {
		w.opts.Tell(news)
	}
}

func (w *Watch) count(news []analyzer.News) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range news {
		f := n.Finding
		more := max(0, f.Count-w.byID[f.ID])
		w.counts[Kind{f.Anomaly, f.Class}] += more
		w.byID[f.ID] += more
	}
	w.stats = w.live.Stats()
	w.timed(news)
}
