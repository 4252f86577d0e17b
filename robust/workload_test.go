package robust

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The numbers are those of Table 2, and our own measurements for the settings that it does not have.
func TestSummaryGraphsHaveThePapersSizes(t *testing.T) {
	auction := func(n int) *Workload {
		w, err := Auction(n)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, c := range []struct {
		workload           *Workload
		setting            Setting
		nodes, edges, flow int
	}{
		{SmallBank(), Setting{ForeignKeys: true}, 5, 56, 12},
		{TPCC(), Setting{ForeignKeys: true}, 13, 396, 83},
		{TPCC(), Setting{}, 13, 400, 87},
		{TPCC(), Setting{Tuples: true}, 13, 734, 187},
		{TPCC(), Setting{Tuples: true, ForeignKeys: true}, 13, 722, 175},
		{auction(1), Setting{ForeignKeys: true}, 3, 17, 1},
		{auction(1), Setting{}, 3, 19, 3},
		{auction(7), Setting{ForeignKeys: true}, 3 * 7, 8*7 + 9*7*7, 7},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.workload.Name, c.setting), func(t *testing.T) {
			if err := c.workload.Check(); err != nil {
				t.Fatal(err)
			}
			g := Summarize(Unfold(c.workload.Programs...), c.setting)
			if len(g.Nodes) != c.nodes || len(g.Edges) != c.edges || g.Counterflows() != c.flow {
				t.Errorf("%d nodes, %d edges (%d), want %d, %d (%d)", len(g.Nodes), len(g.Edges),
					g.Counterflows(), c.nodes, c.edges, c.flow)
			}
		})
	}
}

// named returns sets of programs by their short names, as the paper prints them.
func named(w *Workload, sets [][]int) []string {
	var all []string
	for _, set := range sets {
		names := make([]string, len(set))
		for i, p := range set {
			names[i] = w.Programs[p].Label()
		}
		slices.Sort(names)
		all = append(all, strings.Join(names, " "))
	}
	slices.Sort(all)
	return all
}

// TestMaximalRobustSubsetsAreThePapers: maximal robust subsets are those of figures 6 and 7.
func TestMaximalRobustSubsetsAreThePapers(t *testing.T) {
	auction, err := Auction(1)
	if err != nil {
		t.Fatal(err)
	}
	tpl, attr, tplFK, attrFK := Settings[0], Settings[1], Settings[2], Settings[3]
	smallBank6, smallBank7 := []string{"Am DC TS", "Bal DC", "Bal TS"}, []string{"Am DC TS", "Bal"}
	for _, c := range []struct {
		workload *Workload
		test     Test
		setting  Setting
		want     []string
	}{
		{SmallBank(), TypeII, tpl, smallBank6},
		{SmallBank(), TypeII, attr, smallBank6},
		{SmallBank(), TypeII, tplFK, smallBank6},
		{SmallBank(), TypeII, attrFK, smallBank6},
		{TPCC(), TypeII, tpl, []string{"NO", "OS SL"}},
		{TPCC(), TypeII, attr, []string{"NO", "OS SL"}},
		{TPCC(), TypeII, tplFK, []string{"NO", "OS SL"}},
		{TPCC(), TypeII, attrFK, []string{"NO Pay", "OS Pay SL"}},
		{auction, TypeII, tpl, []string{"FB"}},
		{auction, TypeII, attr, []string{"FB"}},
		{auction, TypeII, tplFK, []string{"FB PB"}},
		{auction, TypeII, attrFK, []string{"FB PB"}},

		{SmallBank(), TypeI, tpl, smallBank7},
		{SmallBank(), TypeI, attr, smallBank7},
		{SmallBank(), TypeI, tplFK, smallBank7},
		{SmallBank(), TypeI, attrFK, smallBank7},
		{TPCC(), TypeI, tpl, []string{"NO", "OS SL"}},
		{TPCC(), TypeI, attr, []string{"NO", "OS SL"}},
		{TPCC(), TypeI, tplFK, []string{"NO", "OS SL"}},
		{TPCC(), TypeI, attrFK, []string{"NO Pay", "OS SL", "Pay SL"}},
		{auction, TypeI, tpl, []string{"FB"}},
		{auction, TypeI, attr, []string{"FB"}},
		{auction, TypeI, tplFK, []string{"FB", "PB"}},
		{auction, TypeI, attrFK, []string{"FB", "PB"}},
	} {
		t.Run(fmt.Sprintf("%s, %s, %s", c.workload.Name, c.test, c.setting), func(t *testing.T) {
			got := Analyze(c.workload.Programs, c.setting).Subsets(c.test, 0)
			if sets := named(c.workload, got.Maximal); !slices.Equal(sets, c.want) || !got.Complete {
				t.Errorf("robust: %q, want %q", sets, c.want)
			}
		})
	}
}

// SmallBank's sets are those that are known of it: only Balance, WriteCheck and TransactSavings together are dangerous.
func TestMaximalSubsetsRobustAgainstSnapshotIsolation(t *testing.T) {
	auction, err := Auction(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workload         *Workload
		setting          Setting
		maximal, minimal []string
	}{
		{SmallBank(), Setting{ForeignKeys: true}, []string{"Am Bal DC TS", "Am Bal DC WC", "Am DC TS WC"},
			[]string{"Bal TS WC"}},
		{SmallBank(), Setting{}, []string{"Am Bal DC TS"}, []string{"WC"}},
		{TPCC(), Setting{ForeignKeys: true}, []string{"NO OS Pay SL"}, []string{"Del"}},
		{TPCC(), Setting{Tuples: true, ForeignKeys: true}, []string{"NO OS SL"}, []string{"Del", "Pay"}},
		{auction, Setting{ForeignKeys: true}, []string{"FB PB"}, nil},
		{auction, Setting{}, []string{"FB"}, []string{"PB"}},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.workload.Name, c.setting), func(t *testing.T) {
			got := Analyze(c.workload.Programs, c.setting).Subsets(Snapshot, 0)
			if sets := named(c.workload, got.Maximal); !slices.Equal(sets, c.maximal) {
				t.Errorf("robust: %q, want %q", sets, c.maximal)
			}
			if sets := named(c.workload, got.Minimal); !slices.Equal(sets, c.minimal) {
				t.Errorf("not robust: %q, want %q", sets, c.minimal)
			}
		})
	}
}
