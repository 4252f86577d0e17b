package foreign

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// write puts what a transaction of the log wrote into the chains of the rows, and makes a transaction of what is
// nobody's.
func (r *Resolver) write(x *loggedTxn) {
	p := pastTxn{run: x.run, id: history.MakeTxnID(pastRun(x.run), uint32(len(r.past)+1))}
	if x.owner == 0 && r.unseen.MayBe(r.runs[x.run].Run, x.from, x.to) {
		p.unknown = true
		p.id = history.MakeTxnID(history.Unrecorded, uint32(len(r.past)+1))
	}
	for i := range x.writes {
		w := &x.writes[i]
		tag := x.tags[i]
		if tag.Initial() {
			tag = p.next(w)
		}
		v := version{tag: tag, shown: w.New, gone: w.Op == history.DeleteRow, from: x.from, seen: x.seen}
		before, ok := r.chains[w.Row].add(v, w.Op, w.Old)
		if !ok {
			continue
		}
		a := history.Access{Row: w.Row, Op: w.Op, Version: before}
		switch {
		case x.owner == 0:
			p.add(a)
		case untagged(w) && w.Op != history.DeleteRow && tag.Txn == x.owner:
			r.stats.Effects++
			r.effects[x.owner] = append(r.effects[x.owner], effect{tag.Stmt, w.Row, w.Op, before})
		}
	}
	if x.owner != 0 || p.unknown || len(p.stmts) == 0 {
		return
	}
	r.past = append(r.past, p.txn(x))
}

// tagOf returns the tag of a write of the log: its own, or that of the statement that had it as an effect; the initial
// one where that is not known.
func (r *Resolver) tagOf(writes []history.LoggedWrite, i int, owner history.TxnID) history.Tag {
	w := &writes[i]
	if deleted, ours := r.deleted[w.Row]; w.Op == history.DeleteRow && ours && deleted.Txn == owner {
		return deleted
	}
	if !untagged(w) {
		return w.New
	}
	for j := i - 1; j >= 0; j-- {
		if before := &writes[j]; !untagged(before) {
			return before.New
		}
	}
	for j := i + 1; j < len(writes); j++ {
		if after := &writes[j]; !untagged(after) {
			return after.New
		}
	}
	return r.besideDeletions(writes, i, owner)
}

// besideDeletions is [Resolver.tagOf] in a transaction that left no tag, and is known by what it deleted: its last
// statement before a deletion that may have written unseen, or else the one that deleted.
func (r *Resolver) besideDeletions(writes []history.LoggedWrite, i int, owner history.TxnID) (deletion history.Tag) {
	before := false // the deletion is before the write
	for j := range writes {
		deleted, ours := r.deleted[writes[j].Row]
		if writes[j].Op != history.DeleteRow || !ours || deleted.Txn != owner {
			continue
		}
		if deletion, before = deleted, j < i; !before {
			break
		}
	}
	for _, num := range slices.Backward(r.unobserved[owner]) {
		if !deletion.Initial() && (before && num > deletion.Stmt || !before && num < deletion.Stmt) {
			return history.Tag{Txn: owner, Stmt: num}
		}
	}
	return deletion
}

// A pastTxn is a transaction past isotap that is being made. Its statements are not known: what it did to one table in
// a row counts as one, and a second write of a row as another.
type pastTxn struct {
	run     int
	id      history.TxnID
	unknown bool // it may be one that isotap recorded
	stmts   []history.Stmt
	table   string
	op      history.Op
	rows    map[history.Row]bool
	num     uint32
}

// next returns the tag of a write.
func (p *pastTxn) next(w *history.LoggedWrite) history.Tag {
	if p.num == 0 || p.table != w.Row.Table || p.op != w.Op || p.rows[w.Row] {
		p.num++
		p.table, p.op, p.rows = w.Row.Table, w.Op, make(map[history.Row]bool)
	}
	p.rows[w.Row] = true
	return history.Tag{Txn: p.id, Stmt: p.num}
}

// add adds a write to the statement of the last tag.
func (p *pastTxn) add(a history.Access) {
	if n := len(p.stmts); n == 0 || p.stmts[n-1].Num != p.num {
		kind, verb := history.Update, "UPDATE "+a.Row.Table
		switch a.Op {
		case history.InsertRow:
			kind, verb = history.Insert, "INSERT INTO "+a.Row.Table
		case history.DeleteRow:
			kind, verb = history.Delete, "DELETE FROM "+a.Row.Table
		}
		p.stmts = append(p.stmts, history.Stmt{Num: p.num, Kind: kind, Observation: history.Exact,
			Locking: history.LockUpdate, Shape: verb + " /* past isotap */"})
	}
	s := &p.stmts[len(p.stmts)-1]
	s.Accesses = append(s.Accesses, a)
}

// txn returns the transaction. When it began is not known, nor when it was answered; it had not committed before From.
func (p *pastTxn) txn(x *loggedTxn) *history.Txn {
	p.stmts = append(p.stmts, history.Stmt{Num: p.num + 1, Kind: history.Commit, Shape: "COMMIT", Start: x.from})
	return &history.Txn{ID: p.id, Session: history.SessionID(p.id.Seq()), Status: history.Committed, End: x.seen,
		Stmts: p.stmts}
}
