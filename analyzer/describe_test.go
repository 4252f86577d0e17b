package analyzer

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every anomaly in words: the golden file is what a developer reads.
func TestDescribesFindings(t *testing.T) {
	for name, text := range map[string]string{
		"lost-update": `
T1 committed RR | r stock.7 0 | u stock.7 T2.2
T2 committed RR | r stock.7 0 | u stock.7 0`,
		"lost-update-chain": `
T1 committed RC | r stock.7 0 | u stock.7 T3.1
T2 committed RC | u stock.7 0
T3 committed RC | d other.1 0 & u stock.7 T2.1`,
		"write-skew": `
T1 committed RR | r doctors.1 0 & r doctors.2 0 | u doctors.1 0
T2 committed RR | r doctors.1 0 & r doctors.2 0 | u doctors.2 0`,
		"read-skew": `
T1 committed RR | r a.1 0 | r b.1 T2.2
T2 committed RR | u a.1 0 | u b.1 0`,
		"read-skew-current": `
T1 committed RR | r a.1 0 | R b.1 T2.2
T2 committed RR | d a.1 0 | u b.1 0`,
		"read-write-skew": `
T1 committed RR | r a.1 0 | u b.1 T2.2
T2 committed RR | u a.1 0 | u b.1 0`,
		"g0":             "T1 committed RU | u x 0 | u y T2.2\nT2 committed RU | u x T1.1 | u y 0",
		"g1a":            "T1 aborted RU | u x 0\nT2 committed RU | r x T1.1",
		"g1a-void":       "T1 committed RC | u! x 0\nT2 committed RC | r x T1.1",
		"g1b":            "T1 committed RC | u x 0 | u x T1.1\nT2 committed RC | r x T1.1",
		"g1c":            "T1 committed RU | u x 0 | r y T2.1\nT2 committed RU | u y 0 | r x T1.1",
		"non-repeatable": "T1 committed RC | r x 0 | r x T2.1\nT2 committed RC | u x 0",
		"dirty-update":   "T1 aborted RC | u x 0\nT2 committed RC | u x T1.1",
		"g-single":       "T1 committed RC | r x 0 | r y T3.2\nT2 committed RC | u x 0\nT3 committed RC | r x T2.1 | u y 0",
		"long-fork":      "T1 committed RR | u x 0\nT2 committed RR | u y 0\nT3 committed RR | r x T1.1 | r y 0\nT4 committed RR | r y T2.1 | r x 0",
		"g2-item":        "T1 committed RR | r x 0 | u y 0\nT2 committed RR | u x 0\nT3 committed RR | r x T2.1 | r y 0",
		"garbage":        "T1 committed RC | r x X.1",
		"deleted":        "T1 committed RC | d x 0\nT2 committed RC | r x T1.1",
		"two-orders":     "T1 committed RC | u x 0\nT2 committed RC | u x T1.1\nT3 committed RC | r x 0,T2.1",
		"lost-write":     "T1 committed RC | u x 0\nT2 committed RC | u x 0",
		"no-level":       "T1 committed ?? | r x 0 | u x T2.1\nT2 committed ?? | u x 0",
		"mixed":          "T1 committed SR | r x 0 | u x T2.1\nT2 committed ?? | u x 0",
		"missed-row":     "T1 committed SR | m x 0 | u y 0\nT2 committed SR | m y 0 | u x 0",
	} {
		t.Run(name, func(t *testing.T) {
			h := script(t, text)
			if strings.HasPrefix(name, "lost-update") {
				writeNumbers(h)
			}
			h[0].Stmts[0].Args = []string{"'k1'"}
			r, err := Analyze([]history.Info{scriptInfo()}, h)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, inWords(r))
		})
	}
}

func inWords(r *Result) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s\n%s\nRule: %s\n", f.ID, f.Class, f.Anomaly, f.Summary, f.Rule)
		for _, e := range f.Explanation {
			fmt.Fprintf(&b, "- %s\n", e)
		}
		for _, a := range f.Advice {
			fmt.Fprintf(&b, "* %s\n", a)
		}
		for _, p := range f.Programs {
			fmt.Fprintf(&b, "%s at %s: %s\n", p.Name, p.Level, strings.Join(p.Stmts, "; "))
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAppendsForUpdateOnlyWhereThatSuffices: appends for update only where that is all it takes.
func TestAppendsForUpdateOnlyWhereThatSuffices(t *testing.T) {
	for shape, want := range map[string]string{
		"SELECT a FROM t WHERE id = ?":                   "SELECT a FROM t WHERE id = ? FOR UPDATE",
		"select a from t where id = ? ; ":                "select a from t where id = ? FOR UPDATE",
		"SELECT a FROM t ORDER BY a LIMIT ?":             "SELECT a FROM t ORDER BY a LIMIT ? FOR UPDATE",
		"SELECT a FROM t UNION SELECT b FROM u":          "",
		"SELECT COUNT(*) FROM t GROUP\tBY a":             "",
		"SELECT DISTINCT a FROM t":                       "",
		"SELECT a FROM t WHERE id IN (SELECT id FROM u)": "",
		"SELECT a FROM t -- by id":                       "",
		"SELECT a INTO @x FROM t":                        "",
	} {
		got, ok := withLock(dbms.MySQLFamily, &history.Stmt{Kind: history.Select, Shape: shape}, "public.t")
		if got != want || ok != (want != "") {
			t.Errorf("withLock(%q) = %q, %v, want %q", shape, got, ok, want)
		}
	}
	if got, ok := withLock(dbms.MySQLFamily, &history.Stmt{Kind: history.Select, Locking: history.LockShare,
		Shape: "SELECT 1"}, "public.t"); ok {
		t.Errorf("a locking read became %q", got)
	}
}

func TestEdgesGivesEveryDependency(t *testing.T) {
	h := script(t, `
T1 committed RC | u x 0
T2 committed RC | R x T1.1 | r y 0
T3 committed RC | d x T1.1 | u y 0 | u y T3.2
T4 aborted RC | r x T1.1
T5 committed RC | r y T3.3`)
	h[1].Session, h[3].Session, h[4].Session = 1, 1, 1
	a := New(Options{})
	for _, txn := range h {
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	for range a.Edges() {
		t.Fatal("edges before the analysis")
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for e, err := range a.Edges() {
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d -%s-> %d %s", e.From.ID.Seq(), e.Kind, e.To.ID.Seq(), e.Row.ID)
		if e.Kind != SO {
			line += fmt.Sprintf(" %d/%d", e.FromStmt.Num, e.ToStmt.Num)
		}
		if e.Current {
			line += " current"
		}
		got[line]++
	}
	want := []string{
		"1 -so-> 2 ", "2 -so-> 5 ",
		"1 -wr-> 2 x 1/1 current", "2 -rw-> 3 x 1/1 current", "1 -ww-> 3 x 1/1 current",
		"2 -rw-> 3 y 2/2", "3 -wr-> 5 y 3/1",
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %q", got, want)
	}
	for _, w := range want {
		if got[w] != 1 {
			t.Errorf("edge %q %d times in %v", w, got[w], got)
		}
	}
}

func TestLoadsWitnessesOnly(t *testing.T) {
	h := script(t, `
T1 committed RR | r x 0 | u x T2.1
T2 committed RR | u x 0
T3 committed RR | r z 0`)
	loads := make(map[history.TxnID]int)
	run := func(load func(history.TxnID, history.SessionID) (*history.Txn, error)) (*Result, error) {
		a := New(Options{Load: load})
		for _, txn := range h {
			if err := a.AddTxn(txn); err != nil {
				t.Fatal(err)
			}
		}
		return a.Finish()
	}
	r, err := run(func(id history.TxnID, session history.SessionID) (*history.Txn, error) {
		loads[id]++
		if want := h[id.Seq()-1].Session; session != want {
			t.Errorf("%s is asked for in session %d instead of %d", id, session, want)
		}
		return h[id.Seq()-1], nil
	})
	if err != nil || len(r.Findings) != 1 || len(loads) != 2 || loads[h[2].ID] != 0 {
		t.Errorf("%v, %v, loaded %v", r, err, loads)
	}
	gone := errors.New("gone")
	if _, err := run(func(history.TxnID, history.SessionID) (*history.Txn, error) { return nil, gone }); !errors.Is(err,
		gone) {
		t.Errorf("error %v, want one that wraps %v", err, gone)
	}
	if _, err := run(func(history.TxnID, history.SessionID) (*history.Txn, error) { return nil, nil }); err == nil {
		t.Error("no error where a transaction is not there")
	}
}

func TestInexactCyclesAreHazardsOnDemand(t *testing.T) {
	for _, text := range []string{
		"T1 committed SR | r~ x 0 | u x T2.1\nT2 committed SR | u x 0",
		"T1 committed RR | r~ x 0 | u x T2.1\nT2 committed RR | u x 0",
		"T1 committed RC | u x 0 | r~ y T2.1\nT2 committed RC | u y 0 | r x T1.1",
		"T1 committed SR | r x 0 & r y 0 | u~ x 0\nT2 committed SR | r x 0 & r y 0 | u y 0",
	} {
		a := New(Options{Inexact: true})
		info := scriptInfo()
		info.Server.SnapshotIsolation = true
		if err := a.Add(info); err != nil {
			t.Fatal(err)
		}
		for _, txn := range script(t, text) {
			if err := a.AddTxn(txn); err != nil {
				t.Fatal(err)
			}
		}
		r, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Class != Hazard ||
			!strings.Contains(r.Findings[0].Rule, "not observed exactly") {
			t.Errorf("findings %v", names(r))
		}
	}
}
