package foreign_test

import (
	"testing"

	"github.com/isotap/isotap/analyzer/foreign"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// past is a version that the n-th transaction of the log left, past isotap.
func past(n, stmt uint32) history.Tag {
	return history.Tag{Txn: history.MakeTxnID(history.FirstPast, n), Stmt: stmt}
}

func untagged(row history.Row, shown history.Tag) history.LoggedWrite {
	return history.LoggedWrite{Op: history.UpdateRow, Row: row, Old: shown, New: shown}
}

func inserted(row history.Row, tag history.Tag) history.LoggedWrite {
	return history.LoggedWrite{Op: history.InsertRow, Row: row, New: tag}
}

// seen returns the version that a recorded SELECT is of, beside a log and other transactions.
func seen(t *testing.T, log []*history.LoggedTxn, shown history.Tag, from, to int64, txns ...*history.Txn) history.Tag {
	t.Helper()
	read := one(77, history.Select, history.Read, shown, from, to)
	resolver(t, log, append(txns, read)...).Resolve(read)
	return read.Stmts[0].Accesses[0].Version
}

func isUnknown(t history.Tag) bool { return t.Txn.Run() == history.Unrecorded }

func TestWhatWasRolledBackWroteNothing(t *testing.T) {
	undone := logged(1, 10, 20, untagged(row, tag(1, 1)))
	undone.Status = history.Aborted
	if r := resolver(t, []*history.LoggedTxn{undone}); !r.Empty() || r.Stats().Txns > 0 {
		t.Errorf("%+v", r.Stats())
	}
}

func TestALogIsReadOnce(t *testing.T) {
	write := logged(1, 10, 20, untagged(row, tag(1, 1)))
	if _, _, all := resolver(t, []*history.LoggedTxn{write, write}).Past(); len(all) != 1 {
		t.Errorf("%d transactions past isotap", len(all))
	}
}

// TestDoubtfulDeletionsAreSomebodyElses has recorded transactions that did not delete the row that the log says was.
func TestDoubtfulDeletionsAreSomebodyElses(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 50, 60, deletion(row, tag(1, 1)))}
	indeterminate := one(2, history.Delete, history.DeleteRow, tag(1, 1), 61, 65)
	indeterminate.Status = history.Indeterminate
	void := one(3, history.Delete, history.DeleteRow, tag(1, 1), 45, 65)
	void.Stmts[0].Void = true
	for _, x := range []*history.Txn{indeterminate, void} {
		if _, _, all := resolver(t, log, x).Past(); len(all) != 1 {
			t.Errorf("%d transactions past isotap beside %v", len(all), x.ID)
		}
	}
}

func TestAnOpaqueSelectMayWrite(t *testing.T) {
	calls := one(2, history.Select, history.Read, tag(1, 1), 40, 70)
	calls.Stmts[0].Observation, calls.Stmts[0].Accesses = history.Opaque, nil
	if _, _, all := resolver(t, []*history.LoggedTxn{logged(1, 50, 60, untagged(row, tag(1, 1)))}, calls).Past(); len(all) > 0 {
		t.Errorf("past isotap %+v", all[0])
	}
}

// TestWhoIsInTheLogIsNobodyElse has a transaction with a CALL commit under its own tags while somebody writes past
// isotap.
func TestWhoIsInTheLogIsNobodyElse(t *testing.T) {
	call := one(2, history.Update, history.UpdateRow, tag(1, 1), 40, 70)
	call.Stmts = append(call.Stmts, history.Stmt{Num: 2, Kind: history.Call, Observation: history.Opaque, Start: 60, End: 70})
	log := []*history.LoggedTxn{logged(1, 50, 60, untagged(row, tag(1, 1))),
		logged(2, 61, 70, history.LoggedWrite{Op: history.UpdateRow, Row: other, New: tag(2, 1)})}
	if _, _, all := resolver(t, log, call).Past(); len(all) != 1 {
		t.Errorf("%d transactions past isotap", len(all))
	}
}

// TestWhoCallsAProcedureMayBeInTheLogTwice has a procedure commit, and begin another transaction.
func TestWhoCallsAProcedureMayBeInTheLogTwice(t *testing.T) {
	call := one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25)
	call.Stmts = append(call.Stmts, history.Stmt{Num: 2, Kind: history.Call, Observation: history.Opaque, Start: 10, End: 20},
		history.Stmt{Num: 3, Kind: history.Update, Observation: history.Exact, Start: 20, End: 25})
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged(2, 20, 25, untagged(other, tag(9, 1)),
		history.LoggedWrite{Op: history.UpdateRow, Row: row, Old: tag(1, 1), New: tag(1, 3)})}
	if _, _, all := resolver(t, log, call).Past(); len(all) != 0 {
		t.Errorf("past isotap %+v", all[0])
	}
}

func TestObservedWritesAreNoEffects(t *testing.T) {
	changed := logged(1, 10, 20, untagged(row, tag(1, 1)))
	t.Run("deletion", func(t *testing.T) {
		deletes := one(2, history.Delete, history.DeleteRow, tag(1, 1), 45, 65)
		r := resolver(t, []*history.LoggedTxn{changed, logged(2, 50, 60, deletion(row, tag(1, 1)))}, deletes)
		r.Resolve(deletes)
		if a := deletes.Stmts[0].Accesses; len(a) != 1 || a[0].Version != past(1, 1) || r.Stats().Effects > 0 {
			t.Errorf("it wrote %+v", a)
		}
	})
	t.Run("written twice by one statement", func(t *testing.T) {
		writes := one(2, history.Update, history.UpdateRow, tag(1, 1), 45, 65)
		r := resolver(t, []*history.LoggedTxn{changed, logged(2, 50, 60, history.LoggedWrite{Op: history.UpdateRow, Row: row,
			Old: tag(1, 1), New: tag(2, 1)}, untagged(row, tag(2, 1)))}, writes)
		r.Resolve(writes)
		if a := writes.Stmts[0].Accesses; len(a) != 1 || r.Stats().Effects > 0 {
			t.Errorf("it wrote %+v", a)
		}
	})
}

// TestRowsThatWerePutBackHaveAnotherWriter has somebody past isotap insert a row with the tag that it once had.
func TestRowsThatWerePutBackHaveAnotherWriter(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 50, 60, inserted(row, tag(1, 1))), logged(2, 80, 90, untagged(row, tag(1, 1)))}
	writer := one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25)
	if got := seen(t, log, tag(1, 1), 62, 70, writer); got != past(1, 1) {
		t.Errorf("it read %v", got)
	}
}

func TestStatementsPastIsotapWriteARowOnce(t *testing.T) {
	third := history.Row{Table: row.Table, ID: "t"}
	for name, writes := range map[string][]history.LoggedWrite{
		"a row twice":            {untagged(row, tag(1, 1)), untagged(row, tag(1, 1))},
		"updated and deleted":    {untagged(row, tag(1, 1)), deletion(third, tag(1, 1))},
		"rows of several tables": {untagged(row, tag(1, 1)), untagged(other, tag(1, 1))},
	} {
		_, _, all := resolver(t, []*history.LoggedTxn{logged(1, 50, 60, writes...)}).Past()
		if len(all) != 1 || len(all[0].Stmts) != 3 {
			t.Errorf("%s: past isotap %+v", name, all)
		}
	}
}

// TestRowsInNoOrderAreLeftOut has logs that lack something.
func TestRowsInNoOrderAreLeftOut(t *testing.T) {
	for name, second := range map[string]history.LoggedWrite{
		"made anew under its id":  inserted(row, history.Tag{}),
		"of another version":      untagged(row, tag(9, 1)),
		"of a row that was there": untagged(row, history.Tag{}),
	} {
		first := untagged(row, history.Tag{})
		if second.Old.Initial() {
			first = deletion(row, history.Tag{})
		}
		r := resolver(t, []*history.LoggedTxn{logged(1, 50, 60, first, untagged(other, tag(1, 1))), logged(2, 70, 80, second)})
		_, _, all := r.Past()
		if len(all) != 1 || len(all[0].Stmts) == 0 {
			t.Errorf("%s: past isotap %+v", name, all)
			continue
		}
		for _, s := range all[0].Stmts {
			for _, a := range s.Accesses {
				if a.Row != other {
					t.Errorf("%s: %v is written past isotap", name, a.Row)
				}
			}
		}
	}
}

func TestAnAbsentRowShowsNothing(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 50, 60, deletion(row, history.Tag{}))}
	if got := seen(t, log, history.Tag{}, 70, 80); !got.Initial() {
		t.Errorf("it read %v", got)
	}
}

// TestRecordedTransactionsTellWhenOthersCouldBeSeen has one commit beside a write past isotap of which the log's own
// times tell little.
func TestRecordedTransactionsTellWhenOthersCouldBeSeen(t *testing.T) {
	first := update(1, history.Tag{}, tag(1, 1), 10, 20)
	foreignWrite := func(position uint64) *history.LoggedTxn {
		x := logged(position, 0, 100, untagged(row, tag(1, 1)))
		x.Seen = 0
		return x
	}
	commits := func(position uint64, by history.Run) (*history.LoggedTxn, *history.Txn) {
		tag := history.Tag{Txn: history.MakeTxnID(by, 5), Stmt: 1}
		x := logged(position, 0, 100, history.LoggedWrite{Op: history.UpdateRow, Row: other, New: tag})
		x.Seen = 0
		txn := one(5, history.Update, history.UpdateRow, history.Tag{}, 60, 65)
		txn.ID, txn.Stmts[0].Accesses = tag.Txn, nil
		return x, txn
	}
	writer := one(1, history.Update, history.UpdateRow, history.Tag{}, 5, 25)
	before, committer := commits(2, run)
	if got := seen(t, []*history.LoggedTxn{first, before, foreignWrite(3)}, tag(1, 1), 30, 50, writer, committer); got != tag(1, 1) {
		t.Errorf("before the one before it was sent %v was read", got)
	}
	behind, committer := commits(3, run)
	if got := seen(t, []*history.LoggedTxn{first, foreignWrite(2), behind}, tag(1, 1), 70, 80, writer, committer); got != past(2, 1) {
		t.Errorf("when the one behind it was answered %v was read", got)
	}
	elsewhere, committer := commits(3, 2)
	if got := seen(t, []*history.LoggedTxn{first, foreignWrite(2), elsewhere}, tag(1, 1), 70, 80, writer, committer); !isUnknown(got) {
		t.Errorf("by another clock %v was read", got)
	}
	if got := seen(t, []*history.LoggedTxn{first, foreignWrite(2)}, tag(1, 1), 70, 80, writer); !isUnknown(got) {
		t.Errorf("without a time %v was read", got)
	}
}

// TestUnobservedStatementsElsewhereWroteNothing has the log say that an effect stands beside another statement's write.
func TestUnobservedStatementsElsewhereWroteNothing(t *testing.T) {
	tagged := inserted(history.Row{Table: row.Table, ID: "t"}, tag(2, 3))
	effect := untagged(other, tag(1, 2))
	for _, c := range []struct {
		name       string
		unobserved uint32
		void       bool
		writes     []history.LoggedWrite
	}{
		{"an earlier one", 2, false, []history.LoggedWrite{tagged, effect}},
		{"a later one", 4, false, []history.LoggedWrite{effect, tagged}},
		{"an undone one", 2, true, []history.LoggedWrite{effect, tagged}},
	} {
		txn := &history.Txn{ID: id(2), Status: history.Committed, Start: 40, End: 70}
		for n := range uint32(5) {
			s := history.Stmt{Num: n + 1, Kind: history.Update, Observation: history.Exact, Start: 41, End: 42}
			if s.Num == c.unobserved {
				s.Observation, s.Void = history.Opaque, c.void
			}
			txn.Stmts = append(txn.Stmts, s)
		}
		resolver(t, []*history.LoggedTxn{logged(1, 61, 70, c.writes...)}, txn).Resolve(txn)
		for _, s := range txn.Stmts {
			if wrote := len(s.Accesses) > 0; wrote != (s.Num == 3) {
				t.Errorf("%s: statement %d wrote %v", c.name, s.Num, s.Accesses)
			}
		}
	}
}

// TestTransactionsReadTheirOwnUnseenWrites has a statement read what one before it, or behind it, wrote unseen.
func TestTransactionsReadTheirOwnUnseenWrites(t *testing.T) {
	for name, c := range map[string]struct {
		writer, reader uint32
		want           history.Tag
	}{
		"behind it": {1, 2, tag(2, 1)},
		"before it": {2, 1, tag(1, 1)},
	} {
		stmt := func(num uint32) history.Stmt {
			s := history.Stmt{Num: num, Kind: history.Call, Observation: history.Opaque, Start: 41, End: 42}
			if num == c.reader {
				s.Kind, s.Observation = history.Select, history.Exact
				s.Accesses = []history.Access{{Row: row, Version: tag(1, 1)}}
			}
			return s
		}
		txn := &history.Txn{ID: id(2), Level: history.RepeatableRead, Status: history.Committed, Start: 40, End: 70,
			Stmts: []history.Stmt{stmt(1), stmt(2), {Num: 3, Kind: history.Insert, Observation: history.Exact, Start: 50, End: 51},
				{Num: 4, Kind: history.Commit, Start: 60, End: 70}}}
		log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), logged(2, 60, 70, untagged(row, tag(1, 1)),
			inserted(other, tag(2, 3)))}
		resolver(t, log, txn).Resolve(txn)
		if got := txn.Stmts[c.reader-1].Accesses[0].Version; got != c.want {
			t.Errorf("%s: it read %v", name, got)
		}
	}
}

// TestSnapshotsTellWhatWasRead has a transaction read two rows, the second one after somebody changed it past isotap.
func TestSnapshotsTellWhatWasRead(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 50, 60)}
	for _, c := range []struct {
		name    string
		level   history.Level
		locking history.Locking
		want    history.Tag
	}{
		{"of its snapshot", history.RepeatableRead, history.NoLock, tag(1, 1)},
		{"locked", history.RepeatableRead, history.LockUpdate, history.Tag{}},
		{"of the statement's snapshot", history.ReadCommitted, history.NoLock, past(2, 1)},
	} {
		txn := &history.Txn{ID: id(7), Level: c.level, Status: history.Committed, Start: 30, End: 90,
			Stmts: []history.Stmt{{Num: 1, Kind: history.Select, Observation: history.Exact, Start: 31, End: 40,
				Accesses: []history.Access{{Row: other, Version: tag(1, 2)}}},
				{Num: 2, Kind: history.Select, Observation: history.Exact, Locking: c.locking, Start: 70, End: 80,
					Accesses: []history.Access{{Row: row, Version: tag(1, 1)}}}}}
		resolver(t, log, txn).Resolve(txn)
		got := txn.Stmts[1].Accesses[0].Version
		if c.want.Initial() != isUnknown(got) || !isUnknown(got) && got != c.want {
			t.Errorf("%s: it read %v", c.name, got)
		}
	}
}

func TestWritesThatTheLogLacksAreInexact(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 50, 60)}
	write := one(3, history.Update, history.UpdateRow, tag(1, 1), 70, 80)
	if resolver(t, log, write).Resolve(write); !write.Stmts[0].Accesses[0].Inexact {
		t.Errorf("it wrote %+v", write.Stmts[0].Accesses)
	}
}

// TestOwnVersionsStayBesideWhatTheLogDoesNotName has a transaction read its own write, and one of a recording without
// a clock in common.
func TestOwnVersionsStayBesideWhatTheLogDoesNotName(t *testing.T) {
	silent := logged(2, 50, 60)
	silent.Unlogged = []string{row.Table}
	read := one(3, history.Select, history.Read, tag(3, 0), 70, 80)
	r := foreign.New()
	r.AddRun(history.Info{Run: run, Server: history.Server{Engine: dbms.MariaDB}})
	r.Note(silent)
	if r.Empty() {
		t.Fatal("nothing is noted")
	}
	r.Add(run, silent)
	r.Settle()
	if r.Resolve(read); read.Stmts[0].Accesses[0].Version != tag(3, 0) {
		t.Errorf("it read %v", read.Stmts[0].Accesses[0].Version)
	}
	elsewhere := one(4, history.Select, history.Read, tag(1, 1), 30, 40)
	elsewhere.ID = history.MakeTxnID(2, 4)
	if r.Resolve(elsewhere); !isUnknown(elsewhere.Stmts[0].Accesses[0].Version) {
		t.Errorf("by another clock it read %v", elsewhere.Stmts[0].Accesses[0].Version)
	}
}

// TestWhatWasUndoneMayHaveBeenMet has a transaction read behind a CALL that it undoes: the log does not have what the
// CALL wrote, and isotap's columns do not show it.
func TestWhatWasUndoneMayHaveBeenMet(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 10, 20, untagged(other, tag(1, 1)))}
	for _, tt := range []struct {
		name    string
		status  history.Status
		void    bool
		kind    history.Kind // of the statement between
		unknown bool
	}{
		{"rolled back", history.Aborted, false, history.Set, true},
		{"rolled back behind a savepoint's rollback", history.Aborted, true, history.Rollback, true},
		{"a savepoint's rollback to come", history.Committed, true, history.Set, true},
		{"behind a savepoint's rollback", history.Committed, true, history.Rollback, false},
		{"committed", history.Committed, false, history.Set, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := one(2, history.Select, history.Read, tag(1, 1), 50, 60)
			read := x.Stmts[0]
			read.Num = 3
			x.Status = tt.status
			x.Stmts = []history.Stmt{{Num: 1, Kind: history.Call, Observation: history.Opaque, Void: tt.void},
				{Num: 2, Kind: tt.kind, Observation: history.Nothing}, read}
			resolver(t, log, x).Resolve(x)
			if got := x.Stmts[2].Accesses[0].Version; isUnknown(got) != tt.unknown {
				t.Errorf("it read %v", got)
			}
		})
	}
}

// TestRowsInNoOrderTellNothing has a log that lacks a write: what is read of the row is of unknown origin, and who
// replaces it is not known to have replaced what its columns show.
func TestRowsInNoOrderTellNothing(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 10, 20, untagged(row, tag(1, 1))), logged(2, 30, 40, untagged(row, tag(5, 1)))}
	if got := seen(t, log, tag(1, 1), 50, 60); !isUnknown(got) {
		t.Errorf("it read %v", got)
	}
	write := one(77, history.Update, history.UpdateRow, tag(1, 1), 50, 60)
	resolver(t, log, write).Resolve(write)
	if a := write.Stmts[0].Accesses[0]; !a.Inexact || a.Version != tag(1, 1) {
		t.Errorf("it replaced %+v", a)
	}
}

// TestOwnUnseenWritesMayHaveBeenMet has a transaction read between two CALLs, of which one has written the row: which
// of them, the log does not say, nor whose it is where the transaction left no tag.
func TestOwnUnseenWritesMayHaveBeenMet(t *testing.T) {
	before := logged(1, 10, 20, history.LoggedWrite{Op: history.UpdateRow, Row: row, New: tag(1, 1)})
	mine := untagged(row, tag(1, 1))
	for name, log := range map[string]*history.LoggedTxn{
		"its own":              logged(2, 61, 70, mine, history.LoggedWrite{Op: history.UpdateRow, Row: other, New: tag(2, 4)}),
		"nobody's for certain": logged(2, 61, 70, mine),
	} {
		t.Run(name, func(t *testing.T) {
			x := one(2, history.Select, history.Read, tag(1, 1), 50, 60)
			read, call := x.Stmts[0], history.Stmt{Kind: history.Call, Observation: history.Opaque}
			write := history.Stmt{Num: 4, Kind: history.Update, Observation: history.Exact}
			x.Stmts, x.End = []history.Stmt{call, read, call, write}, 70
			for i := range x.Stmts {
				x.Stmts[i].Num = uint32(i + 1)
			}
			resolver(t, []*history.LoggedTxn{before, log}, x).Resolve(x)
			if got := x.Stmts[1].Accesses[0].Version; !isUnknown(got) {
				t.Errorf("it read %v", got)
			}
		})
	}
}

// TestOwnUnseenWritesBeforeADeletionMayHaveBeenMet has a transaction read a row between two statements that were not
// observed. One has written it, the second has deleted it: the log tells both writes of the second.
func TestOwnUnseenWritesBeforeADeletionMayHaveBeenMet(t *testing.T) {
	before := logged(1, 10, 20, history.LoggedWrite{Op: history.UpdateRow, Row: row, New: tag(1, 1)})
	replaced := history.Row{Table: row.Table, ID: "new"}
	log := []*history.LoggedTxn{before, logged(2, 61, 70, untagged(row, tag(1, 1)), deletion(row, tag(1, 1)),
		inserted(replaced, tag(2, 3)))}
	x := one(2, history.Select, history.Read, tag(1, 1), 50, 60)
	read := x.Stmts[0]
	x.Stmts = []history.Stmt{{Kind: history.Update, Observation: history.Opaque}, read,
		{Kind: history.Replace, Observation: history.Inexact, Accesses: []history.Access{{Row: replaced, Op: history.InsertRow}}}}
	for i := range x.Stmts {
		x.Stmts[i].Num = uint32(i + 1)
	}
	x.End = 70
	resolver(t, log, x).Resolve(x)
	if got := x.Stmts[1].Accesses[0].Version; !isUnknown(got) {
		t.Errorf("it read %v", got)
	}
	for _, c := range []struct {
		level history.Level
		want  bool
	}{{history.RepeatableRead, true}, {history.ReadUncommitted, false}} {
		other := one(77, history.Select, history.Read, tag(1, 1), 55, 65)
		other.Level = c.level
		resolver(t, log, x, other).Resolve(other)
		if got := other.Stmts[0].Accesses[0].Version; (got == tag(1, 1)) != c.want {
			t.Errorf("at %v somebody else read %v", c.level, got)
		}
	}
	undone := one(77, history.Update, history.UpdateRow, tag(1, 1), 55, 65)
	resolver(t, log, x, undone).Resolve(undone)
	if a := undone.Stmts[0].Accesses[0]; a.Inexact || a.Version != tag(1, 1) {
		t.Errorf("somebody else replaced %+v", a)
	}
}

// TestSnapshotsThatWereGivenBackTellNothing has a transaction read, undo that to a savepoint which is older, and read
// what somebody wrote past isotap meanwhile: the server began the transaction again.
func TestSnapshotsThatWereGivenBackTellNothing(t *testing.T) {
	log := []*history.LoggedTxn{update(1, history.Tag{}, tag(1, 1), 10, 20), update(2, tag(1, 1), tag(1, 1), 50, 60)}
	txn := &history.Txn{ID: id(7), Level: history.RepeatableRead, Status: history.Committed, Start: 30, End: 90,
		Stmts: []history.Stmt{{Num: 1, Kind: history.Savepoint}, {Num: 2, Kind: history.Select, Observation: history.Exact,
			Start: 31, End: 40, Accesses: []history.Access{{Row: other, Version: tag(1, 2)}}},
			{Num: 3, Kind: history.Rollback, Start: 61, End: 62}, {Num: 4, Kind: history.Select, Observation: history.Exact,
				Start: 70, End: 80, Accesses: []history.Access{{Row: row, Version: tag(1, 1)}}}}}
	resolver(t, log, txn).Resolve(txn)
	if got := txn.Stmts[3].Accesses[0].Version; !isUnknown(got) {
		t.Errorf("it read %v", got)
	}
}

// TestTransactionsPastIsotapHaveOneIDInAllParts has a recording analyzed as a whole, and without the log's beginning:
// an ID that another transaction has there would be taken for that one.
func TestTransactionsPastIsotapHaveOneIDInAllParts(t *testing.T) {
	log := []*history.LoggedTxn{logged(1, 10, 20, untagged(row, tag(1, 1))), logged(2, 30, 40, untagged(row, tag(1, 1))),
		logged(3, 50, 60, untagged(row, tag(1, 1)))}
	resolver(t, log) // numbers them
	whole, part := foreign.New(), foreign.New()
	for r, of := range map[*foreign.Resolver][]*history.LoggedTxn{whole: log, part: log[1:]} {
		r.AddRun(history.Info{Run: run, Server: history.Server{Engine: dbms.MariaDB}})
		for _, l := range of {
			r.Note(l)
		}
		for _, l := range of {
			r.Add(run, l)
		}
		r.Settle()
	}
	_, _, all := whole.Past()
	_, sessions, some := part.Past()
	if len(all) != 3 || len(some) != 2 {
		t.Fatalf("%d and %d transactions went past isotap", len(all), len(some))
	}
	for i, x := range some {
		if x.ID != all[i+1].ID || sessions[i].ID != all[i+1].Session {
			t.Errorf("%s is %s in a part", all[i+1].ID, x.ID)
		}
	}
}
