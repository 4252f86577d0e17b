package pglog

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// Complete adds to a recorded transaction what the log alone says of it: the writes of triggers, cascades, functions,
// DO and COPY, and its end where the proxy knows none. Nobody knows which statement made these writes. So they stand in
// statements of their own, before the end of the transaction: one for each row, and one for the inserts of a table that
// follow each other. Call Complete once for each reading of a transaction, after [Resolver.Settle] and before versions
// are resolved.
func (r *Resolver) Complete(t *history.Txn) {
	if e, ok := r.ends[t.ID]; ok {
		t.Status, t.End = e.status, e.at
	}
	effects := r.effects[t.ID]
	if len(effects) == 0 {
		return
	}
	num := uint32(0)
	for i := range t.Stmts {
		num = max(num, t.Stmts[i].Num)
	}
	at := len(t.Stmts)
	for at > 0 && t.Stmts[at-1].Kind == history.Commit {
		at--
	}
	var told []history.Stmt
	for _, e := range effects {
		last := len(told) - 1
		if e.access.Op != history.InsertRow || last < 0 || told[last].Kind != history.Insert ||
			told[last].Accesses[0].Row.Table != e.access.Row.Table {
			num++
			told = append(told, statement(num, &e.access, withinATransaction))
			last++
			told[last].Unseen = true
		}
		s := &told[last]
		s.Accesses, s.TupleIDs = append(s.Accesses, e.access), append(s.TupleIDs, e.tuple)
	}
	t.Stmts = slices.Concat(t.Stmts[:at], told, t.Stmts[at:])
}

// withinATransaction is said of who wrote what no statement of a recorded transaction told.
const withinATransaction = "unseen, from the log"

// An effect is a write of a recorded transaction that none of its statements told.
type effect struct {
	access history.Access
	tuple  history.TupleID
}

// complete finds what a recorded transaction wrote that it was not seen to. Of a row that its statements wrote as well,
// or of which they read what it wrote unseen, it is not known what came between what: that is counted, and left out.
func (r *Resolver) complete(l *logged) {
	rows := make(map[history.Row][]int32) // the writes of a row, in the order of the log
	var order []history.Row
	for i, at := range l.nodes {
		n := &r.nodes[at]
		if !n.named() {
			continue
		}
		if rows[n.row] == nil {
			order = append(order, n.row)
		}
		rows[n.row] = append(rows[n.row], int32(i))
	}
	for _, row := range order {
		writes := rows[row]
		slices.SortStableFunc(writes, func(a, b int32) int {
			return cmp.Compare(l.writes[a].TupleID.LSN, l.writes[b].TupleID.LSN)
		})
		unseen, alone := 0, !l.cut && !r.blind[l.owner]
		for n, i := range writes {
			told := r.told(l, i)
			if !told {
				unseen++
			}
			alone = alone && !told && !r.nodes[l.nodes[i]].own && (n == 0 || r.follows(l, writes[n-1], i))
		}
		r.stats.Effects += unseen
		if e, ok := r.effect(l, writes); alone && ok {
			r.stats.Told += unseen
			r.effects[l.owner] = append(r.effects[l.owner], e)
		}
	}
}

// told reports whether a statement of the transaction told a write of the log.
func (r *Resolver) told(l *logged, i int32) bool {
	n := &r.nodes[l.nodes[i]]
	if l.writes[i].Op == history.DeleteRow {
		return n.deletedBy == l.owner
	}
	return n.left
}

// follows reports whether a write replaced or deleted the version that the one before it left.
func (r *Resolver) follows(l *logged, before, i int32) bool {
	left := l.nodes[before]
	if l.writes[before].Op == history.DeleteRow {
		return false
	}
	if l.writes[i].Op == history.DeleteRow {
		return l.nodes[i] == left
	}
	return r.nodes[l.nodes[i]].before == left
}

// effect returns the writes of a row, each of which follows the one before it, as one: what others can see of them. A
// row that was made and deleted is nobody's.
func (r *Resolver) effect(l *logged, writes []int32) (e effect, any bool) {
	first, last := writes[0], writes[len(writes)-1]
	e.access, e.tuple = r.access(l, first)
	if first == last {
		return e, true
	}
	w := &l.writes[last]
	switch {
	case w.Op != history.DeleteRow:
		e.tuple.NewXID, e.tuple.NewID, e.tuple.LSN = w.TupleID.NewXID, w.TupleID.NewID, w.TupleID.LSN
	case e.access.Op == history.InsertRow:
		return effect{}, false
	default:
		e.access.Op = history.DeleteRow
		e.tuple.NewXID, e.tuple.NewID, e.tuple.LSN = 0, 0, w.TupleID.LSN
	}
	return e, true
}
