package foreign

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// write puts what a transaction of the log wrote into the chains of the rows, and makes a transaction of what is
// nobody's. It returns whose tags the versions have.
func (r *Resolver) write(x *loggedTxn) history.TxnID {
	p := pastTxn{run: x.run, id: history.MakeTxnID(pastRun(x.run), x.number)}
	if x.owner == 0 && r.unseen.MayBe(r.runs[x.run].Run, x.from, x.to) {
		p.unknown = true
		r.unknown++
		p.id = history.MakeTxnID(history.Unrecorded, r.unknown)
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
		case untagged(w) && tag.Txn == x.owner && !r.isObserved(w, tag):
			r.stats.Effects++
			r.effects[x.owner] = append(r.effects[x.owner], effect{tag.Stmt, w.Row, w.Op, before})
		}
	}
	switch {
	case x.owner != 0:
		return x.owner
	case !p.unknown && len(p.stmts) > 0:
		r.past = append(r.past, p.txn(x))
	}
	return p.id
}

// isObserved reports whether a write is a deletion that the statement with a tag has among its accesses.
func (r *Resolver) isObserved(w *history.LoggedWrite, tag history.Tag) bool {
	return w.Op == history.DeleteRow && slices.Contains(r.deleted[w.Row], tag)
}

// tagOf returns the tag of a write of the log: its own, or that of the statement that had it as an effect; the initial
// one where that is not known.
//
// The log has a transaction's writes in the order in which they were made. So an effect is of a statement between those
// that are known to have made the writes before and behind it: of the last one there that was not observed, or else,
// as a trigger's, of the one behind, if there is one. Which of several it was is open. The last is taken, since what
// its transaction read before may not have had the effect.
func (r *Resolver) tagOf(writes []history.LoggedWrite, i int, owner history.TxnID) history.Tag {
	if tag := r.leftBy(&writes[i], owner); !tag.Initial() || owner == 0 {
		return tag
	}
	var before, behind history.Tag
	for j := i - 1; j >= 0 && before.Initial(); j-- {
		before = r.leftBy(&writes[j], owner)
	}
	for j := i + 1; j < len(writes) && behind.Initial(); j++ {
		behind = r.leftBy(&writes[j], owner)
	}
	for _, num := range slices.Backward(r.unobserved[owner]) {
		if num >= before.Stmt && (behind.Initial() || num <= behind.Stmt) {
			return history.Tag{Txn: owner, Stmt: num}
		}
	}
	if behind.Initial() {
		return before
	}
	return behind
}

// leftBy returns the tag of the statement that is known to have made a write of a transaction; the initial one where
// none is.
func (r *Resolver) leftBy(w *history.LoggedWrite, owner history.TxnID) history.Tag {
	if !untagged(w) && w.New.Txn == owner {
		return w.New
	}
	for _, deleted := range r.deleted[w.Row] {
		if w.Op == history.DeleteRow && deleted.Txn == owner {
			return deleted
		}
	}
	return history.Tag{}
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
			Locking: history.LockUpdate, Shape: verb + " /* " + history.PastIsotap.String() + " */"})
	}
	s := &p.stmts[len(p.stmts)-1]
	s.Accesses = append(s.Accesses, a)
}

// txn returns the transaction. When it began is not known, nor when it was answered; it had not committed before From.
func (p *pastTxn) txn(x *loggedTxn) *history.Txn {
	p.stmts = append(p.stmts, history.Stmt{Num: p.num + 1, Kind: history.Commit, Shape: "COMMIT", Start: x.from})
	return &history.Txn{ID: p.id, Session: history.SessionID(p.id.Seq()), Status: history.Committed, End: x.seen,
		Stmts: p.stmts, Runner: history.PastIsotap}
}
