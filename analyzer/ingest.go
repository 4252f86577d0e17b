package analyzer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// add takes a transaction into the store.
func (s *store) add(t *history.Txn) error {
	if len(s.txns) == maxIndex {
		return fmt.Errorf("more than %d transactions", maxIndex)
	}
	r, err := s.run(t.ID.Run())
	if err != nil {
		return err
	}
	if t.ID.Seq() == 0 {
		return errors.New("the counter in its id is zero")
	}
	i := int32(len(s.txns))
	record := txn{
		seq: t.ID.Seq(), run: r, level: t.Level, status: t.Status, start: t.Start, end: t.End,
		access: uint32(len(s.accesses)), stmt: uint32(len(s.stmts)), fixed: math.MaxUint32,
		installed: t.Status == history.Committed, staleRead: t.StaleRead, fresh: t.Fresh, conflicts: t.WriteConflicts(),
		request: hashOf(t.ID.Run(), requestOf(t)),
	}
	if err := s.observe(t, i, r); err != nil {
		return err
	}
	if !s.runs[r].place(t.ID.Seq(), i) {
		return errors.New("it was added before")
	}
	s.runs[r].analysed = true
	s.noteRebirths(t, i, r)
	if record.session, err = s.session(t.ID.Run(), t.Session); err != nil {
		return err
	}
	again := beganAgain(t, s.runs[r].info.Server.Engine.Family())
	for j := range t.Stmts {
		record.last = max(record.last, t.Stmts[j].Num)
		record.ending = max(record.ending, t.Stmts[j].Start)
		if record.snapshot == 0 && t.Stmts[j].Num >= again && takesSnapshot(&t.Stmts[j], s.shapes[j], t.ID, s.runs[r].info.Server.Engine) {
			record.snapshot = t.Stmts[j].End
		}
		if record.unseenFrom == 0 && mayHaveWritten(&t.Stmts[j], s.shapes[j]) {
			record.unseenFrom = t.Stmts[j].Num
		}
		if record.fixed == math.MaxUint32 && mayFix(&t.Stmts[j], s.shapes[j]) {
			record.fixed = t.Stmts[j].Num
		}
	}
	s.findInternalReads(tag{seq: record.seq, run: r}, int32(record.access), record.unseenFrom)
	if record.program, err = s.keepShapes(t); err != nil {
		return err
	}
	s.txns = append(foreseen(s, s.txns, 1), record)
	return s.append()
}

// beganAgain returns the number of the last ROLLBACK TO SAVEPOINT by which a transaction of the MySQL family's may have
// begun again, 0 for none: the server rolls an engine back as a whole that had no part in the transaction when the
// savepoint was set. Its locks and its snapshot are gone then.
func beganAgain(t *history.Txn, family dbms.Family) (again uint32) {
	if family != dbms.MySQLFamily {
		return 0
	}
	early, touched := false, false
	for i := range t.Stmts {
		s := &t.Stmts[i]
		switch {
		case s.Kind == history.Savepoint && !touched:
			early = true
		case s.Observation != history.Nothing:
			touched = true
		case s.Kind == history.Rollback && early && i < len(t.Stmts)-1:
			again = s.Num
		}
	}
	return again
}

// mayFix reports whether a statement may take a snapshot for its transaction, where a plain SELECT does and a locking
// read or a write does not. Of subqueries and functions it is not known.
func mayFix(s *history.Stmt, sh shape) bool {
	switch s.Kind {
	case history.Commit, history.Rollback, history.Savepoint, history.Release, history.Set,
		history.Lock: // it takes none (PostgreSQL's PlannedStmtRequiresSnapshot)
		return false
	case history.Begin:
		return strings.Contains(strings.ToUpper(s.Shape), "SNAPSHOT")
	case history.Select:
		return s.Locking == history.NoLock || sh.nested || sh.calls
	case history.Insert, history.Update, history.Delete, history.Replace:
		return s.Observation != history.Exact || sh.selects || sh.calls
	}
	return true
}

// keepShapes keeps the shapes of the transaction's statements, and returns its program.
func (s *store) keepShapes(t *history.Txn) (int32, error) {
	if len(s.stmts)+maxStmts(t) > maxIndex {
		return 0, fmt.Errorf("more than %d statements", maxIndex)
	}
	from := len(s.stmts)
	for j := range t.Stmts {
		num := int(t.Stmts[j].Num)
		if num == 0 || num > maxStmts(t) {
			continue // out of order: the shape is not kept
		}
		for len(s.stmts) < from+num {
			s.stmts = append(foreseen(s, s.stmts, 1), none)
		}
		s.stmts[from+num-1] = s.shapes[j].number
	}
	return s.programs.of(t, s.shapes), nil
}

// maxStmts bounds the statement numbers that are expected of a transaction: they are its statements'
// places in it.
func maxStmts(t *history.Txn) int { return 2*len(t.Stmts) + 16 }

// observe puts the accesses of the transaction, of run r, into scratch, tidied, and its statements' shapes into shapes.
func (s *store) observe(t *history.Txn, i int32, r uint16) error {
	if err := s.wantRows(t); err != nil {
		return err
	}
	s.scratch = slices.Grow(s.scratch[:0], len(s.rows.wanted))
	s.shapes = s.shapes[:0]
	family := s.runs[r].info.Server.Engine.Family()
	// There an UPDATE reads other tables, but writes every row that it matches.
	everyRow := family == dbms.PostgreSQLFamily
	for j := range t.Stmts {
		stmt := &t.Stmts[j]
		s.shapes = append(s.shapes, s.programs.shape(family, stmt.Shape, j))
		if stmt.Void && stmt.Kind != history.Select {
			own, err := s.tag(history.Tag{Txn: t.ID, Stmt: stmt.Num})
			if err != nil {
				return err
			}
			s.voids[own] = true
		}
		for k := range stmt.Accesses {
			s.scratch = s.scratch[:len(s.scratch)+1]
			o := &s.scratch[len(s.scratch)-1]
			if err := s.observeAccess(o, stmt, &stmt.Accesses[k]); err != nil {
				return fmt.Errorf("statement %d: %w", stmt.Num, err)
			}
			if o.txn = i; everyRow {
				o.flags &^= equal
			}
		}
	}
	if again := beganAgain(t, family); again > 0 {
		for k := range s.scratch {
			if s.scratch[k].stmt < again {
				s.scratch[k].flags = s.scratch[k].flags&^locked | begunAgain
			}
		}
	}
	known := len(s.twins)
	s.tidy()
	if t.Level < history.ReadCommitted || !s.runs[r].info.PutBack {
		s.twins = s.twins[:known] // where its rows are met one by one
	}
	return nil
}

// wantRows looks for the rows of all accesses of a transaction.
func (s *store) wantRows(t *history.Txn) error {
	s.rows.wanted = s.rows.wanted[:0]
	for j := range t.Stmts {
		for k := range t.Stmts[j].Accesses {
			if err := s.rows.want(t.Stmts[j].Accesses[k].Row); err != nil {
				return fmt.Errorf("statement %d: %w", t.Stmts[j].Num, err)
			}
		}
	}
	s.rows.fetch()
	return nil
}

// observeAccess makes the last access in scratch of one of a statement.
func (s *store) observeAccess(o *incomingAccess, stmt *history.Stmt, a *history.Access) (err error) {
	if o.row, err = s.rows.numberOf(&s.rows.wanted[len(s.scratch)-1]); err != nil {
		return err
	}
	version, err := s.tag(a.Version)
	if err != nil {
		return err
	}
	o.seq, o.tagStmt, o.tagRun = version.seq, version.stmt, version.run
	o.stmt, o.op, o.flags, o.prior = stmt.Num, a.Op, 0, a.Prior
	switch {
	case a.Op != history.Read:
	case a.Absent && a.Wide:
		o.op = notFoundWide
	case a.Absent:
		o.op = notFound
	case a.Gone:
		o.op = gone
	}
	if a.Inexact {
		o.flags |= inexact
	}
	if stmt.Void {
		o.flags |= void
	}
	if !o.write() && !o.unfound() && stmt.Kind == history.Update && !a.Subquery {
		o.flags |= current | equal
	}
	// What any other statement than a SELECT reads is current, as INSERT ... SELECT of InnoDB's, or may be.
	if o.write() || stmt.Locking != history.NoLock || stmt.Kind != history.Select {
		o.flags |= current
	}
	// A locking clause does not reach into derived tables and subqueries, so where there is one, a
	// row may have been read without a lock. The reads of INSERT ... SELECT take none at READ COMMITTED,
	// and a statement that failed may have given its locks back.
	nested := s.shapes[len(s.shapes)-1].nested
	if !o.write() && stmt.Locking != history.NoLock && stmt.Kind == history.Select && !stmt.Void && !nested {
		o.flags |= locked
	}
	if stmt.Locking == history.LockShare {
		o.flags |= shared
	}
	return nil
}

// tidy sorts the accesses of a large transaction, makes one of what one statement wrote to one row
// twice, and marks the versions that are not their transaction's last.
func (s *store) tidy() {
	s.large = len(s.scratch) > fewAccesses
	if s.large || !s.sorted() {
		slices.SortStableFunc(s.scratch, func(a, b incomingAccess) int { return s.byStmtAndRow(a.access, b.access) })
	}
	kept := 0
	for i := range s.scratch {
		if s.joined(s.scratch[:kept], &s.scratch[i]) {
			continue
		}
		if kept < i {
			s.scratch[kept] = s.scratch[i]
		}
		kept++
	}
	s.scratch = s.scratch[:kept]
	s.markIntermediate()
}

// sorted reports whether the accesses are in order of their statements.
func (s *store) sorted() bool {
	for i := range len(s.scratch) - 1 {
		if s.scratch[i].stmt > s.scratch[i+1].stmt {
			return false
		}
	}
	return true
}

// joined reports whether o adds nothing to its statement's earlier accesses, or adds it to one of them.
func (s *store) joined(kept []incomingAccess, o *incomingAccess) bool {
	for i := len(kept) - 1; i >= 0 && kept[i].stmt == o.stmt; i-- {
		before := &kept[i]
		if before.row != o.row {
			if s.large {
				return false
			}
			continue
		}
		if before.write() && o.write() {
			before.join(o)
			return true
		}
		if before.access == o.access && len(o.prior) == 0 {
			return true // a join returned the row twice
		}
		if !before.is(current) && !o.is(current) && before.op == history.Read && o.op == history.Read {
			s.twins = append(s.twins, o.row)
		}
	}
	return false
}

// markIntermediate marks the writes that a later statement certainly followed with another.
func (s *store) markIntermediate() {
	if s.large {
		clear(s.later)
	}
	for i := len(s.scratch) - 1; i >= 0; i-- {
		o := &s.scratch[i]
		if !o.write() {
			continue
		}
		if s.writtenAfter(i) {
			o.flags |= intermediate
		}
		if s.large && o.certain() {
			s.later[o.row] = true
		}
	}
}

func (s *store) writtenAfter(i int) bool {
	row := s.scratch[i].row
	if s.large {
		return s.later[row]
	}
	for i++; i < len(s.scratch); i++ {
		if s.scratch[i].row == row && s.scratch[i].certain() {
			return true
		}
	}
	return false
}

// join makes o part of the write w of the same row by the same statement: one version, that
// replaced what w replaced and is what o left.
func (w *incomingAccess) join(o *incomingAccess) {
	w.flags |= o.flags & inexact
	switch {
	case o.op == history.DeleteRow:
		w.op = history.DeleteRow
	case w.op == history.DeleteRow:
		w.op = history.UpdateRow
	}
}

// Foresight begins with a sample of so many transactions, and makes a slice at most so many times as large at once:
// what is told of a recording may be wrong.
const (
	sample  = 1 << 10
	maxLeap = 8
)

// foreseen is grown for what transactions have so many of each: where it is known how many transactions there will be,
// it makes room for what all of them will have if the rest is as those up to now.
func foreseen[T any](s *store, of []T, n int) []T {
	if len(of)+n <= cap(of) {
		return of
	}
	if len(s.txns) < sample || len(s.txns) >= s.expected {
		return grown(of, n)
	}
	all := float64(len(of)) / float64(len(s.txns)) * float64(s.expected)
	const reserve = 1 + 1./64
	return slices.Grow(of, max(n, int(min(all*reserve, float64(maxLeap*len(of))))-len(of)))
}

// append moves scratch into the store.
func (s *store) append() error {
	if len(s.accesses)+len(s.scratch) > maxIndex {
		return fmt.Errorf("more than %d row accesses", maxIndex)
	}
	s.accesses = foreseen(s, s.accesses, len(s.scratch))
	for i := range s.scratch {
		o := &s.scratch[i]
		s.accesses = append(s.accesses, o.access)
		if len(o.prior) == 0 {
			continue
		}
		s.lists = append(s.lists, list{int32(len(s.accesses) - 1), uint64(len(s.tags)), uint32(len(o.prior))})
		for _, p := range o.prior {
			t, err := s.tag(p)
			if err != nil {
				return err
			}
			s.tags = append(s.tags, t)
		}
	}
	return nil
}

// takesSnapshot reports whether a statement of a transaction surely took the snapshot of it, where the transaction had
// none before and its level has one: it read a row of another's.
func takesSnapshot(s *history.Stmt, sh shape, id history.TxnID, engine dbms.Engine) bool {
	if s.Void || s.End <= 0 {
		return false
	}
	postgres := engine == dbms.PostgreSQL // where every statement that reads or writes takes it
	switch s.Kind {
	case history.Begin:
		return !postgres && strings.Contains(strings.ToUpper(s.Shape), "SNAPSHOT")
	case history.Select:
		if !postgres && (s.Locking != history.NoLock || sh.nested || sh.calls) {
			return false
		}
	case history.Insert, history.Update, history.Delete, history.Merge:
		if !postgres {
			return false
		}
	default:
		return false
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		if !a.Inexact && !a.Absent && !a.Gone && a.Version.Txn != id {
			return true
		}
	}
	return false
}
