// Package monitor watches a history while it comes: it hands what is recorded to an [analyzer.Live], looks a few times
// a second, and tells what was found.
//
// monitor.go watches; opens.go knows from the transactions' counters which of them have begun and not ended.
package monitor

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// Options say what a Monitor looks at. The zero value of a field means its default.
type Options struct {
	analyzer.LiveOptions
	// Every is the time between two looks.
	Every time.Duration
	// Clock gives the time since the first run's start; nil: that is when the last transaction ended, as it is for what
	// was recorded earlier.
	Clock func() int64
	// Begin takes the runs, and Tell what was found. They are called by the Monitor's own goroutine, and Tell by who
	// calls Found, but by one at a time.
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

// A Monitor watches until it is closed. Its methods may be called from several goroutines.
type Monitor struct {
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

	telling sync.Mutex // held while Tell is called

	mu     sync.Mutex
	counts map[Kind]int
	byID   map[string]int
	stats  analyzer.LiveStats
	delay  Delay
}

// Delay says how long after the commit that completed it a finding was told for the first time, by the Clock. What was
// found in what had been recorded before the watch began is not in it.
type Delay struct {
	Findings int
	Sum, Max time.Duration
}

// A Kind is what findings are counted by.
type Kind struct {
	Anomaly analyzer.Anomaly
	Class   analyzer.Class
}

// An item is one of what a Monitor takes in.
type item struct {
	info    *history.Info
	session *history.Session
	txn     *history.Txn
	upTo    history.TxnID // see Skip
}

// Start begins to watch.
func Start(o Options) *Monitor {
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
	m := &Monitor{opts: o, live: analyzer.NewLive(o.LiveOptions), opens: newOpens(o.Limit),
		queue: make(chan item, queued), done: make(chan struct{}),
		counts: make(map[Kind]int), byID: make(map[string]int)}
	if o.Clock != nil {
		m.since = o.Clock()
	}
	go m.run()
	return m
}

// Run takes a run: when it begins, before its transactions, and again when it has ended.
func (m *Monitor) Run(ctx context.Context, info history.Info) error {
	return m.put(ctx, item{info: &info})
}

// Session takes a session: see proxy.Recorder.
func (m *Monitor) Session(ctx context.Context, s history.Session) error {
	return m.put(ctx, item{session: &s})
}

// Txn takes a transaction, which nobody may change from then on: see proxy.Recorder.
func (m *Monitor) Txn(ctx context.Context, t *history.Txn) error {
	return m.put(ctx, item{txn: t})
}

// Skip says, before the first of the run's transactions, that those up to this one are not given: they are left out.
func (m *Monitor) Skip(ctx context.Context, upTo history.TxnID) error {
	return m.put(ctx, item{upTo: upTo})
}

func (m *Monitor) put(ctx context.Context, it item) error {
	select {
	case <-m.done:
		return m.err
	default:
	}
	select {
	case m.queue <- it:
		return nil
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the watch and returns the result of all that it was given. Nobody gives it anything after the call.
func (m *Monitor) Close() (*analyzer.Result, error) {
	close(m.queue)
	<-m.done
	if m.err != nil {
		return nil, m.err
	}
	return m.live.Finish()
}

// Counts returns how often anomalies have been seen.
func (m *Monitor) Counts() map[Kind]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[Kind]int, len(m.counts))
	for k, n := range m.counts {
		counts[k] = n
	}
	return counts
}

// Stats returns how much is kept, as of the last look.
func (m *Monitor) Stats() analyzer.LiveStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Delay returns how quickly findings were told.
func (m *Monitor) Delay() Delay {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.delay
}

// timed counts how long findings took that are told for the first time.
func (m *Monitor) timed(news []analyzer.News) {
	if m.opts.Clock == nil || m.live.Runs() > 1 {
		return // several runs' findings are timed by several clocks
	}
	now := m.opts.Clock()
	for _, n := range news {
		if took := time.Duration(now - n.Finding.First); n.First && n.Finding.First >= m.since {
			m.delay.Findings++
			m.delay.Sum += took
			m.delay.Max = max(m.delay.Max, took)
		}
	}
}

// run is the watching goroutine. It ends when the queue is closed or something went wrong.
func (m *Monitor) run() {
	defer close(m.done)
	tick := time.NewTicker(m.opts.Every)
	defer tick.Stop()
	for m.err == nil {
		select {
		case it, more := <-m.queue:
			if !more {
				m.step(math.MaxInt64, math.MaxInt64) // nothing is open any more
				return
			}
			m.err = m.take(it)
		case <-tick.C:
			m.look()
		}
	}
}

func (m *Monitor) take(it item) error {
	switch {
	case it.info != nil:
		m.live.Add(*it.info)
		if m.opts.Begin != nil {
			m.opts.Begin(*it.info)
		}
	case it.session != nil:
		m.live.AddSession(*it.session)
	case it.upTo != 0:
		m.live.Skip(it.upTo)
		m.opens.skip(it.upTo, m.live.Offset(it.upTo.Run()))
	default:
		return m.takeTxn(it.txn)
	}
	return nil
}

func (m *Monitor) takeTxn(t *history.Txn) error {
	offset := m.live.Offset(t.ID.Run())
	if err := m.live.AddTxn(t); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	m.opens.ended(t, offset)
	m.last, m.fresh = max(m.last, t.End+offset), true
	if m.live.Stats().Kept >= 2*m.opts.Limit {
		m.look()
	}
	return nil
}

// look has what is kept analyzed, if that may tell anything.
func (m *Monitor) look() {
	now := m.last
	if m.opts.Clock != nil {
		now = max(now, m.opts.Clock())
	}
	if m.fresh {
		m.until = now + int64(m.opts.Patience+2*m.opts.Every)
	}
	if !m.fresh && now > m.until || m.err != nil {
		return
	}
	m.fresh = false
	m.step(now, m.opens.since()-int64(slack))
}

func (m *Monitor) step(now, open int64) {
	news, err := m.live.Step(now, open)
	if err != nil {
		m.err = fmt.Errorf("watch: %w", err)
		return
	}
	m.count(news)
	m.mu.Lock()
	m.stats = m.live.Stats()
	m.timed(news)
	m.mu.Unlock()
	m.tell(news)
}

// Found takes what another analysis of the same history found, which knows more than this one: what was not found
// before is counted, and told.
func (m *Monitor) Found(findings []*analyzer.Finding) {
	var news []analyzer.News
	m.mu.Lock()
	for _, f := range findings {
		if m.byID[f.ID] == 0 {
			news = append(news, analyzer.News{Finding: f, First: true})
		}
	}
	m.mu.Unlock()
	m.count(news)
	m.tell(news)
}

func (m *Monitor) tell(news []analyzer.News) {
	if len(news) == 0 {
		return
	}
	m.telling.Lock()
	defer m.telling.Unlock()
	m.opts.Tell(news)
}

func (m *Monitor) count(news []analyzer.News) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range news {
		f := n.Finding
		more := max(0, f.Count-m.byID[f.ID])
		m.counts[Kind{f.Anomaly, f.Class}] += more
		m.byID[f.ID] += more
	}
}
