package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// RepeatableRead reports whether the history has none of Adya's G1 and G2-item, which is PL-2.99: some order of the
// committed transactions puts every one after all that it depends on through rows.
func RepeatableRead(txns []*history.Txn, reads ...PredicateRead) bool {
	graph, ok := Graph(txns)
	if !ok || !ReadCommitted(txns, reads...) {
		return false
	}
	before := looksOf(txns, reads).flow()
	for e := range graph {
		before = append(before, [2]history.TxnID{e.From, e.To})
	}
	return anyOrder(committedOf(txns), nil, before)
}

// ReadAtomic reports whether the history is read committed and no transaction saw a fraction of another (Bailis et al.,
// Scalable Atomic Visibility with RAMP Transactions, section 3): where it read a version of a transaction, it
// did not read an older version of another row than the one that transaction left. To see that a version keeps a row
// from matching is to read it.
func ReadAtomic(txns []*history.Txn, reads ...PredicateRead) bool {
	if !ReadCommitted(txns, reads...) {
		return false
	}
	installed, last := installedVersions(txns)
	ws := writesOf(txns)
	l := looksOf(txns, reads)
	for _, t := range committedOf(txns) {
		seen := foreignReads(t)
		for _, x := range slices.Concat(seen, l.met(t.ID)) {
			for _, y := range seen {
				tag, wrote := last[versionsOf{y.row, x.tag.Txn}]
				if wrote && older(y, versionOf{y.row, tag}, ws, installed) {
					return false
				}
			}
		}
	}
	return true
}

// foreignReads returns the versions that a transaction read and did not write itself.
func foreignReads(t *history.Txn) []versionOf {
	var reads []versionOf
	for _, s := range t.Stmts {
		for _, a := range s.Accesses {
			if v := (versionOf{a.Row, a.Version}); a.Op == history.Read && !a.Absent && !a.Gone &&
				a.Version.Txn != t.ID && !slices.Contains(reads, v) {
				reads = append(reads, v)
			}
		}
	}
	return reads
}

// older reports whether a version of a row came before another installed one.
func older(v, than versionOf, ws []write, installed map[versionOf]bool) bool {
	for range ws {
		i := slices.IndexFunc(ws, func(w write) bool { return w.own == than.tag && w.access.Row == than.row })
		if i < 0 {
			return false
		}
		below, exists := ws[i].below(ws, installed)
		if !exists {
			return false
		}
		if below == v {
			return true
		}
		than = below
	}
	return false
}
