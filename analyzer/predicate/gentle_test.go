package predicate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// A stopwatch is a tester that takes a time for each question, on a clock of its own.
type stopwatch struct {
	*grep
	now, takes int64
}

func (s *stopwatch) Test(ctx context.Context, database string, predicates []history.Predicate,
	images []string) ([][]int, []bool, error) {
	s.now += s.takes
	return s.grep.Test(ctx, database, predicates, images)
}

// TestGentleTestsTakeAFifthOfStatementsTime has something come in before each turn of a hundred: statements took 1 ms
// each, and a test takes 2.
func TestGentleTestsTakeAFifthOfStatementsTime(t *testing.T) {
	for _, gentle := range []bool{false, true} {
		g, m := newGrep()
		s := &stopwatch{grep: g, takes: int64(2 * time.Millisecond)}
		m.tester, m.Gentle = s, gentle
		worked := int64(0)
		for range 100 {
			x := reads(s.now+1, "a")
			x.Stmts[0].Start, x.Stmts[0].End = 0, int64(time.Millisecond)
			worked += x.Stmts[0].End
			m.Add("", x)
			m.Add("", wrote(s.now+2, "(a)"))
			m.turn(t.Context(), func() int64 { return s.now })
		}
		spent := int64(g.asked) * s.takes
		switch {
		case !gentle && g.asked != 100:
			t.Errorf("%d tests of 100 that were due", g.asked)
		case gentle && (gentleness*spent > worked+gentleness*s.takes || gentleness*(spent+s.takes) < worked):
			t.Errorf("tests took %v of %v", time.Duration(spent), time.Duration(worked))
		}
		m.round(t.Context(), s.now)
		if got := g.found[where("a")]; len(got) != 100 {
			t.Errorf("gentle %v: %d of 100 versions were found in the end", gentle, len(got))
		}
	}
}

// TestRowsThatNobodyElseWroteAreNotAskedOf plays a suite of tests: one client, one transaction after the other.
func TestRowsThatNobodyElseWroteAreNotAskedOf(t *testing.T) {
	g, m := newGrep()
	m.Gentle = true
	for at := int64(10); at < 1000; at += 10 {
		x := reads(at, "a", fmt.Sprint(at))
		w := wrote(at, "(a)")
		w.Stmts[0].Num = 2
		w.Stmts[0].Accesses[0].Row.ID = fmt.Sprint(at)
		x.Start, x.Stmts = at-5, append(x.Stmts, w.Stmts...)
		m.Add("", x)
		m.round(t.Context(), at)
	}
	if g.asked > 0 {
		t.Errorf("the server was asked %d times", g.asked)
	}
}

func TestPredicatesThatAreNotTestedAreCounted(t *testing.T) {
	_, m := newGrep()
	m.Add("", reads(1, "a", "b", "error"))
	m.Add("", wrote(2, "(a)"))
	m.round(t.Context(), 3)
	if n := m.Untested(); n != 1 {
		t.Errorf("%d are not tested, want that with an error", n)
	}
	m.Add("", wrote(4, "(a)"))
	ended, end := context.WithCancel(t.Context())
	end()
	m.tester = refusing{}
	m.round(ended, 5)
	if n := m.Untested(); n != 3 {
		t.Errorf("%d are not tested, want all for which there was no time", n)
	}
	m.Add("", wrote(6, slices.Repeat([]string{"(a)"}, maxImages+1)...))
	m.Add("", reads(7, "c"))
	if n := m.Untested(); n != 4 {
		t.Errorf("%d are not tested of a table that was given up", n)
	}
}

// TestPredicatesBeyondTheBoundAreCounted: what is over it is let go of, and those before it are tested all the same.
// After a minute there is room again.
func TestPredicatesBeyondTheBoundAreCounted(t *testing.T) {
	g, m := newGrep()
	all := make([]string, maxPredicates+5)
	for i := range all {
		all[i] = fmt.Sprintf("p%d)", i)
	}
	m.Add("", reads(1, all...))
	m.Add("", wrote(2, "(p7)"))
	m.round(t.Context(), 3)
	if found := g.found[where("p7)")]; len(found) != 1 {
		t.Errorf("a condition within the bound was found to match %v", found)
	}
	if n, beyond := m.Untested(), m.Beyond(); n != 5 || beyond != 5 {
		t.Errorf("%d are not tested, %d of these are beyond the bound, want 5", n, beyond)
	}
	late := int64(2 * window)
	m.round(t.Context(), late)
	m.Add("", reads(late, "later"))
	m.Add("", wrote(late, "(later)"))
	m.round(t.Context(), late)
	if found := g.found[where("later")]; len(found) != 1 || m.Beyond() != 5 {
		t.Errorf("a minute later a condition was found to match %v, and %d are beyond the bound", found, m.Beyond())
	}
}

// refusing tests nothing.
type refusing struct{}

func (refusing) Equality(string, history.Predicate) (e sqltoken.Equality, ok bool) { return e, false }

func (refusing) Why(error) (refused, reached bool) { return true, true }

func (refusing) Number(string, string) (n int64, null, known bool) { return 0, false, false }

func (refusing) Test(ctx context.Context, _ string, _ []history.Predicate, _ []string) ([][]int, []bool, error) {
	return nil, nil, context.Cause(ctx)
}

// TestGentleGoesBackBehindARound has a row be written again by who began before a predicate was used that the row's
// version before did not matter for, until then; the predicate has been used again since.
func TestGentleGoesBackBehindARound(t *testing.T) {
	g, m := newGrep()
	m.Gentle = true
	add := func(n uint32, start, end int64, image string, predicates ...history.Predicate) {
		x := &history.Txn{ID: id(n), Status: history.Committed, Start: start, End: end,
			Stmts: []history.Stmt{{Num: 1, Predicates: predicates}}}
		if image != "" {
			x.Stmts[0].Images = []string{image}
			x.Stmts[0].Accesses = []history.Access{{Row: history.Row{Table: "t", ID: "1"}, Op: history.UpdateRow}}
		}
		m.Add("", x)
	}
	add(1, 8, 12, "", where("a"))
	add(2, 34, 39, "(1,a)")
	m.round(t.Context(), 50)
	add(3, 6, 118, "(1,b)")
	add(4, 119, 122, "", where("a"))
	m.round(t.Context(), 130)
	if got := g.found[where("a")]; len(got) != 1 || got[0].Txn != id(2) {
		t.Errorf("what matches is %v", got)
	}
}

// TestGentleFindsTheSame holds a matcher that is gentle against one that is not: what statements of random clients at
// READ COMMITTED did not find is the same.
func TestGentleFindsTheSame(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		c := clients{t: t, rows: make(map[string]*stored), open: make(map[int]*history.Txn)}
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			c.step()
		}
		for client := range 3 {
			c.commit(client)
		}
		rounds := rapid.SliceOfN(rapid.Bool(), len(c.ended), len(c.ended)).Draw(t, "rounds")
		all := resolved(t, c.ended, rounds, grep{}, false)
		for _, g := range []grep{{}, {numbers: true, unread: "none"}, {numbers: true, unread: "(1"},
			{numbers: true, unread: "none", asksMore: true}, {numbers: true, unread: "(2", asksMore: true}} {
			for _, gentle := range []bool{false, true} {
				if got := resolved(t, c.ended, rounds, g, gentle); !slices.Equal(all, got) {
					t.Fatalf("not found:\n%s\ngently %v, %+v:\n%s", strings.Join(all, "\n"), gentle, g, strings.Join(got, "\n"))
				}
			}
		}
		told += len(all)
	})
	if told == 0 {
		t.Error("every statement found everything")
	}
}

// clients are three that work on a few rows, whose values are few.
type clients struct {
	t     *rapid.T
	clock int64
	rows  map[string]*stored // by ID
	open  map[int]*history.Txn
	ended []*history.Txn
	born  int
}

// A stored row is its committed version, and the one that a transaction has left that holds its lock.
type stored struct {
	is, will version
	lock     int // the client; -1: none
}

type version struct {
	tag   history.Tag
	value int // -1: the row is not there
}

func (c *clients) step() {
	client := rapid.IntRange(0, 2).Draw(c.t, "client")
	txn := c.open[client]
	if c.clock++; txn == nil {
		c.born++
		txn = &history.Txn{ID: id(uint32(c.born)), Session: 1, Status: history.Committed, Level: history.ReadCommitted,
			Start: c.clock}
		c.open[client] = txn
	}
	s := history.Stmt{Num: uint32(len(txn.Stmts) + 1), Start: c.clock, Observation: history.Exact}
	switch rapid.IntRange(0, 3).Draw(c.t, "what") {
	case 0:
		c.commit(client)
		return
	case 1:
		c.look(client, &s)
	default:
		if !c.write(client, &s, txn.ID) {
			return
		}
	}
	c.clock++
	s.End = c.clock
	txn.Stmts = append(txn.Stmts, s)
}

// look has a statement choose the rows of a value; a wide condition is for more than it finds.
func (c *clients) look(client int, s *history.Stmt) {
	value, wide := rapid.IntRange(0, 1).Draw(c.t, "value"), rapid.Bool().Draw(c.t, "wide")
	p := where(fmt.Sprintf("=%d", value))
	p.Wide, s.Kind, s.Predicates = wide, history.Select, []history.Predicate{p}
	for _, name := range slices.Sorted(maps.Keys(c.rows)) {
		r := c.rows[name]
		seen := r.is
		if r.lock == client {
			seen = r.will
		}
		if seen.value == value && !(wide && rapid.Bool().Draw(c.t, "left out")) {
			s.Accesses = append(s.Accesses, history.Access{Row: history.Row{Table: "t", ID: name}, Version: seen.tag})
		}
	}
}

// write has a statement write a row, and reports whether it got its lock.
func (c *clients) write(client int, s *history.Stmt, by history.TxnID) bool {
	name := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(c.t, "row")
	r := c.rows[name]
	if r == nil {
		r = &stored{is: version{value: -1}, lock: -1}
		c.rows[name] = r
	}
	if r.lock >= 0 && r.lock != client {
		return false
	}
	before := r.is
	if r.lock == client {
		before = r.will
	}
	a := history.Access{Row: history.Row{Table: "t", ID: name}, Op: history.UpdateRow, Version: before.tag}
	after := version{history.Tag{Txn: by, Stmt: s.Num}, rapid.IntRange(-1, 1).Draw(c.t, "value")}
	image := fmt.Sprintf("(%s,=%d)", name, after.value)
	switch {
	case before.value < 0 && after.value < 0:
		return false
	case before.value < 0:
		a.Op = history.InsertRow
	case after.value < 0:
		a.Op, image = history.DeleteRow, ""
	}
	s.Accesses, s.Images = []history.Access{a}, []string{image}
	r.lock, r.will = client, after
	return true
}

// commit ends a client's transaction.
func (c *clients) commit(client int) {
	txn := c.open[client]
	if txn == nil {
		return
	}
	c.clock++
	s := history.Stmt{Num: uint32(len(txn.Stmts) + 1), Kind: history.Commit, Start: c.clock}
	for _, r := range c.rows {
		if r.lock == client {
			r.is, r.lock = r.will, -1
		}
	}
	c.clock++
	s.End, txn.End = c.clock, c.clock
	txn.Stmts = append(txn.Stmts, s)
	c.ended, c.open[client] = append(c.ended, txn), nil
}

// resolved returns what statements did not find, with rounds of tests behind some transactions.
func resolved(t *rapid.T, txns []*history.Txn, rounds []bool, by grep, gentle bool) (unfound []string) {
	g, m := newGrep()
	g.numbers, g.asksMore, g.unread = by.numbers, by.asksMore, by.unread
	m.Gentle = gentle
	for i, txn := range txns {
		if m.Add("", txn); rounds[i] {
			m.round(context.Background(), txn.End)
		}
	}
	m.round(context.Background(), 1000)
	r := New()
	r.AddRun(history.Info{Run: run, Mode: "predicates", Server: history.Server{Engine: dbms.PostgreSQL}})
	r.AddSession(history.Session{Run: run, ID: 1})
	for p, versions := range g.found {
		r.AddMatches(run, history.Matches{Predicate: p, Versions: versions})
	}
	for _, txn := range txns {
		if err := r.Collect(txn); err != nil {
			t.Fatal(err)
		}
	}
	r.Settle()
	for _, txn := range txns {
		again := *txn
		again.Stmts = slices.Clone(txn.Stmts)
		r.Resolve(&again)
		for i := range again.Stmts {
			for _, a := range again.Stmts[i].Accesses[len(txn.Stmts[i].Accesses):] {
				unfound = append(unfound, fmt.Sprintf("%s.%d: %+v", txn.ID, again.Stmts[i].Num, a))
			}
		}
	}
	return unfound
}
