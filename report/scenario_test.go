package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

func TestScenariosMatchTheirGoldenFilesAndReadBack(t *testing.T) {
	for name, r := range fixtures() {
		dir := filepath.Join(t.TempDir(), "made")
		if err := Scenarios(dir, r); err != nil {
			t.Fatal(err)
		}
		want := 0
		for i, f := range r.Findings {
			if len(f.Txns()) == 0 {
				continue
			}
			want++
			text, err := os.ReadFile(filepath.Join(dir, scenarioName(f)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				compare(t, name+".scenario.yaml", text)
			}
			s, err := scenario.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			statements := 0
			for _, txn := range f.Txns() {
				statements += len(txn.Stmts)
			}
			if len(s.Steps) < statements || len(s.Sessions) != len(f.Txns()) {
				t.Errorf("%s: %d steps of %d statements, %d sessions", name, len(s.Steps), statements, len(s.Sessions))
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != want {
			t.Errorf("%s: %d files (%v), want %d", name, len(files), err, want)
		}
	}
}

// The server was still at T2's COMMIT when it took T1's SELECT, and T1's UPDATE came when that was done: played one
// after the other, the SELECT comes first, and the UPDATE waits for nobody.
func TestReadOfOldVersionComesBeforeTheCommit(t *testing.T) {
	row := history.Row{Table: "t", ID: "1"}
	stmt := func(num uint32, k history.Kind, start, end int64, op history.Op) history.Stmt {
		return history.Stmt{Num: num, Kind: k, Shape: k.String(), Start: start, End: end,
			Accesses: []history.Access{{Row: row, Op: op}}}
	}
	t1 := &history.Txn{ID: history.MakeTxnID(7, 1), Session: 1, Start: 12, End: 30, Status: history.Committed,
		Stmts: []history.Stmt{
			stmt(1, history.Begin, 2, 3, history.Read), stmt(2, history.Select, 12, 14, history.Read),
			stmt(3, history.Update, 17, 20, history.UpdateRow), stmt(4, history.Commit, 25, 30, history.Read)}}
	t2 := &history.Txn{ID: history.MakeTxnID(7, 2), Session: 2, Start: 1, End: 18, Status: history.Committed,
		Stmts: []history.Stmt{
			stmt(1, history.Begin, 1, 2, history.Read), stmt(2, history.Update, 4, 8, history.UpdateRow),
			stmt(3, history.Commit, 10, 18, history.Read)}}
	f := &analyzer.Finding{Anomaly: analyzer.LostUpdate, Witness: []analyzer.Edge{
		{From: t1, To: t2, Kind: analyzer.RW, Row: row, FromStmt: &t1.Stmts[1], ToStmt: &t2.Stmts[1]},
		{From: t2, To: t1, Kind: analyzer.WW, Row: row, FromStmt: &t2.Stmts[1], ToStmt: &t1.Stmts[2]}}}
	var order []string
	for _, x := range newScenario(f, newClock(nil)).Steps {
		order = append(order, x.Session+" "+x.SQL)
		if x.Waits {
			t.Errorf("%s %s waits", x.Session, x.SQL)
		}
	}
	if got, want := strings.Join(order, ", "), "T2 BEGIN, T1 BEGIN, T2 UPDATE, T1 SELECT, T2 COMMIT, T1 UPDATE, T1 COMMIT"; got != want {
		t.Errorf("the steps are\n%s, want\n%s", got, want)
	}
}
