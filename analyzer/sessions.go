package analyzer

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// sessions calls yield with every two of the given transactions that follow each other in one session. One that its
// session prepared and another ended later (PREPARE TRANSACTION) comes before none that began meanwhile. A stale read
// follows none: it may miss what its session did before.
func (o *order) sessions(txns []int32, yield func(from, to int32)) {
	latest := make([][2]int32, len(o.store.sessions)) // the last and the one before it, from 1
	for _, t := range txns {
		last := &latest[o.txns[t].session]
		for _, before := range last {
			if before > 0 && !o.txns[t].staleRead && o.ended(before-1, t) {
				yield(before-1, t)
				if !o.txns[before-1].staleRead {
					break
				}
			}
		}
		last[0], last[1] = t+1, last[0]
	}
}

// ended reports whether a transaction of a session had ended before a later one of the session began, as far as their
// times are known.
func (o *order) ended(before, t int32) bool {
	end, start := o.txns[before].end, o.txns[t].start
	return o.txns[before].status != history.Indeterminate && (end <= start || end <= 0 || start <= 0)
}

// seesItsTime reports whether a transaction has to see what had ended before it began, and that moment is known.
func (t *txn) seesItsTime() bool { return t.start > 0 && !t.staleRead }

// ends returns those of the given transactions whose end is known, in order of run and end.
func (o *order) ends(local, txns []int32) []int32 {
	var ends []int32
	for _, t := range txns {
		if o.txns[t].end > 0 && o.txns[t].status != history.Indeterminate {
			ends = append(ends, t)
		}
	}
	slices.SortFunc(ends, func(a, b int32) int {
		x, y := &o.txns[a], &o.txns[b]
		return cmp.Or(cmp.Compare(x.run, y.run), cmp.Compare(x.end, y.end))
	})
	return ends
}

// times calls yield with edges from transactions to their ends, from each end to the next one of the run, and from
// the last end before it to each transaction: paths of them lead from one transaction to those that began after it
// had ended, by one clock. The i-th end is node len(txns)+i.
func (o *order) times(local, txns, ends []int32, yield func(from, to int32)) {
	for i, t := range ends {
		node := int32(len(txns) + i)
		yield(local[t], node)
		if i+1 < len(ends) && o.txns[ends[i+1]].run == o.txns[t].run {
			yield(node, node+1)
		}
	}
	for i, t := range txns {
		if last := o.lastEnd(ends, &o.txns[t]); last >= 0 {
			yield(int32(len(txns)+last), int32(i))
		}
	}
}

// lastEnd finds the last of the ends of a transaction's run before it began; -1 for none.
func (o *order) lastEnd(ends []int32, t *txn) int {
	if !t.seesItsTime() {
		return none
	}
	i, _ := slices.BinarySearchFunc(ends, t, func(e int32, t *txn) int {
		return cmp.Or(cmp.Compare(o.txns[e].run, t.run), cmp.Compare(o.txns[e].end, t.start))
	})
	if i == 0 || o.txns[ends[i-1]].run != t.run {
		return none
	}
	return i - 1
}
