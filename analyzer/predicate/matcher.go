package predicate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// window is how far apart a predicate's statement and a version may be in time to be held against each other.
const window = time.Minute

// The most of a table that a Matcher keeps. Where there is more it gives the table up.
const (
	maxImages     = 100_000
	maxPredicates = 10_000
)

// few is how many images of a table are all held against each predicate. Of more it is those that a transaction may not
// have seen when it began: what it did not find any more (Gone) is then told only of versions that it had found.
const few = 200

// testEvery is the time between two tests of what has come in.
const testEvery = 100 * time.Millisecond

// A Tester says which of some rows of a table in a database match predicates over it: for each of these the rows'
// places in images, in order. A row is as [history.Stmt].Images has it.
type Tester interface {
	Test(ctx context.Context, database string, predicates []history.Predicate, images []string) (matching [][]int,
		err error)
}

// A Sink takes what was found out. It may wait.
type Sink interface {
	Matches(ctx context.Context, m history.Matches) error
}

// A Matcher holds the predicates of statements against the versions that writes leave, both as they come. Add may be
// called from several goroutines; [Matcher.Run] tests in one of its own.
type Matcher struct {
	tester Tester
	sink   Sink
	log    *zap.Logger

	mu     sync.Mutex
	tables map[table]*tests
}

type table struct{ database, name string }

// tests are of one table.
type tests struct {
	images     []image
	dropped    int // images before the first of these
	predicates map[history.Predicate]*test
	abandoned  bool
	rounds     []round
	tried      int // so many images, the dropped ones among them, there were at the last round
}

// A round says that so many images, the dropped ones among them, are of transactions that had ended at a time.
type round struct {
	at     int64
	images int
}

type image struct {
	version history.VersionRef
	text    string
	at      int64 // when its transaction ended
}

type test struct {
	from   int   // the first image that it is held against
	tested int   // so many images, the dropped ones among them
	last   int64 // when it was used
	failed bool  // the server could not test it
}

// NewMatcher returns a Matcher that keeps nothing yet.
func NewMatcher(t Tester, s Sink, log *zap.Logger) *Matcher {
	return &Matcher{tester: t, sink: s, log: log, tables: make(map[table]*tests)}
}

// Add takes in what a transaction did that has ended. It keeps nothing of t but strings.
func (m *Matcher) Add(database string, t *history.Txn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for _, p := range s.Predicates {
			m.table(database, p.Table).addPredicate(p, t.Start, t.End)
		}
		if t.Status == history.Aborted || s.Void {
			continue
		}
		for j, text := range s.Images {
			if text != "" {
				m.table(database, s.Accesses[j].Row.Table).addImage(image{history.VersionRef{Txn: t.ID, Stmt: s.Num,
					Access: j}, text, t.End})
			}
		}
	}
}

func (m *Matcher) table(database, name string) *tests {
	k := table{database, name}
	t := m.tables[k]
	if t == nil {
		t = &tests{predicates: make(map[history.Predicate]*test)}
		m.tables[k] = t
	}
	return t
}

// addPredicate takes in a predicate of a transaction.
func (t *tests) addPredicate(p history.Predicate, start, end int64) {
	from := t.since(start)
	if known := t.predicates[p]; known != nil {
		known.last = max(known.last, end)
		if from < known.from {
			known.from, known.tested = from, from
		}
		return
	}
	if len(t.predicates) == maxPredicates {
		t.abandon()
	}
	if !t.abandoned {
		t.predicates[p] = &test{from: from, tested: from, last: end}
	}
}

// since returns the first image that a predicate of a transaction is held against: of those that may have ended after
// it began, since what had been committed then it has seen; of all that are kept, where they are few.
func (t *tests) since(start int64) int {
	if len(t.images) <= few {
		return t.dropped
	}
	n, _ := slices.BinarySearchFunc(t.rounds, start,
		func(r round, start int64) int { return cmp.Or(cmp.Compare(r.at, start), -1) })
	if n == 0 {
		return t.dropped
	}
	return max(t.dropped, t.rounds[n-1].images)
}

func (t *tests) addImage(i image) {
	if len(t.images) == maxImages {
		t.abandon()
	}
	if !t.abandoned {
		t.images = append(t.images, i)
	}
}

func (t *tests) abandon() { *t = tests{abandoned: true} }

// forget lets go of what is older than the window.
func (t *tests) forget(now int64) {
	old := now - int64(window)
	t.rounds = slices.DeleteFunc(t.rounds, func(r round) bool { return r.at < old })
	n := slices.IndexFunc(t.images, func(i image) bool { return i.at >= old })
	if n < 0 {
		n = len(t.images)
	}
	t.images, t.dropped = slices.Delete(t.images, 0, n), t.dropped+n
	for p, x := range t.predicates {
		if x.last < old {
			delete(t.predicates, p)
		}
		x.tested = max(x.tested, t.dropped)
	}
}

// Run tests what comes in until ctx ends, and then what is left, for as long as rest allows and work goes on. now is
// the run's clock.
func (m *Matcher) Run(ctx, work context.Context, rest time.Duration, now func() int64) {
	work, giveUp := context.WithCancel(work)
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		patience := time.AfterFunc(rest, giveUp)
		context.AfterFunc(work, func() { patience.Stop() })
	})()
	tick := time.NewTicker(testEvery)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		m.round(work, now())
	}
}

// A task are predicates over one table and the images that none of them was held against yet.
type task struct {
	database   string
	predicates []history.Predicate
	images     []image
}

// due returns what is to be tested.
func (m *Matcher) due(now int64) (tasks []task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, t := range m.tables {
		byTested := make(map[int]*task)
		for p, x := range t.predicates {
			if x.failed || x.tested-t.dropped == len(t.images) {
				continue
			}
			due := byTested[x.tested]
			if due == nil {
				due = &task{database: k.database, images: slices.Clone(t.images[x.tested-t.dropped:])}
				byTested[x.tested] = due
			}
			due.predicates = append(due.predicates, p)
			x.tested = t.dropped + len(t.images)
		}
		for _, due := range byTested {
			tasks = append(tasks, *due)
		}
		// What came while now was being told may have ended later.
		t.rounds = append(t.rounds, round{now, t.tried})
		t.tried = t.dropped + len(t.images)
		t.forget(now)
	}
	return tasks
}

// How much is tested at once.
const (
	batchImages     = 1000
	batchPredicates = 64
)

func (m *Matcher) round(ctx context.Context, now int64) {
	for _, t := range m.due(now) {
		for images := range slices.Chunk(t.images, batchImages) {
			for predicates := range slices.Chunk(t.predicates, batchPredicates) {
				m.test(ctx, t.database, predicates, images)
			}
		}
	}
}

// test holds predicates against images. Where that fails, each predicate is tried by itself.
func (m *Matcher) test(ctx context.Context, database string, predicates []history.Predicate, images []image) {
	texts := make([]string, len(images))
	for i := range images {
		texts[i] = images[i].text
	}
	matching, err := m.tester.Test(ctx, database, predicates, texts)
	switch {
	case err == nil:
	case len(predicates) > 1 && ctx.Err() == nil:
		for i := range predicates {
			m.test(ctx, database, predicates[i:i+1], images)
		}
		return
	default:
		m.fail(database, predicates[0])
		m.log.Info("a condition cannot be tested: what it did not find is not known",
			zap.String("table", predicates[0].Table), zap.Error(err))
		return
	}
	for i, places := range matching {
		found := history.Matches{Database: database, Predicate: predicates[i],
			Versions: make([]history.VersionRef, len(places))}
		for j, place := range places {
			found.Versions[j] = images[place].version
		}
		if len(places) == 0 {
			continue
		}
		if err := m.sink.Matches(ctx, found); err != nil {
			m.log.Warn("what matches a predicate is not recorded", zap.Error(err))
		}
	}
}

// fail gives a predicate up.
func (m *Matcher) fail(database string, p history.Predicate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.tables[table{database, p.Table}]; t != nil && t.predicates[p] != nil {
		t.predicates[p].failed = true
	}
}
