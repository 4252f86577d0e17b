package predicate

import (
	"iter"
	"slices"

	"github.com/isotap/isotap/history"
)

// sightings are the versions of rows that a transaction has met, each row's last.
type sightings map[history.Row]sighting

// A sighting is a version, and the predicates by which it was found.
type sighting struct {
	version history.Tag
	by      []history.Predicate
}

// add takes in what a statement met.
func (m sightings) add(accesses []history.Access, by []history.Predicate) {
	for i := range accesses {
		if a := &accesses[i]; !a.Inexact {
			m[a.Row] = sighting{a.Version, by}
		}
	}
}

// with gives the rows that were met, and the given ones, each once.
func (m sightings) with(rows []history.Row) iter.Seq[history.Row] {
	return func(yield func(history.Row) bool) {
		for row := range m {
			if !yield(row) {
				return
			}
		}
		for _, row := range rows {
			if _, met := m[row]; !met && !yield(row) {
				return
			}
		}
	}
}

// firstSeen gives the first version of a row that a statement can have seen that did not find it, where that is another's
// write at the same time; false where there is none. The transaction does not go back behind what it has met of the row,
// nor behind what had been committed when it began; from there on, what surely matches the predicate it would have found.
func (r *Resolver) firstSeen(t *history.Txn, s *history.Stmt, k subject, chain []write, met sighting) (history.Tag, bool) {
	if len(chain) == 0 {
		return history.Tag{}, false
	}
	from := -1 // what was there before the first write
	for i := range chain {
		w := &chain[i]
		if w.txn == t.ID {
			return history.Tag{}, false
		}
		if w.end < t.Start || w.tag == met.version {
			from = i
		}
	}
	place := from
	for place < len(chain) && r.surelyMatched(k, chain, place, met) {
		place++
	}
	if place == from || place == len(chain) {
		return history.Tag{}, false
	}
	first := &chain[place]
	if t.Level == history.ReadUncommitted && !r.snapshots[t.ID.Run()] {
		return first.tag, first.end < s.Start // before that it may have seen what was undone since
	}
	return first.tag, first.start <= s.End
}

// surelyMatched is matched for the i-th version of a row; -1 is what was there before the first write.
func (r *Resolver) surelyMatched(k subject, chain []write, i int, met sighting) bool {
	version, there := chain[0].replaced, !chain[0].born
	if i >= 0 {
		version, there = chain[i].tag, !chain[i].deleted
	}
	return there && (k.of.Where == "" || version == met.version && slices.Contains(met.by, k.of) || i >= 0 && r.matched(k, &chain[i]))
}
