package predicate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// TestFirstVersionThatMayHaveBeenSeen has a transaction that began at 100 look for rows from 110 to
// 115, and not find one. Before, from 101 to 102, it may have seen the row at some version.
func TestFirstVersionThatMayHaveBeenSeen(t *testing.T) {
	ins, upd, del := history.InsertRow, history.UpdateRow, history.DeleteRow
	all := history.Predicate{Table: chosen.Table, Of: chosen.Of, As: chosen.As}
	other := chosen
	other.Where = "b = 2"
	unmet, initial := -1, 0
	for _, c := range []struct {
		name  string
		steps []step
		met   int // the version that was seen before, as the number of its transaction
		by    history.Predicate
		level history.Level
		want  string
	}{
		{"deleted after it was found", []step{{1, 0, 105, del, false}}, initial, chosen, history.ReadCommitted, "1"},
		{"changed after it was found", []step{{1, 0, 105, upd, false}}, initial, chosen, history.ReadCommitted, "1"},
		{"changed, and still matches, and is deleted", []step{{1, 0, 103, upd, true}, {2, 1, 105, del, false}}, initial,
			chosen, history.ReadCommitted, "2"},
		{"changed, and may not match, and is deleted", []step{{1, 0, 103, upd, false}, {2, 1, 105, del, false}},
			initial, chosen, history.ReadCommitted, "1"},
		{"found by another condition", []step{{1, 0, 105, del, false}}, initial, other, history.ReadCommitted, "none"},
		{"found by another condition, at a version that matches",
			[]step{{1, 0, 90, ins, true}, {2, 1, 105, del, false}}, 1, other, history.ReadCommitted, "2"},
		{"met at a version that does not match", []step{{1, 0, 103, upd, false}, {2, 1, 105, del, false}}, 1, other,
			history.ReadCommitted, "none"},
		{"inserted before the transaction began, and deleted", []step{{1, 0, 90, ins, true}, {2, 1, 105, del, false}},
			unmet, chosen, history.ReadCommitted, "2"},
		{"inserted at the same time, and deleted", []step{{1, 0, 103, ins, true}, {2, 1, 105, del, false}}, unmet,
			chosen, history.ReadCommitted, "none"},
		{"inserted at the same time, met and deleted", []step{{1, 0, 99, ins, true}, {2, 1, 105, del, false}}, 1,
			chosen, history.ReadCommitted, "2"},
		{"deleted before the transaction began", []step{{1, 0, 80, ins, true}, {2, 1, 90, del, false}}, unmet, chosen,
			history.ReadCommitted, "none"},
		{"deleted after the reply", []step{{1, 0, 116, del, false}}, initial, chosen, history.ReadCommitted, "none"},
		{"never changed", []step{{1, 0, 90, ins, true}}, 1, chosen, history.ReadCommitted, "none"},
		{"of two that nobody ordered", []step{{1, 0, 105, del, false}, {2, 0, 106, del, false}}, initial, chosen,
			history.ReadCommitted, "none"},
		{"deleted by the transaction itself", []step{{9, 0, 105, del, false}}, initial, chosen, history.ReadCommitted,
			"none"},
		{"deleted while the statement ran", []step{{1, 0, 111, del, false}}, initial, chosen, history.ReadCommitted,
			"1"},
		{"deleted before the statement, at READ UNCOMMITTED", []step{{1, 0, 105, del, false}}, initial, chosen,
			history.ReadUncommitted, "1"},
		{"deleted while the statement ran, at READ UNCOMMITTED", []step{{1, 0, 111, del, false}}, initial, chosen,
			history.ReadUncommitted, "none"},
	} {
		txns, m := chained(c.steps)
		m.Predicate = chosen
		first := history.Stmt{Num: 1, Start: 101, End: 102, Observation: history.Exact,
			Predicates: []history.Predicate{c.by}}
		if c.met != unmet {
			a := history.Access{Row: history.Row{Table: "public.t", ID: "1"}}
			if c.met != initial {
				a.Version = history.Tag{Txn: id(uint32(c.met)), Stmt: 1}
			}
			first.Accesses = []history.Access{a}
		}
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: c.level, Start: 100, End: 120,
			Stmts: []history.Stmt{first,
				{Num: 2, Start: 110, End: 115, Observation: history.Exact, Predicates: []history.Predicate{chosen}}}}
		if last := txns[len(txns)-1]; last.ID == reader.ID {
			txns = txns[:len(txns)-1]
			reader.Stmts = slices.Insert(reader.Stmts, 1, last.Stmts[0])
		}
		if got := gone(m, txns, reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	txns, m := chained([]step{{1, 0, 105, del, false}})
	inexact := history.Stmt{Num: 1, Start: 101, End: 102, Observation: history.Exact,
		Predicates: []history.Predicate{chosen},
		Accesses:   []history.Access{{Row: history.Row{Table: "public.t", ID: "1"}, Inexact: true}}}
	if got := gone(m, txns, &history.Txn{ID: id(9), Level: history.ReadCommitted, Start: 100, End: 120,
		Stmts: []history.Stmt{inexact,
			{Num: 2, Start: 110, End: 115, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}}}}); got != "none" {
		t.Errorf("met inexactly: %s, want none", got)
	}
	// Without a condition every version matches, so that what was there first need not have been seen.
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"deleted", []step{{1, 0, 105, del, false}}, "1"},
		{"changed", []step{{1, 0, 105, upd, true}}, "none"},
		{"inserted and deleted at the same time", []step{{1, 0, 103, ins, true}, {2, 1, 105, del, false}}, "none"},
	} {
		txns, m := chained(c.steps)
		m.Predicate = all
		m.Versions = append(m.Versions, history.VersionRef{Txn: id(1), Stmt: 1}) // so that the row is looked at
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: history.ReadCommitted, Start: 100, End: 120,
			Stmts: []history.Stmt{
				{Num: 1, Start: 110, End: 115, Observation: history.Exact, Predicates: []history.Predicate{all}}}}
		if got := gone(m, txns, reader); got != c.want {
			t.Errorf("of all rows, %s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestStatementsThatLockSeeNothingUncommitted: at READ UNCOMMITTED, what a plain read did not find may have been
// undone since; a statement that waits for locks found out how the writer ended.
func TestStatementsThatLockSeeNothingUncommitted(t *testing.T) {
	del, upd := history.DeleteRow, history.UpdateRow
	for _, c := range []struct {
		name    string
		kind    history.Kind
		locking history.Locking
		steps   []step
		dirty   bool // the version of the first of the steps was met before
		want    string
	}{
		{"a plain SELECT", history.Select, history.NoLock, []step{{1, 0, 111, del, false}}, false, "none"},
		{"a SELECT that locks", history.Select, history.LockShare, []step{{1, 0, 111, del, false}}, false, "1"},
		{"an UPDATE", history.Update, history.NoLock, []step{{1, 0, 111, del, false}}, false, "1"},
		{"a DELETE", history.Delete, history.NoLock, []step{{1, 0, 111, upd, false}}, false, "1"},
		{"the query of an INSERT", history.Insert, history.LockShare, []step{{1, 0, 111, del, false}}, false, "none"},
		// An UPDATE looks at what was committed last, and goes back so behind what its transaction had met.
		{"an UPDATE behind a dirty read", history.Update, history.NoLock,
			[]step{{1, 0, 109, upd, true}, {2, 1, 113, del, false}}, true, "none"},
		{"a DELETE of what was found", history.Delete, history.NoLock,
			[]step{{1, 0, 90, upd, true}, {2, 1, 113, del, false}}, true, "2"},
	} {
		txns, m := chained(c.steps)
		m.Predicate = chosen
		first := history.Stmt{Num: 1, Start: 101, End: 102, Observation: history.Exact, Kind: history.Select}
		if a := (history.Access{Row: history.Row{Table: "public.t", ID: "1"}}); c.dirty {
			a.Version = history.Tag{Txn: id(1), Stmt: 1}
			first.Accesses = []history.Access{a}
		} else {
			first.Accesses, first.Predicates = []history.Access{a}, []history.Predicate{chosen}
		}
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: history.ReadUncommitted, Start: 100, End: 120,
			Stmts: []history.Stmt{first, {Num: 2, Start: 110, End: 115, Observation: history.Exact, Kind: c.kind,
				Locking: c.locking, Predicates: []history.Predicate{chosen}}}}
		if got := gone(m, txns, reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOnTiDBASnapshotMayBeOlderThanItsTransaction: what had been committed when the transaction began it need not have
// seen (tidb_low_resolution_tso, stale reads). What it has found before it has seen.
func TestOnTiDBASnapshotMayBeOlderThanItsTransaction(t *testing.T) {
	for _, c := range []struct {
		name  string
		found history.TxnID // the writer of the version that was found before; zero: what was there at first
		met   bool
		want  string
	}{
		{"never met", history.TxnID(0), false, "none"},
		{"found as it was inserted", id(1), true, "2"},
		{"found at a version that nobody knows", id(7), true, "none"},
	} {
		txns, m := chained([]step{{1, 0, 90, history.InsertRow, true}, {2, 1, 105, history.DeleteRow, false}})
		m.Predicate = chosen
		first := history.Stmt{Num: 1, Start: 101, End: 102, Observation: history.Exact,
			Predicates: []history.Predicate{chosen}}
		if c.met {
			first.Accesses = []history.Access{{Row: history.Row{Table: "public.t", ID: "1"},
				Version: history.Tag{Txn: c.found, Stmt: 1}}}
		}
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: history.ReadCommitted, Start: 100, End: 120,
			Stmts: []history.Stmt{first,
				{Num: 2, Start: 110, End: 115, Observation: history.Exact, Predicates: []history.Predicate{chosen}}}}
		if got := goneOn(dbms.TiDB, m, txns, reader); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestASnapshotOfTiDBsIsToldByLaterReads: at REPEATABLE READ a transaction's plain reads have one snapshot, so that
// what a later one finds was there for an earlier statement that locks, or had been replaced.
func TestASnapshotOfTiDBsIsToldByLaterReads(t *testing.T) {
	const rr, rc = history.RepeatableRead, history.ReadCommitted
	for _, c := range []struct {
		name    string
		kind    history.Kind // of the statement that did not find the row
		level   history.Level
		locking history.Locking // of the SELECT that found it later
		found   history.TxnID
		stale   bool
		want    string
	}{
		{"a DELETE", history.Delete, rr, history.NoLock, id(1), false, "2"},
		{"a plain SELECT, which has the same snapshot", history.Select, rr, history.NoLock, id(1), false, "none"},
		{"at READ COMMITTED", history.Delete, rc, history.NoLock, id(1), false, "none"},
		{"found by a current read", history.Delete, rr, history.LockUpdate, id(1), false, "none"},
		{"found at what nobody knows", history.Delete, rr, history.NoLock, id(7), false, "none"},
		{"found as of another moment", history.Delete, rr, history.NoLock, id(1), true, "none"},
	} {
		txns, m := chained([]step{{1, 0, 90, history.InsertRow, true}, {2, 1, 105, history.UpdateRow, false}})
		m.Predicate = chosen
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: c.level, StaleRead: c.stale, Start: 100, End: 130,
			Stmts: []history.Stmt{{Num: 1, Kind: c.kind, Start: 110, End: 115, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}},
				{Num: 2, Kind: history.Select, Locking: c.locking, Start: 116, End: 117, Observation: history.Exact,
					Accesses: []history.Access{{Row: history.Row{Table: "public.t", ID: "1"},
						Version: history.Tag{Txn: c.found, Stmt: 1}}}}}}
		goneOn(dbms.TiDB, m, txns, reader)
		if got := goneIn(&reader.Stmts[0]); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// gone returns the version that is added to the reader's last statement as the first that it can have seen, as the
// number of its transaction.
func gone(m history.Matches, txns []*history.Txn, reader *history.Txn) string {
	return goneOn(dbms.MariaDB, m, txns, reader)
}

func goneOn(engine dbms.Engine, m history.Matches, txns []*history.Txn, reader *history.Txn) string {
	r := New()
	r.AddRun(history.Info{Run: run, Mode: "predicates", Server: history.Server{Engine: engine}})
	r.AddMatches(run, m)
	for _, x := range append(txns, reader) {
		r.Collect(x)
	}
	r.Settle()
	r.Resolve(reader)
	return goneIn(&reader.Stmts[len(reader.Stmts)-1])
}

func goneIn(s *history.Stmt) string {
	for _, a := range s.Accesses {
		if a.Gone {
			return fmt.Sprint(a.Version.Txn.Seq())
		}
	}
	return "none"
}

// TestUnseenChangesAreNotSaidToBeGone: what may have been changed unseen is not said to be gone.
func TestUnseenChangesAreNotSaidToBeGone(t *testing.T) {
	unseen := func(n uint32, start, end int64) *history.Txn {
		return &history.Txn{ID: id(n), Status: history.Committed, Start: start, End: end,
			Stmts: []history.Stmt{{Num: 1, Kind: history.Update, Observation: history.Inexact, Start: start, End: end}}}
	}
	undone := history.Stmt{Num: 2, Start: 103, End: 104, Void: true, Observation: history.Exact, Kind: history.Delete,
		Accesses: []history.Access{{Row: history.Row{Table: "public.t", ID: "1"}, Op: history.DeleteRow,
			Version: history.Tag{Txn: id(1), Stmt: 1}}}}
	for name, c := range map[string]struct {
		beside *history.Txn
		own    []history.Stmt
		want   string
	}{
		"seen":                                 {nil, nil, "2"},
		"changed unseen":                       {unseen(3, 92, 93), nil, "none"},
		"changed unseen before it was written": {unseen(3, 80, 85), nil, "2"},
		"deleted by itself, which was undone":  {nil, []history.Stmt{undone}, "none"},
	} {
		txns, m := chained([]step{{1, 0, 90, history.InsertRow, true}, {2, 1, 112, history.DeleteRow, false}})
		m.Predicate = chosen
		if c.beside != nil {
			txns = append(txns, c.beside)
		}
		reader := &history.Txn{ID: id(9), Status: history.Committed, Level: history.ReadCommitted, Start: 100, End: 120,
			Stmts: append(c.own, history.Stmt{Num: 3, Start: 110, End: 115, Observation: history.Exact,
				Predicates: []history.Predicate{chosen}})}
		if got := gone(m, txns, reader); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A transaction that has not met a row, in a recording where nothing is known to match, has nothing to say of it.
func TestNothingIsGoneThatNobodyMet(t *testing.T) {
	txns, m := chained([]step{{1, 0, 105, history.DeleteRow, false}})
	reader := &history.Txn{ID: id(9), Level: history.ReadCommitted, Start: 100, End: 120, Stmts: []history.Stmt{
		{Num: 1, Start: 110, End: 115, Observation: history.Exact, Predicates: []history.Predicate{chosen}}}}
	m.Predicate = chosen
	if got := gone(m, txns, reader); got != "none" {
		t.Errorf("version %s is said to be gone", got)
	}
}
