package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// analysed is what the analyzer makes of two transactions that lose an update.
func analysed(t *testing.T) *analyzer.Result {
	t.Helper()
	return analysedAs(t, lostUpdate())
}

// analysedAs is what it makes of those of this result.
func analysedAs(t *testing.T, r *analyzer.Result) *analyzer.Result {
	t.Helper()
	row := history.Row{Table: "bank.account", ID: "7"}
	first, second := r.Findings[0].Witness[0].To, r.Findings[0].Witness[0].From
	for _, txn := range []*history.Txn{first, second} {
		txn.Stmts[1].Accesses = []history.Access{{Row: row, Op: history.Read}}
	}
	first.Stmts[2].Accesses = []history.Access{{Row: row, Op: history.UpdateRow}}
	second.Stmts[2].Accesses = []history.Access{{Row: row, Op: history.UpdateRow, Version: tag(0x2a1, 3)}}
	result, err := analyzer.Analyze(r.Runs, []*history.Txn{first, second})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings) != 1 {
		t.Fatalf("the analyzer gives %d findings, want 1", len(result.Findings))
	}
	return result
}

// TestStatementsAreReadAsTheRecordingsSQL: what the report and the explanation quote has its values where the family's
// grammar has them.
func TestStatementsAreReadAsTheRecordingsSQL(t *testing.T) {
	const want = "UPDATE account SET n=1 WHERE d #>> '{a}' = 'b' AND d ? 'c'"
	r := lostUpdate()
	r.Runs[0].Server.Engine = dbms.PostgreSQL
	for _, txn := range r.Findings[0].Txns() {
		txn.Stmts[2].Shape = "UPDATE account SET n=? WHERE d #>> ? = ? AND d ? ?"
		txn.Stmts[2].Args = []string{"1", "'{a}'", "'b'", "'c'"}
	}
	f := analysedAs(t, r).Findings[0]
	if text := strings.Join(f.Explanation, "\n"); !strings.Contains(text, want) {
		t.Errorf("the explanation lacks %s:\n%s", want, text)
	}
	w := newWitness(f)
	if got := w.text(&w.txns[0].Stmts[2]); got != want {
		t.Errorf("the report has %s, want %s", got, want)
	}
}

func TestReportAndExplanationCallTransactionsTheSame(t *testing.T) {
	r := analysed(t)
	w := newWitness(r.Findings[0])
	text := strings.Join(r.Findings[0].Explanation, "\n")
	for _, txn := range w.txns {
		if want := fmt.Sprintf("%s (%s)", w.name(txn), txn.ID); !strings.Contains(text, want) {
			t.Errorf("the explanation does not speak of %s:\n%s", want, text)
		}
		if w.programName(txn) == "" {
			t.Errorf("the program of %s is not found", w.name(txn))
		}
	}
	var b bytes.Buffer
	if err := Terminal(&b, r, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 hazard, 0 violations", "lost update", "FOR UPDATE"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	t.Log(b.String())
	if g := w.drawing(); g == nil || len(g.Edges) != len(r.Findings[0].Witness) {
		t.Errorf("the cycle is not drawn: %+v", g)
	}
}

// TestProgramIsKnownOverNumberedTables: program of a transaction is known where its tables are numbered.
func TestProgramIsKnownOverNumberedTables(t *testing.T) {
	r := lostUpdate()
	f := r.Findings[0]
	for _, txn := range f.Txns() {
		for i := range txn.Stmts {
			txn.Stmts[i].Shape = strings.ReplaceAll(txn.Stmts[i].Shape, "`account`", "`account7`")
		}
	}
	for i, shape := range f.Programs[0].Stmts {
		f.Programs[0].Stmts[i] = strings.ReplaceAll(shape, "`account`", "`account#`")
	}
	w := newWitness(f)
	for _, txn := range w.txns {
		if got := w.programName(txn); got != "UPDATE account" {
			t.Errorf("%s ran program %q, want UPDATE account", w.name(txn), got)
		}
	}
}
