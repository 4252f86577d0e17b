package analyzer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
)

// losing makes two transactions: the first reads a row, the second overwrites it, and so does the first.
// The statements around these are the caller's.
func losing(n int, table, read, first, second string, around ...string) []*history.Txn {
	row := history.Row{Table: table, ID: fmt.Sprint(n)}
	a, b := history.MakeTxnID(scriptRun, uint32(2*n+1)), history.MakeTxnID(scriptRun, uint32(2*n+2))
	stmt := func(kind history.Kind, shape string, op history.Op, version history.Tag) history.Stmt {
		return history.Stmt{Kind: kind, Observation: history.Exact, Shape: shape,
			Accesses: []history.Access{{Row: row, Op: op, Version: version}}}
	}
	make := func(id history.TxnID, stmts ...history.Stmt) *history.Txn {
		for _, shape := range around {
			stmts = append(stmts, history.Stmt{Kind: history.Select, Observation: history.Exact, Shape: shape})
		}
		for i := range stmts {
			stmts[i].Num = uint32(i + 1)
		}
		return &history.Txn{ID: id, Session: history.SessionID(id.Seq()), Status: history.Committed,
			Level: history.RepeatableRead, End: int64(id.Seq()), Stmts: stmts}
	}
	return []*history.Txn{
		make(a, stmt(history.Select, read, history.Read, history.Tag{}), stmt(history.Update, first, history.UpdateRow,
			history.Tag{Txn: b, Stmt: 1})),
		make(b, stmt(history.Update, second, history.UpdateRow, history.Tag{})),
	}
}

// One line of a program that loses updates is one finding, whatever else its transactions do.
func TestGroupsByTheStatementsAtFault(t *testing.T) {
	const read, write = "SELECT n FROM stock WHERE id = ?", "UPDATE stock SET n = ? WHERE id = ?"
	var h []*history.Txn
	for n := range 64 {
		var around []string
		for bit := range 6 {
			if n>>bit&1 != 0 {
				around = append(around, fmt.Sprintf("SELECT page%c FROM site", 'a'+bit))
			}
		}
		h = append(h, losing(n, "shop.stock", read, write, write, around...)...)
	}
	h = append(h, losing(1000, "shop.stock", read, "UPDATE stock SET price = ? WHERE id = ?", write)...)
	r := analyze(t, scriptInfo(), h)
	if len(r.Findings) != 2 {
		t.Fatalf("findings %v, want one for each pair of statements", names(r))
	}
	f := r.Findings[0]
	if f.Count != 64 || f.ProgramSets != 64 || f.Patterns != 1 || !slices.Equal(f.Tables, []string{"shop.stock"}) {
		t.Errorf("seen %d times in %d sets of programs with %d patterns on %q", f.Count,
			f.ProgramSets, f.Patterns, f.Tables)
	}
}

// The transactions of sysbench are random statements on random tables.
func TestReportOnNumberedTablesStaysShort(t *testing.T) {
	reads := []string{"SELECT c FROM sbtest%d WHERE id=?", "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?",
		"SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?",
		"SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c",
		"SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c"}
	writes := []string{"UPDATE sbtest%d SET k=k+? WHERE id=?", "UPDATE sbtest%d SET c=? WHERE id=?",
		"REPLACE sbtest%d (id) VALUES (?)"}
	rng := rand.New(rand.NewPCG(4, 4))
	var h []*history.Txn
	for n := range 3000 {
		table := 1 + rng.IntN(24)
		pick := func(shapes []string) string { return fmt.Sprintf(shapes[rng.IntN(len(shapes))], table) }
		around := fmt.Sprintf(reads[0], 1+rng.IntN(24))
		h = append(h, losing(n, fmt.Sprintf("sbtest.sbtest%d", table), pick(reads),
			pick(writes), pick(writes), around)...)
	}
	r := analyze(t, scriptInfo(), h)
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings, want one", len(r.Findings))
	}
	f := r.Findings[0]
	if f.Count != 3000 || f.Patterns != 45 || !slices.Equal(f.Tables, []string{"sbtest.sbtest#"}) {
		t.Errorf("seen %d times with %d patterns on %q", f.Count, f.Patterns, f.Tables)
	}
	if len(f.Witness) != 2 || f.Witness[0].From == nil {
		t.Errorf("witness %v", f.Witness)
	}
}

func TestProgramsOnNumberedTablesAreOne(t *testing.T) {
	const read, write = "SELECT n FROM shard%d WHERE id = ?", "UPDATE shard%d SET n = ? WHERE id = ?"
	var h []*history.Txn
	for n := range 10 {
		h = append(h, losing(n, fmt.Sprintf("a.shard%d", n), fmt.Sprintf(read, n),
			fmt.Sprintf(write, n), fmt.Sprintf(write, n))...)
	}
	r := analyze(t, scriptInfo(), h)
	if len(r.Findings) != 1 || r.Findings[0].Count != 10 || r.Findings[0].Programs[0].Count != 10 {
		t.Fatalf("findings %v", names(r))
	}
	if got := r.Findings[0].Programs[0].Stmts[0]; got != "SELECT n FROM shard# WHERE id = ?" {
		t.Errorf("the program of several tables shows %q", got)
	}
	one := analyze(t, scriptInfo(), h[:2])
	if got := one.Findings[0].Programs[0].Stmts[0]; got != fmt.Sprintf(read, 0) {
		t.Errorf("the program of one table shows %q", got)
	}
	if one.Findings[0].ID != r.Findings[0].ID || !slices.Equal(one.Findings[0].Tables, []string{"a.shard0"}) {
		t.Errorf("one shard has another id than ten, or the tables %q", one.Findings[0].Tables)
	}
}

// A table's incarnations are different tables with rows of their own, and one to a reader of reports.
func TestIncarnationsOfATableHaveOwnRows(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed SR | r a.1 0 | u a@2.1 0
T2 committed SR | u a.1 0
T3 committed SR | r a@2.1 T1.2 | r a.1 T2.1`)
	r := expect(t, scriptInfo(), `
T1 committed RR | r a.1 0 | u a.1 T2.1
T2 committed RR | u a.1 0
T3 committed RR | r a@2.1 0 | u a@2.1 T4.1
T4 committed RR | u a@2.1 0`, "hazard lost update", "hazard lost update")
	if f := r.Findings[1]; !slices.Equal(f.Tables, []string{"a"}) || f.Witness[0].Row.Table != "a@2" {
		t.Errorf("tables %q, row %v", f.Tables, f.Witness[0].Row)
	}
}

// Whether an UPDATE finds the new values there already depends on the data, not on the program.
func TestLostUpdateByEqualValuesJoinsItsGroup(t *testing.T) {
	expect(t, scriptInfo(), `
T1 committed RR | r x 0 | u x T2.2
T2 committed RR | r x 0 | u x 0
T3 committed RR | r y 0 | e y T4.2
T4 committed RR | r y 0 | u y 0`, "hazard lost update x2")
}

// However many tables one anomaly is on, each has its finding, with the id that it has where there are few.
func TestTablesAreNeverOneFinding(t *testing.T) {
	var h []*history.Txn
	for n := range 60 {
		name := "tab_" + string(rune('a'+n/26)) + string(rune('a'+n%26))
		h = append(h, losing(n, "shop."+name, "SELECT n FROM "+name, "UPDATE "+name+" SET n = 1",
			"UPDATE "+name+" SET n = 1")...)
	}
	few, many := analyze(t, scriptInfo(), h[:80]), analyze(t, scriptInfo(), h)
	if len(few.Findings) != 40 || len(many.Findings) != 60 {
		t.Fatalf("%d and %d findings, want 40 and 60", len(few.Findings), len(many.Findings))
	}
	for _, f := range few.Findings {
		if !slices.ContainsFunc(many.Findings, func(m *Finding) bool { return m.ID == f.ID }) {
			t.Errorf("%v has another id among more tables", f.Tables)
		}
	}
}

// A finding that stands for too many sets of statements says which they are.
func TestManySetsOfStatementsHaveIDs(t *testing.T) {
	var h []*history.Txn
	for n := range 9 {
		h = append(h, losing(n, "shop.stock", fmt.Sprintf("SELECT c%d FROM stock", n), "UPDATE stock SET n = 1",
			"UPDATE stock SET n = 1")...)
	}
	few, many := analyze(t, scriptInfo(), h[:12]), analyze(t, scriptInfo(), h)
	if len(few.Findings) != 6 || len(many.Findings) != 1 || len(many.Findings[0].Parts) != 9 {
		t.Fatalf("findings %v and %v", names(few), names(many))
	}
	for _, f := range few.Findings {
		if len(f.Parts) > 0 || !slices.Contains(many.Findings[0].Parts, f.ID) {
			t.Errorf("%s is none of %v", f.ID, many.Findings[0].Parts)
		}
	}
}
