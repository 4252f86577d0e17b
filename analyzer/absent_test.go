package analyzer

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/history"
)

// TestPredicatesHaveAnomaliesOfTheirOwn has transactions look for rows that others insert, and names what comes of it.
// None is ever the server's fault, whatever its level.
func TestPredicatesHaveAnomaliesOfTheirOwn(t *testing.T) {
	run := history.Run(5)
	id := func(n uint32) history.TxnID { return history.MakeTxnID(run, n) }
	stmt := func(op history.Op, row string, absent bool, version history.Tag) history.Stmt {
		kind := map[history.Op]history.Kind{history.Read: history.Select, history.InsertRow: history.Insert,
			history.UpdateRow: history.Update}[op]
		return history.Stmt{Kind: kind, Observation: history.Exact, Shape: fmt.Sprintf("%s %s", kind, row),
			Accesses: []history.Access{{Row: history.Row{Table: "public.t", ID: row}, Op: op,
				Absent: absent, Version: version}}}
	}
	misses := func(row string) history.Stmt { return stmt(history.Read, row, true, history.Tag{}) }
	inserts := func(row string) history.Stmt { return stmt(history.InsertRow, row, false, history.Tag{}) }
	reads := func(row string, writer uint32, num uint32) history.Stmt {
		return stmt(history.Read, row, false, history.Tag{Txn: id(writer), Stmt: num})
	}
	for _, c := range []struct {
		name string
		txns [][]history.Stmt
		want Anomaly // empty: nothing is found
	}{
		{"a row that comes", [][]history.Stmt{{misses("a")}, {inserts("a")}}, ""},
		{"what came of a row that was not found", [][]history.Stmt{{misses("a"), reads("b", 2, 2)},
			{inserts("a"), inserts("b")}}, Phantom},
		{"the row itself, later", [][]history.Stmt{{misses("a"), reads("a", 2, 1)}, {inserts("a")}}, PMP},
		{"two who look and insert", [][]history.Stmt{{misses("a"), inserts("b")}, {misses("b"), inserts("a")}},
			PhantomSkew},
		{"three who look and insert", [][]history.Stmt{{misses("a"), inserts("b")}, {misses("c"), inserts("a")},
			{misses("b"), inserts("c")}}, G2},
		{"a version that may not have been seen",
			[][]history.Stmt{{stmt(history.Read, "a", true, history.Tag{Txn: id(2), Stmt: 1}), inserts("b")},
				{inserts("a"), reads("b", 1, 2)}}, ""},
	} {
		for _, server := range []history.Server{{Engine: "postgresql", Version: "15"},
			{Engine: "mariadb", Version: "10.11"}} {
			for level := history.ReadCommitted; level <= history.Serializable; level++ {
				if server.Engine == "postgresql" && level == history.Serializable {
					continue // judged among serializable transactions, which must not have it
				}
				var txns []*history.Txn
				for i, stmts := range c.txns {
					x := &history.Txn{ID: id(uint32(i + 1)), Session: history.SessionID(i + 1),
						Status: history.Committed, Level: level, Start: 1, End: 100}
					for j, s := range stmts {
						s.Num = uint32(j + 1)
						x.Stmts = append(x.Stmts, s)
					}
					txns = append(txns, x)
				}
				r, err := Analyze([]history.Info{{Run: run, Server: server}}, txns)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.want == "" && len(r.Findings) == 0:
				case len(r.Findings) != 1 || r.Findings[0].Anomaly != c.want || r.Findings[0].Class != Hazard:
					t.Errorf("%s on %s at %s: %d findings, want %s", c.name, server.Engine,
						level, len(r.Findings), c.want)
					for _, f := range r.Findings {
						t.Logf("%s %s: %v", f.Class, f.Anomaly, f.Explanation)
					}
				}
			}
		}
	}
}

// TestWideConditionsMakeNoViolation has two transactions look for rows by conditions that are wider than what they hang
// on, and insert such rows. Below SERIALIZABLE that may go wrong; at it the server has followed what they really read.
func TestWideConditionsMakeNoViolation(t *testing.T) {
	run := history.Run(5)
	for level := history.ReadCommitted; level <= history.Serializable; level++ {
		var txns []*history.Txn
		for i := range uint32(2) {
			row := func(n uint32) history.Row { return history.Row{Table: "public.t", ID: fmt.Sprint(n)} }
			txns = append(txns, &history.Txn{ID: history.MakeTxnID(run, i+1), Session: history.SessionID(i + 1),
				Status: history.Committed, Level: level, Start: 1, End: 100, Stmts: []history.Stmt{
					{Num: 1, Kind: history.Select, Observation: history.Exact, Shape: "SELECT", Accesses: []history.Access{
						{Row: row(1 - i), Op: history.Read, Absent: true, Wide: true}}},
					{Num: 2, Kind: history.Insert, Observation: history.Exact, Shape: "INSERT", Accesses: []history.Access{
						{Row: row(i), Op: history.InsertRow}}}}})
		}
		for _, server := range []history.Server{{Engine: "postgresql", Version: "15"},
			{Engine: "mariadb", Version: "10.11"}} {
			r, err := Analyze([]history.Info{{Run: run, Server: server}}, txns)
			if err != nil {
				t.Fatal(err)
			}
			found := len(r.Findings) == 1 && r.Findings[0].Anomaly == PhantomSkew && r.Findings[0].Class == Hazard
			if found == (level == history.Serializable) || !found && len(r.Findings) > 0 {
				t.Errorf("%s at %s: %d findings", server.Engine, level, len(r.Findings))
			}
			if len(r.Levels.Violated) > 0 {
				t.Errorf("%s at %s: violates %v", server.Engine, level, r.Levels.Violated)
			}
		}
	}
}

// TestAnUpdateThatFindsNothingLosesNoUpdate has a transaction read a row, and then look for it with an UPDATE that no
// longer finds it (TxCheck, figure 11): it saw two versions of the row, and wrote over none.
func TestAnUpdateThatFindsNothingLosesNoUpdate(t *testing.T) {
	run, row := history.Run(5), history.Row{Table: "shop.a", ID: "1"}
	writer, reader := history.MakeTxnID(run, 1), history.MakeTxnID(run, 2)
	stmt := func(num uint32, kind history.Kind, a history.Access) history.Stmt {
		a.Row = row
		return history.Stmt{Num: num, Kind: kind, Observation: history.Exact, Shape: kind.String(),
			Accesses: []history.Access{a}}
	}
	txn := func(id history.TxnID, stmts ...history.Stmt) *history.Txn {
		return &history.Txn{ID: id, Session: history.SessionID(id.Seq()), Status: history.Committed,
			Level: history.ReadCommitted, Start: 1, End: 100, Stmts: stmts}
	}
	r, err := Analyze([]history.Info{{Run: run, Server: history.Server{Engine: "mariadb", Version: "10.11"}}},
		[]*history.Txn{
			txn(writer, stmt(1, history.Update, history.Access{Op: history.UpdateRow})),
			txn(reader, stmt(1, history.Select, history.Access{Op: history.Read}),
				stmt(2, history.Update, history.Access{Op: history.Read, Gone: true,
					Version: history.Tag{Txn: writer, Stmt: 1}})),
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != NonRepeatableRead {
		t.Errorf("%d findings, want a non-repeatable read", len(r.Findings))
		for _, f := range r.Findings {
			t.Logf("%s: %v", f.Anomaly, f.Explanation)
		}
	}
}
