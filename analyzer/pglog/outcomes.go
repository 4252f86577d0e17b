package pglog

import "github.com/isotap/isotap/history"

// outcome returns how a recorded transaction ended that the proxy knows no end of, by the one of the log under whose
// id all of its writes are; Indeterminate where that is not known either. What a savepoint took back has ids of its own
// in the log: there, and where a deletion does not tell its id, an end other than COMMIT says nothing of the whole.
func (r *Resolver) outcome(x *run, t *history.Txn) (history.Status, *logged) {
	var of *logged
	nested := false
	for i := range t.Stmts {
		s := &t.Stmts[i]
		nested = nested || s.Kind == history.Savepoint
		if s.Kind == history.Call { // it may have ended the transaction, and what came behind it is another
			return history.Indeterminate, nil
		}
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			if s.Accesses[j].Op == history.Read || s.Void {
				continue
			}
			l, ok := r.byXID[xidKey{x.server.number, s.TupleIDs[j].NewXID}]
			if !ok || s.TupleIDs[j].NewXID == 0 || of != nil && of != &r.logged[l] {
				return history.Indeterminate, nil
			}
			of = &r.logged[l]
		}
	}
	switch {
	case of == nil || of.owner != t.ID:
		return history.Indeterminate, nil
	case of.committed:
		return history.Committed, of
	case nested:
		return history.Indeterminate, nil
	}
	return history.Aborted, of
}

// An end is how a recorded transaction ended, and when it had.
type end struct {
	status history.Status
	at     int64
}

// observeEnd takes in how a transaction ended that the proxy knows no end of: one whose COMMIT was not answered, say.
func (r *Resolver) observeEnd(x *run, t *history.Txn) {
	if t.Status != history.Indeterminate {
		return
	}
	if status, l := r.outcome(x, t); status != history.Indeterminate {
		r.ends[t.ID] = end{status, max(t.End, l.to)}
		r.stats.Ends++
	}
}
