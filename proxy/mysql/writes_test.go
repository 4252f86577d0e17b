package mysql

import (
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/txnstate"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// entry is what an UPDATE collected of a row.
func entry(id string, outcome sqlmysql.Outcome) sqlmysql.CaptureEntry {
	return sqlmysql.CaptureEntry{RowID: id, WList: []history.Tag{{Txn: 9, Stmt: 1}}, Outcome: outcome}
}

// TestFoundAndChangedRowsAgreeWithTheServer: found and changed rows must agree with the server.
func TestFoundAndChangedRowsAgreeWithTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		entries []sqlmysql.CaptureEntry
		counts  rowCounts
		want    history.Observation
		ops     []history.Op
	}{
		"one changed, one as it was": {entries: []sqlmysql.CaptureEntry{entry("1", sqlmysql.Changed),
			entry("2", sqlmysql.Same)},
			counts: rowCounts{affected: 1, matched: 2, changed: 1, counted: true}, want: history.Exact,
			ops: []history.Op{history.UpdateRow, history.Read}},
		"a row found again": {entries: []sqlmysql.CaptureEntry{entry("1", sqlmysql.Same), entry("1", sqlmysql.Changed)},
			counts: rowCounts{affected: 1, matched: 1, changed: 1, counted: true}, want: history.Exact,
			ops: []history.Op{history.UpdateRow}},
		"an entry is missing": {entries: []sqlmysql.CaptureEntry{entry("1", sqlmysql.Changed)},
			counts: rowCounts{affected: 2, matched: 2, changed: 2, counted: true}, want: history.Inexact,
			ops: []history.Op{history.UpdateRow}},
		"the server does not count": {entries: []sqlmysql.CaptureEntry{entry("1", sqlmysql.Changed)},
			counts: rowCounts{affected: 1}, want: history.Inexact, ops: []history.Op{history.UpdateRow}},
	} {
		t.Run(name, func(t *testing.T) {
			o := updateIn(&history.Txn{ID: 1})
			o.rowCounts = test.counts
			o.addCaptured(test.entries)
			st := o.recorded()
			if st.Observation != test.want || len(st.Accesses) != len(test.ops) {
				t.Fatalf("%v with %v", st.Observation, st.Accesses)
			}
			for i, a := range st.Accesses {
				if a.Op != test.ops[i] || a.Inexact != (test.want == history.Inexact) {
					t.Errorf("access %d is %+v", i+1, a)
				}
			}
		})
	}
}

// TestEntriesOfARetriedStatementAreItsLast: where TiDB finds that a row was changed since it was read, it evaluates the
// statement again, and may find others.
func TestEntriesOfARetriedStatementAreItsLast(t *testing.T) {
	gone := func(id string) sqlmysql.CaptureEntry { return entry(id, sqlmysql.Deleted) }
	changed := func(id string) sqlmysql.CaptureEntry { return entry(id, sqlmysql.Changed) }
	same := func(id string) sqlmysql.CaptureEntry { return entry(id, sqlmysql.Same) }
	for name, test := range map[string]struct {
		kind    history.Kind
		entries []sqlmysql.CaptureEntry
		counts  rowCounts
		once    bool // the server evaluates it once
		want    history.Observation
		rows    string
	}{
		"another row": {history.Delete, []sqlmysql.CaptureEntry{gone("2"), gone("1")}, rowCounts{affected: 1}, false,
			history.Exact, "1"},
		"one of two": {history.Delete, []sqlmysql.CaptureEntry{gone("1"), gone("2"), gone("2")},
			rowCounts{affected: 1}, false, history.Exact, "2"},
		"one more": {history.Delete, []sqlmysql.CaptureEntry{gone("2"), gone("1"), gone("2")}, rowCounts{affected: 2},
			false, history.Exact, "12"},
		"each twice": {history.Delete, []sqlmysql.CaptureEntry{gone("1"), gone("1"), gone("2"), gone("2")},
			rowCounts{affected: 2}, false, history.Exact, "12"},
		"one of the last twice": {history.Delete, []sqlmysql.CaptureEntry{gone("3"), gone("1"), gone("2"), gone("2")},
			rowCounts{affected: 2}, false, history.Inexact, "123"},
		"too few": {history.Delete, []sqlmysql.CaptureEntry{gone("1")}, rowCounts{affected: 2}, false,
			history.Inexact, "1"},
		"evaluated once": {history.Delete, []sqlmysql.CaptureEntry{gone("2"), gone("1")}, rowCounts{affected: 1}, true,
			history.Inexact, "12"},
		"an UPDATE finds another row": {history.Update, []sqlmysql.CaptureEntry{changed("2"), changed("1"), same("3")},
			rowCounts{affected: 1, matched: 2, changed: 1, counted: true}, false, history.Exact, "13"},
		"an UPDATE that is not counted": {history.Update, []sqlmysql.CaptureEntry{changed("2"), changed("1")},
			rowCounts{affected: 1}, false, history.Inexact, "12"},
		"an UPDATE that changed more": {history.Update, []sqlmysql.CaptureEntry{changed("2"), changed("1"), same("3")},
			rowCounts{affected: 2, matched: 2, changed: 2, counted: true}, false, history.Inexact, "13"},
	} {
		t.Run(name, func(t *testing.T) {
			o := updateIn(&history.Txn{ID: 1})
			o.plan.Kind, o.plan.Writes.Retried, o.rowCounts = test.kind, !test.once, test.counts
			o.addCaptured(test.entries)
			st, rows := o.recorded(), ""
			for _, a := range st.Accesses {
				rows += a.Row.ID
			}
			if st.Observation != test.want || rows != test.rows {
				t.Errorf("%v with rows %s, want %v with %s", st.Observation, rows, test.want, test.rows)
			}
		})
	}
}

// TestInsertedRowsAreAsManyAsCounted: inserted rows are as many as the server counted.
func TestInsertedRowsAreAsManyAsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		kind     history.Kind
		affected uint64
		bound    int
		want     history.Observation
		rows     int
	}{
		"all":             {history.Insert, 2, 0, history.Exact, 2},
		"one left out":    {history.Insert, 1, 0, history.Inexact, 2},
		"one replaced":    {history.Replace, 3, 0, history.Inexact, 2},
		"too much memory": {history.Insert, 2, 1, history.Inexact, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := &pendingStatement{txn: &history.Txn{ID: 1}, rewritten: true, plan: &sqlmysql.Plan{
				Statement: rewrite.Statement{Kind: test.kind, Target: "d.t"}, Writes: sqlmysql.Writes{Inserts: 2}}}
			o.stmt = history.Stmt{Num: 1, Observation: history.Exact}
			o.takeCounts(&reply{ok: okPacket{affected: test.affected}}, false)
			room := txnstate.NewUnrecorded(test.bound)
			o.addInserted(&room)
			if o.stmt.Observation != test.want || len(o.stmt.Accesses) != test.rows {
				t.Errorf("%v with %d rows", o.stmt.Observation, len(o.stmt.Accesses))
			}
		})
	}
}
