package pgversions

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// Settle ends the first pass: it puts every row's writes in order.
func (r *Resolver) Settle() {
	if r.settled {
		return
	}
	r.settled = true
	r.findServers()
	r.keyless.settle(r)
	index := make([]int32, 0, len(r.writes))
	for i := range r.writes {
		if r.writes[i].row != none {
			index = append(index, int32(i))
		}
	}
	slices.SortFunc(index, r.byLSN)
	for from := 0; from < len(index); {
		to := from + 1
		for to < len(index) && r.sameRow(index[from], index[to]) {
			to++
		}
		r.order(index[from:to])
		from = to
	}
	slices.SortFunc(index, func(a, b int32) int {
		x, y := &r.writes[a], &r.writes[b]
		return cmp.Or(r.byRow(x, y), cmp.Compare(x.xid, y.xid), cmp.Compare(x.ctid, y.ctid), cmp.Compare(x.lsn, y.lsn))
	})
	r.byVersion = index
	r.settleTags(index)
}

func (r *Resolver) sameRow(a, b int32) bool { return r.byRow(&r.writes[a], &r.writes[b]) == 0 }

func (r *Resolver) byRow(x, y *write) int {
	if x.row != y.row || len(r.servers) == 1 {
		return cmp.Compare(x.row, y.row)
	}
	return cmp.Compare(r.serverOf(x), r.serverOf(y))
}

// byLSN orders the writes of a row. Tables that are not logged leave a transaction's LSN where it is.
func (r *Resolver) byLSN(a, b int32) int {
	x, y := &r.writes[a], &r.writes[b]
	return cmp.Or(r.byRow(x, y), cmp.Compare(x.lsn, y.lsn), cmp.Compare(r.txns[x.txn].id, r.txns[y.txn].id),
		cmp.Compare(x.stmt, y.stmt))
}

// order gives the writes of one row, in their order, their predecessors.
func (r *Resolver) order(row []int32) {
	stayed, doubtful := int32(none), false
	for i, n := range row {
		w := &r.writes[n]
		w.pred = r.ownBelow(row[:i], w)
		if w.pred == none && w.lsn != 0 {
			w.pred = stayed
			if doubtful {
				w.flags |= doubt
			}
		}
		if !w.certain() {
			continue
		}
		switch r.txns[w.txn].status {
		case history.Committed:
			stayed, doubtful = n, false
		case history.Indeterminate:
			doubtful = true
		}
	}
}

// ownBelow finds the write's predecessor among those of its own transaction: nobody else writes the row
// between two of them.
func (r *Resolver) ownBelow(below []int32, w *write) int32 {
	for _, n := range slices.Backward(below) {
		o := &r.writes[n]
		if o.txn != w.txn {
			break
		}
		if o.certain() && o.stmt != w.stmt {
			return n
		}
	}
	return none
}

func (r *Resolver) tag(n int32) history.Tag {
	w := &r.writes[n]
	return history.Tag{Txn: r.txns[w.txn].id, Stmt: w.stmt}
}
