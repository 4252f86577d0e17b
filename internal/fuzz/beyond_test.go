package fuzz

import (
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

func TestAggregatesAreTold(t *testing.T) {
	for shape, want := range map[string]bool{
		"SELECT COUNT(*), MAX(v) FROM t":                              true,
		"SELECT c, AVG(t.id + ?) FROM t WHERE c IN (?) GROUP BY c":    true,
		"SELECT v FROM t GROUP BY v":                                  true,
		"SELECT v, SUM(v) OVER (PARTITION BY c ORDER BY v) FROM t":    false,
		"SELECT (SELECT MAX(v) FROM t), id FROM t WHERE id = ABS(id)": false,
		"SELECT COUNT(DISTINCT v), RANK() OVER (ORDER BY v) FROM t":   true,
		"SELECT maximum(v) FROM t":                                    false,
	} {
		if got := aggregates(&history.Stmt{Kind: history.Select, Shape: shape}); got != want {
			t.Errorf("%s: %t", shape, got)
		}
	}
	if aggregates(&history.Stmt{Kind: history.Update, Shape: "UPDATE t SET v = MAX(v)"}) {
		t.Error("an UPDATE gives no groups")
	}
}

// TestFindingsBeyondSingleRowsAreTold has a sum that misses a write, and a read of what was rolled back.
func TestFindingsBeyondSingleRowsAreTold(t *testing.T) {
	sum := &history.Stmt{Kind: history.Select, Shape: "SELECT SUM(v) FROM t"}
	plain, update := &history.Stmt{Kind: history.Select, Shape: "SELECT v FROM t"}, &history.Stmt{Kind: history.Update}
	committed, aborted := &history.Txn{Status: history.Committed}, &history.Txn{Status: history.Aborted}
	for _, c := range []struct {
		edge               analyzer.Edge
		aggregate, aborted bool
	}{
		{analyzer.Edge{Kind: analyzer.RW, From: committed, To: committed, FromStmt: sum, ToStmt: update}, true, false},
		{analyzer.Edge{Kind: analyzer.WR, From: aborted, To: committed, FromStmt: update, ToStmt: sum}, true, true},
		{analyzer.Edge{Kind: analyzer.WR, From: aborted, To: committed, FromStmt: update, ToStmt: plain}, false, true},
		{analyzer.Edge{Kind: analyzer.WW, From: committed, To: committed, FromStmt: update, ToStmt: update}, false,
			false},
	} {
		f := &analyzer.Finding{Witness: []analyzer.Edge{c.edge}}
		if byAggregate(f) != c.aggregate || byAborted(f) != c.aborted {
			t.Errorf("%+v: aggregate %t, aborted %t", c.edge, byAggregate(f), byAborted(f))
		}
	}
}
