package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/isotap/isotap/robust"
)

// RobustnessDOT writes the summary graph of programs in Graphviz's language: programs are nodes, all edges between two
// of them are one, counterflow ones dashed; the first cycle that makes them not robust against READ COMMITTED carries
// its statements. The error is w's.
func RobustnessDOT(w io.Writer, a *robust.Answer) error { return drawPrograms(w, a, dot{}) }

// RobustnessMermaid writes the same in Mermaid's language. The error is w's.
func RobustnessMermaid(w io.Writer, a *robust.Answer) error { return drawPrograms(w, a, mermaid{}) }

func drawPrograms(w io.Writer, a *robust.Answer, in notation) error {
	var b strings.Builder
	b.WriteString(in.open())
	node := make(map[*robust.Program]string)
	for i, p := range a.Programs {
		node[p] = fmt.Sprintf("p%d", i+1)
		b.WriteString(in.node(node[p], []string{p.Name}))
	}
	cycle := make(map[robust.Edge]bool)
	if witnesses := a.Of(robust.TypeII).Witnesses; len(witnesses) > 0 {
		for _, e := range witnesses[0].Cycle {
			cycle[e] = true
		}
	}
	type line struct {
		from, to    *robust.Program
		counterflow bool
	}
	drawn := make(map[line]bool)
	for _, e := range a.Graph.Edges {
		from, to := a.Graph.Nodes[e.From].Program, a.Graph.Nodes[e.To].Program
		l := line{from, to, e.Counterflow}
		switch {
		case cycle[e]:
			q, p := a.Graph.Ends(e)
			b.WriteString(in.edge(node[from], node[to], e.Counterflow, []string{clip(oneLine(q.String()), drawnText),
				clip(oneLine(p.String()), drawnText)}))
		case !drawn[l]:
			drawn[l] = true
			b.WriteString(in.edge(node[from], node[to], e.Counterflow, []string{" "}))
		}
	}
	b.WriteString(in.close())
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	return nil
}
