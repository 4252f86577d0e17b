package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A graph is a witness laid out for drawing: all lengths in SVG user units, the origin at the top
// left. A cycle goes clockwise: a pair side by side, three and more on two rows, the upper one left
// to right, the lower one back. Text is horizontal, so rows leave it room where a circle would not.
type graph struct {
	Width, Height float64
	MinWidth      int    // the width in pixels that its text stays readable at
	Title         string // the whole graph in words, for those who cannot see it
	Nodes         []graphNode
	Edges         []graphEdge
}

// A graphNode is a transaction's box.
type graphNode struct {
	X, Y, CX, NameY, IDY, W, H float64 // CX is its middle; NameY and IDY the baselines of its two lines
	Name, ID, Title            string
}

// A graphEdge is an arrow with a pill that carries its number and kind, and its row beside it.
type graphEdge struct {
	Kind                       analyzer.DepKind
	Path                       string // SVG path data of the line
	Head                       string // the points of the arrowhead's triangle
	PillX, PillY, PillW, PillH float64
	PillCX, PillTY             float64 // where its text stands
	Pill, Row, Title           string
	RowX, RowY                 float64
	Anchor                     string // SVG text-anchor of the row
}

// The measures of the drawing. rowRunes characters of the row's font fit the gap between two boxes.
const (
	nodeW, nodeH  = 124.0, 52.0
	nodeRunes     = 16    // of its second line
	pitchX        = 276.0 // from one box's middle to the next one's
	pitchY        = 150.0
	margin        = 6.0
	sideRoom      = 70.0 // beside slanted edges, whose rows stand outside
	pillW, pillH  = 52.0, 22.0
	rowAbove      = 18.0 // from a line up to the baseline of the row above it
	rowBelow      = 27.0
	headLength    = 9.0
	headHalfWidth = 4.5
	arcLift       = 62.0
	rowRunes      = 20
	maxDrawn      = 8 // transactions; a longer cycle is listed only
)

type point struct{ x, y float64 }

// drawing lays a witness out; nil where it is none, or too long to read as a picture.
func (w *witness) drawing() *graph {
	edges := w.finding.Witness
	var g *graph
	switch {
	case len(w.txns) > maxDrawn:
		return nil
	case w.cyclic() && len(edges) == 2:
		g = w.pair()
	case w.cyclic():
		g = w.ring()
	case len(edges) == 1 && edges[0].From != edges[0].To:
		g = w.single()
	default:
		return nil
	}
	g.MinWidth = int(0.78 * g.Width)
	parts := make([]string, len(g.Edges))
	for i := range g.Edges {
		parts[i] = g.Edges[i].Title
	}
	g.Title = strings.Join(parts, "; ")
	return g
}

// single draws one edge from left to right.
func (w *witness) single() *graph {
	e := &w.finding.Witness[0]
	y := margin + rowAbove + nodeH/2
	left, right := point{margin + nodeW/2, y}, point{margin + nodeW/2 + pitchX, y}
	g := &graph{Width: right.x + nodeW/2 + margin, Height: y + nodeH/2 + margin}
	g.Nodes = []graphNode{w.node(e.From, left), w.node(e.To, right)}
	g.Edges = []graphEdge{w.level(0, left, right, true)}
	return g
}

// pair draws two transactions with an arc above and one below.
func (w *witness) pair() *graph {
	y := 104.0
	left, right := point{margin + nodeW/2, y}, point{margin + nodeW/2 + pitchX, y}
	g := &graph{Width: right.x + nodeW/2 + margin, Height: 2 * y}
	for i, at := range []point{left, right} {
		g.Nodes = append(g.Nodes, w.node(w.txns[i], at))
	}
	g.Edges = []graphEdge{w.arc(0, left, right), w.arc(1, right, left)}
	return g
}

// ring draws a cycle of three or more on two rows.
func (w *witness) ring() *graph {
	n := len(w.txns)
	upper := (n + 1) / 2
	x0 := margin + nodeW/2
	if n%2 == 1 {
		x0 += sideRoom
	}
	top := margin + rowAbove + nodeH/2
	places := make([]point, n)
	for i := range places {
		if i < upper {
			places[i] = point{x0 + float64(i)*pitchX, top}
			continue
		}
		// The lower row runs back from the right; an odd one stands in the gaps of the upper.
		places[i] = point{x0 + (float64(upper-1)-float64(i-upper))*pitchX, top + pitchY}
		if n%2 == 1 {
			places[i].x -= pitchX / 2
		}
	}
	g := &graph{Width: x0 + float64(upper-1)*pitchX + x0, Height: top + pitchY + nodeH/2 + margin}
	for i, at := range places {
		g.Nodes = append(g.Nodes, w.node(w.txns[i], at))
	}
	for i := range places {
		from, to := places[i], places[(i+1)%n]
		if from.y == to.y {
			g.Edges = append(g.Edges, w.level(i, from, to, from.y == top))
		} else {
			g.Edges = append(g.Edges, w.steep(i, from, to))
		}
	}
	return g
}

func (w *witness) node(t *history.Txn, at point) graphNode {
	n := graphNode{X: at.x - nodeW/2, Y: at.y - nodeH/2, CX: at.x, NameY: at.y - 4, IDY: at.y + 14, W: nodeW, H: nodeH,
		Name: w.name(t)}
	if t == nil {
		n.Title, n.ID = "a transaction that is not in the recording", "unknown"
		return n
	}
	n.ID = clipMiddle(t.ID.String(), nodeRunes)
	if p := w.programName(t); p != "" {
		n.ID = clip(printable(p), nodeRunes) // the title has the id
	}
	n.Title = w.name(t) + " = " + txnTitle(w, t)
	return n
}

// edge makes the parts of an edge that do not depend on where it lies; the pill's middle is at p.
func (w *witness) edge(i int, p point) graphEdge {
	e := &w.finding.Witness[i]
	title := fmt.Sprintf("%d: %s %s %s", i+1, w.name(e.From), e.Kind, w.name(e.To))
	if row := rowName(e.Row); row != "" {
		title += " on " + oneLine(row)
	}
	return graphEdge{
		Kind: e.Kind, Pill: fmt.Sprintf("%d  %s", i+1, e.Kind), Title: title, Row: rowLabel(e.Row, rowRunes),
		PillX: p.x - pillW/2, PillY: p.y - pillH/2, PillW: pillW, PillH: pillH, PillCX: p.x, PillTY: p.y + 4,
	}
}

// rowLabel shortens a row's name to n characters: the table without its schema, and as much of the
// id as the table leaves room for.
func rowLabel(r history.Row, n int) string {
	if r == (history.Row{}) {
		return ""
	}
	table := oneLine(r.Table[strings.LastIndexByte(r.Table, '.')+1:])
	id := clipMiddle(oneLine(r.ID), max(n/2-1, n-2-utf8.RuneCountInString(table)))
	return clip(table, n-2-utf8.RuneCountInString(id)) + " #" + id
}

// level draws a horizontal edge with its row above or below the line.
func (w *witness) level(i int, from, to point, above bool) graphEdge {
	dir := math.Copysign(1, to.x-from.x)
	start, end := point{from.x + dir*nodeW/2, from.y}, point{to.x - dir*nodeW/2, to.y}
	mid := point{(start.x + end.x) / 2, start.y}
	g := w.edge(i, mid)
	g.straight(start, end)
	g.RowX, g.RowY, g.Anchor = mid.x, mid.y-rowAbove, "middle"
	if !above {
		g.RowY = mid.y + rowBelow
	}
	return g
}

// arc draws an edge of a pair: to the right above the boxes, to the left below them.
func (w *witness) arc(i int, from, to point) graphEdge {
	dir := math.Copysign(1, to.x-from.x)
	lift := -dir * arcLift
	start, end := point{from.x + dir*nodeW/2, from.y - dir*12}, point{to.x - dir*nodeW/2, to.y - dir*12}
	c1, c2 := point{start.x + dir*36, start.y + lift}, point{end.x - dir*36, end.y + lift}
	mid := point{(from.x + to.x) / 2, (start.y+end.y)/8 + 3*(c1.y+c2.y)/8}
	g := w.edge(i, mid)
	tail := g.point(c2, end)
	g.Path = fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", start.x, start.y, c1.x, c1.y, c2.x, c2.y, tail.x,
		tail.y)
	g.RowX, g.RowY, g.Anchor = mid.x, mid.y-rowAbove, "middle"
	if dir < 0 {
		g.RowY = mid.y + rowBelow
	}
	return g
}

// steep draws an edge between the two rows. The row's text stands inside the ring beside an upright
// edge, outside beside a slanted one, where the inside is too narrow.
func (w *witness) steep(i int, from, to point) graphEdge {
	down := math.Copysign(1, to.y-from.y)
	start, end := point{from.x, from.y + down*nodeH/2}, point{to.x, to.y - down*nodeH/2}
	mid := point{(start.x + end.x) / 2, (start.y + end.y) / 2}
	g := w.edge(i, mid)
	g.straight(start, end)
	right := down // the cycle goes clockwise: down on its right side, up on its left
	if start.x == end.x {
		right = -right
	}
	g.RowX, g.RowY, g.Anchor = mid.x+right*(pillW/2+8), mid.y+4, "start"
	if start.x == end.x {
		// In a square the two upright edges' rows meet in the middle: one goes up, one down.
		g.RowY += right * 9
	}
	if right < 0 {
		g.Anchor = "end"
	}
	return g
}

// straight sets the line from start to end.
func (g *graphEdge) straight(start, end point) {
	tail := g.point(start, end)
	g.Path = fmt.Sprintf("M%.1f %.1fL%.1f %.1f", start.x, start.y, tail.x, tail.y)
}

// point sets the arrowhead at end for a line that arrives from the direction of before, and returns
// where the line itself must stop so that it does not show beyond the tip.
func (g *graphEdge) point(before, end point) point {
	dx, dy := end.x-before.x, end.y-before.y
	length := math.Hypot(dx, dy)
	dx, dy = dx/length, dy/length
	tail := point{end.x - dx*headLength, end.y - dy*headLength}
	g.Head = fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", end.x, end.y,
		tail.x-dy*headHalfWidth, tail.y+dx*headHalfWidth, tail.x+dy*headHalfWidth, tail.y-dx*headHalfWidth)
	return tail
}
