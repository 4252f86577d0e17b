package analyzer

import (
	"cmp"
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// at has a transaction, of one statement or more, run between two times.
func at(seq uint32, level history.Level, from, to int64, stmts ...history.Stmt) *history.Txn {
	t := &history.Txn{ID: history.MakeTxnID(scriptInfo().Run, seq), Session: history.SessionID(seq), Level: level, Start: from,
		End: to, Status: history.Committed, Stmts: stmts}
	for i := range stmts {
		stmts[i].Num, stmts[i].Start, stmts[i].End = uint32(i+1), from, to
	}
	return t
}

// with is how a transaction ended.
func with(status history.Status, t *history.Txn) *history.Txn {
	t.Status = status
	return t
}

// TestStatementsThatMayHaveMetOtherVersionsAreInexact: what was written unseen shows in no row. Those that may have met
// it are told as inexact.
func TestStatementsThatMayHaveMetOtherVersionsAreInexact(t *testing.T) {
	const dirty, clean = history.ReadUncommitted, history.RepeatableRead
	row := history.Row{Table: "shop.Item", ID: "1"}
	tag := func(seq uint32) history.Tag {
		return history.Tag{Txn: history.MakeTxnID(scriptInfo().Run, seq), Stmt: 1}
	}
	read := func(of history.Tag) history.Stmt {
		return history.Stmt{Kind: history.Select, Observation: history.Exact, Shape: "SELECT v FROM item",
			Accesses: []history.Access{{Row: row, Op: history.Read, Version: of}}}
	}
	write := func(of history.Tag) history.Stmt {
		return history.Stmt{Kind: history.Update, Observation: history.Exact, Shape: "UPDATE item SET v = ?",
			Accesses: []history.Access{{Row: row, Op: history.UpdateRow, Version: of}}}
	}
	locking := read(history.Tag{})
	locking.Locking = history.LockUpdate
	call := history.Stmt{Kind: history.Call, Observation: history.Opaque, Reason: history.ReasonTrigger, Shape: "CALL p()"}
	keeping := history.Stmt{Kind: history.Update, Observation: history.Opaque, Reason: history.ReasonTrigger,
		Shape: "UPDATE `item` SET v = CASE WHEN v THEN ? END"}
	insert := history.Stmt{Kind: history.Insert, Observation: history.Exact, Shape: "INSERT INTO item VALUES (?)",
		Accesses: []history.Access{{Row: row, Op: history.InsertRow}}}
	elsewhere := keeping
	elsewhere.Shape = "UPDATE other SET v = CASE WHEN v THEN ? END"
	failed := call
	failed.Void = true
	none, undone, kept := history.Reason{}, history.ReasonUndone, history.ReasonOldTag
	for _, c := range []struct {
		name   string
		engine dbms.Engine
		txns   []*history.Txn
		want   history.Reason
	}{
		{"beside a CALL that was undone", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 30, call)),
			at(2, dirty, 20, 25, read(history.Tag{}))}, undone},
		{"beside one that failed", dbms.MariaDB, []*history.Txn{at(1, clean, 10, 30, failed),
			at(2, dirty, 20, 25, read(history.Tag{}))}, undone},
		{"beside one whose end is not known", dbms.MySQL, []*history.Txn{with(history.Indeterminate, at(1, clean, 10, 11, call)),
			at(2, dirty, 20, 25, read(history.Tag{}))}, undone},
		{"beside one that committed", dbms.MariaDB, []*history.Txn{at(1, clean, 10, 30, call),
			at(2, dirty, 20, 25, read(history.Tag{}))}, none},
		{"behind it", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 19, call)),
			at(2, dirty, 20, 25, read(history.Tag{}))}, none},
		{"before it", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 26, 30, call)),
			at(2, dirty, 20, 25, read(history.Tag{}))}, none},
		{"behind it, and beside an earlier one", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 30, call)),
			with(history.Aborted, at(2, clean, 12, 15, call)), at(3, dirty, 20, 25, read(history.Tag{}))}, undone},
		{"its own", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, dirty, 10, 30, call, read(history.Tag{})))}, none},
		{"with locks", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 30, call)),
			at(2, dirty, 20, 25, locking)}, none},
		{"at another level", dbms.MariaDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 30, call)),
			at(2, history.ReadCommitted, 20, 25, read(history.Tag{}))}, none},
		{"on PostgreSQL", dbms.PostgreSQL, []*history.Txn{with(history.Aborted, at(1, clean, 10, 30, call)),
			at(2, dirty, 20, 25, read(history.Tag{}))}, none},

		{"what was there before an UPDATE that kept tags", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping),
			at(2, clean, 20, 25, read(history.Tag{}))}, kept},
		{"what was written before it", dbms.TiDB, []*history.Txn{at(1, clean, 5, 9, write(history.Tag{})),
			at(2, clean, 10, 15, keeping), at(3, clean, 20, 25, read(tag(1)))}, kept},
		{"what was written behind it", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping),
			at(2, clean, 16, 25, read(tag(2)))}, none},
		{"written behind it by another one", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping),
			at(2, clean, 16, 18, insert), at(3, clean, 20, 25, read(tag(2)))}, none},
		{"a write of what was there", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping),
			at(2, clean, 20, 25, write(history.Tag{}))}, kept},
		{"a read before it", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping), at(2, clean, 5, 9, read(history.Tag{}))}, none},
		{"of another table", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, elsewhere), at(2, clean, 20, 25, read(history.Tag{}))},
			none},
		{"of its own transaction, earlier", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping, insert),
			at(2, clean, 20, 25, read(history.Tag{Txn: tag(1).Txn, Stmt: 2}))}, none},
		{"of its own transaction, later", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, insert, keeping),
			at(2, clean, 20, 25, read(tag(1)))}, kept},
		{"its own write of what it may have written unseen", dbms.TiDB, []*history.Txn{at(1, clean, 10, 15, keeping,
			write(history.Tag{}))}, kept},
		{"undone", dbms.TiDB, []*history.Txn{with(history.Aborted, at(1, clean, 10, 15, keeping)),
			at(2, clean, 20, 25, read(history.Tag{}))}, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := scriptInfo()
			info.Server.Engine = c.engine
			before := 0
			for _, txn := range c.txns {
				for _, s := range txn.Stmts {
					if s.Observation == history.Exact {
						before++
					}
				}
			}
			r, err := Analyze([]history.Info{info}, c.txns)
			if err != nil {
				t.Fatal(err)
			}
			moved := 0
			if !c.want.IsZero() {
				moved = 1
			}
			for name, got := range map[string]Coverage{"at the end": r.Coverage, "live": steps(t, info, c.txns).Coverage} {
				if got.Exact != before-moved || got.Inexact != moved || got.Reasons[c.want] != moved && moved > 0 {
					t.Errorf("%s %d of %d are exact, %d inexact: %v", name, got.Exact, before, got.Inexact, got.Reasons)
				}
			}
		})
	}
}

// steps has a Live, which keeps no more than it must, take transactions in the order of their ends.
func steps(t *testing.T, info history.Info, txns []*history.Txn) *Result {
	t.Helper()
	l := NewLive(LiveOptions{})
	l.Add(info)
	inOrder := slices.SortedStableFunc(slices.Values(txns), func(x, y *history.Txn) int { return cmp.Compare(x.End, y.End) })
	for i, x := range inOrder {
		if err := l.AddTxn(x); err != nil {
			t.Fatal(err)
		}
		open := x.End + 1
		for _, later := range inOrder[i+1:] {
			open = min(open, later.Start)
		}
		if _, err := l.Step(x.End, open); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestManyHiddenWritersAreKeptInBounds: of a run that goes on, no more is kept, and no statement is taken for exact
// that was not.
func TestManyHiddenWritersAreKeptInBounds(t *testing.T) {
	var h hiddenWriters
	live := doubtfulReads{bounded: true}
	b := make(beginnings)
	const n = 100_000
	for i := range int64(n) {
		live.add(&h, hiddenWriter{txn: history.MakeTxnID(1, uint32(i+1)), from: 10 * i, to: 10*i + 5})
		b.add(history.MakeTxnID(1, uint32(i+1)), 10*i)
	}
	anybody := func(*hiddenWriter) bool { return true }
	for i := range int64(n - 1) {
		if !h.some(10*i+3, 10*i+1, anybody) {
			t.Fatalf("the writer at %d is forgotten", 10*i)
		}
		if got := b.before(history.MakeTxnID(1, uint32(i+1))); got > 10*i {
			t.Fatalf("transaction %d began at %d, not at %d or later", i+1, 10*i, got)
		}
	}
	if h.some(10*n-3, 10*n-4, anybody) {
		t.Error("there is one where there was none")
	}
	if got := b.before(history.MakeTxnID(1, n)); got < 10*(n-maxStartSamples)-int64(counting) {
		t.Errorf("the last began at %d or later, which is far too early", got)
	}
	if len(h.list) > maxHiddenWriters || len(b[1].list) > maxStartSamples {
		t.Errorf("%d writers and %d beginnings are kept", len(h.list), len(b[1].list))
	}
}

// TestTheLogTellsWhatKeptTheTags: where the server's log was read, nothing is in doubt that it tells.
func TestTheLogTellsWhatKeptTheTags(t *testing.T) {
	info := scriptInfo()
	info.Server.Engine, info.Log = dbms.MariaDB, []history.LogStretch{{From: 1, To: 100}}
	row := history.Row{Table: "shop.item", ID: "1"}
	r, err := Analyze([]history.Info{info}, []*history.Txn{
		at(1, history.RepeatableRead, 10, 15, history.Stmt{Kind: history.Update, Observation: history.Opaque, Shape: "UPDATE item SET v = ?"}),
		at(2, history.RepeatableRead, 20, 25, history.Stmt{Kind: history.Select, Observation: history.Exact,
			Accesses: []history.Access{{Row: row, Op: history.Read}}})})
	if err != nil || r.Coverage.Inexact != 0 {
		t.Errorf("%v, %+v", err, r.Coverage)
	}
}
