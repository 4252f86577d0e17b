package pglog

import (
	"fmt"
	"strings"

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
	for i := range t.Stmts {
		s := &t.Stmts[i]
		block = block || s.Kind == history.Begin
		if s.Kind == history.Call && !block { // it may have ended transactions of the log before the last
			r.several[t.ID] = true
		}
		mayHide = mayHide || hides(s) && !s.Void
		wrote = wrote && s.XID != history.NoXID
		if l, ok := r.byXID[xidKey{x.server.number, s.XID}]; ok && s.XID != 0 {
			r.own(l, t.ID)
		}
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			// Of a deletion it is not told under which id it was made.
			mayHide = mayHide || s.Accesses[j].Op != history.Read && s.TupleIDs[j].NewXID == 0 && !s.Void
			r.observe(x, database, t, s, j)
		}
	}
	r.observeOwn(x, database, t)
	r.observeEnd(x, t)
	if mayHide && wrote && t.Status != history.Aborted {
		of := inDatabase{x.server.number, database}
		if r.unseen[of] == nil {
			r.unseen[of] = &unseen.Writers{}
		}
		r.unseen[of].Add(t)
	}
	return nil
}

// observeOwn takes in which versions of its own a recorded transaction met, once it is known which of the log's it is.
func (r *Resolver) observeOwn(x *run, database int32, t *history.Txn) {
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			p := &s.TupleIDs[j]
			if s.Accesses[j].Op == history.DeleteRow && (p.XID == 0 || p.CTID == 0) {
				r.blind[t.ID] = true
			}
			n, ok := r.byID[versionKey{x.server.number, database, p.Leaf, p.XID, p.CTID}]
			if ok && r.logged[r.nodes[n].logged].owner == t.ID {
				r.nodes[n].own = true
			}
		}
	}
}

// hides reports whether a statement may have written what is not among its writes.
func hides(s *history.Stmt) bool {
	return s.Observation == history.Opaque || s.Observation == history.Inexact
}

// observe takes in an access of a recorded transaction.
func (r *Resolver) observe(x *run, database int32, t *history.Txn, s *history.Stmt, i int) {
	a, p := &s.Accesses[i], &s.TupleIDs[i]
	if p.Tagged || p.Leaf == 0 {
		return
	}
	if p.XID != 0 && p.CTID != 0 {
		if i := r.find(x, database, p.Leaf, p.XID, p.CTID, s.Start); i != none {
			n := &r.nodes[i]
			r.see(x, database, n, a.Row)
			if a.Op == history.DeleteRow {
				n.deletedBy = t.ID
			}
		}
	}
	if a.Op == history.Read || p.NewXID == 0 || p.NewID == 0 {
		return
	}
	if l, ok := r.byXID[xidKey{x.server.number, p.NewXID}]; ok {
		r.own(l, t.ID)
	}
	n, ok := r.byID[versionKey{x.server.number, database, p.Leaf, p.NewXID, p.NewID}]
	if !ok {
		n, ok = r.byID[versionKey{x.server.number, database, 0, p.NewXID, p.NewID}]
	}
	switch {
	case ok:
		r.nodes[n].left = true
		r.see(x, database, &r.nodes[n], a.Row)
	case t.Status == history.Committed && !s.Void && !a.Inexact && r.vouches(x, database, t, a, p):
		r.stats.Disputed++
		if r.stats.Example == "" {
			r.stats.Example = fmt.Sprintf("%s.%d left a version of %s at (%d,%d)", t.ID, s.Num, a.Row.Table, p.NewID>>16,
				p.NewID&0xffff)
		}
	}
}

// own takes in that a transaction of the log is a recorded one.
func (r *Resolver) own(logged int32, id history.TxnID) {
	l := &r.logged[logged]
	if l.owner != 0 && l.owner != id {
		id = ambiguous
	}
	l.owner = id
}

// vouches reports whether the log must have a version that a committed transaction left: it was read all the time, and
// the table is one that is logged.
func (r *Resolver) vouches(x *run, database int32, t *history.Txn, a *history.Access, p *history.TupleID) bool {
	if strings.HasPrefix(a.Row.Table, "pg_temp.") || t.Start <= 0 || t.End <= 0 {
		return false
	}
	name := a.Row.Table + "@" + r.sessions[sessionKey{t.ID.Run(), t.Session}]
	if x.moved[name] || x.moved[a.Row.Table] {
		return false
	}
	l, ok := r.byXID[xidKey{x.server.number, p.NewXID}]
	if !ok || r.logged[l].cut {
		// Of a transaction that the log does not have at all all tables may be unlogged.
		return false
	}
	covered := false
	for i := range x.info.Log {
		covered = covered || x.info.Log[i].Covers(t.Start, t.End)
	}
	return covered && r.isLogged(x, database, p.Leaf)
}

// isLogged reports whether the log has writes of a table.
func (r *Resolver) isLogged(x *run, database int32, leaf uint32) bool {
	for i := range r.logged {
		l := &r.logged[i]
		if l.run.server != x.server || l.database != database {
			continue
		}
		for j := range l.writes {
			if l.writes[j].TupleID.Leaf == leaf {
				return true
			}
		}
	}
	return false
}

// mayBe reports whether a transaction of the log may be a recorded one whose id is not known.
func (r *Resolver) mayBe(l *logged) bool {
	w := r.unseen[inDatabase{l.run.server.number, l.database}]
	return w != nil && w.MayBe(l.run.info.Run, l.from, l.to)
}
