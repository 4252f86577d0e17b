package explore

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// optimistic are programs of which TiDB refuses the second one's COMMIT, and those that only look so.
var optimistic = []struct {
	name       string
	statements []string
	why        Reason // empty: the race is shown
}{
	{"it says so", []string{"BEGIN OPTIMISTIC", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, Optimistic},
	{"its session does", []string{"SET tidb_txn_mode = 'optimistic'", "BEGIN", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, Optimistic},
	{"it says otherwise", []string{"SET tidb_txn_mode = 'optimistic'", "BEGIN PESSIMISTIC",
		"SELECT balance FROM account WHERE id = 1", "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, ""},
	{"it has no block", []string{"SET tidb_txn_mode = 'optimistic'", "SELECT balance FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1"}, ""},
	{"a star, and values without columns", []string{"BEGIN", "SELECT * FROM account WHERE id = 1",
		"UPDATE account SET balance = 90 WHERE id = 1", "COMMIT", "BEGIN", "SELECT * FROM profile WHERE id = 9",
		"INSERT INTO visit VALUES (9, 'a', NULL)", "COMMIT"}, ""},
}

// TestOptimisticTransactionsHaveNoTwins: a twin that takes a lock would have the client's COMMIT fail.
func TestOptimisticTransactionsHaveNoTwins(t *testing.T) {
	testdb.Only(t, "only TiDB has such transactions", testdb.TiDBRound.Name)
	counts := families[1].counts
	for _, c := range optimistic {
		check := func(t *testing.T, result *Result) {
			t.Helper()
			told := slices.ContainsFunc(result.Races, func(r Race) bool { return r.Kind == LostUpdate && r.Column == "balance" })
			if told != (c.why == "") || c.why != "" && result.NotPlayed[c.why] == 0 || result.Diverged > 0 {
				t.Errorf("told %v; %+v", told, result)
			}
		}
		t.Run(c.name+"/on a copy", func(t *testing.T) {
			check(t, exploreSerial(t, dbms.MySQLFamily, counts, c.statements))
		})
		t.Run(c.name+"/live", func(t *testing.T) {
			result, _ := runLive(t, dbms.MySQLFamily, counts, c.statements, true)
			check(t, result)
		})
	}
}

func TestAnOptimisticBlockIsRefusedAndNothingElse(t *testing.T) {
	for begin, want := range map[string]Reason{"BEGIN OPTIMISTIC": Optimistic, "BEGIN PESSIMISTIC": "", "BEGIN": Optimistic,
		"START TRANSACTION READ WRITE": Optimistic, "": ""} {
		x := &history.Txn{Status: history.Committed, Conflicts: history.ConflictsAtCommit, Implicit: begin == ""}
		if begin != "" {
			x.Stmts = append(x.Stmts, history.Stmt{Kind: history.Begin, Shape: begin})
		}
		for n, text := range []string{"SELECT n FROM t WHERE id = 1", "UPDATE t SET n = 2 WHERE id = 1"} {
			x.Stmts = append(x.Stmts, history.Stmt{Num: uint32(n + 1), Text: text, Shape: text, Affected: uint64(n),
				Kind: []history.Kind{history.Select, history.Update}[n]})
		}
		in := newInstance(x, dbms.MySQLFamily)
		in.alone = true
		if got := in.refusal(host{family: dbms.MySQLFamily}); got != want {
			t.Errorf("%q: %q, want %q", begin, got, want)
		}
	}
}
