package hunt

import (
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// unseen is a round of three transactions: one that makes a row, and two of which the second writes what is there already and
// does not see it (MDEV-26642). Each of these two also reads what does not matter.
func unseen(t *testing.T) (*round, *analyzer.Finding) {
	t.Helper()
	started := time.Now()
	txn := func(n uint64, start, step, end int64, stmts ...history.Stmt) *history.Txn {
		stmts = append(append([]history.Stmt{{Kind: history.Begin, Shape: "BEGIN"}}, stmts...), history.Stmt{Kind: history.Commit, Shape: "COMMIT"})
		for i := range stmts {
			s := &stmts[i]
			s.Num, s.Start, s.End = uint32(i+1), start+int64(i)*step, start+int64(i)*step+1
		}
		return &history.Txn{ID: history.TxnID(n), Level: history.RepeatableRead, Status: history.Committed, Start: start, End: end, Stmts: stmts}
	}
	other := history.Stmt{Kind: history.Select, Shape: "SELECT 1"}
	first := txn(1, 1000, 100, 5000, other, history.Stmt{Kind: history.Select, Shape: "SELECT v FROM t"}, history.Stmt{Kind: history.Update, Shape: "UPDATE t SET v = 7"})
	second := txn(2, 1110, 40, 2000, history.Stmt{Kind: history.Update, Shape: "UPDATE t SET v = 7"}, other)
	f := &analyzer.Finding{Anomaly: analyzer.LostUpdate, Class: analyzer.Hazard, Witness: []analyzer.Edge{
		{From: first, To: second, Kind: analyzer.RW, FromStmt: &first.Stmts[2], ToStmt: &second.Stmts[1]},
		{From: second, To: first, Kind: analyzer.WR, FromStmt: &second.Stmts[1], ToStmt: &first.Stmts[3], Current: true}}}
	at := func(ns int) time.Time { return started.Add(time.Duration(ns)) }
	r := &round{generator: random.New(random.Engine{Name: "mariadb"}, random.Profile{}, 1), result: &analyzer.Result{Runs: []history.Info{{Started: started}}},
		outcome: &random.Outcome{Steps: []random.Step{
			{Transaction: 1, SQL: "INSERT INTO t VALUES (1)", Sent: at(10), Ended: at(20)},
			{Transaction: 1, SQL: "INSERT INTO t VALUES (1)", Sent: at(30), Ended: at(40), Error: "1062"},
			{Transaction: 2, Session: 1, SQL: "DELETE FROM t", Sent: at(50), Ended: at(60)},
			{Transaction: 1, SQL: "COMMIT", Sent: at(70), Ended: at(80)},
			{Transaction: 2, Session: 1, SQL: "ROLLBACK", Sent: at(90), Ended: at(100)},
			{Transaction: 3, SQL: "UPDATE t SET v = 7", Sent: at(1500), Ended: at(1600)},
			{Transaction: 4, SQL: "SELECT 1", Sent: at(6000), Ended: at(6100)},
		}}}
	for _, x := range f.Txns() {
		if x.ID.Run() != r.result.Runs[0].Run {
			t.Fatalf("the transactions are of run %v", x.ID.Run())
		}
	}
	return r, f
}

func TestAReductionBeginsWithLittle(t *testing.T) {
	r, f := unseen(t)
	var got []string
	for _, b := range r.beginnings(f) {
		got = append(got, sent(b.scenario))
	}
	const (
		cycle = "T1 BEGIN; T2 BEGIN; T2 UPDATE t SET v = 7; T1 SELECT v FROM t; T2 COMMIT; T1 UPDATE t SET v = 7; T1 COMMIT"
		all   = "T1 BEGIN; T1 SELECT 1; T2 BEGIN; T2 UPDATE t SET v = 7; T2 SELECT 1; T1 SELECT v FROM t; T2 COMMIT; T1 UPDATE t SET v = 7; T1 COMMIT"
		rows  = "before INSERT INTO t VALUES (1); "
	)
	want := []string{cycle, rows + cycle, all, rows + all,
		"S1 INSERT INTO t VALUES (1); S1 INSERT INTO t VALUES (1); S2 DELETE FROM t; S1 COMMIT; S2 ROLLBACK; S1 UPDATE t SET v = 7"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// sent is what a scenario sends, on one line.
func sent(s *scenario.Scenario) string {
	var all []string
	for _, x := range s.Steps {
		all = append(all, x.Session+" "+x.SQL)
	}
	return strings.Join(all, "; ")
}

func TestAnUpdateThatChangesNothingIsOfItsOwnKind(t *testing.T) {
	_, f := unseen(t)
	if got, want := keyOf(f, workload.Isolation{Level: history.RepeatableRead}), "hazard lost update at REPEATABLE READ: SELECT, UPDATE of equal values | UPDATE"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
