package analyzer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

func TestAddRefusesWhatCannotBe(t *testing.T) {
	a := New(Options{})
	info := scriptInfo()
	txn := &history.Txn{ID: history.MakeTxnID(scriptRun, 1)}
	for i, c := range []struct {
		err  error
		want string
	}{
		{a.Add(info), ""},
		{a.Add(info), "given twice"},
		{a.Add(history.Info{}), "zero run"},
		{a.AddTxn(txn), ""},
		{a.AddTxn(txn), "added before"},
		{a.AddTxn(&history.Txn{}), "zero run"},
		{a.AddTxn(&history.Txn{ID: history.MakeTxnID(scriptRun, 0)}), "counter"},
		{a.AddSession(history.Session{Run: scriptRun, ID: 3}), ""},
		{a.AddSession(history.Session{}), "zero run"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("call %d: error %v, want %q", i, c.err, c.want)
		}
	}
	r, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if r.Coverage.Sessions != 2 || len(r.Runs) != 1 || r.Runs[0].Run != scriptRun {
		t.Errorf("result %+v", r)
	}
	if a.AddTxn(&history.Txn{ID: history.MakeTxnID(scriptRun, 2)}) == nil {
		t.Error("a transaction was added after the end")
	}
	if _, err := a.Finish(); err == nil {
		t.Error("finished twice")
	}
}

func TestCountsCoverage(t *testing.T) {
	h := script(t, `
T1 committed RC | r x 0 & r y 0 | u x 0
T2 aborted RR | d y 0
T3 indeterminate RC | i z`)
	h[0].Stmts = append(h[0].Stmts,
		history.Stmt{Num: 3, Observation: history.Opaque, Reason: history.ReasonView}, history.Stmt{Num: 4})
	h[1].Stmts[0].Observation, h[1].Stmts[0].Reason = history.Inexact, history.ReasonTrigger
	r, err := Analyze([]history.Info{scriptInfo()}, h)
	if err != nil {
		t.Fatal(err)
	}
	want := Coverage{Sessions: 3, Txns: 3, Committed: 1, Aborted: 1, Indeterminate: 1, Statements: 5, Exact: 3,
		Inexact: 1, Opaque: 1,
		Reasons: map[history.Reason]int{history.ReasonView: 1, history.ReasonTrigger: 1},
		Causes:  map[history.Reason]Observed{history.ReasonTrigger: {Inexact: 1}, history.ReasonView: {Opaque: 1}},
		Kinds: map[history.Kind]Observed{history.Other: {Opaque: 1}, history.Select: {Exact: 1},
			history.Insert: {Exact: 1},
			history.Update: {Exact: 1}, history.Delete: {Inexact: 1}}, Reads: 2, Writes: 3, Several: 1,
		Levels: map[history.Level]int{history.ReadCommitted: 2, history.RepeatableRead: 1}}
	if !reflect.DeepEqual(r.Coverage, want) {
		t.Errorf("coverage %+v, want %+v", r.Coverage, want)
	}
}

func programOf(p *programs, t *history.Txn) int32 {
	var shapes []shape
	for i := range t.Stmts {
		shapes = append(shapes, p.find(statementShape{text: t.Stmts[i].Shape}))
	}
	return p.of(t, shapes)
}

func TestProgramIsTheShapeWithLoopsFolded(t *testing.T) {
	program := func(stmts string) string {
		p := newPrograms()
		txn := &history.Txn{}
		for s := range strings.FieldsSeq(stmts) {
			kind := map[string]history.Kind{"BEGIN": history.Begin, "COMMIT": history.Commit,
				"ROLLBACK":  history.Rollback,
				"SAVEPOINT": history.Savepoint, "SET": history.Set}[s]
			txn.Stmts = append(txn.Stmts, history.Stmt{Kind: kind, Shape: s})
		}
		return strings.Join(p.stmts(programOf(&p, txn)), " ")
	}
	for stmts, want := range map[string]string{
		"SET BEGIN a SAVEPOINT b COMMIT ROLLBACK": "a b",
		"a a a b b a":                         "a b a",
		"a b c a b c a b c d":                 "a b c d",
		"a b b c a b c":                       "a b c",
		"1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9": "1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9",
		"":                                    "",
	} {
		if got := program(stmts); got != want {
			t.Errorf("program of %q is %q, want %q", stmts, got, want)
		}
	}
	p := newPrograms()
	one := programOf(&p, &history.Txn{Level: history.ReadCommitted, Stmts: []history.Stmt{{Shape: "a"}}})
	if programOf(&p, &history.Txn{Level: history.Serializable, Stmts: []history.Stmt{{Shape: "a"}}}) == one {
		t.Error("one program at two levels")
	}
}

// Transactions of thousands of accesses are searched by other means than small ones.
func TestBulkStatementsAreIndexed(t *testing.T) {
	const n = 5000
	rows := rand.New(rand.NewPCG(3, 3)).Perm(n)
	bulk := &history.Txn{ID: history.MakeTxnID(scriptRun, 1), Status: history.Committed, Level: history.ReadCommitted}
	for num := range uint32(2) {
		s := history.Stmt{Num: num + 1, Kind: history.Update, Observation: history.Exact, Shape: "UPDATE"}
		for _, r := range rows {
			a := history.Access{Row: history.Row{Table: "t", ID: fmt.Sprint(r)}, Op: history.UpdateRow}
			if num == 1 {
				if r == 77 {
					continue
				}
				a.Version = history.Tag{Txn: bulk.ID, Stmt: 1}
			}
			s.Accesses = append(s.Accesses, a, history.Access{Row: a.Row, Version: a.Version},
				history.Access{Row: a.Row, Version: a.Version})
		}
		bulk.Stmts = append(bulk.Stmts, s)
	}
	reader := func(row string, stmt uint32) []Anomaly {
		r, err := Analyze([]history.Info{scriptInfo()},
			[]*history.Txn{bulk, {ID: history.MakeTxnID(scriptRun, 2), Status: history.Committed,
				Level: history.ReadCommitted,
				Stmts: []history.Stmt{{Num: 1, Kind: history.Select, Shape: "S", Accesses: []history.Access{
					{Row: history.Row{Table: "t", ID: row}, Version: history.Tag{Txn: bulk.ID, Stmt: stmt}}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		var found []Anomaly
		for _, f := range r.Findings {
			found = append(found, f.Anomaly)
		}
		return found
	}
	for _, c := range []struct {
		row  string
		stmt uint32
		want []Anomaly
	}{{"5", 1, []Anomaly{G1b}}, {"4999", 2, nil}, {"77", 1, nil}, {"0", 9, []Anomaly{GarbageRead}}} {
		if got := reader(c.row, c.stmt); !slices.Equal(got, c.want) {
			t.Errorf("reading row %s as of statement %d: %v, want %v", c.row, c.stmt, got, c.want)
		}
	}
}

func TestRowsAreNumberedByTableAndID(t *testing.T) {
	n := newRowNames()
	numbers := make(map[history.Row]int32)
	for i := range 20_000 {
		r := history.Row{Table: fmt.Sprintf("t%d", i%3), ID: fmt.Sprint(i / 3)}
		number, err := n.number(r)
		if err != nil {
			t.Fatal(err)
		}
		numbers[r] = number
	}
	for r, want := range numbers {
		if got, err := n.number(r); err != nil || got != want || n.row(got) != r {
			t.Fatalf("row %v is number %d, then %d (%v), which is row %v", r, want, got, err, n.row(got))
		}
	}
	if len(n.rows) != len(numbers) {
		t.Errorf("%d numbers for %d rows", len(n.rows), len(numbers))
	}
}

func TestComponentsAreThoseOfMutualReachability(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(9)
		edges := make([][]bool, n)
		for i := range edges {
			edges[i] = make([]bool, n)
			for j := range edges[i] {
				edges[i][j] = rng.IntN(n) == 0
			}
		}
		off := make([]uint32, n+1)
		var to []int32
		for i := range edges {
			for j, e := range edges[i] {
				if e {
					to = append(to, int32(j))
				}
			}
			off[i+1] = uint32(len(to))
		}
		comp, count := components(n, off, func(e uint32) int32 { return to[e] })
		reach := closure(edges)
		for i := range n {
			for j := range n {
				if (comp[i] == comp[j]) != (i == j || reach[i][j] && reach[j][i]) {
					t.Fatalf("seed %d: nodes %d and %d are in components %d and %d", seed, i, j, comp[i], comp[j])
				}
				if reach[i][j] && comp[i] < comp[j] {
					t.Fatalf("seed %d: component %d of node %d leads up to %d of %d", seed, comp[i], i, comp[j], j)
				}
			}
		}
		if int(count) != int(slices.Max(comp))+1 {
			t.Fatalf("seed %d: %d components, the highest is %d", seed, count, slices.Max(comp))
		}
	}
}

// closure is Warshall's.
func closure(edges [][]bool) [][]bool {
	reach := make([][]bool, len(edges))
	for i := range edges {
		reach[i] = slices.Clone(edges[i])
	}
	for k := range reach {
		for i := range reach {
			for j := range reach {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	return reach
}

// Dirty writes may leave versions of a row that follow each other in a circle.
func TestCircleOfVersionsEndsTheClimb(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR | u x T2.1 | r y 0
T2 committed RR | u x T1.1 | r x T1.1
T3 committed RR | r x T1.1 | u x T2.1`, "violation G0", "violation lost write", "violation internal inconsistency", "hazard lost update")
	expect(t, scriptInfo(), `
T1 aborted RR | u x T2.1
T2 aborted RR | u x T1.1
T3 committed RR | u x T2.1 | r y 0`, "violation dirty update")
}

// How many transactions there will be is a forecast: the result is the same without it, and a wrong one takes
// little memory.
func TestGrowIsAForecast(t *testing.T) {
	const n, rows = 4 * sample, 50
	for _, forecast := range []int{0, n / 2, n, 1 << 40} {
		a := New(Options{Load: func(history.TxnID, history.SessionID) (*history.Txn, error) { return nil, nil }})
		if err := a.Add(histgen.LoadInfo()); err != nil {
			t.Fatal(err)
		}
		a.Grow(forecast)
		if err := histgen.NewLoad(rows).Each(n, a.AddTxn); err != nil {
			t.Fatal(err)
		}
		if has := cap(a.store.accesses); has > maxLeap*4*n {
			t.Errorf("forecast of %d: room for %d accesses", forecast, has)
		}
		if forecast == n && cap(a.store.accesses) > 4*n*11/10 {
			t.Errorf("room for %d accesses, %d are needed", cap(a.store.accesses), 4*n)
		}
		r, err := a.Finish()
		if err != nil || len(r.Findings) > 0 || r.Coverage.Committed != n {
			t.Errorf("forecast of %d: result %+v, error %v", forecast, r, err)
		}
	}
}
