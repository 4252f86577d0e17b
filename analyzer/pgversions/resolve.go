package pgversions

import "github.com/isotap/isotap/history"

// Resolve gives a transaction's accesses their versions, and takes its places away. It changes t, whose
// other parts stay as they are.
func (r *Resolver) Resolve(t *history.Txn) {
	if !hasTupleIDs(t) {
		return
	}
	x := r.translation(t)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		x.wrote = x.wrote || mayWrite(s)
		x.hid = x.hid || i > 0 && hides(&t.Stmts[i-1])
		if s.TupleIDs == nil {
			continue
		}
		if x.snapshot == 0 && s.Kind == history.Select && s.Locking == history.NoLock && len(s.Accesses) > 0 {
			x.snapshot = max(0, s.End)
		}
		kept := s.Accesses[:0]
		for j := range s.Accesses {
			a := s.Accesses[j]
			if j < len(s.TupleIDs) && !x.access(s, &a, &s.TupleIDs[j]) {
				continue
			}
			kept = append(kept, a)
		}
		s.Accesses, s.TupleIDs = kept, nil
	}
}

// A translation is the resolving of one transaction.
type translation struct {
	*Resolver
	txn    *history.Txn
	server int32
	index  int32 // none: it wrote nothing
	next   int32 // its next write
	// snapshot is when the reply to the first statement was complete that read rows without locks: where the
	// transaction has one snapshot, it had been taken by then. 0: not known.
	snapshot int64
	// wrote says that it may have written: what it reads from then on may be of its own, later than its snapshot.
	wrote bool
	// hid says that a statement before the one in hand was not observed exactly: it may have written unseen.
	hid bool
	// last is the table of the access before, and known what it is.
	last  recordedTable
	known table
}

func (r *Resolver) translation(t *history.Txn) translation {
	x := translation{Resolver: r, txn: t, server: none, index: none}
	if i, ok := r.runIndex[t.ID.Run()]; ok {
		x.server = r.runs[i].server
	}
	if i, ok := r.txnIndex[t.ID]; ok {
		x.index, x.next = i, r.txns[i].first
	}
	return x
}

// access resolves one access; false where nothing is known of its version.
func (x *translation) access(s *history.Stmt, a *history.Access, p *history.TupleID) bool {
	w := x.write(s, a)
	if x.server == none {
		return false
	}
	t := x.tableOf(a.Row.Table, p.Leaf)
	seen := shownVersion{server: x.server, row: none, reader: x.index, stmt: s.Num, xid: p.XID, ctid: p.CTID,
		leaf: p.Leaf, moved: t.moved,
		tagged: p.Tagged, listed: p.Tagged && a.Op == history.UpdateRow}
	if a.Row.ID == "" {
		a.Row.Table = t.name + x.servers[x.server].suffix
		a.Inexact = a.Inexact || t.moved
		return !p.Tagged && x.keylessAccess(t, a, p, &seen)
	}
	row, n, ok := x.Resolver.known(history.Row{Table: t.name, ID: a.Row.ID}, p.Leaf)
	if ok {
		seen.row = n
	}
	a.Row.Table = row.Table + x.servers[x.server].suffix
	switch {
	case a.Op == history.Read && p.XID == 0:
		return false
	case a.Op == history.InsertRow:
		x.follow(a, w)
	case p.XID != 0:
		x.saw(a, &seen)
		x.above(a, w)
		switch {
		case a.Inexact || !x.unseen(&seen, a.Version):
		case a.Op == history.Read && (x.hid || x.wroteRow(&seen)):
			a.Inexact = true // it may be the transaction's own, and undone later
		case a.Op == history.Read:
			x.readUnseen(a, &seen, x.committedBy(s))
		default:
			x.replaceUnseen(a, &seen)
		}
	default:
		x.replace(a, w)
	}
	return true
}

// tableOf returns what is known of an access's table.
func (x *translation) tableOf(name string, leaf uint32) table {
	if recorded := x.recordedTable(x.txn, name, leaf); recorded != x.last {
		x.last, x.known = recorded, x.table(recorded)
	}
	return x.known
}

// write returns what the first pass knows of a write; nil for a read.
func (x *translation) write(s *history.Stmt, a *history.Access) *write {
	if a.Op == history.Read || x.index == none || x.next >= x.txns[x.index].first+x.txns[x.index].count {
		return nil
	}
	w := &x.writes[x.next]
	x.next++
	if w.stmt != s.Num {
		return nil
	}
	return w
}

func (x *translation) saw(a *history.Access, s *shownVersion) {
	tag, sure := x.find(s)
	a.Version = tag
	a.Inexact = a.Inexact || !sure
}

// follow gives an INSERT the version that it continues. Where that is not certain it begins its row.
func (x *translation) follow(a *history.Access, w *write) {
	if w != nil && w.pred != none && !w.is(doubt) {
		a.Version = x.tag(w.pred)
	}
}

// replace gives a write that does not tell what it replaced the nearest version below it. Where that is the
// row's deletion, somebody made the row again in between.
func (x *translation) replace(a *history.Access, w *write) {
	if w == nil || w.lsn == 0 || w.is(doubt) {
		a.Inexact = true
	}
	if w == nil {
		return
	}
	if w.pred == none {
		if p, ok := x.lasts[w.row]; ok && x.servers[x.server].forgot(p.XID) {
			a.Version = forgotten(p.XID, p.CTID)
		}
		return
	}
	below := x.tag(w.pred)
	if x.writes[w.pred].op != history.DeleteRow {
		a.Version = below
		return
	}
	a.Version = history.Tag{Txn: history.MakeTxnID(history.Unrecorded, 0), Stmt: uint32(w.lsn)}
	a.Prior = []history.Tag{below}
}

// above puts a version that nobody recorded, and that a write replaced, above the nearest one below.
func (x *translation) above(a *history.Access, w *write) {
	if a.Op == history.Read {
		return
	}
	if w == nil || w.lsn == 0 {
		a.Inexact = true
		return
	}
	if a.Version.Txn.Run() == history.Unrecorded && w.pred != none && !w.is(doubt) {
		a.Prior = []history.Tag{x.tag(w.pred)}
	}
}

// keylessAccess resolves an access to a row of a table without a primary key.
func (x *translation) keylessAccess(t table, a *history.Access, p *history.TupleID, s *shownVersion) bool {
	n, ok := x.keyless.tables[t.name]
	if !ok {
		n = none
	}
	leaf := t.leaf(p)
	old := versionKey{server: x.server, table: n, leaf: leaf, xid: p.XID, ctid: p.CTID}
	if a.Op == history.InsertRow || a.Op == history.UpdateRow && p.XID == 0 {
		left := versionKey{server: x.server, table: n, leaf: leaf, xid: p.NewXID, ctid: p.NewID}
		a.Row.ID, _ = x.keyless.version(left)
		a.Inexact = a.Inexact || a.Op == history.UpdateRow || left.xid == 0
		return true
	}
	if p.XID == 0 {
		return false
	}
	id, w := x.keyless.version(old)
	a.Row.ID = id
	if w != none {
		a.Version = x.tag(w)
		return true
	}
	x.saw(a, s)
	return true
}
