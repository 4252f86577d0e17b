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
// the hand of somebody that nobody recorded. So is one that was sent before the reply where a write that was not observed
// exactly came between: it may have taken the row away, as REPLACE and a procedure do. Nothing else is claimed, so that
// every such dependency is true; one is missing where a version that was not tested, or one that does not match, stands between.
//
// A row that the transaction had found before, or that was there when it began, may be gone: then the statement saw the first
// version that may not match, or a later one, and depends on its writer (gone.go).
package predicate

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A Resolver adds to the statements of a history the rows that their predicates did not find. It sees all
// transactions twice, their versions known: first [Resolver.Collect], and after [Resolver.Settle] [Resolver.Resolve].
// It is for one goroutine until Settle has returned; then Resolve may be called from several.
type Resolver struct {
	matches   map[subject]map[history.VersionRef]bool
	matching  map[history.VersionRef][]subject // the same by version
	databases map[sessionKey]string
	snapshots map[history.Run]bool // whose serializable transactions read from a snapshot
	unsure    map[history.Run]*stretches

	wanted bool            // some run has predicates
	tables map[string]bool // that some predicate is over
	writes map[history.Row][]write
	rows   map[subject][]history.Row // with a version that matches
	chains map[history.Row][]write
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
	start    int64 // when the first of its statements was sent
	end      int64 // of the transaction
	ref      history.VersionRef
	born     bool // it replaced nothing, or a deletion
	deleted  bool
	certain  bool
}

// New gives a Resolver that knows nothing yet.
func New() *Resolver {
	return &Resolver{matches: make(map[subject]map[history.VersionRef]bool), matching: make(map[history.VersionRef][]subject),
		databases: make(map[sessionKey]string), snapshots: make(map[history.Run]bool), unsure: make(map[history.Run]*stretches), tables: make(map[string]bool), writes: make(map[history.Row][]write), rows: make(map[subject][]history.Row), chains: make(map[history.Row][]write)}
}

// Empty says that there are no predicates.
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

// AddRun takes in a run.
func (r *Resolver) AddRun(i history.Info) {
	r.snapshots[i.Run] = i.Server.Engine == "postgresql"
	r.wanted = r.wanted || i.Mode == "predicates"
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
			run := t.ID.Run()
			if r.unsure[run] == nil {
				r.unsure[run] = &stretches{}
			}
			r.unsure[run].add(s.Start, t.End)
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
	w := write{txn: t.ID, tag: history.Tag{Txn: t.ID, Stmt: s.Num}, replaced: a.Version, start: s.Start, end: t.End, ref: history.VersionRef{Txn: t.ID, Stmt: s.Num, Access: j},
		born: a.Op == history.InsertRow, deleted: a.Op == history.DeleteRow, certain: !a.Inexact && t.Status == history.Committed}
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
		of := make(map[subject]bool)
		for _, w := range writes {
			for _, k := range r.matching[w.ref] {
				of[k] = true
			}
		}
		if len(of) == 0 && !r.tables[row.Table] {
			continue
		}
		if chain := inOrder(writes); chain != nil {
			r.chains[row] = chain
			for k := range of {
				r.rows[k] = append(r.rows[k], row)
			}
		}
	}
	r.writes = nil
}

// inOrder gives the writes of a row each behind the one that it replaced; nil where they are no chain.
func inOrder(writes []write) []write {
	after := make(map[history.TxnID]int, len(writes)) // by the writer of the version that was replaced
	known := make(map[history.TxnID]bool, len(writes))
	for _, w := range writes {
		known[w.txn] = true
	}
	first := -1
	for i, w := range writes {
		switch {
		case !w.certain:
			return nil
		case known[w.replaced.Txn]:
			after[w.replaced.Txn] = i
		case first >= 0:
			return nil
		default:
			first = i
		}
	}
	if first < 0 || len(after) != len(writes)-1 {
		return nil
	}
	chain := []write{writes[first]}
	for len(chain) < len(writes) {
		i, ok := after[chain[len(chain)-1].txn]
		if !ok {
			return nil
		}
		chain = append(chain, writes[i])
	}
	return chain
}

// Resolve adds the rows that the predicates of a transaction's statements did not find: those that a later version lets
// match, and those that are gone.
func (r *Resolver) Resolve(t *history.Txn) {
	database := r.databases[sessionKey{t.ID.Run(), t.Session}]
	met := make(sightings)
	for i := range t.Stmts {
		s := &t.Stmts[i]
		if s.Void || s.Observation != history.Exact {
			continue
		}
		observed := s.Accesses
		for _, p := range s.Predicates {
			r.resolve(t, s, subject{t.ID.Run(), database, p}, met)
		}
		met.add(observed, s.Predicates)
	}
}

func (r *Resolver) resolve(t *history.Txn, s *history.Stmt, k subject, met sightings) {
	rows := r.rows[k]
	if len(rows) == 0 && len(met) == 0 {
		return
	}
	found := make(map[history.Row]bool, len(s.Accesses))
	for i := range s.Accesses {
		found[s.Accesses[i].Row] = true
	}
	var unfound []history.Access
	for _, row := range rows {
		if found[row] {
			continue
		}
		if v, ok := r.lastSeen(t, s, k, r.chains[row]); ok {
			unfound = append(unfound, history.Access{Row: row, Op: history.Read, Version: v, Absent: true})
		}
	}
	for row := range met.with(rows) {
		if found[row] || row.Table != k.of.Table {
			continue
		}
		if v, ok := r.firstSeen(t, s, k, r.chains[row], met[row]); ok {
			unfound = append(unfound, history.Access{Row: row, Op: history.Read, Version: v, Gone: true})
		}
	}
	slices.SortStableFunc(unfound, func(a, b history.Access) int {
		return cmp.Or(cmp.Compare(a.Row.Table, b.Row.Table), cmp.Compare(a.Row.ID, b.Row.ID))
	})
	s.Accesses = slices.Concat(s.Accesses, unfound)
}

// lastSeen gives the version of a row right below the first one that matches the predicate and that the statement
// cannot have seen, nor any after it; false where there is none.
func (r *Resolver) lastSeen(t *history.Txn, s *history.Stmt, k subject, chain []write) (history.Tag, bool) {
	newest := -1 // what was there before the first write may be what was seen
	for i := range chain {
		w := &chain[i]
		if w.txn == t.ID {
			return history.Tag{}, false
		}
		if w.start <= s.End && !r.matched(k, w) {
			newest = i
		}
	}
	for i := newest + 1; i < len(chain); i++ {
		if w := &chain[i]; r.matched(k, w) {
			removed := w.start <= s.End && r.unsure[t.ID.Run()].meet(w.start, s.End)
			return below(chain, i), !removed && w.end > r.snapshotFrom(t, s)
		}
	}
	return history.Tag{}, false
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

// below gives the version that was there before the i-th write of a row.
func below(chain []write, i int) history.Tag {
	if i == 0 {
		return chain[0].replaced
	}
	return chain[i-1].tag
}

// matched says that a version surely matches a predicate of a statement.
func (r *Resolver) matched(k subject, w *write) bool {
	return !w.deleted && r.matches[k][w.ref]
}
