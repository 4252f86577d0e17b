package analyzer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/bruteforce"
)

var cyclic = []Anomaly{G0, G1c, GSingle, GNonadjacent, G2Item}

// Whatever the witness, each of its edges is one of Adya's graph, it is a cycle, and no edge of it
// could be left for one that makes a stricter name of the same cycle. (Not by whom a row came to match that the reader
// found: he depends on its last writer, too, and that one on whom. By these a stricter cycle is told, of more
// transactions, as in histories 659423 and 800765.)
func TestWitnessesAreCyclesUnderTheStrictestName(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	checked := make(map[Anomaly]int)
	forRandomHistories(t, 1, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		r := analyze(t, c.Info(), h)
		graph, ok := bruteforce.Graph(h, c.reads...)
		for _, f := range r.Findings {
			if !ok || !slices.Contains(cyclic, f.Anomaly.base()) {
				continue
			}
			if bruteforce.CyclesOf(graph).G0 &&
				slices.ContainsFunc(f.Witness, func(e Edge) bool { return e.NotFound }) {
				continue // of what a transaction wrote around another one, Adya's orders have the last version only
			}
			checked[f.Anomaly]++
			err := checkCycle(f, graph)
			// What makes a violation's cycle stricter may be what the engine does not owe; what makes a hazard's may be
			// part of a violation.
			if err == nil && f.Class == Hazard &&
				!slices.ContainsFunc(r.Findings, func(f *Finding) bool { return f.Class == Violation }) {
				err = strictest(f, withoutFound(graph, h, c.reads))
			}
			if err != nil {
				t.Errorf("%s: %v", f.Anomaly, err)
			}
		}
	})
	t.Logf("checked %v", checked)
	wantAll(t, checked, G0, G1c, GSingle, GNonadjacent, G2Item, LostUpdate, NonRepeatableRead, ReadSkew, ReadWriteSkew,
		WriteSkew,
		OTV, GMonotonic, PMP, Phantom, PhantomNonadjacent, PhantomSkew, G2)
}

func checkCycle(f *Finding, graph map[bruteforce.Edge]bool) error {
	var rows []history.Row
	var kinds []DepKind
	var missed []bool // of the rw, those by predicates
	met := make(map[history.TxnID]bool)
	for i, e := range f.Witness {
		if next := f.Witness[(i+1)%len(f.Witness)]; next.From != e.To {
			return fmt.Errorf("edge %d leads to %s, the next one begins at %s", i+1, e.To.ID, next.From.ID)
		}
		kind := map[DepKind]bruteforce.Kind{WR: bruteforce.WR, WW: bruteforce.WW, RW: bruteforce.RW}[e.Kind]
		missed = append(missed, e.Kind == RW && e.NotFound)
		if !graph[bruteforce.Edge{From: e.From.ID, To: e.To.ID, Kind: kind, Row: e.Row}] {
			return fmt.Errorf("edge %d, %s -%s-> %s, is not in Adya's graph", i+1, e.From.ID, e.Kind, e.To.ID)
		}
		if met[e.From.ID] {
			return fmt.Errorf("%s is on the cycle twice", e.From.ID)
		}
		met[e.From.ID] = true
		rows, kinds = append(rows, e.Row), append(kinds, e.Kind)
	}
	end := f.Witness[len(f.Witness)-1]
	ok := named(f.Anomaly, kinds, rows, end.ToStmt.Num < f.Witness[0].FromStmt.Num)
	if slices.Contains(missed, true) {
		ok = namedByPredicate(f.Anomaly, kinds, rows, missed)
	}
	if !ok {
		return fmt.Errorf("the cycle is %v through %v, by predicates %v", kinds, rows, missed)
	}
	return nil
}

// named reports whether a cycle is what its name says. Backwards: what leads back to the first transaction did so in an
// earlier statement than the one that the cycle begins with.
func named(a Anomaly, kinds []DepKind, rows []history.Row, backwards bool) bool {
	antis, adjacent := 0, false
	oneRow := !slices.ContainsFunc(rows, func(r history.Row) bool { return r != rows[0] })
	last := len(kinds) - 1
	for i, k := range kinds {
		if k == RW {
			antis++
			adjacent = adjacent || kinds[(i+1)%len(kinds)] == RW
		}
	}
	single := antis == 1 && kinds[0] == RW
	// Whether it comes back to the transaction that read by versions of the row that it read.
	byRow := true
	for i := range kinds[1:last] {
		byRow = byRow && kinds[i+1] == WW && rows[i+1] == rows[0]
	}
	twoRows := byRow && rows[last] != rows[0]
	switch a {
	case G0:
		return !slices.Contains(kinds, WR) && antis == 0
	case G1c:
		return slices.Contains(kinds, WR) && antis == 0
	case LostUpdate:
		return single && oneRow && !slices.Contains(kinds, WR)
	case NonRepeatableRead:
		return single && oneRow && kinds[last] == WR && !backwards
	case ReadSkew:
		return single && twoRows && kinds[last] == WR && !backwards
	case OTV:
		return single && twoRows && kinds[last] == WR && backwards
	case GMonotonic:
		return single && backwards
	case ReadWriteSkew:
		return single && !oneRow && last == 1 && kinds[last] == WW && !backwards
	case GSingle:
		return antis == 1 && len(kinds) > 2 && !backwards
	case GNonadjacent:
		return antis > 1 && !adjacent
	case WriteSkew:
		return antis == 2 && !oneRow && len(kinds) == 2
	case G2Item:
		return antis > 1 && adjacent
	}
	return false
}

// namedByPredicate is named for a cycle of which some rw are by predicates.
func namedByPredicate(a Anomaly, kinds []DepKind, rows []history.Row, missed []bool) bool {
	antis, adjacent := 0, false
	for i, k := range kinds {
		if k == RW {
			antis++
			adjacent = adjacent || kinds[(i+1)%len(kinds)] == RW
		}
	}
	oneRow := !slices.ContainsFunc(rows, func(r history.Row) bool { return r != rows[0] })
	again := oneRow && kinds[len(kinds)-1] == WR
	switch a {
	case PMP:
		return antis == 1 && missed[0] && again
	case Phantom:
		return antis == 1 && missed[0] && !again
	case PhantomNonadjacent:
		return antis > 1 && !adjacent
	case PhantomSkew:
		return antis == 2 && len(kinds) == 2
	case G2:
		return antis > 1 && adjacent && len(kinds) > 2
	}
	return false
}

// withoutFound returns a graph without the dependencies by predicates on who made a row match that the reader found.
func withoutFound(graph map[bruteforce.Edge]bool, h []*history.Txn,
	reads []bruteforce.PredicateRead) map[bruteforce.Edge]bool {
	byRows, _ := bruteforce.Graph(h)
	found := func(e bruteforce.Edge) bool {
		return e.Kind == bruteforce.WR && !byRows[e] && slices.ContainsFunc(reads, func(r bruteforce.PredicateRead) bool {
			return r.Reader.Txn == e.To && r.Matches(e.Row, r.Vset[e.Row])
		})
	}
	left := maps.Clone(graph)
	maps.DeleteFunc(left, func(e bruteforce.Edge, _ bool) bool { return found(e) })
	return left
}

// strictest returns an error where the same transactions in the same order make a stricter cycle.
func strictest(f *Finding, graph map[bruteforce.Edge]bool) error {
	on := make(map[bruteforce.Edge]bool)
	for e := range graph {
		for _, w := range f.Witness {
			if e.From == w.From.ID && e.To == w.To.ID {
				on[e] = true
			}
		}
	}
	cycles := bruteforce.CyclesOf(on)
	for i, stricter := range []bool{cycles.G0, cycles.G1c, cycles.GSingle, cycles.GNonadjacent} {
		if cyclic[i] == f.Anomaly.base() {
			return nil
		}
		if stricter {
			return fmt.Errorf("the same cycle is a %s", cyclic[i])
		}
	}
	return nil
}

// The strictest kind of cycle in Adya's graph is found. (At mixed levels a violation is found before
// a stricter hazard.)
func TestFindsTheStrictestKindOfCycle(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	counts := make(map[Anomaly]int)
	forRandomHistories(t, 1, func(t *testing.T, _ *rand.Rand, c generated, h []*history.Txn) {
		graph, ok := bruteforce.Graph(h, c.reads...)
		if !ok {
			return
		}
		cycles := bruteforce.CyclesOf(graph)
		r := analyze(t, c.Info(), h)
		violated := slices.ContainsFunc(r.Findings, func(f *Finding) bool {
			return f.Class == Violation &&
				slices.Contains(cyclic, f.Anomaly.base())
		})
		for i, there := range []bool{cycles.G0, cycles.G1c, cycles.GSingle, cycles.GNonadjacent, cycles.G2Item} {
			if !there {
				continue
			}
			counts[cyclic[i]]++
			if !violated && !slices.ContainsFunc(r.Findings,
				func(f *Finding) bool { return f.Anomaly.base() == cyclic[i] }) {
				t.Errorf("there is a %s, but the findings are %v", cyclic[i], names(r))
			}
			return
		}
		if slices.ContainsFunc(r.Findings, func(f *Finding) bool { return slices.Contains(cyclic, f.Anomaly.base()) }) {
			t.Errorf("there is no cycle, but the findings are %v", names(r))
		}
	})
	t.Logf("strictest: %v", counts)
	wantAll(t, counts, cyclic...)
}
