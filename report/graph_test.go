package report

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/isotap/isotap/analyzer"
)

// A box is a rectangle that must not overlap another.
type box struct {
	name                     string
	left, top, right, bottom float64
}

func (a box) overlaps(b box) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// boxes returns the space that a graph's nodes, pills and rows take.
func boxes(g *graph) []box {
	// DejaVu Sans Mono, the widest of the fonts in the style, is 0.602 em wide; rows are set in 11 px.
	const charWidth, ascent, descent = 0.602 * 11, 9, 3
	var all []box
	for _, n := range g.Nodes {
		all = append(all, box{n.Name, n.X, n.Y, n.X + n.W, n.Y + n.H})
	}
	for _, e := range g.Edges {
		all = append(all, box{e.Pill, e.PillX, e.PillY, e.PillX + e.PillW, e.PillY + e.PillH})
		left, width := e.RowX, charWidth*float64(utf8.RuneCountInString(e.Row))
		switch e.Anchor {
		case "middle":
			left -= width / 2
		case "end":
			left -= width
		}
		all = append(all, box{e.Pill + " row", left, e.RowY - ascent, left + width, e.RowY + descent})
	}
	return all
}

func TestDrawnLabelsDoNotOverlapAndStayInside(t *testing.T) {
	findings := []*analyzer.Finding{hostile().Findings[1], lostUpdate().Findings[0]}
	for n := 2; n <= maxDrawn; n++ {
		findings = append(findings, ring(n, 0))
	}
	for _, f := range findings {
		g := newWitness(f).drawing()
		if g == nil {
			t.Fatalf("%s is not drawn", f.ID)
		}
		if len(g.Edges) != len(f.Witness) {
			t.Errorf("%s: %d edges are drawn, want %d", f.ID, len(g.Edges), len(f.Witness))
		}
		all := boxes(g)
		for i, a := range all {
			if a.left < 0 || a.top < 0 || a.right > g.Width || a.bottom > g.Height {
				t.Errorf("%s: %+v reaches beyond %v x %v", f.ID, a, g.Width, g.Height)
			}
			for _, b := range all[:i] {
				if a.overlaps(b) {
					t.Errorf("%s: %+v and %+v overlap", f.ID, a, b)
				}
			}
		}
	}
}

func TestWitnessThatIsNoPictureIsListedOnly(t *testing.T) {
	long := ring(maxDrawn+1, 0)
	broken := ring(3, 0)
	broken.Witness[1], broken.Witness[2] = broken.Witness[2], broken.Witness[1]
	for name, f := range map[string]*analyzer.Finding{"too long": long, "no cycle": broken, "none": {}} {
		c := newCard(f, 1, nil)
		if c.Graph != nil {
			t.Errorf("%s: a graph is drawn", name)
		}
		if len(c.Edges) != len(f.Witness) {
			t.Errorf("%s: %d edges are listed, want %d", name, len(c.Edges), len(f.Witness))
		}
	}
}

// TestRowLabelSharesItsWidth: row label gives the ID what the table leaves.
func TestRowLabelSharesItsWidth(t *testing.T) {
	for _, c := range []struct{ table, id, want string }{
		{"bank.account", "k000001.1:6", "account #k000001.1:6"},
		{"bank.a", "0123456789abcdefghij", "a #01234567…cdefghij"},
		{"shop.order_line_items", "k000001.1:17", "order_li… #k000…1:17"},
		{"plain", "1", "plain #1"},
	} {
		f := &analyzer.Edge{}
		f.Row.Table, f.Row.ID = c.table, c.id
		got := rowLabel(f.Row, rowRunes)
		if got != c.want {
			t.Errorf("%s #%s: got %q, want %q", c.table, c.id, got, c.want)
		}
		if n := utf8.RuneCountInString(got); n > rowRunes {
			t.Errorf("%q has %d characters", got, n)
		}
	}
}

func TestTransactionsOfAWitnessFindTheirProgram(t *testing.T) {
	f := threeCycle()
	w := newWitness(f)
	var got []string
	for _, txn := range w.txns {
		got = append(got, w.programName(txn))
	}
	if fmt.Sprint(got) != "[P1 P2 ]" {
		t.Errorf("got %q, want P1, P2 and none", got)
	}
	twin := *f.Programs[0]
	twin.Name = "P9"
	f.Programs = append(f.Programs, &twin)
	if name := w.programName(w.txns[0]); name != "" {
		t.Errorf("of two programs that fit equally %s was chosen", name)
	}
}
