package predicate

import (
	"iter"
	"slices"

	"github.com/isotap/isotap/history"
)

// foundVersions are the versions of rows that a transaction has seen, each row's last.
type foundVersions map[history.Row]foundVersion

// A foundVersion is a version, and the predicates by which it was found.
type foundVersion struct {
	version history.Tag
	by      []history.Predicate
}

// add takes in what a statement saw.
func (m foundVersions) add(accesses []history.Access, by []history.Predicate) {
	for i := range accesses {
		if a := &accesses[i]; !a.Inexact {
			m[a.Row] = foundVersion{a.Version, by}
		}
	}
}

// snapshotOf returns the versions that the plain reads of a transaction found, earlier and later ones, where these have
// one snapshot that may be older than the transaction: what it has was there for every statement that locks, or had
// been replaced.
func (r *Resolver) snapshotOf(t *history.Txn) foundVersions {
	if !r.stale[t.ID.Run()] || t.Level != history.RepeatableRead || t.StaleRead {
		return nil
	}
	m := make(foundVersions)
	for i := range t.Stmts {
		if s := &t.Stmts[i]; plainRead(t, s) && s.Observation == history.Exact && !s.Void {
			m.add(s.Accesses, s.Predicates)
		}
	}
	return m
}

// with returns the rows that were seen, and the given ones, each once.
func (m foundVersions) with(rows []missable) iter.Seq[history.Row] {
	return func(yield func(history.Row) bool) {
		for row := range m {
			if !yield(row) {
				return
			}
		}
		for i := range rows {
			if _, met := m[rows[i].row]; !met && !yield(rows[i].row) {
				return
			}
		}
	}
}

// A search is for the version of a row that a predicate did not find.
type search struct {
	of      subject
	matches map[history.VersionRef]bool // the versions that surely match the predicate
	*chain
	met  foundVersion
	seen bool // the transaction has met a version of the chain before
}

// firstSeen returns the first version of a row that a statement can have seen that did not find it, where that is
// another's write at the same time; false where there is none. The transaction does not go back behind what it has seen
// of the row, nor behind what had been committed when it began, unless its snapshot may be older; from there on, what
// surely matches the predicate it would have found.
func (r *Resolver) firstSeen(t *history.Txn, s *history.Stmt, x *search) (history.Tag, bool) {
	if x.chain == nil {
		return history.Tag{}, false
	}
	from, last := x.lastEnded(t.Start), x.lastSent(s.End) // -1: what was there before the first write
	if r.stale[t.ID.Run()] {
		if from = -1; !x.seen || last < 0 || x.met.version != x.writes[0].replaced && !x.has(x.met.version) {
			return history.Tag{}, false
		}
	}
	for i := last; i > from; i-- {
		// Before its writer had ended, only a dirty read met it: an UPDATE goes back behind that.
		if x.writes[i].tag == x.met.version && (!r.dirty(t) || x.writes[i].end < s.Start) {
			from = i
		}
	}
	place := from
	for place <= last && x.surelyMatched(place) {
		place++
	}
	if place == from || place > last {
		return history.Tag{}, false
	}
	if r.unsure[t.ID.Run()].overlap(x.knownSince(from, t), s.End) {
		return history.Tag{}, false // the row may have been changed unseen, and that version is not what it was
	}
	first := &x.writes[place]
	if r.dirty(t) && !waits(s) {
		return first.tag, first.end < s.Start // before that it may have seen what was undone since
	}
	return first.tag, first.start <= s.End
}

// waits reports whether a statement that tells every row that its condition finds has locked the rows that it looked
// at: it waited until their writers had ended, or took what was committed. The query of an INSERT does not, whatever
// its statement's Locking says, at READ UNCOMMITTED.
func waits(s *history.Stmt) bool {
	return s.Kind == history.Update || s.Kind == history.Delete || s.Kind == history.Select && s.Locking != history.NoLock
}

// has reports whether a version is one of the chain's.
func (c *chain) has(version history.Tag) bool {
	return slices.ContainsFunc(c.writes, func(w write) bool { return w.tag == version })
}

// knownSince returns the moment at which the i-th version surely was what matches.
func (x *search) knownSince(i int, t *history.Txn) int64 {
	switch {
	case i < 0 && x.found(x.writes[0].replaced), i >= 0 && x.found(x.writes[i].tag):
		return t.Start
	case i < 0:
		return 0
	}
	return x.writes[i].start
}

// found reports whether the transaction has found a version by the same predicate.
func (x *search) found(version history.Tag) bool {
	return version == x.met.version && slices.Contains(x.met.by, x.of.of)
}

// surelyMatched reports whether the i-th version surely matches; -1 is what was there before the first write.
func (x *search) surelyMatched(i int) bool {
	version, there := x.writes[0].replaced, !x.writes[0].born
	if i >= 0 {
		version, there = x.writes[i].tag, !x.writes[i].deleted
	}
	return there && (x.of.of.Where == "" || x.found(version) || i >= 0 && x.matches[x.writes[i].ref])
}
