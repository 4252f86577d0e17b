package pglog

import "github.com/isotap/isotap/history"

// bootstrapXID stands for whoever wrote what was there before everything that was recorded.
const bootstrapXID = 1

// tellReplaced gives the writes of a statement the versions that they replaced, and reports whether all of them are
// known. An UPDATE of a table without a key does not tell them before PostgreSQL 18, and such rows have no other names.
func (r *Resolver) tellReplaced(x *run, database int32, s *history.Stmt) (all bool) {
	all = true
	for i := range min(len(s.Accesses), len(s.TupleIDs)) {
		a, p := &s.Accesses[i], &s.TupleIDs[i]
		if a.Op != history.UpdateRow {
			continue
		}
		if a.Row.ID == "" && p.XID == 0 {
			p.XID, p.CTID = r.replaced(x, database, p)
		}
		all = all && p.XID != 0
	}
	return all
}

// leavesNothingOpen reports whether a statement of which the log tells the versions that it replaced is exact by that:
// an UPDATE of a table without a key, and one that other rows follow by foreign keys, where the log tells all that the
// transaction wrote.
func leavesNothingOpen(s *history.Stmt, whole bool) bool {
	switch {
	case s.Observation != history.Inexact:
		return false
	case s.Reason == history.ReasonCascade:
		return whole
	}
	return s.Reason == history.ReasonKey && s.Kind == history.Update
}

// replaced returns the id and the place of the version that a write replaced, by the version that it left; 0 where the
// log does not tell.
func (r *Resolver) replaced(x *run, database int32, p *history.TupleID) (xid uint32, ctid uint64) {
	if p.Leaf == 0 || p.NewXID == 0 || p.NewID == 0 {
		return 0, 0
	}
	n, ok := r.version(x, database, p.Leaf, p.NewXID, p.NewID)
	if !ok || r.nodes[n].torn || r.nodes[n].before == none {
		return 0, 0
	}
	old := &r.nodes[r.nodes[n].before]
	switch {
	case old.torn:
		return 0, 0
	case old.xid != 0:
		return old.xid, old.ctid
	case r.unmet(x, old):
		return bootstrapXID, old.ctid
	}
	return 0, 0
}

// unmet reports whether no recorded statement can have read or left a version that was there before the log was read:
// then who wrote it does not matter.
func (r *Resolver) unmet(x *run, n *node) bool {
	k := rootKey{x.info.Run, n.in.database, n.leaf, n.ctid}
	at, ok := r.roots[k]
	return ok && &r.nodes[at] == n && x.server.runs == 1 && !r.unplaced[k] && !r.leafless
}

// misplace takes in that a statement met a version which is none of the log's, and need not be the one either that was
// at its place when the log began.
func (r *Resolver) misplace(x *run, database int32, leaf uint32, ctid uint64) {
	if r.unplaced == nil {
		r.unplaced = make(map[rootKey]bool)
	}
	r.unplaced[rootKey{x.info.Run, database, leaf, ctid}] = true
}
