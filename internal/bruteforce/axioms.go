package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// An Axiom says which transactions one sees in a read, by an isolation level of Biswas and Enea (On the Complexity of
// Checking Transactional Consistency, 2019, figure 2).
type Axiom uint8

// The axioms of the weak levels.
const (
	ReadCommittedAxiom Axiom = iota // those of which it read a version in an earlier statement
	ReadAtomicAxiom                 // those of which it read a version, and those before it in its session
	CausalAxiom                     // all from which reads and sessions lead to it
)

// CommitOrder reports whether the history is read committed and some order of its committed transactions holds reads,
// versions, the sessions if they count, and the axiom: where a transaction read what one wrote to a row, all others
// that wrote the row and that it sees come before that one.
func CommitOrder(txns []*history.Txn, axiom Axiom, sessions bool) bool {
	graph, ok := Graph(txns)
	if !ok || !ReadCommitted(txns) {
		return false
	}
	committed := committedOf(txns)
	var before, seen [][2]history.TxnID
	for e := range graph {
		if e.Kind != RW {
			before = append(before, [2]history.TxnID{e.From, e.To})
		}
		if e.Kind == WR {
			seen = append(seen, [2]history.TxnID{e.From, e.To})
		}
	}
	for _, a := range committed {
		for _, b := range committed {
			if sessions && a != b && BySession(a, b) {
				before, seen = append(before, [2]history.TxnID{a.ID, b.ID}), append(seen, [2]history.TxnID{a.ID, b.ID})
			}
		}
	}
	for _, reader := range committed {
		for _, r := range statementReads(reader) {
			for _, other := range committed {
				if other == reader || other.ID == r.tag.Txn || !wrote(other, r.row) || !sees(axiom, reader, other, r, seen) {
					continue
				}
				if r.tag.Initial() {
					return false
				}
				before = append(before, [2]history.TxnID{other.ID, r.tag.Txn})
			}
		}
	}
	return anyOrder(committed, nil, before)
}

// A statementRead is a version that a statement read and that its transaction did not write.
type statementRead struct {
	versionOf
	stmt uint32
}

func statementReads(t *history.Txn) []statementRead {
	var reads []statementRead
	for _, s := range t.Stmts {
		for _, a := range s.Accesses {
			if a.Op == history.Read && !a.Absent && !a.Gone && a.Version.Txn != t.ID {
				reads = append(reads, statementRead{versionOf{a.Row, a.Version}, s.Num})
			}
		}
	}
	return reads
}

func wrote(t *history.Txn, row history.Row) bool {
	return slices.ContainsFunc(t.Stmts, func(s history.Stmt) bool {
		return !s.Void && slices.ContainsFunc(s.Accesses, func(a history.Access) bool {
			return a.Op != history.Read && a.Row == row
		})
	})
}

// sees reports whether a reader sees another transaction in a read.
func sees(axiom Axiom, reader, other *history.Txn, r statementRead, seen [][2]history.TxnID) bool {
	switch axiom {
	case ReadCommittedAxiom:
		return slices.ContainsFunc(statementReads(reader), func(x statementRead) bool {
			return x.tag.Txn == other.ID && x.stmt < r.stmt
		})
	case ReadAtomicAxiom:
		return slices.Contains(seen, [2]history.TxnID{other.ID, reader.ID})
	}
	reached := []history.TxnID{other.ID}
	for i := 0; i < len(reached); i++ {
		for _, e := range seen {
			if e[0] == reached[i] && !slices.Contains(reached, e[1]) {
				reached = append(reached, e[1])
			}
		}
	}
	return slices.Contains(reached, reader.ID)
}
