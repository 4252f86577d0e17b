package analyzer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
)

// DefaultLimit is how many transactions a [Live] keeps where [LiveOptions.Limit] is 0.
const DefaultLimit = 50_000

// LiveOptions say what a [Live] keeps and how long it waits. Times are recorded ones.
type LiveOptions struct {
	// Window is how long after its end a transaction is kept at least. Where the server keeps its word a
	// transaction could be let go as soon as nothing that is open can reach it; a stale read or a write over a stale
	// version is found only within the window.
	Window time.Duration
	// Limit bounds the transactions that are kept whatever is still open; 0: [DefaultLimit]. What is let go for
	// it may be part of a cycle that is then not found.
	Limit int
	// Patience is how long a finding waits for the transactions that were open when it was complete, since
	// these may still give it another name.
	Patience time.Duration
	// Work, Expect and Model are those of [Options].
	Work   int
	Expect history.Level
	Model  *TheoryLevel
}

// A Live analyzes transactions as they end. Each step analyzes what is kept: the transactions that one which
// is open, or yet to come, may be on a cycle with. What is found among the others is settled, and they are let go.
// docs/adr/0031-live.md says why that gives what the analysis of the whole gives.
//
// It is used by one goroutine. Add, AddSession and AddTxn take what is recorded as it comes, Step finds, Finish gives
// the result of the whole.
type Live struct {
	opts          LiveOptions
	infos         []history.Info
	offsets       map[history.Run]int64 // from the first run's start to the run's
	sessions      []history.Session
	knownSessions map[history.Run]*numset.Set // sessions
	placed        map[history.Run]*numset.Set // those whose database is known

	kept  []*history.Txn              // in the order of a recording: by run, session and time
	fresh []*history.Txn              // added since the last step
	gone  map[history.Run]*numset.Set // the counters of all that were added
	odd   map[history.Run]*numset.Set // see run.odd
	// replaced are the tags of store.replaced, oldest first in replacedAge; past Limit their transactions are odd.
	replaced    map[history.Tag]bool
	replacedAge []history.Tag
	xids        map[history.Run]*numset.Set // PostgreSQL's ids of those that were let go
	began       beginnings                  // when those began that were let go

	names             liveNames
	settled           [2]*settledFindings // [1]: as if transactions at other levels wrote what nobody recorded
	unrecordedWriters bool                // some that are gone did
	coverageCount     *coverageCount
	stats             LiveStats
	told              map[string]*wording
}

// LiveStats counts what a [Live] keeps and has let go.
type LiveStats struct {
	Kept int // transactions that are kept now
	// Cut are those that were let go for Limit's sake although others could still reach them: cycles through
	// both are found by the analysis of the recording only.
	Cut  int
	Late int // transactions that came after others had been settled that ended later
}

// News is a finding that a step found, or found more often.
type News struct {
	Finding *Finding // its Count, First and Last are those up to now
	First   bool     // it is found for the first time
}

// liveNames are the numbers that stay from step to step.
type liveNames struct {
	programs programs
	counts   []int // by program: transactions that are gone
	tables   []string
	folded   map[int32]int32
	byFolded []string
}

// NewLive returns a Live that knows nothing yet.
func NewLive(o LiveOptions) *Live {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	count := newCoverageCount()
	count.doubtful.bounded = true
	return &Live{opts: o, offsets: make(map[history.Run]int64), knownSessions: make(map[history.Run]*numset.Set),
		placed: make(map[history.Run]*numset.Set),
		gone:   make(map[history.Run]*numset.Set), odd: make(map[history.Run]*numset.Set),
		replaced: make(map[history.Tag]bool),
		xids:     make(map[history.Run]*numset.Set), began: make(beginnings),
		names:   liveNames{programs: newPrograms(), folded: make(map[int32]int32)},
		settled: [2]*settledFindings{newSettledFindings(), newSettledFindings()}, coverageCount: count,
		told: make(map[string]*wording)}
}

// Add adds a run, or tells once more of one that has ended.
func (l *Live) Add(info history.Info) {
	if i := slices.IndexFunc(l.infos, func(x history.Info) bool { return x.Run == info.Run }); i >= 0 {
		l.infos[i] = info
		return
	}
	l.infos = append(l.infos, info)
	l.coverageCount.began(&info)
	l.offsets[info.Run] = int64(info.Started.Sub(l.infos[0].Started))
}

// AddSession adds a session, before its transactions, or tells once more of one.
func (l *Live) AddSession(s history.Session) {
	if numbers(l.knownSessions, s.Run).Add(uint32(s.ID)) {
		l.coverageCount.Sessions++
	}
	// Until the client has logged in its database is not told.
	if s.Database != "" && numbers(l.placed, s.Run).Add(uint32(s.ID)) {
		l.sessions = append(l.sessions, s)
	}
}

// AddTxn adds a transaction that has ended, and keeps it. It fails on one that was added before.
func (l *Live) AddTxn(t *history.Txn) error {
	if !numbers(l.gone, t.ID.Run()).Add(t.ID.Seq()) {
		return fmt.Errorf("adding transaction %s: it was added before", t.ID)
	}
	l.AddSession(history.Session{Run: t.ID.Run(), ID: t.Session})
	l.coverageCount.note(t)
	l.fresh = append(l.fresh, t)
	return nil
}

// Skip says that the run's transactions up to this one are not added: nothing is built on a version of theirs.
func (l *Live) Skip(upTo history.TxnID) {
	numbers(l.gone, upTo.Run()).AddUntil(upTo.Seq())
	numbers(l.odd, upTo.Run()).AddUntil(upTo.Seq())
}

// Offset returns the time of a run's start as a Live counts time: nanoseconds since its first run's start.
func (l *Live) Offset(r history.Run) int64 { return l.offsets[r] }

// Runs returns how many runs were added.
func (l *Live) Runs() int { return len(l.infos) }

// Stats returns how much is kept.
func (l *Live) Stats() LiveStats {
	s := l.stats
	s.Kept = len(l.kept) + len(l.fresh)
	return s
}

func numbers(sets map[history.Run]*numset.Set, r history.Run) *numset.Set {
	if sets[r] == nil {
		sets[r] = new(numset.Set)
	}
	return sets[r]
}

// Step analyzes what is kept at a moment, now. Every transaction that began before open has been added. Both count
// from the first run's start. It gives the findings that became known, in the order of their names.
func (l *Live) Step(now, open int64) ([]News, error) {
	a, err := l.analyze()
	if err != nil {
		return nil, err
	}
	p := l.parts(a, now, open)
	if err := l.search(a, p); err != nil {
		return nil, err
	}
	l.letGo(a, p)
	l.coverageCount.PutBack = max(l.coverageCount.PutBack, a.store.putBack)
	return l.news(), nil
}

// Finish returns the result of all that was added, as [Analyzer.Finish] would. Nothing may be added afterwards.
func (l *Live) Finish() (*Result, error) {
	a, err := l.analyze()
	if err != nil {
		return nil, err
	}
	p := &parts{o: a.order, at: l.times(a.order), settled: math.MaxInt64}
	if err := l.search(a, p); err != nil {
		return nil, err
	}
	l.letGo(a, p)
	l.coverageCount.PutBack = max(l.coverageCount.PutBack, a.store.putBack)
	b := l.settled[0]
	if l.unrecordedWriters {
		b = l.settled[1]
	}
	b.close(l)
	findings := b.findings(a, l)
	return &Result{Runs: slices.Clone(l.infos), Coverage: l.coverageCount.coverage(l.infos), Findings: findings,
		Levels: verdict(inOrderOfStrictness(b.occurs))}, nil
}

// analyze puts what is kept in order.
func (l *Live) analyze() (*Analyzer, error) {
	l.kept = append(l.kept, l.fresh...)
	l.fresh = l.fresh[:0]
	slices.SortFunc(l.kept, func(x, y *history.Txn) int {
		return cmp.Or(cmp.Compare(x.ID.Run(), y.ID.Run()), cmp.Compare(x.Session, y.Session),
			cmp.Compare(x.Start, y.Start), cmp.Compare(x.ID, y.ID))
	})
	a := New(Options{Work: l.opts.Work, Expect: l.opts.Expect, Model: l.opts.Model})
	l.names.lend(&a.store)
	for _, info := range l.infos {
		if info.Ended.IsZero() {
			// What no transaction that has ended wrote, and none that is open, nobody wrote (see parts).
			info.Ended = time.Unix(math.MaxInt32, 0)
		}
		if err := a.Add(info); err != nil {
			return nil, err
		}
	}
	versions := pgversions.New()
	for run, xids := range l.xids {
		versions.Forget(run, xids)
	}
	txns, err := versions.Translate(l.infos, l.sessions, l.kept)
	if err != nil {
		return nil, err
	}
	for _, t := range txns {
		if err := a.AddTxn(t); err != nil {
			return nil, err
		}
	}
	if err := a.addOrders(versions); err != nil {
		return nil, err
	}
	for i := range a.store.runs {
		r := &a.store.runs[i]
		r.gone, r.odd = l.gone[r.info.Run], l.odd[r.info.Run]
	}
	a.store.replaced = l.replaced
	if err := a.store.separateLives(); err != nil {
		return a, err
	}
	a.order = newOrder(&a.store)
	return a, a.order.build()
}

// lend gives a store the names that stay.
func (n *liveNames) lend(s *store) {
	for i := range n.programs.list {
		n.programs.list[i].count = 0
		if i < len(n.counts) {
			n.programs.list[i].count = n.counts[i]
		}
	}
	s.programs, s.rows.tables = n.programs, n.tables
}

// takeBack takes them again, with those that came to be.
func (n *liveNames) takeBack(s *store, c *collector) {
	n.programs, n.tables, n.byFolded = s.programs, s.rows.tables, c.tables
}

// search looks for anomalies among what is kept, and adds them to the settled findings: to both the same, unless a
// level is there that promises something only as long as nobody writes beside it.
func (l *Live) search(a *Analyzer, p *parts) error {
	s := l.find(a, p, false)
	occurring := s.occurring()
	if err := l.settled[0].take(a, s.found, occurring, l.told); err != nil {
		return err
	}
	if s.judge.anyTogether() {
		s = l.find(a, p, true)
		occurring = s.occurring()
	} else {
		s.found.groups = copies(s.found.groups)
	}
	return l.settled[1].take(a, s.found, occurring, l.told)
}

// find looks for anomalies, with or without writers beside.
func (l *Live) find(a *Analyzer, p *parts, beside bool) *search {
	c := newCollector(a.order, a.opts)
	c.folded, c.tables = l.names.folded, l.names.byFolded
	c.apart = p.of
	c.judge.unrecordedWriters = beside
	a.findReads(c)
	s := newSearch(a.order, c, a.opts)
	s.final = p.final
	s.run()
	s.judge.together = false
	l.names.takeBack(&a.store, c)
	return s
}

// letGo forgets the transactions that are settled.
func (l *Live) letGo(a *Analyzer, p *parts) {
	l.unrecordedWriters = l.unrecordedWriters || p.foundUnseenWriters(a.opts)
	doubtful, started := l.coverageCount.doubtful.any(), func(id history.TxnID) int64 {
		return max(a.started(id), l.began.before(id)) // one of both knows it
	}
	kept := l.kept[:0]
	for i, t := range l.kept {
		if p.at[i] >= p.settled && p.settled != math.MaxInt64 {
			kept = append(kept, t)
			continue
		}
		l.coverageCount.count(a.txns[i])
		if doubtful {
			l.coverageCount.recount(a.txns[i], started)
		}
		l.began.add(t.ID, t.Start)
		l.names.gone(a.store.txns[i].program)
		l.forgetXIDs(t)
		l.forgetVersions(&a.store, int32(i), t)
		if p.at[i] >= p.natural {
			l.stats.Cut++
		}
	}
	clear(l.kept[len(kept):])
	l.kept = kept
}

// forgetVersions remembers of a transaction that is let go which of its versions did not stay.
func (l *Live) forgetVersions(s *store, i int32, t *history.Txn) {
	unsure := func(x history.Stmt) bool { return x.Observation == history.Opaque || x.Observation == history.Inexact }
	if t.Status != history.Committed || slices.ContainsFunc(t.Stmts, unsure) {
		numbers(l.odd, t.ID.Run()).Add(t.ID.Seq())
		return
	}
	from, to := s.accessesOf(i)
	for _, a := range s.accesses[from:to] {
		if a.write() && (a.is(intermediate) || a.is(void)) {
			l.replace(history.Tag{Txn: t.ID, Stmt: a.stmt})
		}
	}
	for j := range t.Stmts {
		if t.Stmts[j].Void && t.Stmts[j].Kind != history.Select {
			l.replace(history.Tag{Txn: t.ID, Stmt: t.Stmts[j].Num})
		}
	}
}

func (l *Live) replace(t history.Tag) {
	if l.replaced[t] {
		return
	}
	l.replaced[t] = true
	l.replacedAge = append(l.replacedAge, t)
	if len(l.replacedAge) > l.opts.Limit {
		oldest := l.replacedAge[0]
		numbers(l.odd, oldest.Txn.Run()).Add(oldest.Txn.Seq())
		delete(l.replaced, oldest)
		l.replacedAge = l.replacedAge[1:]
	}
}

func (n *liveNames) gone(program int32) {
	for int(program) >= len(n.counts) {
		n.counts = append(n.counts, 0)
	}
	n.counts[program]++
}

func (l *Live) forgetXIDs(t *history.Txn) {
	for i := range t.Stmts {
		for _, p := range t.Stmts[i].TupleIDs {
			if p.NewXID != 0 {
				numbers(l.xids, t.ID.Run()).Add(p.NewXID)
			}
		}
	}
}

// news returns what both settled findings have, in the order of their names, and that was not told yet.
func (l *Live) news() []News {
	var news []News
	for _, key := range slices.Sorted(maps.Keys(l.told)) {
		t := l.told[key]
		seen, too := l.settled[0].seen(key), l.settled[1].seen(key)
		count := min(seen.count, too.count)
		if count <= t.count {
			continue
		}
		said := t.known.finding
		if said == nil || t.settled.finding != nil && t.settled.length < t.known.length {
			said = t.settled.finding
		}
		f := *said
		f.Count, f.First, f.Last = count, max(seen.first, too.first), min(seen.last, too.last)
		news = append(news, News{Finding: &f, First: t.count == 0})
		t.count = count
	}
	return news
}

// parts finds the parts of what is kept.
func (l *Live) parts(a *Analyzer, now, open int64) *parts {
	p := &parts{o: a.order, at: l.times(a.order), due: subtract(now, l.opts.Patience)}
	for _, info := range l.infos {
		if info.Ended.IsZero() {
			p.open = append(p.open, info.Run)
		}
	}
	spans := p.spans(a)
	p.closed = below(spans, open)
	p.natural = below(spans, min(open, subtract(now, l.opts.Window)))
	p.settled = max(p.natural, l.forced(p.at))
	return p
}

// times returns the ends of the transactions, counted from the first run's start.
func (l *Live) times(o *order) []int64 {
	offsets := make([]int64, len(o.runs))
	for r := range o.runs {
		offsets[r] = l.offsets[o.runs[r].info.Run]
	}
	at := make([]int64, len(o.txns))
	for t := range o.txns {
		at[t] = o.txns[t].end + offsets[o.txns[t].run]
	}
	return at
}

// forced is before which time transactions go because there are too many.
func (l *Live) forced(at []int64) int64 {
	if len(at) <= l.opts.Limit {
		return math.MinInt64
	}
	sorted := slices.Clone(at)
	slices.Sort(sorted)
	return sorted[len(at)-l.opts.Limit]
}
