package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/recorder"
)

// Two recordings of one PostgreSQL server hold a lost update between them: one has the reader that wrote
// later, the other the writer that came in between. A recording of another engine stands beside them.
func TestPlacesAreResolvedOverAllRecordings(t *testing.T) {
	const run history.Run = 36 * 36 * 36 * 36 * 36
	start := time.Unix(1_700_000_000, 0)
	row := history.Row{Table: "public.stock", ID: "5"}
	place := func(p history.TupleID, op history.Op, kind history.Kind, shape string, num uint32) history.Stmt {
		return history.Stmt{Num: num, Kind: kind, Observation: history.Exact, Shape: shape, Args: []string{"5"},
			Accesses: []history.Access{{Row: row, Op: op}}, TupleIDs: []history.TupleID{p}}
	}
	reader := &history.Txn{ID: history.MakeTxnID(run, 1), Session: 1, Status: history.Committed,
		Level: history.ReadCommitted, End: 30, Stmts: []history.Stmt{
			place(history.TupleID{XID: 90, CTID: 1}, history.Read, history.Select, "SELECT qty FROM stock WHERE id = ?",
				1),
			place(history.TupleID{NewXID: 102, NewID: 3, LSN: 20}, history.UpdateRow, history.Update,
				"UPDATE stock SET qty = 7 WHERE id = ?", 2)}}
	writer := &history.Txn{ID: history.MakeTxnID(run+1, 1), Session: 1, Status: history.Committed,
		Level: history.ReadCommitted, End: 20, Stmts: []history.Stmt{
			place(history.TupleID{NewXID: 101, NewID: 2, LSN: 10}, history.UpdateRow, history.Update,
				"UPDATE stock SET qty = 8 WHERE id = ?", 1)}}
	info := history.Info{Run: run, Started: start, Ended: start.Add(time.Minute), Horizon: 100,
		Server: history.Server{Engine: "postgresql", Version: "15.18", System: 7}}
	other := info
	other.Run++
	mysql := history.Info{Run: run + 2, Started: start, Ended: start.Add(time.Minute),
		Server: history.Server{Engine: "mysql", Version: "9.7"}}
	dirs := []string{recorded(t, info, reader), recorded(t, other, writer), recorded(t, mysql)}
	r, err := analysis.Analyze(t.Context(), dirs, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.LostUpdate {
		t.Fatalf("findings %+v, want one lost update", r.Findings)
	}
	told := strings.Join(r.Findings[0].Explanation, "\n")
	for _, want := range []string{"row 5 at version 0 in `SELECT qty FROM stock WHERE id = 5`", "version " +
		writer.ID.String() + ".1", "version " + reader.ID.String() + ".2"} {
		if !strings.Contains(told, want) {
			t.Errorf("the explanation does not say %q:\n%s", want, told)
		}
	}
	witness := r.Findings[0].Txns()
	if slices.ContainsFunc(witness, func(x *history.Txn) bool { return x.Stmts[0].TupleIDs != nil }) {
		t.Error("the witness has places instead of versions")
	}
	alone, err := analysis.AnalyzeRun(t.Context(), dirs[0], run, analyzer.Options{})
	if err != nil || len(alone.Findings) != 0 {
		t.Errorf("one run alone: findings %v, %v", alone, err)
	}
}

func recorded(t *testing.T, info history.Info, txns ...*history.Txn) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rec")
	w, err := recorder.Restore(dir, info, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range txns {
		if err := w.Txn(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
