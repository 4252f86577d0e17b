package fuzz

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

// unseen is a round of three transactions: one that makes a row, and two of which the second writes what is there
// already and does not see it (MDEV-26642). Each of these two also reads what does not matter.
func unseen(t *testing.T) (*round, *analyzer.Finding) {
	t.Helper()
	started := time.Now()
	txn := func(n uint64, start, step, end int64, stmts ...history.Stmt) *history.Txn {
		stmts = append(append([]history.Stmt{{Kind: history.Begin, Shape: "BEGIN"}}, stmts...),
			history.Stmt{Kind: history.Commit, Shape: "COMMIT"})
		for i := range stmts {
			s := &stmts[i]
			s.Num, s.Start, s.End = uint32(i+1), start+int64(i)*step, start+int64(i)*step+1
		}
		return &history.Txn{ID: history.TxnID(n), Level: history.RepeatableRead, Status: history.Committed,
			Start: start, End: end, Stmts: stmts}
	}
	other := history.Stmt{Kind: history.Select, Shape: "SELECT 1"}
	first := txn(1, 1000, 100, 5000, other, history.Stmt{Kind: history.Select, Shape: "SELECT v FROM t"},
		history.Stmt{Kind: history.Update, Shape: "UPDATE t SET v = 7"})
	second := txn(2, 1110, 40, 2000, history.Stmt{Kind: history.Update, Shape: "UPDATE t SET v = 7"}, other)
	f := &analyzer.Finding{Anomaly: analyzer.LostUpdate, Class: analyzer.Hazard, Witness: []analyzer.Edge{
		{From: first, To: second, Kind: analyzer.RW, FromStmt: &first.Stmts[2], ToStmt: &second.Stmts[1]},
		{From: second, To: first, Kind: analyzer.WR, FromStmt: &second.Stmts[1], ToStmt: &first.Stmts[3],
			Current: true, Kept: true}}}
	at := func(ns int) time.Time { return started.Add(time.Duration(ns)) }
	r := &round{generator: random.New(random.Engine{Name: "mariadb"}, random.Profile{}, 1),
		result: &analyzer.Result{Runs: []history.Info{{Started: started}}},
		outcome: &random.Outcome{Steps: []random.Step{
			{Transaction: 1, SQL: "INSERT INTO t VALUES (1)", Sent: at(10), Ended: at(20)},
			{Transaction: 1, SQL: "INSERT INTO t VALUES (1)", Sent: at(30), Ended: at(40), Error: "1062"},
			{Transaction: 2, Session: 1, SQL: "DELETE FROM t", Sent: at(50), Ended: at(60)},
			{Transaction: 1, SQL: "COMMIT", Sent: at(70), Ended: at(80)},
			{Transaction: 2, Session: 1, SQL: "ROLLBACK", Sent: at(90), Ended: at(100)},
			{Transaction: 3, SQL: "BEGIN", Sent: at(1000), Ended: at(1001)},
			{Transaction: 3, SQL: "SELECT 1", Sent: at(1100), Ended: at(1101)},
			{Transaction: 4, Session: 1, SQL: "BEGIN", Sent: at(1110), Ended: at(1111)},
			{Transaction: 4, Session: 1, SQL: "UPDATE t SET v = 7", Sent: at(1150), Ended: at(1151)},
			{Transaction: 4, Session: 1, SQL: "SELECT 1", Sent: at(1190), Ended: at(1191)},
			{Transaction: 3, SQL: "SELECT v FROM t", Sent: at(1200), Ended: at(1201)},
			{Transaction: 5, Session: 2, SQL: "INSERT INTO t VALUES (5)", Sent: at(1210), Ended: at(1220)},
			{Transaction: 4, Session: 1, SQL: "COMMIT", Sent: at(1230), Ended: at(1231)},
			{Transaction: 3, SQL: "UPDATE t SET v = 7", Sent: at(1300), Ended: at(1301)},
			{Transaction: 3, SQL: "COMMIT", Sent: at(1400), Ended: at(1401)},
			{Transaction: 6, SQL: "SELECT 1", Sent: at(6000), Ended: at(6100)},
		}}}
	for _, x := range f.Txns() {
		if x.ID.Run() != r.result.Runs[0].Run {
			t.Fatalf("the transactions are of run %v", x.ID.Run())
		}
	}
	return r, f
}

// What a round's sessions sent, in which order, and what is made of it.
func TestAReductionBeginsWithLittle(t *testing.T) {
	r, f := unseen(t)
	a := r.account("mariadb")
	made := func(_ *account, earlier []string) []string { return earlier }
	var got []string
	for _, s := range append(a.beginnings(f, made), a.until(f)...) {
		if len(s.Setup) == 1 {
			got = append(got, s.Setup[0]+"; "+sent(s))
			continue
		}
		got = append(got, sent(s))
	}
	const (
		cycle = "S1 BEGIN; S2 BEGIN; S2 UPDATE t SET v = 7; S1 SELECT v FROM t; S2 COMMIT; S1 UPDATE t SET v = 7; S1 COMMIT"
		all   = "S1 BEGIN; S1 SELECT 1; S2 BEGIN; S2 UPDATE t SET v = 7; S2 SELECT 1; S1 SELECT v FROM t; " +
			"S2 COMMIT; S1 UPDATE t SET v = 7; S1 COMMIT"
		meanwhile = "S1 BEGIN; S1 SELECT 1; S2 BEGIN; S2 UPDATE t SET v = 7; S2 SELECT 1; S1 SELECT v FROM t; " +
			"S3 INSERT INTO t VALUES (5); S2 COMMIT; S1 UPDATE t SET v = 7; S1 COMMIT"
		rows   = "INSERT INTO t VALUES (1); "
		before = "S1 INSERT INTO t VALUES (1); S1 INSERT INTO t VALUES (1); S2 DELETE FROM t; S1 COMMIT; S2 ROLLBACK; "
	)
	want := []string{cycle, rows + cycle, all, rows + all, rows + meanwhile, before + meanwhile}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStepsFollowTheDependencies: steps are in the order that the dependencies tell.
func TestStepsFollowTheDependencies(t *testing.T) {
	at := func(ns int) time.Time { return time.Unix(0, int64(ns)) }
	for name, test := range map[string]struct {
		steps []random.Step
		order func(*part)
		want  string
	}{
		"a write that was sent before the one that it waited for": {
			[]random.Step{{SQL: "UPDATE", Sent: at(1), Ended: at(9)}, {Session: 1, SQL: "DELETE", Sent: at(2),
				Ended: at(3)}, {Session: 1, SQL: "COMMIT", Sent: at(4), Ended: at(5)}},
			func(*part) {}, "S2 DELETE; S2 COMMIT; S1 UPDATE"},
		"a reply that came late": {
			[]random.Step{{SQL: "COMMIT", Sent: at(1), Ended: at(9)}, {Session: 1, SQL: "SELECT", Sent: at(2),
				Ended: at(5)}, {Session: 1, SQL: "COMMIT", Sent: at(6), Ended: at(7)}},
			func(p *part) { p.order(0, 1) }, "S1 COMMIT; S2 SELECT; S2 COMMIT"},
		"what contradicts itself": {
			[]random.Step{{SQL: "SELECT", Sent: at(1), Ended: at(2)}, {Session: 1, SQL: "UPDATE", Sent: at(3),
				Ended: at(4)}},
			func(p *part) { p.order(0, 1); p.order(1, 0) }, "S1 SELECT; S2 UPDATE"},
	} {
		a := newAccount(nil, test.steps, nil, history.RepeatableRead, "mariadb")
		p := &part{of: a, behind: make(map[int][]int)}
		for i := range test.steps {
			p.kept = append(p.kept, i)
		}
		test.order(p)
		if got := sent(a.scenario(nil, p.sorted(whenEnded))); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
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

// TestUpdateWithoutChangeIsOfItsOwnKind: an update that changes nothing is of its own kind.
func TestUpdateWithoutChangeIsOfItsOwnKind(t *testing.T) {
	_, f := unseen(t)
	if got, want := keyOf(f, workload.Isolation{Level: history.RepeatableRead}),
		"hazard lost update at REPEATABLE READ: SELECT, UPDATE of equal values | UPDATE"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
