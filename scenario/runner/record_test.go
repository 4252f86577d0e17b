package runner

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/serverlog"
)

const writesOfAllKinds = `format: isotap-scenario/1
name: writes of all kinds
setup: ["CREATE TABLE stock (id INT PRIMARY KEY, n INT)", "INSERT INTO stock VALUES (1, 10), (2, 20), (3, 30)",
  "CREATE TABLE log (n INT)", "INSERT INTO log VALUES (7)"]
sessions: [{name: T1}, {name: T2}]
steps:
  - {session: T1, sql: BEGIN}
  - {session: T2, sql: BEGIN}
  - {session: T1, sql: SELECT n FROM stock WHERE id = 1}
  - {session: T2, sql: SELECT n FROM stock WHERE id = 1}
  - {session: T1, sql: UPDATE stock SET n = 9 WHERE id = 1}
  - {session: T1, sql: UPDATE stock SET n = 8 WHERE id = 1}
  - {session: T1, sql: DELETE FROM stock WHERE id = 2}
  - {session: T2, sql: "INSERT INTO stock VALUES (4, 40)"}
  - {session: T2, sql: UPDATE log SET n = n + 1}
  - {session: T1, sql: COMMIT}
  - {session: T2, sql: ROLLBACK}
  - {session: T2, sql: SELECT * FROM stock ORDER BY id}
  - {session: T1, sql: SELECT * FROM log}
  - {session: T1, sql: UPDATE nowhere SET n = 1}
`

// TestWhatIsKeptOfPlaysIsWhatARecordingHolds: whether an isotap is new or was left by another play.
func TestWhatIsKeptOfPlaysIsWhatARecordingHolds(t *testing.T) {
	sc := read(t, writesOfAllKinds)
	for engine, s := range open(t) {
		for _, level := range []history.Level{history.ReadCommitted, history.RepeatableRead} {
			want := recorded(t, s, writesOfAllKinds, level)
			for n := range 3 {
				trace, txns, err := s.Record(t.Context(), sc, level)
				if err != nil {
					t.Fatal(err)
				}
				if got := told(txns); got != want {
					t.Errorf("%s at %s, play %d:\n%s\nin a recording:\n%s", engine, level, n+1, got, want)
				}
				if got := trace.Results[11].Rows; len(got) != 2 {
					t.Errorf("%s at %s: %v", engine, level, got)
				}
			}
		}
		if n := len(s.isotaps.left); n != 1 {
			t.Errorf("%s: %d isotaps for plays one behind the other", engine, n)
		}
	}
}

// recorded returns what a recording holds of a play.
func recorded(t *testing.T, s *Runner, text string, level history.Level) string {
	t.Helper()
	p := &Result{Scenario: read(t, text), Server: s.Server, Level: level}
	dir, without := filepath.Join(t.TempDir(), "recording"), *s
	without.options.ServerLog = serverlog.Off
	if _, err := without.record(t.Context(), p, dir); err != nil {
		t.Fatal(err)
	}
	_, txns, err := analysis.Resolved(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return told(txns)
}

var database = regexp.MustCompile(`isotap_replay_[a-z0-9]+_\d+`)

// told is what was observed, with transactions by their places and rows by the order in which they come.
func told(txns []*history.Txn) string {
	places := map[history.TxnID]int{0: 0}
	for i, txn := range txns {
		places[txn.ID] = i + 1
	}
	tag := func(x history.Tag) string { return fmt.Sprintf("T%d.%d", places[x.Txn], x.Stmt) }
	rows := make(map[history.Row]int)
	row := func(r history.Row) string {
		if rows[r] == 0 {
			rows[r] = len(rows) + 1
		}
		return fmt.Sprintf("row %d of %s", rows[r], r.Table)
	}
	var b strings.Builder
	for i, txn := range txns {
		fmt.Fprintf(&b, "T%d: %s %s\n", i+1, txn.Status, txn.Level)
		for j := range txn.Stmts {
			x := &txn.Stmts[j]
			fmt.Fprintf(&b, "  %s %s %s %d rows %s\n", x.Kind, x.Observation, x.Reason, x.Rows, x.Sender.Place)
			for k := range x.Accesses {
				a := &x.Accesses[k]
				version := tag(a.Version)
				if a.Version.Txn.Run() == history.Unrecorded {
					version = "nobody's"
				}
				fmt.Fprintf(&b, "    %s %s: %s inexact %v\n", a.Op, row(a.Row), version, a.Inexact)
			}
		}
	}
	return database.ReplaceAllString(b.String(), "db")
}
