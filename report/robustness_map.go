package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/isotap/isotap/robust"
)

// A programMap is a summary graph laid out for drawing, programs on a circle; lengths as in [graph]. All edges from one
// program to another are one line, and those of the cycle that is shown first have numbers.
type programMap struct {
	Width, Height float64
	Title         string
	Nodes         []mapNode
	Edges         []mapEdge // those of the cycle last, so that nothing covers them
	Left          int       // programs that are not drawn
}

// A mapNode is a program's box.
type mapNode struct {
	X, Y, W, H, CX, TY float64
	Name, Title        string
	Lit                bool // it is on the cycle
}

// A mapEdge is a line with a head. A Lit one has a round label with its number on the cycle.
type mapEdge struct {
	Class, Path, Head, Title string
	Label                    string
	LabelX, LabelY, LabelTY  float64
}

// The measures of the drawing.
const (
	mapW, mapH    = 96.0, 34.0
	mapSpacing    = 128.0 // of programs, along the circle
	mapLeast      = 150.0 // the circle's radius at least
	mapMargin     = 90.0  // around the circle, for loops
	maxMapped     = 16    // programs; beyond it those that are not on the cycle are left out
	mapBend       = 0.16  // how far a line bends, in parts of its length
	mapLoop       = 46.0  // how far a loop reaches out
	mapNameLength = 12
)

// A flow is all edges from one program to another that do, or do not, go against the order of commits.
type flow struct {
	from, to    int
	counterflow bool
}

// newProgramMap draws the summary graph of an answer, and on it the first cycle that its test does not allow.
func newProgramMap(a *robust.Answer, t robust.Test) *programMap {
	number := make(map[*robust.Program]int)
	for i, p := range a.Programs {
		number[p] = i
	}
	at := func(e robust.Edge) flow {
		return flow{number[a.Graph.Nodes[e.From].Program], number[a.Graph.Nodes[e.To].Program], e.Counterflow}
	}
	lit, onCycle := make(map[flow][]int), make(map[int]bool)
	var cycle []robust.Edge
	if w := a.Of(t).Witnesses; len(w) > 0 {
		cycle = w[0].Cycle
	}
	for i, e := range cycle {
		lit[at(e)] = append(lit[at(e)], i)
		onCycle[at(e).from] = true
	}
	m := &programMap{Title: fmt.Sprintf("The summary graph of %d programs", len(a.Programs))}
	places := m.place(a.Programs, onCycle)
	drawn := make(map[flow]int)
	for _, e := range a.Graph.Edges {
		drawn[at(e)]++
	}
	flows := make([]flow, 0, len(drawn))
	for f := range drawn {
		flows = append(flows, f)
	}
	slices.SortFunc(flows, func(f, g flow) int { return compareFlows(f, g, lit) })
	for _, f := range flows {
		from, seen := places[f.from]
		to, also := places[f.to]
		if !seen || !also {
			continue
		}
		e := m.edge(f, from, to)
		e.Title = fmt.Sprintf("%s → %s, edges: %d", printable(a.Programs[f.from].Name),
			printable(a.Programs[f.to].Name), drawn[f])
		if f.counterflow {
			e.Title += ", counterflow"
		}
		for _, i := range lit[f] {
			e.Class += " lit"
			e.Label = fmt.Sprint(i + 1)
			e.Title = e.Label + ": " + oneLine(a.Graph.Describe(cycle[i]))
		}
		m.Edges = append(m.Edges, e)
	}
	return m
}

// compareFlows has what catches the eye drawn last.
func compareFlows(f, g flow, lit map[flow][]int) int {
	rank := func(f flow) int {
		switch {
		case len(lit[f]) > 0 && f.counterflow:
			return 3
		case len(lit[f]) > 0:
			return 2
		case f.counterflow:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(f), rank(g)), cmp.Compare(f.from, g.from), cmp.Compare(f.to, g.to))
}

// place puts the programs on a circle, the first at its top, and returns their middles.
func (m *programMap) place(programs []*robust.Program, onCycle map[int]bool) map[int]point {
	var shown []int
	for i := range programs {
		if len(programs) <= maxMapped || onCycle[i] {
			shown = append(shown, i)
		}
	}
	m.Left = len(programs) - len(shown)
	radius := max(mapLeast, mapSpacing*float64(len(shown))/(2*math.Pi))
	middle := point{radius + mapMargin + mapW/2, radius + mapMargin}
	m.Width, m.Height = 2*middle.x, 2*middle.y
	places := make(map[int]point)
	for k, i := range shown {
		angle := 2*math.Pi*float64(k)/float64(len(shown)) - math.Pi/2
		p := point{middle.x + radius*math.Cos(angle), middle.y + radius*math.Sin(angle)}
		places[i] = p
		m.Nodes = append(m.Nodes, mapNode{
			X: p.x - mapW/2, Y: p.y - mapH/2, W: mapW, H: mapH, CX: p.x, TY: p.y + 5,
			Name: clip(printable(programs[i].Label()), mapNameLength), Title: printable(programs[i].Name),
			Lit: onCycle[i],
		})
	}
	return places
}

// edge draws a line from one box to another, or a loop at one.
func (m *programMap) edge(f flow, from, to point) mapEdge {
	e := mapEdge{Class: "flow"}
	if f.counterflow {
		e.Class = "counterflow"
	}
	if f.from == f.to {
		m.loop(&e, from, f.counterflow)
		return e
	}
	// Lines bend to their right, so that the two directions between a pair stand apart; counterflow ones bend further.
	bend := mapBend
	if f.counterflow {
		bend *= 2.2
	}
	dx, dy := to.x-from.x, to.y-from.y
	control := point{(from.x+to.x)/2 - dy*bend, (from.y+to.y)/2 + dx*bend}
	e.curve(border(from, control), control, border(to, control))
	return e
}

// loop draws an edge from a box to itself, on the side away from the circle's middle; counterflow ones reach out
// further.
func (m *programMap) loop(e *mapEdge, at point, counterflow bool) {
	reach, spread := mapLoop, 16.0
	if counterflow {
		reach, spread = 2.4*mapLoop, 34.0
	}
	out := math.Copysign(1, at.y-m.Height/2)
	start, end := point{at.x - spread, at.y + out*mapH/2}, point{at.x + spread, at.y + out*mapH/2}
	e.curve(start, point{at.x, at.y + out*(mapH/2+reach)}, end)
}

// curve sets a quadratic curve with a head at its end, and the label at its middle.
func (e *mapEdge) curve(start, control, end point) {
	var head graphEdge
	tail := head.point(control, end)
	e.Head = head.Head
	e.Path = fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", start.x, start.y, control.x, control.y, tail.x, tail.y)
	e.LabelX, e.LabelY = (start.x+2*control.x+end.x)/4, (start.y+2*control.y+end.y)/4
	e.LabelTY = e.LabelY + 4
}

// border returns where the line from a box's middle toward a point leaves the box.
func border(middle, towards point) point {
	dx, dy := towards.x-middle.x, towards.y-middle.y
	scale := min(mapW/2/math.Max(math.Abs(dx), 1e-9), mapH/2/math.Max(math.Abs(dy), 1e-9))
	return point{middle.x + dx*scale, middle.y + dy*scale}
}
