package robust

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkAuction measures Algorithm 2 from the programs to the answer: Figure 8 of the paper goes to fewer items.
func BenchmarkAuction(b *testing.B) {
	for _, n := range []int{10, 50, 100, 200} {
		w, err := Auction(n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if !Analyze(w.Programs, Setting{ForeignKeys: true}).Robust(TypeII) {
					b.Fatal("not robust")
				}
			}
		})
	}
}

// With 200 items 600 linear programs have 361,600 edges, and without foreign keys no PlaceBid is robust: the maximal
// subsets are found without trying the 2⁴⁰⁰ there are.
func TestTwoHundredItemsAreAnswered(t *testing.T) {
	const n = 200
	w, err := Auction(n)
	if err != nil {
		t.Fatal(err)
	}
	a := Analyze(w.Programs, Setting{ForeignKeys: true})
	if nodes, edges, flow := len(a.Graph.Nodes), len(a.Graph.Edges), a.Graph.Counterflows(); nodes != 3*n ||
		edges != 8*n+9*n*n || flow != n {
		t.Errorf("%d nodes, %d edges (%d)", nodes, edges, flow)
	}
	if !a.Robust(TypeII) || !a.Robust(Snapshot) {
		t.Error("not robust")
	}
	if testing.Short() {
		return
	}
	without := Analyze(w.Programs[:40], Setting{}).Subsets(TypeII, 0)
	if !without.Complete || len(without.Maximal) != 1 || len(without.Maximal[0]) != 20 || len(without.Minimal) != 20 {
		t.Errorf("%d maximal sets, %d minimal ones", len(without.Maximal), len(without.Minimal))
	}
}

// With type-I cycles a bidder and a finder of one item are not robust together: 2ⁿ maximal subsets, of which some are
// asked for.
func TestSubsetsCanBeCut(t *testing.T) {
	w, err := Auction(12)
	if err != nil {
		t.Fatal(err)
	}
	a := Analyze(w.Programs, Setting{ForeignKeys: true})
	for _, most := range []int{10, 0} {
		got := a.Subsets(TypeI, most)
		t.Logf("%d maximal, %d minimal", len(got.Maximal), len(got.Minimal))
		if got.Complete != (most == 0) || most > 0 && len(got.Maximal) != most {
			t.Errorf("%d maximal sets, complete %v", len(got.Maximal), got.Complete)
		}
		for _, set := range got.Maximal {
			if !a.Robust(TypeI, set...) {
				t.Errorf("%v is not robust", set)
			}
		}
	}
}

// TestEdgesAreInOrder has the edges of a graph in the order of their ends, without sorting them.
func TestEdgesAreInOrder(t *testing.T) {
	auction, err := Auction(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Workload{SmallBank(), TPCC(), auction} {
		for _, s := range Settings {
			g := Analyze(w.Programs, s).Graph
			if len(g.Edges) == 0 || !slices.IsSortedFunc(g.Edges, compareEdges) {
				t.Errorf("%s, %s: %d edges, in another order", w.Name, s, len(g.Edges))
			}
		}
	}
}
