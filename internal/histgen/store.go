package histgen

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/isotap/isotap/history"
)

// A store is the simulated database.
type store struct {
	Config
	rng   *rand.Rand
	rows  []*row
	all   []*txn
	open  []*txn
	clock int64 // counts statements and commits

	predicates bool // there are values, and statements that look for them
	looks      []look
	watchers   map[*txn]bool // keep others from inserting rows
}

type row struct {
	name     history.Row
	versions []*version // in the order in which they were written, undone ones too
	owner    *txn       // holds the exclusive lock
	sharers  map[*txn]bool
}

type version struct {
	tag       history.Tag
	prior     []history.Tag
	writer    *txn // nil for the initial version
	dead      bool
	undone    bool
	committed int64    // the store's clock; 0 before
	over      *version // what it replaced; nil for nothing
	value     int
}

type txn struct {
	*history.Txn
	left, waits int
	snapshot    int64 // the store's clock when its snapshot was taken; 0 before
	versions    []*version
	db          *store
}

func newStore(rng *rand.Rand, c Config) *store {
	db := &store{Config: c, rng: rng, clock: 1, watchers: make(map[*txn]bool)}
	for i := range c.Rows {
		db.rows = append(db.rows, &row{
			name:     history.Row{Table: "g.t", ID: fmt.Sprintf("r%d", i)},
			versions: []*version{{committed: 1}},
			sharers:  map[*txn]bool{},
		})
	}
	for i := range c.Txns {
		db.all = append(db.all, &txn{
			Txn:  &history.Txn{ID: history.MakeTxnID(Run, uint32(i+1)), Level: c.level(rng)},
			left: 1 + rng.IntN(c.Ops), db: db,
		})
	}
	db.open = slices.Clone(db.all)
	return db
}

func (db *store) txns() []*history.Txn {
	var txns []*history.Txn
	for _, t := range db.all {
		if t.Start == 0 {
			t.Start = t.End // its first statement never ran
		}
		txns = append(txns, t.Txn)
	}
	slices.SortStableFunc(txns, func(a, b *history.Txn) int { return cmp.Compare(a.Start, b.Start) })
	var ends []int64 // by session
	for _, t := range txns {
		free := slices.IndexFunc(ends, func(end int64) bool { return end < t.Start })
		if free < 0 {
			free = len(ends)
			ends = append(ends, 0)
		}
		ends[free] = t.End
		t.Session = history.SessionID(free + 1)
	}
	return txns
}

var shapes = map[history.Kind]string{
	history.Select: "SELECT v FROM g.t WHERE id = ?",
	history.Insert: "INSERT INTO g.t (v) VALUES (?)",
	history.Update: "UPDATE g.t SET v = ? WHERE id = ?",
	history.Delete: "DELETE FROM g.t WHERE id = ?",
}

// begin begins the transaction's next statement.
func (t *txn) begin(k history.Kind, lock history.Locking) *history.Stmt {
	t.db.clock++
	if t.Start == 0 {
		t.Start = t.db.clock
	}
	shape := shapes[k]
	if lock != history.NoLock {
		shape += " " + lock.String()
	}
	t.Stmts = append(t.Stmts, history.Stmt{Num: uint32(len(t.Stmts) + 1), Kind: k, Locking: lock,
		Observation: history.Exact, Shape: shape, Start: t.db.clock, End: t.db.clock})
	return &t.Stmts[len(t.Stmts)-1]
}

func (db *store) end(t *txn, commit bool) {
	db.clock++
	t.Status, t.End = history.Aborted, db.clock
	if commit {
		t.Status = history.Committed
	}
	for _, v := range t.versions {
		if commit {
			v.committed = db.clock
		} else {
			v.undone = true
		}
	}
	delete(db.watchers, t)
	for _, r := range db.rows {
		delete(r.sharers, t)
		if r.owner == t {
			r.owner = nil
		}
	}
	db.open = slices.DeleteFunc(db.open, func(o *txn) bool { return o == t })
}

// lock takes a row's lock, if it is free. The broken engine knows no locks.
func (db *store) lock(t *txn, r *row, exclusive bool) bool {
	if db.Engine == Broken {
		return true
	}
	if r.owner != nil && r.owner != t {
		return false
	}
	if !exclusive {
		r.sharers[t] = true
		return true
	}
	for s := range r.sharers {
		if s != t {
			return false
		}
	}
	r.owner = t
	return true
}

// tooNew reports whether snapshot isolation refuses to lock the version.
func (db *store) tooNew(t *txn, v *version) bool {
	return db.Engine == Snapshot && v != nil && v.writer != t && v.committed > t.takeSnapshot()
}

func (t *txn) takeSnapshot() int64 {
	if t.snapshot == 0 {
		t.snapshot = t.db.clock
	}
	return t.snapshot
}

// visible finds the version that a read sees; nil when the row is not there for it.
func (db *store) visible(t *txn, r *row, locking bool) *version {
	if v := r.newest(func(v *version) bool { return v.writer == t && !v.undone }); v != nil {
		return v
	}
	switch db.Engine {
	case Broken:
		return r.any(db.rng, t)
	case ReadUncommitted:
		return r.newest(func(v *version) bool { return !v.undone })
	case Snapshot, RepeatableRead:
		if !locking {
			return r.newest(func(v *version) bool {
				return v.committed > 0 && v.committed <= t.takeSnapshot() &&
					!v.undone
			})
		}
	}
	return r.newest(func(v *version) bool { return v.committed > 0 && !v.undone })
}

// target finds the version that a write replaces: the newest. The broken engine sometimes takes an
// older one, of a row that the transaction has not written yet.
func (db *store) target(t *txn, r *row) *version {
	own := r.newest(func(v *version) bool { return v.writer == t && !v.undone })
	if db.Engine == Broken && db.rng.IntN(5) == 0 {
		if own != nil {
			return own
		}
		return r.any(db.rng, t)
	}
	return r.newest(func(v *version) bool { return !v.undone })
}

func (db *store) install(t *txn, r *row, old *version, stmt uint32, dead bool) {
	v := &version{tag: history.Tag{Txn: t.ID, Stmt: stmt}, writer: t, dead: dead, over: old}
	if db.predicates {
		v.value = db.rng.IntN(values)
	}
	if old != nil && !old.dead {
		v.prior = append(slices.Clone(old.prior), old.tag)
	}
	r.versions = append(r.versions, v)
	t.versions = append(t.versions, v)
}

func (r *row) newest(ok func(*version) bool) *version {
	for _, v := range slices.Backward(r.versions) {
		if ok(v) {
			return v
		}
	}
	return nil
}

// any picks any living version that the transaction did not write itself.
func (r *row) any(rng *rand.Rand, t *txn) *version {
	var others []*version
	for _, v := range r.versions {
		if v.writer != t && !v.dead {
			others = append(others, v)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return others[rng.IntN(len(others))]
}
