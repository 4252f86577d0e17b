// Package foreign makes versions and transactions of what the binary log of a server of the MySQL family says was
// written without isotap: by somebody past it, by a trigger, a procedure or a cascade. Such a write leaves isotap_wlist
// as it was, so that a row is another one under the tag of the version before.
//
// A row's writes stand in the log in the order in which they were made, whoever made them. Where one left the tag as it
// was, it gets one of its own, and whoever replaced that tag replaced it. It is of the transaction that wrote beside it
// under isotap's tags, or else a transaction of its own, past isotap; or of unknown origin, where a statement of
// isotap's clients that was not observed may have made it.
//
// Which of several versions under one tag a statement read, only the clock tells: it did not read one that nobody could
// see before the statement had ended, nor one whose successor everybody could see when its snapshot was taken. What
// remains open is a read of unknown origin. Nothing is guessed, and what was observed under tags stays.
//
// foreign.go takes in the log and the transactions, times.go bounds when those of the log could be seen, chain.go keeps
// a row's versions, past.go makes the transactions, and resolve.go names the versions in those that isotap recorded.
package foreign

import (
	"slices"

	"github.com/isotap/isotap/analyzer/unseen"
	"github.com/isotap/isotap/history"
)

// A Resolver knows the writes of a log that left no tag. First it is given all runs ([Resolver.AddRun]) and their log
// ([Resolver.Note]); where that is of use ([Resolver.Empty]) the recorded transactions ([Resolver.Collect]), and the
// log once more ([Resolver.Add]). [Resolver.Settle] then has it know. It may be read from several goroutines after
// that.
type Resolver struct {
	runs   []history.Info
	numOf  map[history.Run]int
	chains map[history.Row]*chain
	// deletions are, of rows of which the log has nothing but that they were deleted, how often that was, less those of
	// recorded transactions. What remains becomes chains.
	deletions map[history.Row]int
	// deleted are the statements of recorded transactions that deleted rows of chains and of deletions.
	deleted map[history.Row][]history.Tag
	// unobserved are the statements of recorded transactions that may have written unseen, by their numbers.
	unobserved map[history.TxnID][]uint32
	// recorded are the times of the transactions that the log is held against.
	recorded map[history.TxnID]times
	unseen   unseen.Writers
	// torn are the rows whose versions are in no order, once it has settled.
	torn   map[history.Row]bool
	logged []loggedTxn
	added  map[logPlace]bool
	// found are the recorded transactions that the log has had.
	found map[history.TxnID]bool
	// silent are the tables of which the log says that somebody past isotap changed rows, and not which. Places are
	// those of transactions in the log, where there are such tables.
	silent map[string][]silentChange
	places map[history.TxnID]int
	// effects are the writes of recorded statements that the log alone knows.
	effects map[history.TxnID][]effect
	past    []*history.Txn
	unknown uint32 // transactions of the log that may be recorded ones
	stats   Stats
}

// Stats count what the logs told.
type Stats struct {
	Txns    int // of the log, that committed
	Effects int // writes of recorded transactions that the proxy did not see
	Silent  int // transactions past isotap that changed rows of which the log does not say which
}

// A logPlace names a transaction of a log: those of two servers differ in what they wrote.
type logPlace struct {
	file     string
	position uint64
	row      history.Row
}

// A loggedTxn is a transaction of the log that wrote rows of chains.
type loggedTxn struct {
	run    int           // of runs
	number uint32        // in the recording of that run's log
	owner  history.TxnID // zero: nobody's that isotap recorded
	tagged bool          // it left a tag of its owner's
	from   int64
	to     int64
	seen   int64 // 0: not known
	writes []history.LoggedWrite
	tags   []history.Tag // of the writes; initial: it is not known
	silent []string      // the tables that it changed rows of without a trace of which
}

// An effect is a write that a statement of a recorded transaction had without leaving its tag.
type effect struct {
	stmt    uint32
	row     history.Row
	op      history.Op
	version history.Tag
}

// New returns a resolver that knows nothing.
func New() *Resolver {
	return &Resolver{numOf: make(map[history.Run]int), chains: make(map[history.Row]*chain),
		deletions: make(map[history.Row]int), deleted: make(map[history.Row][]history.Tag),
		unobserved: make(map[history.TxnID][]uint32), recorded: make(map[history.TxnID]times),
		torn: make(map[history.Row]bool), silent: make(map[string][]silentChange), places: make(map[history.TxnID]int),
		added: make(map[logPlace]bool), found: make(map[history.TxnID]bool), effects: make(map[history.TxnID][]effect)}
}

// AddRun adds a run whose log was read.
func (r *Resolver) AddRun(info history.Info) {
	r.numOf[info.Run] = len(r.runs)
	r.runs = append(r.runs, info)
}

// Note takes note of the rows that a transaction of the log wrote without a tag.
func (r *Resolver) Note(t *history.LoggedTxn) {
	if t.Status != history.Committed {
		return
	}
	r.stats.Txns++
	for _, table := range t.Unlogged {
		r.silent[table] = nil
	}
	for i := range t.Writes {
		switch w := &t.Writes[i]; {
		case r.chains[w.Row] != nil:
		case w.Op == history.DeleteRow:
			r.deletions[w.Row]++
		case untagged(w):
			r.chains[w.Row] = &chain{}
			delete(r.deletions, w.Row)
		}
	}
}

// untagged reports whether a write left no tag. A deletion never does.
func untagged(w *history.LoggedWrite) bool {
	switch w.Op {
	case history.InsertRow:
		return w.New.Initial()
	case history.UpdateRow:
		return w.Old == w.New
	}
	return true
}

// Empty reports whether every write of the log left its tag, and no row was deleted.
func (r *Resolver) Empty() bool {
	return len(r.chains) == 0 && len(r.deletions) == 0 && len(r.silent) == 0
}

// met reports whether the log wrote a row without a tag.
func (r *Resolver) met(row history.Row) bool {
	_, deleted := r.deletions[row]
	return deleted || r.chains[row] != nil
}

// foundDeletions makes chains of the rows that the log alone knows somebody to have deleted.
func (r *Resolver) foundDeletions() {
	for row, n := range r.deletions {
		if n > 0 {
			r.chains[row] = &chain{}
		}
	}
	r.deletions = nil
}

// Collect takes in a recorded transaction.
func (r *Resolver) Collect(t *history.Txn) error {
	if t.Status == history.Aborted {
		return nil
	}
	r.recorded[t.ID] = timesOf(t)
	if slices.ContainsFunc(t.Stmts, mayWriteUnseen) {
		r.unseen.Add(t)
	}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if mayWriteUnseen(*s) && !s.Void {
			r.unobserved[t.ID] = append(r.unobserved[t.ID], s.Num)
		}
		for j := range s.Accesses {
			if a := &s.Accesses[j]; a.Op == history.DeleteRow && !s.Void && r.met(a.Row) {
				r.delete(t, s, a)
			}
		}
	}
	return nil
}

// delete takes in that a statement of a recorded transaction deleted a row, or may have.
func (r *Resolver) delete(t *history.Txn, s *history.Stmt, a *history.Access) {
	r.deleted[a.Row] = append(r.deleted[a.Row], history.Tag{Txn: t.ID, Stmt: s.Num})
	if n, ok := r.deletions[a.Row]; ok && !a.Inexact && t.Status == history.Committed {
		r.deletions[a.Row] = n - 1
	}
}

// mayWriteUnseen reports whether a statement may have written rows that are not among its accesses.
func mayWriteUnseen(s history.Stmt) bool {
	switch s.Observation {
	case history.Nothing, history.Exact:
		return false
	}
	return s.Kind != history.Select || s.Observation == history.Opaque && !s.Reason.TablesKnown()
}

// Add takes in a transaction of a run's log, in the log's order.
func (r *Resolver) Add(run history.Run, t *history.LoggedTxn) {
	if t.Status != history.Committed || len(t.Writes)+len(t.Unlogged) == 0 {
		return
	}
	r.foundDeletions()
	place := logPlace{file: t.File, position: t.Position}
	if len(t.Writes) > 0 {
		place.row = t.Writes[0].Row
	}
	if r.added[place] {
		return // two proxies read one log
	}
	r.added[place] = true
	x := loggedTxn{run: r.numOf[run], number: t.Number, from: t.From, to: t.To, seen: t.Seen, owner: r.owner(run, t)}
	r.found[x.owner] = true
	for i, w := range t.Writes {
		x.tagged = x.tagged || x.owner != 0 && !untagged(&w) && w.New.Txn == x.owner
		if r.chains[w.Row] != nil {
			x.writes = append(x.writes, w)
			x.tags = append(x.tags, r.tagOf(t.Writes, i, x.owner))
		}
	}
	if x.owner == 0 {
		x.silent = t.Unlogged
	}
	if len(x.writes)+len(x.silent) > 0 || x.owner != 0 {
		r.logged = append(r.logged, x)
	}
}

// owner returns the transaction whose tags a transaction of the log left, or whose deletions it has; zero for none.
// Rows that somebody put back carry the tags of those who wrote them once. These had ended before, or the log has had
// them already; of theirs it has several only of who called a procedure that commits.
func (r *Resolver) owner(run history.Run, t *history.LoggedTxn) history.TxnID {
	for i := range t.Writes {
		w := &t.Writes[i]
		if id := w.New.Txn; !untagged(w) && r.mayBe(id, run, t) {
			return id
		}
		for _, deleted := range r.deleted[w.Row] {
			if w.Op == history.DeleteRow && r.mayBe(deleted.Txn, run, t) {
				return deleted.Txn
			}
		}
	}
	return 0
}

// mayBe reports whether a transaction of a run's log can be one that was recorded, which ended when that did. Of others
// nothing is known that speaks against it.
func (r *Resolver) mayBe(id history.TxnID, run history.Run, t *history.LoggedTxn) bool {
	if r.found[id] && len(r.unobserved[id]) == 0 {
		return false
	}
	at, known := r.recorded[id]
	return !known || id.Run() != run || at.began <= t.To && (at.answered == 0 || at.answered >= t.From)
}

// Settle orders the versions and makes the transactions past isotap.
func (r *Resolver) Settle() {
	owners := make(map[history.TxnID]bool)
	for i := range r.logged {
		owners[r.logged[i].owner] = true
	}
	r.unseen.Settle(owners)
	r.boundTimes()
	for i := range r.logged {
		r.place(i, r.write(&r.logged[i]))
	}
	for row, c := range r.chains {
		if c.broken || len(c.versions) == 0 {
			if c.broken {
				r.torn[row] = true
			}
			delete(r.chains, row)
			continue
		}
		if len(c.versions) > short {
			c.index()
		}
	}
	r.past = slices.DeleteFunc(r.past, func(t *history.Txn) bool { return !r.keepWhole(t) })
	r.added, r.found, r.deleted, r.unobserved, r.logged = nil, nil, nil, nil, nil
}

// keepWhole leaves out of a transaction past isotap the rows whose versions are in no order, and reports whether
// something remains.
func (r *Resolver) keepWhole(t *history.Txn) bool {
	kept := 0
	for i := range t.Stmts {
		s := &t.Stmts[i]
		s.Accesses = slices.DeleteFunc(s.Accesses, func(a history.Access) bool { return r.chains[a.Row] == nil })
		kept += len(s.Accesses)
	}
	return kept > 0
}

// Stats returns what the logs told, once it has settled or is empty.
func (r *Resolver) Stats() Stats { return r.stats }

// Past returns the transactions that somebody ran past isotap, as far as the log has them, with the runs that they are
// of: one for each run whose log has some. Each is a session of its own.
func (r *Resolver) Past() (runs []history.Info, sessions []history.Session, txns []*history.Txn) {
	for i, info := range r.runs {
		if slices.ContainsFunc(r.past, func(t *history.Txn) bool { return t.ID.Run() == pastRun(i) }) {
			runs = append(runs, history.Info{Run: pastRun(i), Started: info.Started, Ended: info.Ended,
				Mode: info.Mode, Server: info.Server})
		}
	}
	for _, t := range r.past {
		sessions = append(sessions, history.Session{Run: t.ID.Run(), ID: t.Session, Client: history.PastIsotap.String()})
	}
	return runs, sessions, r.past
}

func pastRun(i int) history.Run { return history.FirstPast + history.Run(i) }
