// Package bruteforce is the checker's checker: it decides serializability, snapshot isolation, read atomicity
// and Adya's PL-2.99 and PL-2 of small histories straight from their definitions, by trying every order. It shares
// no code and no idea with the analyzer. Its cost is factorial: it is for histories of at most six
// transactions.
//
// A history here is fully observed: every access is exact and every write names the version that it
// replaced. As everywhere in isotap, an UPDATE or a DELETE reads the version that it replaces. What statements saw of
// the rows that they looked for and did not find is told by their [PredicateRead] alone.
package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// Serializable reports whether some order of the committed transactions, run one after the other,
// gives every read the version that it saw and every write the version that it replaced.
func Serializable(txns []*history.Txn, reads ...PredicateRead) bool {
	return SerializableIn(txns, noOrder, reads...)
}

// An Order says that one transaction comes before another, whatever they read and wrote.
type Order func(a, b *history.Txn) bool

func noOrder(_, _ *history.Txn) bool { return false }

// BySession is the order of each session's transactions, which are given in that order and end in it.
func BySession(a, b *history.Txn) bool { return a.Session == b.Session && a.End < b.End }

// ByTime is the order of transactions of which one had ended before the other began.
func ByTime(a, b *history.Txn) bool { return a.End < b.Start }

// SerializableIn is [Serializable] by an order that respects the given one.
func SerializableIn(txns []*history.Txn, before Order, reads ...PredicateRead) bool {
	return anySerialOrder(committedOf(txns), before, initialState(txns), looksOf(txns, reads))
}

func anySerialOrder(left []*history.Txn, before Order, db state, l looks) bool {
	if len(left) == 0 {
		return true
	}
	for i, t := range left {
		if !first(t, left, before) {
			continue
		}
		after, ok := db.run(t, l)
		if ok && anySerialOrder(without(left, i), before, after, l) {
			return true
		}
	}
	return false
}

// first reports whether none of the transactions must come before t.
func first(t *history.Txn, left []*history.Txn, before Order) bool {
	return !slices.ContainsFunc(left, func(other *history.Txn) bool { return before(other, t) })
}

// SnapshotIsolation reports whether start and commit points can be given to the committed transactions
// such that each one reads the state that was committed when it started, and its own writes, and
// none writes a row that another changed between its start and its commit.
func SnapshotIsolation(txns []*history.Txn, reads ...PredicateRead) bool {
	return SnapshotIsolationIn(txns, noOrder, reads...)
}

// SnapshotIsolationIn is [SnapshotIsolation] where a transaction starts after the commits of those that come
// before it in the given order.
func SnapshotIsolationIn(txns []*history.Txn, before Order, reads ...PredicateRead) bool {
	return StartOrdered(txns, before, noOrder, reads...)
}

// StartOrdered is [SnapshotIsolationIn] where besides a transaction starts before the commits of those that starts puts
// after its start: Adya's PL-SI, as far as start and commit points are known.
func StartOrdered(txns []*history.Txn, before, starts Order, reads ...PredicateRead) bool {
	return anySchedule(committedOf(txns), nil, points{before, starts}, initialState(txns), looksOf(txns, reads))
}

// points is what is known of start and commit points: who commits before whose start, and who starts before whose
// commit.
type points struct{ before, starts Order }

// An active transaction has started and not committed: before is the state that it started from,
// after is that state with its own writes.
type active struct {
	txn           *history.Txn
	before, after state
}

func anySchedule(waiting []*history.Txn, running []active, known points, db state, l looks) bool {
	if len(waiting) == 0 && len(running) == 0 {
		return true
	}
	for i, t := range waiting {
		if !first(t, waiting, known.before) ||
			slices.ContainsFunc(running, func(r active) bool { return known.before(r.txn, t) }) {
			continue
		}
		after, ok := db.run(t, l)
		if ok && anySchedule(without(waiting, i), append(slices.Clone(running), active{t, db, after}), known, db, l) {
			return true
		}
	}
	for i, r := range running {
		if !first(r.txn, waiting, known.starts) {
			continue
		}
		committed, ok := r.commit(db)
		if ok && anySchedule(waiting, without(running, i), known, committed, l) {
			return true
		}
	}
	return false
}

// commit installs what the transaction wrote, unless a row that it wrote changed since it started.
func (r active) commit(db state) (state, bool) {
	written := writtenRows(r.txn)
	for row := range written {
		if !db[row].same(r.before[row]) {
			return nil, false
		}
	}
	if len(written) == 0 {
		return db, true
	}
	result := db.clone()
	for row := range written {
		result[row] = r.after[row]
	}
	return result, true
}

// ReadCommitted reports whether the history has none of Adya's G0, G1a, G1b and G1c, which is PL-2: no
// committed transaction saw an aborted or an intermediate version, the committed versions of every
// row follow each other in one line, and some order of the committed transactions puts every
// transaction after those whose versions it read or overwrote.
func ReadCommitted(txns []*history.Txn, reads ...PredicateRead) bool {
	l := looksOf(txns, reads)
	if !l.clean() {
		return false
	}
	installed, last := installedVersions(txns)
	successor := make(map[versionOf]history.TxnID)
	before := l.flow()
	for _, t := range committedOf(txns) {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				wrote := a.Op != history.Read
				if a.Absent || a.Gone || wrote && s.Void || a.Op == history.InsertRow && a.Version.Initial() {
					continue
				}
				seen := versionOf{a.Row, a.Version}
				if wrote {
					if _, fork := successor[seen]; fork {
						return false
					}
					successor[seen] = t.ID
				}
				if a.Version.Txn == t.ID || a.Version.Initial() {
					continue
				}
				if !installed[seen] {
					return false // aborted or undone
				}
				if !wrote && last[versionsOf{a.Row, a.Version.Txn}] != a.Version {
					return false // intermediate
				}
				before = append(before, [2]history.TxnID{a.Version.Txn, t.ID})
			}
		}
	}
	return anyOrder(committedOf(txns), nil, before)
}

type versionOf struct {
	row history.Row
	tag history.Tag
}

type versionsOf struct {
	row history.Row
	txn history.TxnID
}

// installedVersions returns the versions that committed transactions wrote and did not undo, and which
// of them is the last of its row and transaction.
func installedVersions(txns []*history.Txn) (all map[versionOf]bool, last map[versionsOf]history.Tag) {
	all = make(map[versionOf]bool)
	last = make(map[versionsOf]history.Tag)
	for _, t := range committedOf(txns) {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				if a.Op != history.Read && !s.Void {
					tag := history.Tag{Txn: t.ID, Stmt: s.Num}
					all[versionOf{a.Row, tag}] = true
					last[versionsOf{a.Row, t.ID}] = tag
				}
			}
		}
	}
	return all, last
}

func anyOrder(left []*history.Txn, done []history.TxnID, before [][2]history.TxnID) bool {
	if len(left) == 0 {
		return true
	}
	for i, t := range left {
		free := true
		for _, b := range before {
			if b[1] == t.ID && !slices.Contains(done, b[0]) {
				free = false
			}
		}
		if free && anyOrder(without(left, i), append(slices.Clone(done), t.ID), before) {
			return true
		}
	}
	return false
}

// committedOf leaves out the transactions that did not commit.
func committedOf(txns []*history.Txn) []*history.Txn {
	var committed []*history.Txn
	for _, t := range txns {
		if t.Status == history.Committed {
			committed = append(committed, t)
		}
	}
	return committed
}

// without copies s and leaves out element i.
func without[T any](s []T, i int) []T {
	return append(slices.Clone(s[:i]), s[i+1:]...)
}

func writtenRows(t *history.Txn) map[history.Row]bool {
	rows := make(map[history.Row]bool)
	for _, s := range t.Stmts {
		for _, a := range s.Accesses {
			if a.Op != history.Read && !s.Void {
				rows[a.Row] = true
			}
		}
	}
	return rows
}
