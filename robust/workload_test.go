package robust

import (
	"fmt"
	"testing"
)

// The numbers are those of Table 2, and of FINDINGS for the settings that it does not have.
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
				t.Errorf("%d nodes, %d edges (%d), want %d, %d (%d)", len(g.Nodes), len(g.Edges), g.Counterflows(), c.nodes, c.edges, c.flow)
			}
		})
	}
}
