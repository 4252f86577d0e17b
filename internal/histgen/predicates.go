package histgen

import (
	"math/rand/v2"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
)

// The values of rows are few, so that conditions on them often change their minds.
const values = 3

// A look is a statement that chose rows by a condition on their values: what it saw of each row that there was.
type look struct {
	txn   *txn
	stmt  int          // its place in the transaction
	match [values]bool // by value
	saw   map[*row]*version
}

// GenerateWithPredicates is [Generate] with statements that look for rows by a condition on their values, and all that
// there is to know of these. To the statements' accesses it adds what a perfect observer can say of the rows that they
// did not find.
func GenerateWithPredicates(rng *rand.Rand, c Config) ([]*history.Txn, []bruteforce.PredicateRead) {
	db := newStore(rng, c)
	db.predicates = true
	for _, r := range db.rows {
		r.versions[0].value = rng.IntN(values)
	}
	db.run()
	var reads []bruteforce.PredicateRead
	for _, l := range db.looks {
		l.tell(db.rows)
		reads = append(reads, l.read(db.rows))
	}
	return db.txns(), reads
}

// look runs a statement that looks for all rows with some values; false when a lock is in its way. Where reads lock,
// nobody inserts a row until the transaction has ended.
func (db *store) look(t *txn) bool {
	l := look{txn: t, saw: make(map[*row]*version)}
	for i := range l.match {
		l.match[i] = db.rng.IntN(2) == 0
	}
	lock := history.NoLock
	if db.Engine == Locking {
		lock = history.LockShare
		for _, r := range db.rows {
			if !db.lock(t, r, false) {
				return false
			}
		}
		db.watchers[t] = true
	}
	var seen []history.Access
	for _, r := range db.rows {
		v := db.seen(t, r)
		if v == nil {
			continue
		}
		l.saw[r] = v
		if l.matches(v) {
			seen = append(seen, history.Access{Row: r.name, Op: history.Read, Version: v.tag, Prior: v.prior})
		}
	}
	t.begin(history.Select, lock).Accesses = seen
	l.stmt = len(t.Stmts) - 1
	db.looks = append(db.looks, l)
	return true
}

// seen is visible, where the broken engine may take a row for deleted, too.
func (db *store) seen(t *txn, r *row) *version {
	v := db.visible(t, r, db.Engine == Locking)
	if v == nil && db.Engine == Broken {
		return r.newest(func(v *version) bool { return v.dead && v.writer != t })
	}
	return v
}

func (l look) matches(v *version) bool { return v != nil && !v.dead && l.match[v.value] }

// stays reports whether a version is one of those that rows have in the end: the last that a committed transaction
// left.
func (r *row) stays(v *version) bool {
	last := r.newest(func(w *version) bool { return w.writer == v.writer && !w.undone })
	return v == last && v.committed > 0
}

// below returns the nearest such version under one; nil where there is none.
func (r *row) below(v *version) *version {
	for v = v.over; v != nil && !r.stays(v); v = v.over {
	}
	return v
}

// above is the inverse of below.
func (r *row) above(v *version) *version {
	return r.newest(func(w *version) bool { return w.writer != nil && r.stays(w) && r.below(w) == v })
}

// tell adds to the statement which versions of the rows that it did not find it saw: where it would have found the one
// right above, or right below, it says so.
func (l look) tell(rows []*row) {
	s := &l.txn.Stmts[l.stmt]
	say := func(r *row, v *version, gone bool) {
		a := history.Access{Row: r.name, Op: history.Read, Absent: !gone, Gone: gone}
		if v != nil {
			a.Version = v.tag
		}
		s.Accesses = append(slices.Clip(s.Accesses), a)
	}
	for _, r := range rows {
		saw := l.saw[r]
		if l.matches(saw) || saw != nil && saw.writer == l.txn {
			continue
		}
		if saw != nil && !r.stays(saw) {
			base := r.below(saw)
			if l.matches(base) {
				say(r, saw, true)
				continue
			}
			saw = base
		}
		first, last := saw, saw
		for first != nil && r.below(first) != nil && !l.matches(r.below(first)) {
			first = r.below(first)
		}
		for next := r.above(last); next != nil && !l.matches(next); next = r.above(last) {
			last = next
		}
		if first != nil && r.below(first) != nil {
			say(r, first, true)
		}
		if r.above(last) != nil {
			say(r, last, false)
		}
	}
}

// read returns the statement as Adya has it.
func (l look) read(rows []*row) bruteforce.PredicateRead {
	byName := make(map[history.Row]*row, len(rows))
	read := bruteforce.PredicateRead{Reader: history.Tag{Txn: l.txn.ID, Stmt: uint32(l.stmt + 1)},
		Vset: make(map[history.Row]history.Tag)}
	for _, r := range rows {
		byName[r.name] = r
		if v := l.saw[r]; v != nil {
			read.Vset[r.name] = v.tag
		}
	}
	read.Matches = func(name history.Row, tag history.Tag) bool {
		return l.matches(byName[name].newest(func(v *version) bool { return v.tag == tag }))
	}
	return read
}
