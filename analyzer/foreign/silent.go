package foreign

import "github.com/isotap/isotap/history"

// A silentChange is of rows of a table that the log does not name: MariaDB's does not have what a foreign key's action
// did. Nor does that leave a tag.
type silentChange struct {
	run   int   // of runs
	place int   // of the transaction in the log
	from  int64 // nobody could see it before
}

// place takes note of where a transaction stands in the log, as far as silent changes make that matter.
func (r *Resolver) place(i int, id history.TxnID) {
	if len(r.silent) == 0 {
		return
	}
	x := &r.logged[i]
	r.places[id] = i
	for _, table := range x.silent {
		r.silent[table] = append(r.silent[table], silentChange{x.run, i, x.from})
	}
	if len(x.silent) > 0 {
		r.stats.Silent++
	}
}

// mayHaveChanged reports whether one of a table's silent changes may stand between the version that an access is of
// and what the statement saw. It does not where the version came later in the log: the row's writers waited for each
// other.
func (r *Resolver) mayHaveChanged(changes []silentChange, v *views, s *history.Stmt, a *history.Access) bool {
	if a.Version.Txn == v.txn.ID {
		return false // the row was locked since
	}
	_, to, committed := v.of(s, a)
	place, known := r.places[a.Version.Txn]
	for _, c := range changes {
		if !(known && place >= c.place) && !(committed && r.runs[c.run].Run == v.txn.ID.Run() && c.from >= to) {
			return true
		}
	}
	return false
}
