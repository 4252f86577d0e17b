package sdg

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

var row1, rowOfU = history.Row{Table: "t", ID: "1"}, history.Row{Table: "u", ID: "1"}

// reads is a statement that reads rows of t; writes is one that changes or deletes them.
func reads(txn int, before Rows, items ...history.Row) Statement {
	s := Statement{Txn: txn, Tables: []string{"t"}, Before: before, Items: make(map[history.Row]bool)}
	for _, row := range items {
		s.Items[row] = true
	}
	return s
}

func writes(txn int, before, after Rows) Statement {
	return Statement{Txn: txn, Tables: []string{"t"}, Before: before, Written: []string{"t"}, After: after}
}

// Figure 3 of the paper, and rows that are not there.
func TestKindsOfDependencies(t *testing.T) {
	for _, c := range []struct {
		name       string
		statements []Statement // each of a transaction of its own, that sees all before it
		want       string
	}{
		{"item-read", []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), reads(1, Rows{row1: "b"}, row1)}, "1 item-read 2"},
		{"item-write", []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), writes(1, Rows{row1: "b"}, Rows{row1: "c"})},
			"1 item-write 2, 1 predicate-write 2"},
		{"item-anti", []Statement{reads(0, Rows{row1: "a"}, row1), writes(1, Rows{row1: "a"}, Rows{row1: "b"})}, "1 item-anti 2"},
		{"predicate-read", []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), reads(1, Rows{row1: "b"})}, "1 predicate-read 2"},
		{"predicate-write", []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), writes(1, Rows{row1: "b"}, Rows{row1: "b"})},
			"1 predicate-write 2"},
		{"predicate-anti", []Statement{reads(0, Rows{row1: "a"}), writes(1, Rows{row1: "a"}, Rows{row1: "b"})}, "1 predicate-anti 2"},
		{"value-write", []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), {Txn: 1, Tables: []string{"t", "u"},
			Values: []string{"t"}, Before: Rows{row1: "b"}, Written: []string{"u"}, After: Rows{rowOfU: "c"}}}, "1 value-write 2"},
		{"not born yet", []Statement{reads(0, Rows{}), writes(1, Rows{}, Rows{row1: "a"})}, "1 predicate-anti 2"},
		{"born", []Statement{writes(0, Rows{}, Rows{row1: "a"}), reads(1, Rows{row1: "a"})}, "1 predicate-read 2"},
		{"gone", []Statement{writes(0, Rows{row1: "a"}, Rows{}), reads(1, Rows{})}, "1 predicate-read 2"},
		{"not gone yet", []Statement{reads(0, Rows{row1: "a"}), writes(1, Rows{row1: "a"}, Rows{})}, "1 predicate-anti 2"},
		{"gone and there again", []Statement{writes(0, Rows{row1: "a"}, Rows{}), reads(1, Rows{}),
			writes(2, Rows{}, Rows{row1: "b"})}, "1 item-write 3, 1 predicate-read 2, 1 predicate-write 3, 2 predicate-anti 3"},
		{"of nobody's", []Statement{reads(0, Rows{row1: "a"}), reads(1, Rows{row1: "a"})}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := edgesOf(t, &History{Statements: c.statements, Txns: ended(c.statements)}); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// ended are transactions of which each commits behind its only statement.
func ended(statements []Statement) (all []Txn) {
	for i := range statements {
		all = append(all, Txn{Committed: true, End: i + 1})
	}
	return all
}

func edgesOf(t *testing.T, h *History) string {
	t.Helper()
	g, err := New(h)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range g.Edges() {
		all = append(all, fmt.Sprintf("%d %s %d", e.From+1, e.Kind, e.To+1))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func TestWhatWasUndoneIsTold(t *testing.T) {
	h := &History{Statements: []Statement{writes(0, Rows{row1: "a"}, Rows{row1: "b"}), reads(1, Rows{row1: "b"})},
		Txns: []Txn{{Committed: false, End: 2}, {Committed: true, End: 2}}}
	_, err := New(h)
	undone := &UndoneError{}
	if !errors.As(err, &undone) || undone.Statement != 1 {
		t.Errorf("error %v, want one of statement 2", err)
	}
}

func TestVersionsWithoutOrderAreRefused(t *testing.T) {
	h := &History{Statements: []Statement{reads(0, Rows{row1: "x"}), writes(1, Rows{row1: "a"}, Rows{row1: "b"})}}
	h.Txns = ended(h.Statements)
	if _, err := New(h); !errors.Is(err, ErrUnplaced) {
		t.Errorf("error %v, want %v", err, ErrUnplaced)
	}
}

// A lost update and a write skew have no order; a stale write is told.
func TestCyclesAndStaleWrites(t *testing.T) {
	h := &History{Statements: []Statement{reads(0, Rows{row1: "a"}, row1), writes(1, Rows{row1: "a"}, Rows{row1: "b"}),
		writes(0, Rows{row1: "a"}, Rows{row1: "c"})}, Txns: []Txn{{Committed: true, End: 3}, {Committed: true, End: 2}},
		Snapshots: true}
	g, err := New(h)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(g.Cycles()); got != "[[1 2]]" {
		t.Errorf("cycles %s", got)
	}
	if stale, err := g.Stale(2); err != nil || fmt.Sprint(stale) != "[t]" {
		t.Errorf("statement 3 saw old versions of %v (%v)", stale, err)
	}
}

// A database of two tables: transactions see what was committed when they, or their statements, begin. Whoever would
// write what another one has written and not committed, or what has changed since its snapshot, is undone.
type database struct {
	rows  map[history.Row]value
	next  int // version
	birth int // row
}

type value struct {
	version Version
	n       int
}

// A step is a statement: what it does to the rows that it sees.
type step struct {
	kind  string
	table string
	n     int
	id    string // of an insertion
}

// do returns what a step answers on what it sees, and how the rows that it writes read then; gone ones are nil.
func (x step) do(sees map[history.Row]value) (answer string, writes map[history.Row]*int) {
	writes = make(map[history.Row]*int)
	var values []int
	sum := 0
	for row, v := range sees {
		if row.Table != x.table {
			sum += v.n
			continue
		}
		values = append(values, v.n)
		to := 0
		switch {
		case x.kind == "add" && v.n%3 == x.n%3:
			to = v.n + 1 + x.n
			writes[row] = &to
		case x.kind == "delete" && v.n%5 == x.n%5:
			writes[row] = nil
		}
	}
	switch x.kind {
	case "read":
		slices.Sort(values)
		return fmt.Sprint(values), writes
	case "insert":
		to := x.n
		writes[history.Row{Table: x.table, ID: x.id}] = &to
	case "copy":
		to := sum
		writes[history.Row{Table: x.table, ID: x.id}] = &to
	}
	return fmt.Sprint(len(writes)), writes
}

func (d *database) write(rows map[history.Row]value, writes map[history.Row]*int) {
	for row, n := range writes {
		if n == nil {
			delete(rows, row)
			continue
		}
		d.next++
		rows[row] = value{Version(fmt.Sprint("v", d.next)), *n}
	}
}

// Theorem 1: in each order that the graph allows the statements answer as they did, and the rows are the same.
func TestOrdersOfTheGraphGiveTheSame(t *testing.T) {
	judged := 0
	rapid.Check(t, func(t *rapid.T) {
		d := &database{rows: make(map[history.Row]value)}
		for i := range 6 {
			d.write(d.rows, map[history.Row]*int{{Table: string("tu"[i%2]), ID: fmt.Sprint(i)}: &i})
		}
		initial := maps.Clone(d.rows)
		h, steps, answers := d.run(t)
		g, err := New(h)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Cycles()) > 0 {
			return
		}
		judged++
		orders, more := g.Orders(20)
		for seed := range uint64(3) {
			drawn := g.Order(rand.New(rand.NewPCG(seed, 0)))
			if !more && !slices.ContainsFunc(orders, func(x []int) bool { return slices.Equal(x, drawn) }) {
				t.Fatalf("%v is none of %v", drawn, orders)
			}
			orders = append(orders, drawn)
		}
		for _, order := range orders {
			rows := maps.Clone(initial)
			for _, n := range order {
				answer, writes := steps[n].do(rows)
				if d.write(rows, writes); answer != answers[n] {
					t.Fatalf("order %v: statement %d answers %s, in its transaction %s\n%+v", order, n+1, answer, answers[n], h)
				}
			}
			if got, want := contents(rows), contents(d.rows); got != want {
				t.Fatalf("order %v: %s at the end, after the transactions %s\n%+v", order, got, want, h)
			}
		}
	})
	if judged == 0 {
		t.Error("each history had a cycle")
	}
}

// All orders are there, each once, up to as many as are asked for.
func TestOrdersAreAllThatThereAre(t *testing.T) {
	free := make([]Statement, 4)
	for i := range free {
		free[i] = reads(i, Rows{row1: "a"}, row1)
	}
	chain := append(slices.Clone(free[:2]), writes(2, Rows{row1: "a"}, Rows{row1: "b"}))
	for _, c := range []struct {
		statements []Statement
		most, want int
		more       bool
	}{{free, 100, 24, false}, {free, 24, 24, false}, {free, 23, 23, true}, {chain, 100, 2, false}, {nil, 10, 1, false}} {
		g, err := New(&History{Statements: c.statements, Txns: ended(c.statements)})
		if err != nil {
			t.Fatal(err)
		}
		all, more := g.Orders(c.most)
		seen := make(map[string]bool)
		for _, order := range all {
			seen[fmt.Sprint(order)] = true
		}
		if len(all) != c.want || len(seen) != c.want || more != c.more || !g.TransactionsHaveOrder() {
			t.Errorf("%d statements: %d orders, %d different, more %v", len(c.statements), len(all), len(seen), more)
		}
	}
}

// Figure 17: two transactions depend on each other, and their statements do not.
func TestTransactionsMayHaveNoOrderWhereStatementsHave(t *testing.T) {
	row2 := history.Row{Table: "u", ID: "2"}
	onU := func(s Statement) Statement { s.Tables = []string{"u"}; return s }
	statements := []Statement{reads(0, Rows{row1: "a"}, row1), writes(1, Rows{row1: "a"}, Rows{row1: "b"}),
		onU(reads(1, Rows{row2: "x"}, row2)), onU(writes(0, Rows{row2: "x"}, Rows{row2: "y"}))}
	statements[3].Written = []string{"u"}
	h := &History{Statements: statements, Txns: []Txn{{Committed: true, End: 4}, {Committed: true, End: 4}}}
	g, err := New(h)
	if err != nil {
		t.Fatal(err)
	}
	if all, _ := g.Orders(10); g.TransactionsHaveOrder() || len(all) == 0 || len(g.Cycles()) > 0 {
		t.Errorf("orders %v, of transactions %v, cycles %v: %v", all, g.TransactionsHaveOrder(), g.Cycles(), g.Edges())
	}
}

func contents(rows map[history.Row]value) string {
	var all []string
	for row, v := range rows {
		all = append(all, fmt.Sprint(row.Table, row.ID, "=", v.n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A session is a transaction that is open.
type session struct {
	txn    int
	base   map[history.Row]value // its snapshot; nil: none
	writes map[history.Row]*value
}

// run runs some transactions, interleaved.
func (d *database) run(t *rapid.T) (h *History, steps []step, answers []string) {
	h = &History{Snapshots: rapid.Bool().Draw(t, "snapshots")}
	open := make(map[int]*session)
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		who := rapid.IntRange(0, 2).Draw(t, "session")
		s := open[who]
		if s == nil {
			s = &session{txn: len(h.Txns), writes: make(map[history.Row]*value)}
			open[who], h.Txns = s, append(h.Txns, Txn{})
		}
		if len(h.Statements) > 0 && rapid.IntRange(0, 3).Draw(t, "end") == 0 {
			d.end(h, s, rapid.IntRange(0, 4).Draw(t, "rollback") > 0)
			delete(open, who)
			continue
		}
		d.birth++
		x := step{rapid.SampledFrom([]string{"read", "read", "add", "delete", "insert", "copy"}).Draw(t, "kind"),
			rapid.SampledFrom([]string{"t", "u"}).Draw(t, "table"), rapid.IntRange(0, 9).Draw(t, "n"), fmt.Sprint("new", d.birth)}
		statement, answer, refused := d.statement(h, s, x, open)
		h.Statements, steps, answers = append(h.Statements, statement), append(steps, x), append(answers, answer)
		if refused {
			d.end(h, s, false)
			delete(open, who)
		}
	}
	for _, who := range slices.Sorted(maps.Keys(open)) {
		d.end(h, open[who], true)
	}
	return h, steps, answers
}

func (d *database) statement(h *History, s *session, x step, open map[int]*session) (Statement, string, bool) {
	if s.base == nil || !h.Snapshots {
		s.base = maps.Clone(d.rows)
	}
	sees := maps.Clone(s.base)
	for row, v := range s.writes {
		if v == nil {
			delete(sees, row)
		} else {
			sees[row] = *v
		}
	}
	tables := []string{x.table}
	if x.kind == "copy" {
		tables = []string{"t", "u"}
	}
	statement := Statement{Txn: s.txn, Tables: tables, Before: versions(sees, tables)}
	answer, writes := x.do(sees)
	if x.kind == "read" {
		return statement, answer, false
	}
	for row := range writes {
		for _, other := range open {
			if _, locked := other.writes[row]; locked && other != s {
				return statement, answer, true
			}
		}
		if _, own := s.writes[row]; !own && d.rows[row] != s.base[row] {
			return statement, answer, true
		}
	}
	d.write(sees, writes)
	for row := range writes {
		s.writes[row] = nil
		if v, ok := sees[row]; ok {
			s.writes[row] = &v
		}
	}
	statement.Written, statement.After = []string{x.table}, versions(sees, []string{x.table})
	return statement, answer, false
}

func (d *database) end(h *History, s *session, commits bool) {
	h.Txns[s.txn] = Txn{Committed: commits, End: len(h.Statements)}
	for row, v := range s.writes {
		switch {
		case !commits:
		case v == nil:
			delete(d.rows, row)
		default:
			d.rows[row] = *v
		}
	}
}

func versions(rows map[history.Row]value, tables []string) Rows {
	all := make(Rows)
	for row, v := range rows {
		if slices.Contains(tables, row.Table) {
			all[row] = v.version
		}
	}
	return all
}
