package predicate

import (
	"cmp"
	"context"
	"iter"
	"math/bits"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// window is how far apart a predicate's statement and a version may be in time to be held against each other.
const window = time.Minute

// The most of a table that a Matcher keeps. Predicates beyond that are let go of; where there are more images it gives
// the table up.
const (
	maxImages     = 100_000
	maxPredicates = 10_000
)

// few is how many images of a table are all held against each predicate. Of more it is those that a transaction may not
// have seen when it began: what it did not find any more (Gone) is then told only of versions that it had found.
const few = 200

// testEvery is the time between two tests of what has come in. A matcher that is gentle tests for no more than one of
// gentleness parts of the time that clients' statements take.
const (
	testEvery  = 100 * time.Millisecond
	gentleness = 5
)

// A Tester says which of some rows of a table in a database match predicates over it: for each of these the rows'
// places in images, in order, and whether some images lack a column that it names, so that it could not be held against
// them. A row is as [history.Stmt].Images has it.
type Tester interface {
	Test(ctx context.Context, database string, predicates []history.Predicate, images []string) (matching [][]int,
		lacking []bool, err error)
	// Why says of an error of Test's whether the server refused a predicate, or else whether it was reached at all.
	Why(err error) (refused, reached bool)
	// Equality returns what a predicate asks of a whole number, with the column as Number takes it; false where that is
	// not known. It is called from one goroutine.
	Equality(database string, p history.Predicate) (e sqltoken.Equality, ok bool)
	// Number returns the whole number that a row holds in a column, if it is known. It waits for nothing.
	Number(image, column string) (n int64, null, known bool)
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
	// Gentle has the server asked for no more than a fifth of the time that clients' statements take, until the run
	// ends: what has come in by then is tested at the end. And predicates are held against the versions of those rows
	// only that somebody else is known to have written while their transaction ran, before and after that (rows.go). It
	// is set before Run.
	Gentle bool

	mu     sync.Mutex
	tables map[table]*tests
	worked int64 // nanoseconds that clients' statements took
	beyond int   // predicates that were let go of before they had been tested whole, as there was too much
	partly int   // predicates that were forgotten, and had not been tested whole since the server or images could not

	spent   int64             // nanoseconds that tests took; of Run
	outages map[string]outage // of servers, by database; of Run
}

type table struct{ database, name string }

// tests are of one table.
type tests struct {
	images     []image
	dropped    int // images before the first of these
	predicates map[history.Predicate]*test
	unread     []history.Predicate // the tester has not been asked for what they ask
	rows       map[string]*row     // by [history.Row].ID; those that have one
	columns    map[string]*numbers
	number     func(image, column string) (n int64, null, known bool) // [Tester].Number
	abandoned  bool
}

type image struct {
	version history.VersionRef
	text    string
	at      int64 // when its transaction ended
	by      int64 // the latest end of its transaction and those before
	row     *row  // nil: not known
	over    int   // the image before it of its row, the dropped ones counted; -1: there is none
}

type test struct {
	from   int // the first image that it is held against
	tested int // so many images, the dropped ones among them
	uses   uses
	// equality is nil where it has none, or the tester was not asked yet.
	equality *equality
	failed   bool // the server could not test it
	breaks   int  // so many tests in a row had the connection break
	pending  bool // it was not held against the images from tested on, and is to be
	lost     bool // some of these were forgotten
	// lacked says that images it should have been held against lack a column that it names.
	lacked bool
}

// NewMatcher returns a Matcher that keeps nothing yet.
func NewMatcher(t Tester, s Sink, log *zap.Logger) *Matcher {
	return &Matcher{tester: t, sink: s, log: log, tables: make(map[table]*tests), outages: make(map[string]outage)}
}

// Add takes in what a transaction did that has ended. It keeps nothing of t but strings.
func (m *Matcher) Add(database string, t *history.Txn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range t.Stmts {
		s := &t.Stmts[i]
		m.worked += s.End - s.Start
		for _, p := range s.Predicates {
			m.beyond += m.table(database, p.Table).addPredicate(p.Condition(), t)
		}
		if t.Status == history.Aborted || s.Void {
			continue
		}
		for j := range s.Accesses {
			a := &s.Accesses[j]
			if a.Op == history.Read {
				continue
			}
			var text string
			if j < len(s.Images) {
				text = s.Images[j]
			}
			m.beyond += m.table(database, a.Row.Table).addWrite(t, a.Row.ID,
				image{version: history.VersionRef{Txn: t.ID, Stmt: s.Num, Access: j}, text: text, at: t.End})
		}
	}
}

// Untested returns how many predicates were not held against all that they should have been: the server could not test
// them, there was too much, or no time. It is for when Run has returned.
func (m *Matcher) Untested() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.beyond + m.partly
	for _, t := range m.tables {
		for _, x := range t.predicates {
			if x.partly() {
				n++
			}
		}
	}
	return n
}

// Beyond returns how many of these there were too many of: more than are kept of a table, or of one that more rows of
// were written than are kept.
func (m *Matcher) Beyond() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beyond
}

func (m *Matcher) table(database, name string) *tests {
	k := table{database, name}
	t := m.tables[k]
	if t == nil {
		t = &tests{predicates: make(map[history.Predicate]*test), rows: make(map[string]*row)}
		m.tables[k] = t
	}
	return t
}

// addPredicate takes in a predicate of a transaction, and returns how many are let go of with that.
func (t *tests) addPredicate(p history.Predicate, of *history.Txn) (beyond int) {
	from := t.since(of.Start)
	if known := t.predicates[p]; known != nil {
		known.uses.add(of)
		if from < known.from {
			known.from, known.tested = from, from
		}
		known.uses.from = min(known.uses.from, from)
		return 0
	}
	if len(t.predicates) == maxPredicates || t.abandoned {
		return 1
	}
	x := &test{from: from, tested: from, uses: uses{from: from}}
	x.uses.add(of)
	t.predicates[p], t.unread = x, append(t.unread, p)
	return 0
}

// since returns the first image that a predicate of a transaction is held against: of those that may have ended after
// it began, since what had been committed then it has seen; of all that are kept, where they are few.
func (t *tests) since(start int64) int {
	if len(t.images) <= few {
		return t.dropped
	}
	n, _ := slices.BinarySearchFunc(t.images, start, func(i image, start int64) int { return cmp.Compare(i.by, start) })
	return t.dropped + n
}

// addWrite takes in a write of a row, and what it left, if that is known. It returns how many predicates are lost with
// that.
func (t *tests) addWrite(of *history.Txn, row string, i image) (lost int) {
	if t.abandoned {
		return 0
	}
	i.over = -1
	if row != "" {
		i.row = t.written(row, of)
		i.over = i.row.last
		if i.text == "" && i.over >= t.dropped { // what it replaced matters for those who did not find it any more
			before := t.images[i.over-t.dropped]
			i.version, i.text = before.version, before.text
		}
	}
	if i.text == "" {
		return 0
	}
	if len(t.images) == maxImages {
		return t.abandon()
	}
	if i.by = i.at; len(t.images) > 0 {
		i.by = max(i.at, t.images[len(t.images)-1].by)
	}
	if i.row != nil {
		i.row.last = t.dropped + len(t.images)
	}
	t.images = append(t.images, i)
	for column, x := range t.columns {
		x.add(t, len(t.images)-1, column)
	}
	return 0
}

// abandon lets go of everything, and returns how many predicates that were.
func (t *tests) abandon() int {
	n := len(t.predicates)
	*t = tests{abandoned: true}
	return n
}

// partly reports whether the predicate was not held against all that it should have been.
func (x *test) partly() bool { return x.failed || x.lacked || x.pending || x.lost }

// forget lets go of what is older than the window. It returns how many predicates of it were tested partly.
func (t *tests) forget(now int64) (partly int) {
	old := now - int64(window)
	n := slices.IndexFunc(t.images, func(i image) bool { return i.at >= old })
	if n < 0 {
		n = len(t.images)
	}
	t.images, t.dropped = slices.Delete(t.images, 0, n), t.dropped+n
	for _, x := range t.columns {
		x.drop(n, t.dropped)
	}
	for p, x := range t.predicates {
		t.noteLost(x)
		if x.uses.last() < old {
			delete(t.predicates, p)
			if x.partly() {
				partly++
			}
		}
		x.tested = max(x.tested, t.dropped)
	}
	for id, r := range t.rows {
		if r.ended < old {
			delete(t.rows, id)
		}
	}
	return partly
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
	for {
		select {
		case <-tick.C:
			m.turn(work, now)
		case <-ctx.Done():
			m.lastRound(work, now())
			return
		}
	}
}

// turn tests what has come in, unless tests have taken their part of the time. now is the run's clock.
func (m *Matcher) turn(ctx context.Context, now func() int64) {
	m.mu.Lock()
	worked := m.worked
	m.mu.Unlock()
	if m.Gentle && gentleness*m.spent > worked {
		return
	}
	began := now()
	m.round(ctx, began)
	m.spent += now() - began
}

// A task are predicates over one table, and the images that some of them are to be held against, by their places.
type task struct {
	database string
	of       []untested
	places   []int
	images   []image
}

// An untested predicate is to be held against images: all from one on, and some before, in order. The places of images
// count the dropped ones.
type untested struct {
	predicate history.Predicate
	from      int
	before    []int
	matching  []int // those that are known to match without the server
}

// first returns the first of the images.
func (u *untested) first() int {
	if len(u.before) > 0 {
		return u.before[0]
	}
	return u.from
}

// wants reports whether an image is one of them.
func (u *untested) wants(place int) bool {
	_, before := slices.BinarySearch(u.before, place)
	return before || place >= u.from
}

// How much is tested at once.
const (
	batchImages     = 1000
	batchPredicates = 64
)

// due returns what is to be tested, and what is known without.
func (m *Matcher) due(now int64) (tasks []task, known []history.Matches) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, t := range m.tables {
		if m.outages[k.database].until > now {
			t.postpone()
			m.partly += t.forget(now)
			continue
		}
		all := t.untested(m.Gentle)
		for _, u := range all {
			if len(u.matching) > 0 {
				known = append(known, t.matches(k.database, u))
			}
		}
		all = slices.DeleteFunc(all, func(u untested) bool { return !t.asks(u) })
		for batch := range slices.Chunk(all, batchPredicates) {
			tasks = append(tasks, t.task(k.database, batch))
		}
		m.partly += t.forget(now)
	}
	return tasks, known
}

// matches returns what is known to match a predicate.
func (t *tests) matches(database string, u untested) history.Matches {
	found := history.Matches{Database: database, Predicate: u.predicate}
	for _, place := range u.matching {
		found.Versions = append(found.Versions, t.images[place-t.dropped].version)
	}
	return found
}

// asks reports whether the server is to be asked for a predicate.
func (t *tests) asks(u untested) bool { return len(u.before) > 0 || u.from < t.dropped+len(t.images) }

// task returns predicates with all images that one of them is to be held against.
func (t *tests) task(database string, of []untested) task {
	due := task{database: database, of: of}
	wanted := make([]bool, len(t.images))
	for _, u := range of {
		for _, place := range u.before {
			wanted[place-t.dropped] = true
		}
		for i := u.from - t.dropped; i < len(wanted); i++ {
			wanted[i] = true
		}
	}
	for i, wanted := range wanted {
		if wanted {
			due.places, due.images = append(due.places, i+t.dropped), append(due.images, t.images[i])
		}
	}
	return due
}

// untested returns what of a table is to be tested, next to each other what is held against about the same, and takes
// it for tested. Gentle: see [Matcher].
func (t *tests) untested(gentle bool) (all []untested) {
	end := t.dropped + len(t.images)
	for p, x := range t.predicates {
		u := t.untestedOf(p, x, gentle)
		t.noteLost(x)
		x.tested, x.pending = end, false
		x.uses.settle(end)
		if len(u.matching) > 0 || t.asks(u) {
			all = append(all, u)
		}
	}
	size := func(u *untested) int { return bits.Len(uint(len(u.before) + end - u.from)) }
	slices.SortFunc(all, func(a, b untested) int {
		return cmp.Or(cmp.Compare(size(&a), size(&b)), cmp.Compare(a.first(), b.first()),
			cmp.Compare(a.predicate.Where, b.predicate.Where))
	})
	return all
}

// untestedOf returns what one predicate is to be held against.
func (t *tests) untestedOf(p history.Predicate, x *test, gentle bool) untested {
	end := t.dropped + len(t.images)
	u := untested{predicate: p, from: end}
	from := max(t.dropped, x.tested)
	if gentle {
		from = max(t.dropped, min(x.tested, x.uses.from))
	}
	chosen := gentle || x.equality != nil // of the images from there on, not all
	if !chosen && !x.failed {
		u.from = from
	}
	if x.failed {
		return u
	}
	for at := range t.places(x, from) {
		i := &t.images[at-t.dropped]
		if gentle && !x.uses.matter(i.row, at < x.tested) {
			continue
		}
		if i.over >= t.dropped && i.over < max(from, x.tested) {
			u.before = append(u.before, i.over) // whether the write made the row match
		}
		if chosen {
			u.before = append(u.before, at)
		}
	}
	slices.Sort(u.before)
	u.before = slices.Compact(u.before)
	if x.equality != nil {
		x.equality.decide(&u, t.dropped)
	}
	return u
}

// places returns those of the images from one on that may match a predicate, or replaced one that may.
func (t *tests) places(x *test, from int) iter.Seq[int] {
	if x.equality != nil {
		return slices.Values(x.equality.in.candidates(x.equality.Value, from))
	}
	return func(yield func(int) bool) {
		for at := from; at < t.dropped+len(t.images) && yield(at); at++ {
		}
	}
}

func (m *Matcher) round(ctx context.Context, now int64) {
	m.readPredicates()
	tasks, known := m.due(now)
	for _, found := range known {
		m.keep(ctx, found)
	}
	for _, t := range tasks {
		for from := 0; from < len(t.images); from += batchImages {
			to := min(from+batchImages, len(t.images))
			m.test(ctx, task{t.database, t.of, t.places[from:to], t.images[from:to]}, now)
		}
	}
}

// lastRound is round at the end: who was not there is asked once more.
func (m *Matcher) lastRound(ctx context.Context, now int64) {
	clear(m.outages)
	m.round(ctx, now)
}

// test holds predicates against images. Where that fails, each predicate is tried by itself.
func (m *Matcher) test(ctx context.Context, t task, now int64) {
	if m.outages[t.database].until > now {
		m.postpone(t)
		return
	}
	predicates, texts := make([]history.Predicate, len(t.of)), make([]string, len(t.images))
	for i := range t.of {
		predicates[i] = t.of[i].predicate
	}
	for i := range t.images {
		texts[i] = t.images[i].text
	}
	matching, lacking, err := m.tester.Test(ctx, t.database, predicates, texts)
	refused, reached := true, true
	if err != nil && ctx.Err() == nil {
		refused, reached = m.tester.Why(err)
	}
	switch {
	case err == nil:
	case !refused && !reached:
		m.unreached(t, now, err)
		return
	case len(predicates) > 1 && ctx.Err() == nil:
		for i := range predicates {
			m.test(ctx, task{t.database, t.of[i : i+1], t.places, t.images}, now)
		}
		return
	default:
		m.fail(t, refused, err)
		return
	}
	delete(m.outages, t.database)
	m.mark(t, func(x *test, _ *untested) { x.breaks = 0 })
	for i, matched := range matching {
		if lacking[i] {
			m.mark(task{database: t.database, of: t.of[i : i+1]}, func(x *test, _ *untested) { x.lacked = true })
		}
		found := history.Matches{Database: t.database, Predicate: predicates[i]}
		for _, at := range matched {
			if t.of[i].wants(t.places[at]) {
				found.Versions = append(found.Versions, t.images[at].version)
			}
		}
		if len(found.Versions) == 0 {
			continue
		}
		m.keep(ctx, found)
	}
}

// keep hands on what matches a predicate.
func (m *Matcher) keep(ctx context.Context, found history.Matches) {
	if err := m.sink.Matches(ctx, found); err != nil {
		m.log.Warn("what matches a predicate is not recorded", zap.Error(err))
	}
}

// mark takes note of something about the tests of a task's predicates.
func (m *Matcher) mark(of task, what func(*test, *untested)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range of.of {
		p := of.of[i].predicate
		if t := m.tables[table{of.database, p.Table}]; t != nil && t.predicates[p] != nil {
			what(t.predicates[p], &of.of[i])
		}
	}
}
