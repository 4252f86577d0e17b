package predicate

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// resolveWide adds the rows that a transaction's i-th statement cannot have seen as its wide predicates ask for them:
// those that somebody made match who was told to commit when the statement's snapshot had been taken. What was observed
// of the statement does not count.
//
// Of serializable transactions nothing is said: the server keeps what they really read from going around in circles. A
// circle that needs more than that is none.
func (r *Resolver) resolveWide(t *history.Txn, i int, database string, written firstWrites) {
	s := &t.Stmts[i]
	if t.Level == history.Serializable {
		return
	}
	found := make(map[history.Row]bool)
	for j := range s.Accesses {
		found[s.Accesses[j].Row] = true
	}
	var unseen []history.Access
	for _, p := range s.Predicates {
		if !p.Wide {
			continue
		}
		rows := near(r.rows[subject{t.ID.Run(), database, p.Condition()}], t)
		for j := range rows {
			m := &rows[j]
			if found[m.row] || written.by(s, m.row) {
				continue
			}
			if place, ok := m.madeToMatch(r.snapshotBy(t, i), r.dirty(t)); ok && m.chain.writes[place].txn != t.ID {
				found[m.row] = true
				unseen = append(unseen, history.Access{Row: m.row, Op: history.Read, Version: m.chain.below(place),
					Absent: true, Wide: true})
			}
		}
	}
	slices.SortStableFunc(unseen, byRow)
	s.Accesses = slices.Concat(s.Accesses, unseen)
}

// dirty reports whether a transaction may have seen what had not been committed.
func (r *Resolver) dirty(t *history.Txn) bool {
	return t.Level == history.ReadUncommitted && !r.snapshots[t.ID.Run()]
}

// snapshotBy is a moment by which the snapshot of a transaction's i-th statement had been taken.
func (r *Resolver) snapshotBy(t *history.Txn, i int) int64 {
	ofTxn := t.Level == history.RepeatableRead
	postgres := r.snapshots[t.ID.Run()]
	for j := range i {
		s := &t.Stmts[j]
		switch {
		case !ofTxn, s.Error != (history.Error{}):
		case postgres && (s.Kind == history.Select || s.Kind == history.Insert || s.Kind == history.Update ||
			s.Kind == history.Delete),
			!postgres && plainRead(t, s) && plainRead(t, &t.Stmts[i]) && len(s.Accesses) > 0:
			return s.End
		}
	}
	return t.Stmts[i].End
}

// plainRead reports whether a statement reads the snapshot of its transaction on InnoDB.
func plainRead(t *history.Txn, s *history.Stmt) bool {
	return t.Level == history.RepeatableRead && s.Kind == history.Select && s.Locking == history.NoLock
}

// committing returns when a transaction was told to commit, as far as it is known; 0: it is not.
func committing(t *history.Txn) int64 {
	if n := len(t.Stmts); n > 0 && t.Stmts[n-1].Kind == history.Commit {
		return t.Stmts[n-1].Start
	}
	return 0
}

// madeToMatch returns the first version that matches and cannot be seen at a moment, where it is known that its writer
// made the row match. Dirty says that versions can be seen that are not committed.
func (m *missable) madeToMatch(at int64, dirty bool) (place int, ok bool) {
	for k, place := range m.matching {
		w := &m.chain.writes[place]
		switch {
		case !dirty && w.commit <= at, dirty && w.start <= at:
		case place == 0 && !w.born, k > 0 && m.matching[k-1] == place-1: // it may have matched before
		default:
			return place, true
		}
	}
	return 0, false
}
