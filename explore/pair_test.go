package explore

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// call is one that reads and writes a row, and then writes with a text of its own.
func call(text string, row string) *instance {
	access := []history.Access{{Row: history.Row{Table: "stock", ID: row}, Op: history.UpdateRow}}
	return &instance{statements: []statement{{recorded: &history.Stmt{Kind: history.Update, Shape: text, Accesses: access}, text: text + row,
		target: "stock", named: []string{"stock"}}}}
}

// TestPairsThatMeetInRowsComeFirst: time may be over before all others were played.
func TestPairsThatMeetInRowsComeFirst(t *testing.T) {
	one, two, three := call("pay", "1"), call("pay", "2"), call("cancel", "2")
	x := &explorer{programs: []string{"pay", "cancel"}, calls: map[string][]*instance{"pay": {one, two}, "cancel": {three}}}
	x.pair()
	for _, c := range []struct {
		in     *instance
		beside []*instance
	}{{one, []*instance{two, three}}, {two, []*instance{three, one}}, {three, []*instance{two, one}}} {
		for i, want := range c.beside {
			if len(x.neighbours[c.in]) != len(c.beside) || x.neighbours[c.in][i].instance != want {
				t.Fatalf("%s: %v", c.in.statements[0].text, x.neighbours[c.in])
			}
		}
	}
	p := &pass{explorer: x, rank: x.lowest()}
	if p.awaited(one) || !p.awaited(two) || !p.awaited(three) {
		t.Errorf("in the first pass those are played that meet in rows: %v", x.neighbours)
	}
}
