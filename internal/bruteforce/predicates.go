package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// A PredicateRead is a statement that chose rows by a condition: Adya's r(P: Vset(P)), where the rows that it found are
// among the statement's accesses, too.
type PredicateRead struct {
	Reader history.Tag // the transaction and the statement
	// Vset is the version that the statement saw of each row. What is not in it was there with the initial version, or
	// was not there yet.
	Vset map[history.Row]history.Tag
	// Matches says of which versions the condition holds.
	Matches func(row history.Row, version history.Tag) bool
}

// A looks holds a history's predicate reads, and the orders of versions that they go by.
type looks struct {
	reads []PredicateRead // of committed transactions
	// chains are the rows' versions from the initial one on: of those that committed transactions installed the last
	// one of each transaction. They say nothing where two replaced the same one.
	chains map[history.Row][]history.Tag
	ws     []write
}

func looksOf(txns []*history.Txn, reads []PredicateRead) looks {
	if len(reads) == 0 {
		return looks{}
	}
	l := looks{ws: writesOf(txns), chains: make(map[history.Row][]history.Tag)}
	for _, t := range committedOf(txns) {
		for _, r := range reads {
			if r.Reader.Txn == t.ID {
				l.reads = append(l.reads, r)
			}
		}
	}
	installed, last := installedVersions(txns)
	above := make(map[versionOf]history.Tag)
	for v, final := range last {
		below := versionOf{v.row, final}
		for below.tag.Txn == v.txn {
			below = l.replaced(below, installed)
		}
		above[below] = final
	}
	for row := range initialState(txns) {
		chain := []history.Tag{{}}
		for next, ok := above[versionOf{row: row}]; ok; next, ok = above[versionOf{row, next}] {
			chain = append(chain, next)
		}
		l.chains[row] = chain
	}
	return l
}

// replaced returns the installed version that a version was put in the place of; the initial one for the first of a
// row.
func (l looks) replaced(v versionOf, installed map[versionOf]bool) versionOf {
	i := slices.IndexFunc(l.ws, func(w write) bool { return w.own == v.tag && w.access.Row == v.row })
	below, exists := l.ws[i].below(l.ws, installed)
	if !exists {
		return versionOf{row: v.row}
	}
	return below
}

// effective returns the place in its row's chain of the version that a read saw, or of the one below it where that was
// aborted or intermediate. It is not clean where the reader saw a change of what matches that was never there.
func (l looks) effective(r PredicateRead, row history.Row) (place int, clean bool) {
	chain, saw := l.chains[row], versionOf{row, r.Vset[row]}
	matched := r.Matches(row, saw.tag)
	for !slices.Contains(chain, saw.tag) {
		i := slices.IndexFunc(l.ws, func(w write) bool { return w.own == saw.tag && w.access.Row == row })
		if i < 0 {
			return 0, false
		}
		saw.tag = l.ws[i].access.Version
	}
	return slices.Index(chain, saw.tag), matched == r.Matches(row, saw.tag)
}

// own reports whether what a read saw of a row is its own transaction's.
func (r PredicateRead) own(row history.Row) bool { return r.Vset[row].Txn == r.Reader.Txn }

// clean reports whether no predicate read is a G1a or a G1b ("maybe via a predicate", Adya 4.2.2): none saw rows match,
// or not, by a version that was aborted or intermediate.
func (l looks) clean() bool {
	for _, r := range l.reads {
		for row := range l.chains {
			if _, clean := l.effective(r, row); !clean && !r.own(row) {
				return false
			}
		}
	}
	return true
}

// changed reports whether a version of a row matches and the one before it does not, or the other way round.
func (l looks) changed(r PredicateRead, row history.Row, place int) bool {
	chain := l.chains[row]
	return r.Matches(row, chain[place]) != r.Matches(row, chain[place-1])
}

// edges returns the predicate dependencies: of a reader on who last changed what it saw match (Adya 3.1.2), and of who
// first changed it after that on the reader (3.1.3). Those who changed it later depend on him by the row.
func (l looks) edges() []Edge {
	var edges []Edge
	l.each(func(r PredicateRead, row history.Row, before, after history.Tag) {
		if before.Txn != 0 {
			edges = append(edges, Edge{before.Txn, r.Reader.Txn, WR, row})
		}
		if after.Txn != 0 {
			edges = append(edges, Edge{r.Reader.Txn, after.Txn, RW, row})
		}
	})
	return slices.DeleteFunc(edges, func(e Edge) bool { return e.From == e.To })
}

// flow returns the pairs of transactions of which the second depends on the first by what it saw match.
func (l looks) flow() [][2]history.TxnID {
	var pairs [][2]history.TxnID
	for _, e := range l.edges() {
		if e.Kind == WR {
			pairs = append(pairs, [2]history.TxnID{e.From, e.To})
		}
	}
	return pairs
}

// met returns the versions of others that keep rows from matching a transaction's predicate reads.
func (l looks) met(reader history.TxnID) []versionOf {
	var versions []versionOf
	l.each(func(r PredicateRead, row history.Row, before, _ history.Tag) {
		if r.Reader.Txn == reader && before.Txn != reader && !before.Initial() && !r.Matches(row, before) {
			versions = append(versions, versionOf{row, before})
		}
	})
	return versions
}

// each calls yield with every row of which a predicate read saw another's version, with the last version up to that by
// which the row came to match, or not to, and the first such one after it; initial tags where there is none.
func (l looks) each(yield func(r PredicateRead, row history.Row, before, after history.Tag)) {
	for _, r := range l.reads {
		for row, chain := range l.chains {
			place, clean := l.effective(r, row)
			if found := r.Matches(row, r.Vset[row]); r.own(row) || !clean || found && r.Vset[row] != chain[place] {
				continue // nothing depends on what was never there
			}
			var before, after history.Tag
			for k := range chain {
				switch {
				case k == 0 || !l.changed(r, row, k):
				case k <= place:
					before = chain[k]
				case after.Initial():
					after = chain[k]
				}
			}
			yield(r, row, before, after)
		}
	}
}

// fit reports whether the predicate reads of a statement give in a state what they gave: between the version of each
// row that they saw and that of the state, nothing changed what matches.
func (l looks) fit(reader history.Tag, db state) bool {
	for _, r := range l.reads {
		if r.Reader != reader {
			continue
		}
		for row, chain := range l.chains {
			if r.own(row) {
				continue
			}
			saw, clean := l.effective(r, row)
			is := slices.Index(chain, db[row].version())
			if !clean || is < 0 {
				return false
			}
			for k := min(saw, is) + 1; k <= max(saw, is); k++ {
				if l.changed(r, row, k) {
					return false
				}
			}
		}
	}
	return true
}

// version returns the tag that wrote the cell last.
func (c cell) version() history.Tag {
	if len(c.list) == 0 {
		return history.Tag{}
	}
	return c.list[len(c.list)-1]
}
