package program_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/program"
)

// byHand are the benchmarks as package robust has them, with the numbers of Table 2.
func byHand(t *testing.T) map[string]*robust.Workload {
	auction, err := robust.Auction(1)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*robust.Workload{"smallbank": robust.SmallBank(), "auction": auction, "tpcc": robust.TPCC()}
}

func fromSQL(t *testing.T, name string) *robust.Workload {
	w, err := program.Benchmark(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// describe writes a statement's type and sets; that of all attributes in one way.
func describe(w *robust.Workload, q *robust.Statement) string {
	sets := []robust.Set{q.PRead, q.Read, q.Write}
	for i, s := range sets {
		if s.IsAll() {
			sets[i] = robust.Of(w.Schema.Relation(q.Relation).Attributes...)
		}
	}
	return fmt.Sprint(q, " ", sets)
}

// TestStatementsFromSQLMatchByHand: benchmarks from SQL have the statements of those by hand.
func TestStatementsFromSQLMatchByHand(t *testing.T) {
	for name, hand := range byHand(t) {
		sql := fromSQL(t, name)
		for i, p := range hand.Programs {
			got := sql.Programs[i]
			if got.Name != p.Name || got.Short != p.Short {
				t.Errorf("%s: program %s (%s), want %s (%s)", name, got.Name, got.Short, p.Name, p.Short)
			}
			want, have := p.Statements(), got.Statements()
			for n := range max(len(want), len(have)) {
				var w, h string
				if n < len(want) {
					w = describe(hand, want[n])
				}
				if n < len(have) {
					h = describe(sql, have[n])
				}
				if w != h {
					t.Errorf("%s %s:\n have %s\n want %s", name, p.Name, h, w)
				}
			}
		}
	}
}

// TestForeignKeysFromSQLMatchByHand: benchmarks from SQL have the foreign keys of those by hand.
func TestForeignKeysFromSQLMatchByHand(t *testing.T) {
	for name, hand := range byHand(t) {
		sql := fromSQL(t, name)
		for i, p := range hand.Programs {
			var have []string
			for _, c := range sql.Programs[i].ForeignKeys {
				have = append(have, fmt.Sprintf("%s = %s(%s)", c.Parent.Name, c.ForeignKey, c.Child.Name))
			}
			for _, c := range p.ForeignKeys {
				if want := fmt.Sprintf("%s = %s(%s)", c.Parent.Name, c.ForeignKey, c.Child.Name); !slices.Contains(have,
					want) {
					t.Errorf("%s %s: %s is not among %q", name, p.Name, want, have)
				}
			}
		}
	}
}

// What the extractor finds beyond the foreign keys by hand changes nothing: the summary graphs are the same.
func TestSummaryGraphsFromSQLMatchByHand(t *testing.T) {
	for name, hand := range byHand(t) {
		sql := fromSQL(t, name)
		for _, s := range robust.Settings {
			want, have := robust.Summarize(robust.Unfold(hand.Programs...), s),
				robust.Summarize(robust.Unfold(sql.Programs...), s)
			if len(want.Nodes) != len(have.Nodes) || !slices.Equal(want.Edges, have.Edges) {
				t.Errorf("%s, %s: %d nodes, %d edges (%d), want %d, %d (%d)", name, s, len(have.Nodes), len(have.Edges),
					have.Counterflows(), len(want.Nodes), len(want.Edges), want.Counterflows())
			}
		}
	}
}

// Figures 6 and 7 hold for programs from SQL as they do for those by hand.
func TestRobustSubsetsFromSQLMatchByHand(t *testing.T) {
	for name, hand := range byHand(t) {
		sql := fromSQL(t, name)
		for _, s := range robust.Settings {
			for _, test := range []robust.Test{robust.TypeII, robust.TypeI, robust.Snapshot} {
				want, have := robust.Analyze(hand.Programs, s).Subsets(test, 0),
					robust.Analyze(sql.Programs, s).Subsets(test, 0)
				if !reflect.DeepEqual(have, want) {
					t.Errorf("%s, %s, %s: %v, want %v", name, s, test, have, want)
				}
			}
		}
	}
}

// An auction of several items from its SQL is the one by hand.
func TestAuctionsOfManyItemsMatchByHand(t *testing.T) {
	hand, err := robust.Auction(3)
	if err != nil {
		t.Fatal(err)
	}
	sql := fromSQL(t, "auction:3")
	for _, s := range robust.Settings {
		want, have := robust.Summarize(robust.Unfold(hand.Programs...), s),
			robust.Summarize(robust.Unfold(sql.Programs...), s)
		if len(want.Nodes) != len(have.Nodes) || len(want.Edges) != len(have.Edges) ||
			want.Counterflows() != have.Counterflows() {
			t.Errorf("%s: %d nodes, %d edges (%d), want %d, %d (%d)", s, len(have.Nodes), len(have.Edges),
				have.Counterflows(), len(want.Nodes), len(want.Edges), want.Counterflows())
		}
	}
	for _, name := range []string{"auction:0", "auction:x", "tpcc:2"} {
		if _, err := program.Benchmark(name); err == nil {
			t.Errorf("there is a benchmark %s", name)
		}
	}
}
