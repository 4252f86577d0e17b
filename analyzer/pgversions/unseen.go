package pgversions

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/isotap/isotap/history"
)

// An Order says that one version of a row came before another, with any number of versions in between.
type Order struct {
	Row           history.Row
	Before, After history.Tag
}

// unseenVersions are the versions that were read and that no recorded write left or replaced: where they stand in the
// order of their rows shows only in when they were read.
type unseenVersions struct {
	mu       sync.Mutex
	versions map[unseenKey]*unseenVersion
	// replaced are those that a write says it replaced, which tells where they stand.
	replaced map[unseenKey]bool
}

type unseenKey struct {
	row, server int32
	tag         history.Tag
}

// An unseenVersion is what is known of one: it had been committed by each time that seen has, by the clock of a run,
// and before the write own, whose transaction read it earlier.
type unseenVersion struct {
	row  history.Row
	own  int32 // the lowest such write by log position; none
	seen map[int32]int64
}

// unseen reports whether a version is one that nobody was seen to leave: its writer is not known, or is and left it
// without a trace. What a transaction left so is told from its other versions by others alone.
func (r *Resolver) unseen(s *shownVersion, tag history.Tag) bool {
	if tag.Initial() || s.row == none {
		return false
	}
	if tag.Txn.Run() == history.Unrecorded {
		return r.owners[xidKey{s.server, s.xid}] != ambiguous
	}
	return tag.Stmt == 0 && (s.reader == none || r.txns[s.reader].id != tag.Txn)
}

// readUnseen takes note of a read of such a version.
func (x *translation) readUnseen(a *history.Access, s *shownVersion, committed int64) {
	own := x.ownAbove(s)
	run := x.runIndex[x.txn.ID.Run()]
	u := &x.unseenVersions
	u.mu.Lock()
	defer u.mu.Unlock()
	k := unseenKey{s.row, s.server, a.Version}
	v := u.versions[k]
	if v == nil {
		row := history.Row{Table: strings.Clone(a.Row.Table), ID: strings.Clone(a.Row.ID)} // t may be gone then
		v = &unseenVersion{row: row, own: none, seen: make(map[int32]int64)}
		u.versions[k] = v
	}
	if at, ok := v.seen[run]; committed > 0 && (!ok || committed < at) {
		v.seen[run] = committed
	}
	if own != none && (v.own == none || x.byLSN(own, v.own) < 0) {
		v.own = own
	}
}

// replaceUnseen takes note that a write tells that it replaced such a version.
func (x *translation) replaceUnseen(a *history.Access, s *shownVersion) {
	u := &x.unseenVersions
	u.mu.Lock()
	defer u.mu.Unlock()
	u.replaced[unseenKey{s.row, s.server, a.Version}] = true
}

// wroteRow reports whether the reader's transaction wrote the row before the read.
func (x *translation) wroteRow(s *shownVersion) bool {
	if s.reader == none {
		return false
	}
	for n := range x.writesOf(s, s.reader) {
		if x.writes[n].stmt < s.stmt {
			return true
		}
	}
	return false
}

// ownAbove returns the first write of the row by its reader's transaction after the read; none.
func (x *translation) ownAbove(s *shownVersion) int32 {
	first := int32(none)
	if s.reader == none {
		return none
	}
	for n := range x.writesOf(s, s.reader) {
		if w := &x.writes[n]; w.stmt > s.stmt && (first == none || w.stmt < x.writes[first].stmt) {
			first = n
		}
	}
	return first
}

// committedBy returns when a version that a statement read had been committed: when the statement's reply was complete,
// or that of the first statement of those that read its snapshot. 0: it is not known.
func (x *translation) committedBy(s *history.Stmt) int64 {
	if x.txn.Level < history.RepeatableRead || x.wrote || s.Locking != history.NoLock || x.snapshot == 0 {
		return s.End
	}
	return x.snapshot
}

// mayWrite reports whether a statement writes, or may have done so unseen.
func mayWrite(s *history.Stmt) bool {
	switch s.Kind {
	case history.Begin, history.Set, history.Savepoint, history.Release, history.Lock, history.NamedLock:
		return false
	case history.Select:
		return s.Observation != history.Exact
	}
	return true
}

// Orders returns what the reads of versions that nobody was seen to write tell of their place, once all transactions
// have been resolved: each such version came before the first write of its row that is known to be later. A
// transaction that wrote the row had read it earlier, or the reply to a read of it had come before the write was sent.
// Rows are locked until their writers end, so a committed version stays below whatever is written from then on.
func (r *Resolver) Orders() []Order {
	u := &r.unseenVersions
	var orders []Order
	rows := make(map[unseenKey]*rowWrites) // without tags
	for k, v := range u.versions {
		if u.replaced[k] {
			continue
		}
		of := unseenKey{row: k.row, server: k.server}
		if rows[of] == nil {
			rows[of] = r.stayedOf(k.row, k.server)
		}
		first := v.own
		if first != none && !r.stayed(first) {
			first = none
		}
		for run, at := range v.seen {
			if n := rows[of].firstFrom(r, run, at); n != none && (first == none || r.byLSN(n, first) < 0) {
				first = n
			}
		}
		if first != none && r.txns[r.writes[first].txn].id != k.tag.Txn {
			orders = append(orders, Order{v.row, k.tag, r.tag(first)})
		}
	}
	slices.SortFunc(orders, func(a, b Order) int {
		return cmp.Or(cmp.Compare(a.Row.Table, b.Row.Table), cmp.Compare(a.Row.ID, b.Row.ID),
			cmp.Compare(a.Before.Txn, b.Before.Txn), cmp.Compare(a.Before.Stmt, b.Before.Stmt))
	})
	return orders
}

// stayed reports whether a write left a version for all.
func (r *Resolver) stayed(n int32) bool {
	w := &r.writes[n]
	return w.certain() && r.txns[w.txn].status == history.Committed
}

// rowWrites are the writes of a row that stayed, in their order.
type rowWrites struct {
	writes []int32
	// latest is, by run, when the last was sent of those of the run up to each of the writes.
	latest map[int32][]int64
}

func (r *Resolver) stayedOf(row, server int32) *rowWrites {
	compare := func(n int32, _ struct{}) int {
		return cmp.Or(cmp.Compare(r.writes[n].row, row), cmp.Compare(r.serverOf(&r.writes[n]), server))
	}
	from, _ := slices.BinarySearchFunc(r.byVersion, struct{}{}, compare)
	w := &rowWrites{latest: make(map[int32][]int64)}
	for _, n := range r.byVersion[from:] {
		if compare(n, struct{}{}) != 0 {
			break
		}
		if r.stayed(n) {
			w.writes = append(w.writes, n)
		}
	}
	slices.SortFunc(w.writes, r.byLSN)
	return w
}

// firstFrom returns the first write of a run that was sent at a time or later, and those below it were not; none.
func (w *rowWrites) firstFrom(r *Resolver, run int32, at int64) int32 {
	latest, ok := w.latest[run]
	if !ok {
		last := int64(-1)
		for _, n := range w.writes {
			if x := &r.txns[r.writes[n].txn]; x.run == run {
				last = max(last, r.writes[n].start)
			}
			latest = append(latest, last)
		}
		w.latest[run] = latest
	}
	i, _ := slices.BinarySearch(latest, at)
	if i == len(latest) {
		return none
	}
	return w.writes[i]
}

func newUnseenVersions() unseenVersions {
	return unseenVersions{versions: make(map[unseenKey]*unseenVersion), replaced: make(map[unseenKey]bool)}
}
