// Package predicate finds the dependencies between a statement that chose rows by a condition and the writers of
// rows that it did not find: Adya's predicate anti-dependencies, phantoms among them.
//
// In mode predicates a write shows the values that it leaves ([history.Stmt].Images), and a statement tells by which
// condition it chose its rows ([history.Stmt].Predicates). While they run, a [Matcher] asks the server which of the
// versions match which predicates: over the values alone, on a connection of isotap's own, so that the client's
// transactions neither wait for it nor lock a row more. The thesis of ReplBug (5.5) reads the tables themselves
// before and after each write instead.
//
// What a statement saw of a row that it did not find is not known. But it was a version that does not match. A
// [Resolver] orders the versions of each row, leaves those out that match, and those that were written after the
// statement had its reply: of the rest, the newest is the last that it can have seen. If a later version matches, its
// writer comes after the statement: it overwrites the predicate (Adya's definition 12; thesis, definition 5.1).
// One that had committed before the statement's snapshot can have been taken is left out: the row was gone again, by
// the hand of somebody that nobody recorded. So is one that was sent before the reply where a write that was not
// observed exactly came between: it may have taken the row away, as REPLACE and a procedure do. Nothing else is
// claimed, so that every such dependency is true; one is missing where a version that was not tested, or one that does
// not match, stands between.
//
// A condition may be wider than what the statement hung on ([history.Predicate].Wide): what it did not find may match
// all the same. Then only the clock tells what it cannot have seen (wide.go).
//
// Nor is anything said of rows that were first written by transactions that began when this one had ended, as every row
// of the future is absent to every statement of the past; nor of those that two proxies wrote at the same time: each
// has a clock of its own.
//
// A row that the transaction had found before, or that was there when it began, may be gone: then the statement saw the
// first version that may not match, or a later one, and depends on its writer (gone.go).
package predicate

import (
	"cmp"
	"math"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A Resolver adds to the statements of a history the rows that their predicates did not find. It sees all
// transactions twice, their versions known: first [Resolver.Collect], and after [Resolver.Settle] [Resolver.Resolve].
// It is for one goroutine until Settle has returned; then Resolve may be called from several.
type Resolver struct {
	matches   map[subject]map[history.VersionRef]bool
	matching  map[history.VersionRef][]subject // the same by version
	databases map[sessionKey]string
	runs      map[history.Run]history.Info
	snapshots map[history.Run]bool // whose serializable transactions read from a snapshot
	stale     map[history.Run]bool // whose snapshots may be older than their transactions
	unsure    map[history.Run]*stretches

	wanted bool            // some run has predicates
	tables map[string]bool // that some predicate is over
	writes map[history.Row][]write
	rows   map[subject][]missable // with a version that matches
	chains map[history.Row]*chain
}

// A subject is a condition in a database, as a run has it.
type subject struct {
	run      history.Run
	database string
	of       history.Predicate
}

type sessionKey struct {
	run history.Run
	id  history.SessionID
}

// A write is what a transaction did to a row: its last version, over the one that it found.
type write struct {
	txn      history.TxnID
	tag      history.Tag
	replaced history.Tag
	began    int64 // when the transaction did
	start    int64 // when the first of its statements was sent
	done     int64 // when the last of them had its reply
	end      int64 // of the transaction
	commit   int64 // when it was told to commit, or later than start
	ref      history.VersionRef
	born     bool // it replaced nothing, or a deletion
	deleted  bool
	certain  bool
}

// New returns a Resolver that knows nothing yet.
func New() *Resolver {
	return &Resolver{matches: make(map[subject]map[history.VersionRef]bool),
		matching:  make(map[history.VersionRef][]subject),
		databases: make(map[sessionKey]string), runs: make(map[history.Run]history.Info),
		snapshots: make(map[history.Run]bool), stale: make(map[history.Run]bool), unsure: make(map[history.Run]*stretches), tables: make(map[string]bool),
		writes: make(map[history.Row][]write), rows: make(map[subject][]missable), chains: make(map[history.Row]*chain)}
}

// Empty reports whether there are no predicates.
func (r *Resolver) Empty() bool { return !r.wanted && len(r.matching) == 0 }

// AddMatches takes in what a run's Matcher found out, before the first Collect.
func (r *Resolver) AddMatches(run history.Run, m history.Matches) {
	k := subject{run, m.Database, m.Predicate}
	for _, v := range m.Versions {
		if r.matches[k] == nil {
			r.matches[k] = make(map[history.VersionRef]bool)
		}
		if !r.matches[k][v] {
			r.matches[k][v] = true
			r.matching[v] = append(r.matching[v], k)
		}
	}
}

// AddRun takes in a run, or more of what is known of it; both before [Resolver.Settle].
func (r *Resolver) AddRun(i history.Info) {
	r.runs[i.Run] = i
	r.snapshots[i.Run] = i.Server.Engine == dbms.PostgreSQL
	r.stale[i.Run] = i.Server.Engine == dbms.TiDB
	r.wanted = r.wanted || i.Mode == "predicates"
	for _, g := range i.Gaps {
		r.unknown(i.Run, g.From, g.To)
	}
	if i.Damaged {
		r.unknown(i.Run, math.MinInt64, math.MaxInt64)
	}
}

// unknown notes that rows may have been taken away in a stretch of a run without a trace.
func (r *Resolver) unknown(run history.Run, from, to int64) {
	if r.unsure[run] == nil {
		r.unsure[run] = &stretches{}
	}
	r.unsure[run].add(from, to)
}

// AddSession takes in a session.
func (r *Resolver) AddSession(s history.Session) {
	r.databases[sessionKey{s.Run, s.ID}] = s.Database
}

// Collect takes in what a transaction wrote, and over which tables it had predicates.
func (r *Resolver) Collect(t *history.Txn) error {
	for i := range t.Stmts {
		for j := range t.Stmts[i].Predicates {
			r.tables[t.Stmts[i].Predicates[j].Table] = true
		}
	}
	if t.Status == history.Aborted {
		return nil
	}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if mayRemove(s) {
			r.unknown(t.ID.Run(), s.Start, t.End)
		}
		for j := range s.Accesses {
			if a := &s.Accesses[j]; a.Op != history.Read && !s.Void {
				r.collect(t, s, j)
			}
		}
	}
	return nil
}

func (r *Resolver) collect(t *history.Txn, s *history.Stmt, j int) {
	a := &s.Accesses[j]
	ref := history.VersionRef{Txn: t.ID, Stmt: s.Num, Access: j}
	switch {
	case s.Unseen:
		ref.Stmt = 0 // of what the log tells no image was tested
	case s.Recorded != 0:
		ref.Stmt = s.Recorded
	}
	w := write{txn: t.ID, began: t.Start, tag: history.Tag{Txn: t.ID, Stmt: s.Num}, replaced: a.Version,
		start: s.Start, done: s.End, end: t.End, commit: max(s.Start, committing(t)), ref: ref,
		born: a.Op == history.InsertRow, deleted: a.Op == history.DeleteRow, certain: !a.Inexact &&
			t.Status == history.Committed}
	all := r.writes[a.Row]
	if n := len(all); n > 0 && all[n-1].txn == t.ID {
		last := &all[n-1]
		w.replaced, w.start, w.born, w.certain = last.replaced, last.start, last.born, w.certain && last.certain
		*last = w
		return
	}
	r.writes[a.Row] = append(all, w)
}

// Settle orders the versions of the rows that some predicate may have missed or not found any more.
func (r *Resolver) Settle() {
	for _, s := range r.unsure {
		s.settle()
	}
	for row, writes := range r.writes {
		if !r.tables[row.Table] && !slices.ContainsFunc(writes,
			func(w write) bool { return len(r.matching[w.ref]) > 0 }) {
			continue
		}
		c := newChain(writes)
		if c == nil || r.concurrent(c) {
			continue
		}
		r.chains[row] = c
		for k, places := range r.matchingIn(c) {
			r.rows[k] = append(r.rows[k], missable{row, c, places})
		}
	}
	r.writes = nil
}

// concurrent reports whether runs wrote a row at the same time, so that no clock tells in which order.
func (r *Resolver) concurrent(c *chain) bool {
	for i := 1; i < len(c.writes); i++ {
		a, b := r.runs[c.writes[i-1].txn.Run()], r.runs[c.writes[i].txn.Run()]
		if a.Run != b.Run && overlap(&a, &b) {
			return true
		}
	}
	return false
}

func overlap(a, b *history.Info) bool {
	return (a.Ended.IsZero() || b.Started.Before(a.Ended)) && (b.Ended.IsZero() || a.Started.Before(b.Ended))
}

// matchingIn returns for each predicate the places of the versions of a chain that surely match it, in order.
func (r *Resolver) matchingIn(c *chain) map[subject][]int {
	of := make(map[subject][]int)
	for i := range c.writes {
		w := &c.writes[i]
		for _, k := range r.matching[w.ref] {
			places := of[k]
			if !w.deleted {
				places = append(places, i)
			}
			of[k] = places
		}
	}
	return of
}

// Resolve adds the rows that the predicates of a transaction's statements did not find: those that a later version lets
// match, and those that are gone.
func (r *Resolver) Resolve(t *history.Txn) {
	database := r.databases[sessionKey{t.ID.Run(), t.Session}]
	found, written, snapshot := make(foundVersions), writtenBy(t), r.snapshotOf(t)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if s.Void {
			continue
		}
		observed := s.Accesses
		if s.Observation != history.Exact {
			r.resolveWide(t, i, database, written)
			continue
		}
		for _, p := range s.Predicates {
			if p.Wide {
				continue
			}
			r.resolve(t, s, subject{t.ID.Run(), database, p.Condition()}, found, snapshot, written)
		}
		r.resolveWide(t, i, database, written)
		found.add(observed, s.Predicates)
	}
}

// firstWrites are the numbers of the statements that wrote a transaction's rows first.
type firstWrites map[history.Row]uint32

// writtenBy returns those of a transaction, of rows too that a savepoint undid: until then it saw its own version.
func writtenBy(t *history.Txn) firstWrites {
	written := make(firstWrites)
	for i := range t.Stmts {
		for j := range t.Stmts[i].Accesses {
			a := &t.Stmts[i].Accesses[j]
			if _, before := written[a.Row]; !before && a.Op != history.Read {
				written[a.Row] = t.Stmts[i].Num
			}
		}
	}
	return written
}

// by reports whether a row was written by a statement, or by one before it.
func (f firstWrites) by(s *history.Stmt, row history.Row) bool {
	first, ok := f[row]
	return ok && first <= s.Num
}

// resolve adds what a predicate of a statement did not find. Of rows that the transaction had written itself nothing is
// said.
func (r *Resolver) resolve(t *history.Txn, s *history.Stmt, k subject, met, snapshot foundVersions, written firstWrites) {
	rows := near(r.rows[k], t)
	if len(rows) == 0 && len(met) == 0 {
		return
	}
	found := make(map[history.Row]bool, len(s.Accesses))
	for i := range s.Accesses {
		found[s.Accesses[i].Row] = true
	}
	var unfound []history.Access
	for i := range rows {
		row := rows[i].row
		if found[row] || written.by(s, row) {
			continue
		}
		if v, ok := r.lastSeen(t, s, &rows[i]); ok {
			unfound = append(unfound, history.Access{Row: row, Op: history.Read, Version: v, Absent: true})
		}
	}
	matches := r.matches[k]
	for row := range met.with(rows) {
		before, seen := met[row]
		if !seen && waits(s) {
			before, seen = snapshot[row]
		}
		if found[row] || written.by(s, row) || row.Table != k.of.Table {
			continue
		}
		if v, ok := r.firstSeen(t, s, &search{k, matches, r.chains[row], before, seen}); ok {
			unfound = append(unfound, history.Access{Row: row, Op: history.Read, Version: v, Gone: true})
		}
	}
	slices.SortStableFunc(unfound, byRow)
	s.Accesses = slices.Concat(s.Accesses, unfound)
}

func byRow(a, b history.Access) int {
	return cmp.Or(cmp.Compare(a.Row.Table, b.Row.Table), cmp.Compare(a.Row.ID, b.Row.ID))
}

// lastSeen returns the version of a row right below the first one that matches the predicate and that the statement
// cannot have seen, nor any after it; false where there is none.
func (r *Resolver) lastSeen(t *history.Txn, s *history.Stmt, m *missable) (history.Tag, bool) {
	place, ok := m.overwriter(s.End, r.snapshotFrom(t, s))
	if !ok {
		return history.Tag{}, false
	}
	w := &m.chain.writes[place]
	if w.txn == t.ID {
		return history.Tag{}, false // it made the row match itself, later on
	}
	if w.done < s.Start && r.waitsForWriters(t, s) {
		return history.Tag{}, false // it has seen that version, and somebody has taken the row away since
	}
	removed := w.start <= s.End && r.unsure[t.ID.Run()].overlap(w.start, s.End)
	return m.chain.below(place), !removed
}

// waitsForWriters reports whether a statement has waited for everybody who had written a row that it looked for before
// it was sent: it locks, on InnoDB. Below REPEATABLE READ an UPDATE passes over rows that are not committed yet.
func (r *Resolver) waitsForWriters(t *history.Txn, s *history.Stmt) bool {
	return !r.snapshots[t.ID.Run()] && !r.stale[t.ID.Run()] && waits(s) &&
		(t.Level == history.RepeatableRead || t.Level == history.Serializable)
}

// snapshotFrom is a moment before which a statement's snapshot was not taken. Who had committed by then is seen: where
// the statement did not find the row all the same, somebody that nobody recorded has deleted or changed it since.
func (r *Resolver) snapshotFrom(t *history.Txn, s *history.Stmt) int64 {
	ofTxn := t.Level == history.RepeatableRead || t.Level == history.Serializable
	if !r.snapshots[t.ID.Run()] { // InnoDB's reads that lock are current
		ofTxn = t.Level == history.RepeatableRead && s.Kind == history.Select && s.Locking == history.NoLock
	}
	if ofTxn {
		return t.Start
	}
	return s.Start
}
