package runner

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/replay"
)

// played is a result in which no list of the document is empty.
func played() *Result {
	return &Result{
		Scenario: &scenario.Scenario{Name: "a", File: "a.yaml",
			Expect: scenario.Outcome{Anomalies: []string{"write skew"}}},
		Server: history.Server{Engine: "tidb", Version: "8"}, Level: history.RepeatableRead,
		Settings: scenario.Settings{"tidb_txn_mode": "optimistic"},
		Trace: replay.Trace{Database: "isotap_replay_1", Results: []replay.Result{
			{N: 1, Session: "T1", SQL: "SELECT a < b", Status: replay.OK, Columns: []replay.Column{{Name: "a < b"}},
				Rows: [][]replay.Value{{{Text: "1"}, {Null: true}}}},
			{N: 2, Session: "T2", SQL: "COMMIT", Status: replay.Failed, Blocked: true, WaitedFor: []string{"T1"},
				DoneAfter: replay.AtEnd, Code: 9007, State: "HY000", Message: "conflict",
				Notices: []replay.Notice{{Severity: "NOTICE", Code: "00000", Message: "x"}}},
		}},
		Result: &analyzer.Result{Findings: []*analyzer.Finding{{ID: "f", Anomaly: analyzer.LostUpdate,
			Class: analyzer.Hazard, Summary: "of isotap_replay_1.t", Tables: []string{"isotap_replay_1.t"},
			Advice: []string{"isotap_replay_1.t: no",
				"Lock. It is not enough here, another cycle remains: T1 read t row e1, and so on."}}}},
	}
}

// judged is a verdict in which no list of the document is empty.
func judged() *Judged {
	step := func(n int, session, sql string, affected uint64) *replay.Result {
		return &replay.Result{N: n, Session: session, SQL: sql, Status: replay.OK, Affected: affected}
	}
	const update = "UPDATE t SET v = '<script>alert(1)</script>' WHERE v < 3"
	return &Judged{
		Scenario: &scenario.Scenario{Name: "b", File: "b.yaml", Setup: []string{"CREATE TABLE t (v INT)"},
			Sessions: []scenario.Session{{Name: "T1"}, {Name: "T2"}}, Steps: []scenario.Step{{Session: "T1", SQL: "BEGIN"},
				{Session: "T2", SQL: "INSERT INTO t VALUES (1)"}, {Session: "T1", SQL: update}, {Session: "T1", SQL: "COMMIT"}}},
		Server: history.Server{Engine: "mariadb", Version: "10"}, Level: history.RepeatableRead, Oracle: "serial",
		Does: "transactions against orders of their statements",
		Verdict: &oracle.Verdict{Transactions: 2, Statements: 2, ByDesign: []string{"x"},
			NotJudged: map[string]int{"they depend on each other": 1}, Order: []int{3, 2},
			Differences: []oracle.Difference{
				{Step: 3, SQL: update, Aspect: oracle.Affected, Got: "2", Want: "1", By: "in autocommit, in the order 3, 2,"},
				{SQL: "SELECT * FROM t", Aspect: oracle.Table, Got: `1 row: ("<script>")`, Want: "no rows", Known: "MDEV-1: it is known",
					GotOnly: []string{`("<script>")`}, WantOnly: []string{"(7)"}, By: "in autocommit, in the order 3, 2,"}},
			Replies: []oracle.Reply{{Step: 1, Got: step(1, "T1", "BEGIN", 0)},
				{Step: 2, Got: step(2, "T2", "INSERT INTO t VALUES (1)", 1), Want: step(2, "T2", "INSERT INTO t VALUES (1)", 1)},
				{Step: 3, Got: step(3, "T1", update, 2), Want: step(1, "T1", update, 1)},
				{Step: 4, Got: step(4, "T1", "COMMIT", 0)}}},
	}
}

func TestJSONSaysWhatHappened(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, []*Result{played()}, []*Judged{judged()}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema": "isotap-replay/1"`, `"sql": "SELECT a < b"`, "null\n            ]",
		`"done_after": 0`, `"summary": "of t"`, `"Lock. It is not enough here, another cycle remains."`,
		`"found lost update, expected write skew"`, `"text": "step 3, rows changed: the server said 2; in autocommit, in the order 3, 2, it is 1"`,
		`"aspect": "table at the end"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestDocumentationNamesEveryFieldOfJSON(t *testing.T) {
	text, err := os.ReadFile("../../docs/replay-json.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := JSON(&b, []*Result{played()}, []*Judged{judged()}); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(value any)
	visit = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				if !strings.Contains(string(text), name+"`") && !strings.Contains(string(text), name+"[]`") {
					t.Errorf("docs/replay-json.md does not describe %s", name)
				}
				if name != "settings" { // whose names are the server's
					visit(inner)
				}
			}
		case []any:
			for _, inner := range v {
				visit(inner)
			}
		}
	}
	visit(doc)
}

// What a witness does not take says nothing of how the anomaly was prevented; that a reply of it came late, nothing
// against the anomaly.
func TestShowsGoesByTheWitness(t *testing.T) {
	one := uint64(1)
	ok, late := replay.Result{Status: replay.OK, Affected: 1}, replay.Result{Status: replay.OK, Affected: 1, Blocked: true}
	failed, other := replay.Result{Status: replay.Failed, State: "40001"}, replay.Result{Status: replay.OK}
	for _, c := range []struct {
		want    Showing
		first   replay.Result // of which the witness takes nothing
		second  replay.Result
		without bool
	}{
		{Witnessed, ok, ok, false}, {Witnessed, failed, late, false}, {Refused, ok, failed, false},
		{Prevented, failed, other, false}, {Prevented, late, other, false},
		{Waited, ok, replay.Result{Status: replay.OK, Blocked: true}, false},
		{Waited, ok, replay.Result{Status: replay.Blocked, Blocked: true}, false},
		{Prevented, ok, replay.Result{Status: replay.NotRun}, false},
		{Refused, failed, ok, true}, {Waited, late, ok, true}, {Prevented, ok, ok, true},
	} {
		p := &Result{Scenario: &scenario.Scenario{Witness: map[int]scenario.Reply{2: {Affected: &one}}}}
		if c.without {
			p.Scenario.Witness = nil
		}
		c.first.N, c.second.N = 1, 2
		p.Trace.Results = []replay.Result{c.first, c.second}
		if got := p.Shows(); got != c.want {
			t.Errorf("%+v, %+v: %s, want %s", c.first, c.second, got, c.want)
		}
	}
}

func TestJUnitFailsWhereSomethingIsNotExpected(t *testing.T) {
	as := played()
	as.Scenario = &scenario.Scenario{Name: "b", Expect: scenario.Outcome{Anomalies: []string{"lost update"}}}
	var b strings.Builder
	if err := JUnit(&b, []*Result{played(), as}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tests="2" failures="1"`,
		`name="a, tidb 8, REPEATABLE READ, tidb_txn_mode=optimistic"`, `file="a.yaml"`,
		`message="found lost update, expected write skew"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}
