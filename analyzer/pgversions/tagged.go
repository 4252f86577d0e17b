package pgversions

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// tagOrder orders the tagged writes by what their tags tell: the row, the server, the log position, and of one
// position the statement. Without a write to the log between them two statements of a transaction share one.
func (r *Resolver) tagOrder(a, b int32) int {
	x, y := &r.writes[a], &r.writes[b]
	return cmp.Or(r.byRow(x, y), cmp.Compare(x.ctid, y.ctid), cmp.Compare(a, b))
}

// settleTags puts the tagged writes in their order.
func (r *Resolver) settleTags(index []int32) {
	for _, n := range index {
		if r.writes[n].is(tagged) && r.writes[n].op != history.DeleteRow {
			r.byTag = append(r.byTag, n)
		}
	}
	slices.SortFunc(r.byTag, r.tagOrder)
}

// findTagged returns the tag of a version whose row names it: the row and the log position in its list tell the
// write. Whoever wrote the row without adding to the list shows in its xmin.
func (r *Resolver) findTagged(s *shownVersion) (tag history.Tag, sure bool) {
	if n := r.named(s); n != none && r.wrote(n, s) {
		return r.tag(n), true
	}
	owner, ok := r.owners[xidKey{s.server, s.xid}]
	switch {
	case ok && owner != ambiguous:
		return r.hidden(s, owner), true
	case !ok && (s.xid < firstXID || r.servers[s.server].ended(s.xid)):
		return history.Tag{}, true
	}
	return unrecorded(s), true
}

// named finds the write that left a version's tag. Several share a log position where nothing was logged between them:
// those of a transaction in a table without a log, and those of two of which one waited until the other had rolled
// back, as its tag was made before it waited.
func (r *Resolver) named(s *shownVersion) int32 {
	if s.row == none {
		return none
	}
	from, _ := slices.BinarySearchFunc(r.byTag, s, func(n int32, s *shownVersion) int {
		w := &r.writes[n]
		return cmp.Or(cmp.Compare(w.row, s.row), cmp.Compare(r.serverOf(w), s.server), cmp.Compare(w.ctid, s.ctid))
	})
	found := int32(none)
	for _, n := range r.byTag[from:] {
		w := &r.writes[n]
		if w.row != s.row || r.serverOf(w) != s.server || w.ctid != s.ctid {
			break
		}
		if found == none || r.likelihood(n, s) >= r.likelihood(found, s) {
			found = n
		}
	}
	return found
}

// likelihood tells writes of one row and log position apart: the version is rather that of the write whose xid it
// shows, then of one that was not rolled back, then of one that its reader can have seen.
func (r *Resolver) likelihood(n int32, s *shownVersion) (points int) {
	w := &r.writes[n]
	owner, known := r.owners[xidKey{s.server, s.xid}]
	if w.xid == s.xid || known && owner == w.txn {
		points += 4
	}
	if w.txn == s.reader || r.txns[w.txn].status != history.Aborted {
		points += 2
	}
	if !w.is(void) && (w.txn != s.reader || w.stmt < s.stmt) {
		points++
	}
	return points
}

// wrote reports whether the version is the one that a write left, and not a later one with the same list.
func (r *Resolver) wrote(n int32, s *shownVersion) bool {
	w := &r.writes[n]
	if s.listed || w.xid == 0 || w.xid == s.xid || r.txns[w.txn].nested {
		return true
	}
	owner, ok := r.owners[xidKey{s.server, s.xid}]
	return ok && owner == w.txn
}
