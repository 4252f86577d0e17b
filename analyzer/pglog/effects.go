package pglog

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/history"
)

// Complete adds to a recorded transaction what the log alone says of it: the writes of triggers, cascades, functions,
// DO and COPY, and its end where the proxy knows none. Nobody knows which statement made these writes. So they stand in
// statements of their own: one for each row, and one for the inserts of a table that follow each other. They come as
// late as can be: before the statement that met what they left, or before the end of the transaction. Statements get
// the numbers of their places. Call Complete once for each reading of a transaction, after [Resolver.Settle] and before
// versions are resolved.
func (r *Resolver) Complete(t *history.Txn) {
	r.identify(t)
	if e, ok := r.ends[t.ID]; ok {
		t.Status, t.End = e.status, e.at
	}
	if len(r.effects[t.ID]) == 0 {
		return
	}
	end := len(t.Stmts)
	for end > 0 && t.Stmts[end-1].Kind == history.Commit {
		end--
	}
	effects := slices.Clone(r.effects[t.ID]) // others may read it now
	slices.SortStableFunc(effects, func(a, b effect) int { return cmp.Compare(a.before, b.before) })
	all := make([]history.Stmt, 0, len(t.Stmts)+len(effects))
	for i := range len(t.Stmts) + 1 {
		from := len(all)
		for len(effects) > 0 && min(int(effects[0].before), end) <= i {
			all = effects[0].tell(all, from)
			effects = effects[1:]
		}
		if i < len(t.Stmts) {
			all = append(all, t.Stmts[i])
		}
	}
	for i := range all {
		s := &all[i]
		if num := uint32(i + 1); s.Num != num {
			s.Recorded, s.Num = s.Num, num
		}
	}
	t.Stmts = all
}

// tell adds an effect to statements, of which those from one on tell others.
func (e *effect) tell(stmts []history.Stmt, from int) []history.Stmt {
	last := len(stmts) - 1
	if e.access.Op != history.InsertRow || last < from || stmts[last].Kind != history.Insert ||
		stmts[last].Accesses[0].Row.Table != e.access.Row.Table {
		stmts = append(stmts, statement(0, &e.access, withinATransaction))
		last++
		stmts[last].Unseen = true
	}
	s := &stmts[last]
	s.Accesses, s.TupleIDs = append(s.Accesses, e.access), append(s.TupleIDs, e.tuple)
	return stmts
}

// withinATransaction is said of who wrote what no statement of a recorded transaction told.
const withinATransaction = "unseen, from the log"

// An effect is a write of a recorded transaction that none of its statements told.
type effect struct {
	access history.Access
	tuple  history.TupleID
	before int32 // the index of the statement that it comes before; atEnd
}

// atEnd is behind all statements.
const atEnd = math.MaxInt32

// complete finds what a recorded transaction wrote that it was not seen to. Of a row that its statements wrote as well,
// or of which they read what it wrote unseen, the versions that they met tell what came between what. Where they do
// not, that is counted, and left out.
func (r *Resolver) complete(logged int32) {
	l := &r.logged[logged]
	rows := r.rowsOf(l)
	meetings := r.met(l, rows, r.meetings[logged])
	whole := r.isWhole(l)
	for i := range rows {
		of := &rows[i]
		unseen := 0
		for _, w := range of.writes {
			if !r.told(l, w) {
				unseen++
			}
		}
		r.stats.Effects += unseen
		if unseen == 0 || l.cut || r.blind[l.owner] || r.lost[l.owner][of.id] {
			continue
		}
		effects, ok := r.placed(l, of, meetings)
		if !ok {
			whole = false
			continue
		}
		r.stats.Told += unseen
		r.effects[l.owner] = append(r.effects[l.owner], effects...)
	}
	r.whole[l.owner] = whole
}

// isWhole reports whether the log has all that a recorded transaction wrote, each write of a row of which it is known
// which one it is. A row that no recorded statement met needs no name: nothing hangs on it.
func (r *Resolver) isWhole(l *logged) bool {
	return !l.cut && !r.blind[l.owner] && len(r.lost[l.owner]) == 0 && !r.several[l.owner] &&
		!slices.ContainsFunc(l.nodes, func(at int32) bool { return r.nodes[at].torn })
}

// placed returns what the writes of a row were that no statement told, each where it comes among the statements. Those
// that follow each other, and of which nobody met what the first ones left, are one. Ok is false where it is not known
// what came between what.
func (r *Resolver) placed(l *logged, of *rowWrites, met map[int32]bool) (effects []effect, ok bool) {
	writes := of.writes
	for from := 0; from < len(writes); {
		to := from + 1
		if r.told(l, writes[from]) {
			if !r.follows(l, writes, from) {
				return nil, false
			}
			from = to
			continue
		}
		for to < len(writes) && !r.told(l, writes[to]) && l.writes[writes[to-1]].Op != history.DeleteRow &&
			!met[l.nodes[writes[to-1]]] {
			to++
		}
		for i := from; i < to; i++ {
			if !r.follows(l, writes, i) {
				return nil, false
			}
		}
		if of.after[to] >= of.before[to] {
			return nil, false
		}
		if e, any := r.effect(l, writes[from:to]); any {
			e.before = of.before[to]
			effects = append(effects, e)
		}
		from = to
	}
	return effects, true
}

// told reports whether a statement of the transaction told a write of the log.
func (r *Resolver) told(l *logged, i int32) bool {
	if l.writes[i].Op == history.DeleteRow {
		return r.tellsDeletion(l.nodes[i], l.owner)
	}
	return r.nodes[l.nodes[i]].left
}

// follows reports whether a write of a row replaced or deleted the version that the one before it left, or made the row
// again that this one deleted.
func (r *Resolver) follows(l *logged, writes []int32, i int) bool {
	if i == 0 {
		return true
	}
	before, w := writes[i-1], writes[i]
	left := l.nodes[before]
	if l.writes[before].Op == history.DeleteRow {
		return l.writes[w].Op == history.InsertRow
	}
	if l.writes[w].Op == history.DeleteRow {
		return l.nodes[w] == left
	}
	return r.nodes[l.nodes[w]].before == left
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
