package pglog

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/analyzer/unseen"
	"github.com/isotap/isotap/history"
)

// Observe takes in a recorded transaction, after [Resolver.Link].
func (r *Resolver) Observe(t *history.Txn) error {
	x := r.runs[t.ID.Run()]
	if x == nil {
		return nil
	}
	database := r.database(r.sessions[sessionKey{t.ID.Run(), t.Session}])
	mayHide, wrote := false, true
	block := false
	r.metBy, r.ours = r.metBy[:0], r.ours[:0]
	for i := range t.Stmts {
		s := &t.Stmts[i]
		block = block || s.Kind == history.Begin
		if s.Kind == history.Call && !block { // it may have ended transactions of the log before the last
			r.several[t.ID] = true
		}
		mayHide = mayHide || hides(s) && (!s.Void || r.several[t.ID])
		wrote = wrote && s.XID != history.NoXID
		r.own(x, s.XID, t.ID)
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			// Of a deletion it is not told under which id it was made.
			mayHide = mayHide || s.Accesses[j].Op != history.Read && s.TupleIDs[j].NewXID == 0 && !s.Void
			r.observe(x, database, t, int32(i), j)
		}
	}
	r.observeOwn(x, database, t)
	r.observeEnd(x, t)
	if mayHide && (wrote && t.Status != history.Aborted || r.several[t.ID]) {
		writers := r.unseen
		if isBare(t) {
			writers = r.bare
		}
		of := inDatabase{x.server.number, database}
		if writers[of] == nil {
			writers[of] = &unseen.Writers{}
		}
		writers[of].Add(t)
	}
	return nil
}

// isBare reports whether a transaction shows nothing that it read or wrote.
func isBare(t *history.Txn) bool {
	return !slices.ContainsFunc(t.Stmts, func(s history.Stmt) bool {
		return s.Observation != history.Opaque && s.Observation != history.Nothing || len(s.Accesses) > 0 ||
			len(s.Predicates) > 0
	})
}

// observeOwn keeps which versions a recorded transaction met, once it is known which of the log's it is: they tell
// between which statements its untold writes came.
func (r *Resolver) observeOwn(x *run, database int32, t *history.Txn) {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			p := &s.TupleIDs[j]
			unknown := s.Accesses[j].Op == history.DeleteRow && (p.XID == 0 || p.CTID == 0)
			if l, ok := r.byXID[xidKey{x.server.number, p.XID}]; ok && p.XID != 0 && slices.Contains(r.ours, l) {
				_, named := r.version(x, database, p.Leaf, p.XID, p.CTID)
				unknown = unknown || !named
			}
			if unknown {
				r.blind[t.ID] = true
			}
		}
	}
	wrote := r.untoldBy(r.ours)
	for _, m := range r.metBy {
		for _, n := range wrote[m.node] {
			r.meetings[n] = append(r.meetings[n], m)
		}
	}
}

// untoldBy returns, by the versions that they left, replaced or deleted, those of the transactions of the log that
// committed and of which some write is untold.
func (r *Resolver) untoldBy(ours []int32) map[int32][]int32 {
	wrote := make(map[int32][]int32)
	for _, n := range ours {
		l := &r.logged[n]
		untold := false
		for i := range l.nodes {
			untold = untold || !r.told(l, int32(i))
		}
		if !untold || !l.committed {
			continue
		}
		add := func(at int32) {
			if of := wrote[at]; len(of) == 0 || of[len(of)-1] != n {
				wrote[at] = append(of, n)
			}
		}
		for i, at := range l.nodes {
			if add(at); l.writes[i].Op == history.UpdateRow {
				add(r.nodes[at].before)
			}
		}
	}
	return wrote
}

// version returns the node of a version that the log has the write of.
func (r *Resolver) version(x *run, database int32, leaf, xid uint32, ctid uint64) (n int32, ok bool) {
	if n, ok = r.byID[versionKey{x.server.number, database, leaf, xid, ctid}]; !ok {
		n, ok = r.byID[versionKey{x.server.number, database, 0, xid, ctid}] // the table of its file was not known any more
	}
	return n, ok
}

// hides reports whether a statement may have written what is not among its writes.
func hides(s *history.Stmt) bool {
	return s.Observation == history.Opaque || s.Observation == history.Inexact
}

// deleted takes note of a recorded transaction that was seen to delete a version. Of several, all but one were undone.
func (r *Resolver) deleted(at int32, by history.TxnID) {
	n := &r.nodes[at]
	if n.deletedBy != 0 && n.deletedBy != by {
		if r.deletedBefore == nil {
			r.deletedBefore = make(map[deletion]bool)
		}
		r.deletedBefore[deletion{at, n.deletedBy}] = true
	}
	n.deletedBy = by
}

// tellsDeletion reports whether a recorded transaction was seen to delete a version.
func (r *Resolver) tellsDeletion(at int32, by history.TxnID) bool {
	return r.nodes[at].deletedBy == by || r.deletedBefore[deletion{at, by}]
}

// observe takes in an access of a statement of a recorded transaction.
func (r *Resolver) observe(x *run, database int32, t *history.Txn, stmt int32, i int) {
	s := &t.Stmts[stmt]
	a, p := &s.Accesses[i], &s.TupleIDs[i]
	r.own(x, p.NewXID, t.ID)
	if p.Leaf == 0 { // which table it was is not told
		r.leafless = true
		r.lose(t, a)
		return
	}
	if p.XID != 0 && p.CTID != 0 {
		if at := r.find(x, database, p.Leaf, p.XID, p.CTID, s.Start); at != none {
			n := &r.nodes[at]
			r.see(n, a.Row)
			deletes := a.Op == history.DeleteRow && !s.Void
			if deletes {
				r.deleted(at, t.ID)
			}
			r.metBy = append(r.metBy, meeting{at, stmt, deletes})
		} else if a.Op == history.DeleteRow {
			r.lose(t, a)
		}
	}
	if a.Op == history.Read || a.Op == history.DeleteRow {
		return
	}
	xid := p.NewXID
	if xid == 0 {
		if r.byPlace == nil {
			r.indexPlaces()
		}
		xid = r.writerAt(x, database, t, p)
		r.own(x, xid, t.ID)
	}
	if xid == 0 || p.NewID == 0 {
		r.lose(t, a)
		return
	}
	n, ok := r.version(x, database, p.Leaf, xid, p.NewID)
	if !ok {
		r.misplace(x, database, p.Leaf, p.NewID)
		r.lose(t, a)
	}
	switch {
	case ok:
		r.nodes[n].left = true
		r.metBy = append(r.metBy, meeting{node: n, stmt: stmt})
		r.see(&r.nodes[n], a.Row)
	case t.Status == history.Committed && !s.Void && !a.Inexact && r.vouches(x, database, t, a, p):
		r.stats.Disputed++
		if r.stats.Example == "" {
			r.stats.Example = fmt.Sprintf("%s.%d left a version of %s at (%d,%d)", t.ID, s.Num, a.Row.Table, p.NewID>>16,
				p.NewID&0xffff)
		}
	}
}

// lose takes in that a recorded transaction wrote a row where the log's write of it is not found: the one that is there
// may be this.
func (r *Resolver) lose(t *history.Txn, a *history.Access) {
	if a.Op == history.Read {
		return
	}
	if r.lost[t.ID] == nil {
		r.lost[t.ID] = make(map[string]bool)
	}
	r.lost[t.ID][a.Row.ID] = true
}

// own takes in that the log's transaction of an id, if that is told, is a recorded one.
func (r *Resolver) own(x *run, xid uint32, id history.TxnID) {
	logged, ok := r.byXID[xidKey{x.server.number, xid}]
	if !ok || xid == 0 {
		return
	}
	l := &r.logged[logged]
	if l.owner == 0 {
		r.ours = append(r.ours, logged)
	}
	if l.owner != 0 && l.owner != id {
		id = ambiguous
	}
	l.owner = id
}

// vouches reports whether the log must have a version that a committed transaction left: it was read all the time, and
// the table is one that is logged.
func (r *Resolver) vouches(x *run, database int32, t *history.Txn, a *history.Access, p *history.TupleID) bool {
	if x.moved[a.Row.Table+"@"+r.sessions[sessionKey{t.ID.Run(), t.Session}]] {
		return false
	}
	l, ok := r.byXID[xidKey{x.server.number, p.NewXID}]
	if !ok || r.logged[l].cut {
		// Of a transaction that the log does not have at all all tables may be unlogged.
		return false
	}
	return x.covers(t) && r.isLogged(x, database, p.Leaf)
}

// covers reports whether the log was read while a transaction ran.
func (x *run) covers(t *history.Txn) bool {
	return t.Start > 0 && t.End > 0 &&
		slices.ContainsFunc(x.info.Log, func(s history.LogStretch) bool { return s.Covers(t.Start, t.End) })
}

// isLogged reports whether the log has writes of a table.
func (r *Resolver) isLogged(x *run, database int32, leaf uint32) bool {
	_, ok := r.files[tableKey{x.server.number, database, leaf}]
	return ok
}

// mayBe reports whether a transaction of the log may be one of recorded ones whose ids are not known.
func mayBe(writers map[inDatabase]*unseen.Writers, l *logged) bool {
	w := writers[inDatabase{l.run.server.number, l.database}]
	return w != nil && w.MayBe(l.run.info.Run, l.from, l.to)
}
