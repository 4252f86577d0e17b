package analyzer

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestAPreparedTransactionEndsWhenItIsCommitted has a session prepare a transaction and go on, and another session
// commit it later, or nobody knows whether: what the first session reads meanwhile is as it was before.
func TestAPreparedTransactionEndsWhenItIsCommitted(t *testing.T) {
	row := history.Row{Table: "public.t", ID: "1"}
	run := history.Run(5)
	txn := func(n uint32, session history.SessionID, start, end int64, s ...history.Stmt) *history.Txn {
		for i := range s {
			s[i].Num, s[i].Observation, s[i].Start, s[i].End = uint32(i+1), history.Exact, start, start+1
		}
		return &history.Txn{ID: history.MakeTxnID(run, n), Session: session, Status: history.Committed,
			Level: history.RepeatableRead, Start: start, End: end, Stmts: s}
	}
	access := func(kind history.Kind, op history.Op, version history.Tag) history.Stmt {
		return history.Stmt{Kind: kind, Shape: kind.String(),
			Accesses: []history.Access{{Row: row, Op: op, Version: version}}}
	}
	first, written := history.Tag{}, history.Tag{Txn: history.MakeTxnID(run, 2), Stmt: 1}
	info := history.Info{Run: run, Server: history.Server{Engine: "postgresql", Version: "15"}}
	for name, c := range map[string]struct {
		prepared *history.Txn
		want     int
	}{
		"committed later":           {txn(2, 1, 20, 90, access(history.Update, history.UpdateRow, first)), 0},
		"nobody knows when it was":  {txn(2, 1, 20, 25, access(history.Update, history.UpdateRow, first)), 0},
		"ended before the next one": {txn(2, 1, 20, 25, access(history.Update, history.UpdateRow, first)), 1},
	} {
		if name == "nobody knows when it was" {
			c.prepared.Status = history.Indeterminate
		}
		r, err := Analyze([]history.Info{info}, []*history.Txn{
			txn(1, 1, 10, 15, access(history.Select, history.Read, first)),
			c.prepared,
			txn(3, 1, 30, 40, access(history.Select, history.Read, first)),
			txn(4, 2, 95, 99, access(history.Select, history.Read, written)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != c.want {
			t.Errorf("%s: %d findings, want %d", name, len(r.Findings), c.want)
		}
	}
}
