package pgversions

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isotap/isotap/history"
)

// firstXID is the first xid of a transaction: those below stand for what was there from the beginning.
const firstXID = 3

// A sighting is a version as an access shows it.
type shownVersion struct {
	server int32
	row    int32 // none: nobody recorded wrote the row
	reader int32 // none: it wrote nothing
	stmt   uint32
	xid    uint32
	ctid   uint64
	leaf   uint32
	moved  bool // the place may have become another version's
	// tagged says that ctid is the log position in the row's list, and listed that xid is from there too: it
	// is the transaction's, and not that of the version's xmin.
	tagged, listed bool
}

// find returns the tag of a version; sure is false where it is only likely.
func (r *Resolver) find(s *shownVersion) (tag history.Tag, sure bool) {
	if s.tagged {
		return r.findTagged(s)
	}
	owner, ok := r.owners[xidKey{s.server, s.xid}]
	switch {
	case ok && owner == ambiguous:
		return unrecorded(s), true
	case ok:
		return r.findOwned(s, owner)
	case r.servers[s.server].forgot(s.xid):
		return forgotten(s.xid, s.ctid), true
	case s.xid < firstXID || r.servers[s.server].ended(s.xid):
		return history.Tag{}, true
	}
	if n := r.findByTupleID(s); n != none {
		return r.tag(n), false
	}
	return unrecorded(s), true
}

// unrecorded is the tag of a version that nobody recorded wrote: its ctid tells it from the others of its
// transaction.
func unrecorded(s *shownVersion) history.Tag {
	return history.Tag{Txn: history.MakeTxnID(history.Unrecorded, s.xid), Stmt: uint32(s.ctid)}
}

// forgotten is the tag of a version of a transaction that is no longer known.
func forgotten(xid uint32, ctid uint64) history.Tag {
	return history.Tag{Txn: history.MakeTxnID(history.Forgotten, xid), Stmt: uint32(ctid)}
}

// findOwned finds a version among what the transaction wrote that has the xid.
func (r *Resolver) findOwned(s *shownVersion, owner int32) (tag history.Tag, sure bool) {
	if s.row == none {
		return r.hidden(s, owner), true
	}
	placed := int32(none)
	for _, n := range r.left(s, s.xid, s.ctid) {
		if r.stands(n, s) {
			placed = n
			break
		}
	}
	if placed != none && (!s.moved || s.reader == owner) {
		return r.tag(placed), true
	}
	last := int32(none)
	for n := range r.writesOf(s, owner) {
		w := &r.writes[n]
		if w.xid == 0 && !s.moved && r.stands(n, s) {
			return r.tag(n), true
		}
		// Others see the last one, and its own statements the last one before them.
		if !w.is(void) && (s.reader != owner || w.stmt < s.stmt) {
			last = max(last, n)
		}
	}
	switch {
	case last == none && placed != none: // undone by then
		return r.tag(placed), false
	case last == none:
		return r.hidden(s, owner), true
	case r.writes[last].op == history.DeleteRow:
		return unrecorded(s), true // it made the row again, unseen
	default: // at another place it is the last one only if nothing of the transaction's was missed
		return r.tag(last), placed == last || placed == none && !r.txns[owner].hides
	}
}

// hidden is the tag of what a transaction that has recorded no write of the row wrote without a trace, if
// some statement of it may have.
func (r *Resolver) hidden(s *shownVersion, owner int32) history.Tag {
	if x := &r.txns[owner]; x.hides {
		return history.Tag{Txn: x.id}
	}
	return unrecorded(s)
}

// stands reports whether a write left its version where the sighting is.
func (r *Resolver) stands(n int32, s *shownVersion) bool {
	w := &r.writes[n]
	return w.op != history.DeleteRow && w.ctid == s.ctid && (w.leaf == s.leaf || w.leaf == 0 || s.leaf == 0)
}

// few is up to where it is fastest to look at all writes of a transaction.
const few = 64

// writesOf returns a transaction's writes of the sighting's row.
func (r *Resolver) writesOf(s *shownVersion, owner int32) iter.Seq[int32] {
	x := &r.txns[owner]
	return func(yield func(int32) bool) {
		if x.nested || x.count <= few {
			for n := x.first; n < x.first+x.count; n++ {
				if r.writes[n].row == s.row && !yield(n) {
					return
				}
			}
			return
		}
		for _, xid := range [2]uint32{s.xid, 0} { // deletions leave no version, so that they have none
			for _, n := range r.left(s, xid, anywhere) {
				if r.writes[n].txn == owner && !yield(n) {
					return
				}
			}
		}
	}
}

// anywhere stands for every ctid: none is 0.
const anywhere = 0

// left returns the writes of the row that left a version with an xid at a ctid.
func (r *Resolver) left(s *shownVersion, xid uint32, ctid uint64) []int32 {
	compare := func(n int32, _ struct{}) int {
		w := &r.writes[n]
		c := cmp.Or(cmp.Compare(w.row, s.row), cmp.Compare(r.serverOf(w), s.server), cmp.Compare(w.xid, xid))
		if c == 0 && ctid != anywhere {
			c = cmp.Compare(w.ctid, ctid)
		}
		return c
	}
	from, found := slices.BinarySearchFunc(r.byVersion, struct{}{}, compare)
	if !found {
		return nil
	}
	to := from
	for to < len(r.byVersion) && compare(r.byVersion[to], struct{}{}) == 0 {
		to++
	}
	return r.byVersion[from:to]
}

// findByTupleID finds a version by its place alone, where the writer's xid is not known (see
// [history.TupleID.NewXID]). A place may have been used again, so it is not sure.
func (r *Resolver) findByTupleID(s *shownVersion) int32 {
	if s.row == none {
		return none
	}
	for _, n := range slices.Backward(r.left(s, 0, s.ctid)) {
		if x := &r.txns[r.writes[n].txn]; r.stands(n, s) && (x.xid == 0 || x.nested) {
			return n
		}
	}
	return none
}
