package pgversions_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
)

// lose takes out of a history what clients beside the proxy, functions, triggers and lost connections do.
func lose(rng *rand.Rand, h []*history.Txn) []*history.Txn {
	share := 2 + rng.IntN(8) // one in so many
	var left []*history.Txn
	for _, t := range h {
		if rng.IntN(share) == 0 {
			continue
		}
		if rng.IntN(3*share) == 0 {
			t.Status = history.Indeterminate
		}
		for i := range t.Stmts {
			loseOf(rng, share, &t.Stmts[i])
		}
		left = append(left, t)
	}
	return left
}

func loseOf(rng *rand.Rand, share int, s *history.Stmt) {
	switch rng.IntN(2 * share) {
	case 0:
		s.Observation, s.Accesses, s.TupleIDs = history.Opaque, nil, nil
	case 1:
		n := rng.IntN(len(s.Accesses) + 1)
		s.Observation, s.Accesses, s.TupleIDs = history.Inexact, s.Accesses[:n], s.TupleIDs[:n]
	case 2:
		s.Observation = history.Inexact
		for i := range s.Accesses {
			s.Accesses[i].Inexact = true
		}
	}
	for i := range s.TupleIDs {
		p := &s.TupleIDs[i]
		switch rng.IntN(4 * share) {
		case 0:
			p.LSN = 0
		case 1:
			p.NewXID = 0
		case 2:
			p.CTID += 1 << 20 // the table was rewritten since
		}
	}
}

// truth is what really happened in a history.
type truth struct {
	edges map[edge]bool
	saw   map[edge]bool // to read or replaced a version of from's
}

type edge struct {
	from, to history.TxnID
	row      history.Row
	kind     analyzer.DepKind
}

func truthOf(t *testing.T, info history.Info, h []*history.Txn) *truth {
	t.Helper()
	x := &truth{edges: make(map[edge]bool), saw: make(map[edge]bool)}
	for _, e := range edgesOf(t, info, h) {
		x.edges[edge{e.From.ID, e.To.ID, e.Row, e.Kind}] = true
	}
	for _, txn := range h {
		for _, s := range txn.Stmts {
			for _, a := range s.Accesses {
				x.saw[edge{from: a.Version.Txn, to: txn.ID, row: a.Row}] = true
			}
		}
	}
	return x
}

// ordered counts the orders that the tests' histories gave.
var ordered int

func edgesOf(t *testing.T, info history.Info, h []*history.Txn) []analyzer.Edge {
	t.Helper()
	versions := pgversions.New()
	h, err := versions.Translate([]history.Info{info}, nil, h)
	if err != nil {
		t.Fatal(err)
	}
	a := analyzer.New(analyzer.Options{})
	if err := a.Add(info); err != nil {
		t.Fatal(err)
	}
	for _, txn := range h {
		if err := a.AddTxn(txn); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range versions.Orders() {
		ordered++
		if err := a.AddOrder(o.Row, o.Before, o.After); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	var edges []analyzer.Edge
	for e, err := range a.Edges() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != analyzer.SO && !e.Inexact {
			edges = append(edges, e)
		}
	}
	return edges
}

// overwrites reports whether to wrote the row after from did, others perhaps in between.
func (x *truth) overwrites(from, to history.TxnID, row history.Row) bool {
	met := map[history.TxnID]bool{from: true}
	for todo := []history.TxnID{from}; len(todo) > 0; todo = todo[1:] {
		for e := range x.edges {
			if e.from == todo[0] && e.row == row && e.kind == analyzer.WW && !met[e.to] {
				met[e.to] = true
				todo = append(todo, e.to)
			}
		}
	}
	return met[to]
}

// holds reports whether an edge is one that is there, or a path of such.
func (x *truth) holds(e *analyzer.Edge) bool {
	from, to := e.From.ID, e.To.ID
	switch e.Kind {
	case analyzer.WR:
		return x.saw[edge{from: from, to: to, row: e.Row}]
	case analyzer.RW:
		for f := range x.edges {
			if f.from == from && f.row == e.Row && f.kind == analyzer.RW &&
				(f.to == to || x.overwrites(f.to, to, e.Row)) {
				return true
			}
		}
	}
	return x.overwrites(from, to, e.Row)
}

// holdsSomewhere is holds whatever the row, for rows that have other names in h.
func (x *truth) holdsSomewhere(e *analyzer.Edge) bool {
	for f := range x.saw {
		other := *e
		if other.Row = f.row; x.holds(&other) {
			return true
		}
	}
	return false
}

func TestWhatIsNotRecordedGivesNoFalseAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	findings, edges := 0, 0
	random(t, 2, func(t *testing.T, rng *rand.Rand, c histgen.Config, h []*history.Txn) {
		// Where the log does not order the writers of a row, or dirty reads show what nobody recorded and
		// nobody else would see, nothing can be said: neither is PostgreSQL.
		if c.Engine == histgen.Broken || c.Engine == histgen.ReadUncommitted {
			return
		}
		x := truthOf(t, c.Info(), plain(h))
		v := server{rng: rng, tells: rng.IntN(2) == 0, partitioned: rng.IntN(4) == 0, keyless: rng.IntN(4) == 0}
		partial := lose(rng, v.place(h))
		info := c.Info()
		if info.Horizon = v.horizon(); rng.IntN(8) == 0 {
			info.Horizon = 0
		}
		if rng.IntN(4) == 0 {
			info.Ended = time.Time{}
		}
		for _, e := range edgesOf(t, info, partial) {
			edges++
			if !x.holds(&e) && !(v.keyless && x.holdsSomewhere(&e)) {
				t.Errorf("%s from %s to %s through %s, version %s, is none", e.Kind, e.From.ID,
					e.To.ID, e.Row.ID, e.Version)
			}
		}
		r := analyze(t, info, partial)
		findings += len(r.Findings)
		for _, f := range r.Findings {
			if err := x.supports(f, v.keyless); err != nil {
				t.Errorf("%s %s: %v: %v", f.Class, f.Anomaly, err, f.Explanation)
			}
		}
	})
	t.Logf("%d findings, %d edges, %d versions that nobody was seen to write with a place", findings, edges, ordered)
	if findings == 0 || edges == 0 || ordered == 0 {
		t.Errorf("%d findings, %d edges and %d orders are left to check", findings, edges, ordered)
	}
}

// supports returns what speaks against a finding about a healthy engine.
func (x *truth) supports(f *analyzer.Finding, keyless bool) error {
	if f.Class == analyzer.Violation {
		return fmt.Errorf("the engine keeps its promise")
	}
	switch f.Anomaly {
	case analyzer.G1a, analyzer.G1b, analyzer.DirtyUpdate:
		if e := &f.Witness[0]; !keyless && !x.saw[edge{from: e.From.ID, to: e.To.ID, row: e.Row}] {
			return fmt.Errorf("it did not see that")
		}
	case analyzer.GarbageRead, analyzer.IncompatibleOrder, analyzer.LostWrite:
		return fmt.Errorf("the store loses nothing")
	}
	return nil
}
