package pglog

import (
	"github.com/isotap/isotap/analyzer/unseen"
	"github.com/isotap/isotap/history"
)

// Settle makes the transactions past isotap, and finds what recorded ones wrote unseen.
func (r *Resolver) Settle() {
	r.nameRows()
	r.leaveOutTaken()
	r.leaveOutMoved()
	owners := make(map[history.TxnID]bool)
	for i := range r.logged {
		// What a savepoint's rollback undid has an id and an end of its own.
		if l := &r.logged[i]; l.committed && !r.several[l.owner] {
			owners[l.owner] = true
		}
	}
	for _, writers := range []map[inDatabase]*unseen.Writers{r.unseen, r.bare} {
		for _, w := range writers {
			w.Settle(owners)
		}
	}
	for i := range r.logged {
		l := &r.logged[i]
		switch {
		case !l.committed || l.owner == ambiguous:
		case l.owner != 0:
			r.complete(int32(i))
		case mayBe(r.unseen, l):
		case mayBe(r.bare, l):
			r.makePast(l, history.PastOrUnseen)
			r.stats.Either = len(r.past) - r.stats.Past
		default:
			r.makePast(l, history.PastIsotap)
			r.stats.Past = len(r.past) - r.stats.Either
		}
	}
}

// leaveOutMoved takes the names away of rows whose tables were written anew while the run went on.
func (r *Resolver) leaveOutMoved() {
	moved := make(map[int32][]map[string]bool) // by server
	for _, x := range r.runs {
		if len(x.moved) > 0 {
			moved[x.server.number] = append(moved[x.server.number], x.moved)
		}
	}
	for i := range r.logged {
		l := &r.logged[i]
		sets := moved[l.run.server.number]
		in := ""
		if len(sets) > 0 {
			in = "@" + r.databases[l.database]
		}
		for j, at := range l.nodes {
			n, w := &r.nodes[at], &l.writes[j]
			anew := r.files[tableKey{l.run.server.number, l.database, w.TupleID.Leaf}] == 0
			for _, tables := range sets {
				anew = anew || tables[n.row.Table+in] || tables[w.Row.Table+in]
			}
			n.torn = n.torn || anew
		}
	}
}

// named reports whether it is known which row a version is of.
func (n *node) named() bool { return n.hasRow && !n.torn }

// makePast makes a transaction of what nobody recorded did. Its statements are not known: what it did to one table in a
// row counts as one, and a second write of a row as another.
func (r *Resolver) makePast(l *logged, who history.Runner) {
	t := &history.Txn{ID: history.MakeTxnID(l.run.number, l.number), Session: history.SessionID(l.number),
		Status: history.Committed, Runner: who}
	var rows map[tableRow]bool
	for i, at := range l.nodes {
		n := &r.nodes[at]
		if !n.named() {
			continue
		}
		a, p := r.access(l, int32(i))
		last := len(t.Stmts) - 1
		if last < 0 || t.Stmts[last].Accesses[0].Op != a.Op || t.Stmts[last].Accesses[0].Row.Table != a.Row.Table ||
			rows[n.tableRow()] {
			t.Stmts = append(t.Stmts, statement(uint32(len(t.Stmts)+1), &a, who.String()))
			rows = make(map[tableRow]bool)
			last++
		}
		rows[n.tableRow()] = true
		s := &t.Stmts[last]
		s.Accesses, s.TupleIDs = append(s.Accesses, a), append(s.TupleIDs, p)
	}
	if len(t.Stmts) == 0 {
		return
	}
	// When it began is not known; it had not committed before from, and had at to.
	t.Stmts = append(t.Stmts, history.Stmt{Num: uint32(len(t.Stmts) + 1), Kind: history.Commit, Shape: "COMMIT",
		Start: l.from})
	t.End = l.to
	r.past, r.pastOf = append(r.past, t), append(r.pastOf, l.run)
	r.sessions[sessionKey{t.ID.Run(), t.Session}] = r.databases[l.database]
}

// statement is what is said of a statement that nobody saw, and of who ran it.
func statement(num uint32, a *history.Access, who string) history.Stmt {
	s := history.Stmt{Num: num, Kind: history.Update, Shape: "UPDATE " + a.Row.Table, Observation: history.Exact,
		Locking: history.LockUpdate}
	switch a.Op {
	case history.InsertRow:
		s.Kind, s.Shape = history.Insert, "INSERT INTO "+a.Row.Table
	case history.DeleteRow:
		s.Kind, s.Shape = history.Delete, "DELETE FROM "+a.Row.Table
	}
	s.Shape += " /* " + who + " */"
	return s
}

// access returns a write of the log as recorded ones are.
func (r *Resolver) access(l *logged, i int32) (history.Access, history.TupleID) {
	w := &l.writes[i]
	n := &r.nodes[l.nodes[i]]
	p := w.TupleID
	p.Leaf, p.CTID = n.leaf, 0
	a := history.Access{Row: n.row, Op: w.Op}
	if w.Op == history.InsertRow {
		return a, p
	}
	old := n
	if w.Op == history.UpdateRow {
		old = &r.nodes[n.before]
	}
	if old.xid != 0 {
		p.XID, p.CTID = old.xid, w.TupleID.CTID
	}
	return a, p
}

// Past returns the transactions that went past isotap, and the runs and sessions that they are of: a run for each
// whose log has some, and a session each.
func (r *Resolver) Past() (runs []history.Info, sessions []history.Session, txns []*history.Txn) {
	met := make(map[history.Run]bool)
	for i, t := range r.past {
		of := r.pastOf[i]
		if !met[of.number] {
			met[of.number] = true
			info := of.info
			info.Run, info.Log, info.Gaps = of.number, nil, nil
			runs = append(runs, info)
		}
		sessions = append(sessions, history.Session{Run: of.number, ID: t.Session, Client: history.PastIsotap.String(),
			Database: r.sessions[sessionKey{t.ID.Run(), t.Session}]})
	}
	return runs, sessions, r.past
}
