package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// RepeatableRead says whether the history has none of Adya's G1 and G2-item, which is PL-2.99: some order of the
// committed transactions puts every one after all that it depends on through rows.
func RepeatableRead(txns []*history.Txn) bool {
	graph, ok := Graph(txns)
	if !ok || !ReadCommitted(txns) {
		return false
	}
	var before [][2]history.TxnID
	for e := range graph {
		before = append(before, [2]history.TxnID{e.From, e.To})
	}
	return anyOrder(committedOf(txns), nil, before)
}

// ReadAtomic says whether the history is read committed and no transaction saw a fraction of another (Bailis et al.,
// Scalable Atomic Visibility with RAMP Transactions, section 3): where it read a version of a transaction, it
// did not read an older version of another row than the one that transaction left.
func ReadAtomic(txns []*history.Txn) bool {
	if !ReadCommitted(txns) {
		return false
	}
	installed, last := installedVersions(txns)
	ws := writesOf(txns)
	for _, t := range committedOf(txns) {
		reads := foreignReads(t)
		for _, x := range reads {
			for _, y := range reads {
				tag, wrote := last[versionsOf{y.row, x.tag.Txn}]
				if x.row != y.row && wrote && older(y, versionOf{y.row, tag}, ws, installed) {
					return false
				}
			}
		}
	}
	return true
}

// foreignReads gives the versions that a transaction read and did not write itself.
func foreignReads(t *history.Txn) []versionOf {
	var reads []versionOf
	for _, s := range t.Stmts {
		for _, a := range s.Accesses {
			if v := (versionOf{a.Row, a.Version}); a.Op == history.Read && a.Version.Txn != t.ID && !slices.Contains(reads, v) {
				reads = append(reads, v)
			}
		}
	}
	return reads
}

// older says whether a version of a row came before another installed one.
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
