package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// A notation is a language in which graphs are written for other programs to draw. Each method gives the
// lines of one thing; labels have several lines, and are whatever strangers sent.
type notation interface {
	open() string
	group(n int, title string) string // of one finding
	node(id string, label []string) string
	edge(from, to string, dashed bool, label []string) string
	endGroup() string
	close() string
}

// drawnText is the number of characters of a statement or a row's name in a drawing.
const drawnText = 80

// DOT writes the witness of every finding as a cluster of one graph in Graphviz's language. The error is w's.
func DOT(w io.Writer, r *analyzer.Result) error { return draw(w, r, dot{}) }

// Mermaid writes the witness of every finding as a part of one flowchart in Mermaid's language. The error is
// w's.
func Mermaid(w io.Writer, r *analyzer.Result) error { return draw(w, r, mermaid{}) }

func draw(w io.Writer, r *analyzer.Result, in notation) error {
	var b strings.Builder
	b.WriteString(in.open())
	for i, f := range r.Findings {
		b.WriteString(in.group(i+1, string(f.Class)+": "+oneLine(string(f.Anomaly))+", seen "+times(f.Count)))
		drawWitness(&b, newWitness(f), i+1, in)
		b.WriteString(in.endGroup())
	}
	b.WriteString(in.close())
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	return nil
}

func drawWitness(b *strings.Builder, w *witness, n int, in notation) {
	node := func(i int) string { return fmt.Sprintf("f%d_t%d", n, i+1) }
	for i, t := range w.txns {
		b.WriteString(in.node(node(i), []string{w.name(t), t.ID.String(), levelName(t.Level), t.Status.String()}))
	}
	strangers := len(w.txns) // nodes of transactions that are not in the recording come after these
	end := func(t *history.Txn) string {
		if t != nil {
			return node(w.place[t.ID])
		}
		strangers++
		b.WriteString(in.node(node(strangers-1), []string{w.name(nil)}))
		return node(strangers - 1)
	}
	for i := range w.finding.Witness {
		e := &w.finding.Witness[i]
		from, to := end(e.From), end(e.To)
		b.WriteString(in.edge(from, to, e.Kind == analyzer.RW, w.label(e)))
	}
}

func (w *witness) label(e *analyzer.Edge) []string {
	label := []string{strings.TrimSpace(string(e.Kind) + " " + clip(oneLine(rowName(e.Row)), drawnText))}
	for _, s := range []*history.Stmt{e.FromStmt, e.ToStmt} {
		if s != nil {
			label = append(label, clipStatement(w.text(s), drawnText))
		}
	}
	return label
}

type dot struct{}

func (dot) open() string {
	return "digraph isotap {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=10];\n"
}

func (d dot) group(n int, title string) string {
	return fmt.Sprintf("  subgraph cluster_%d {\n    label=%s;\n", n, d.text(title))
}

func (d dot) node(id string, label []string) string {
	return fmt.Sprintf("    %s [label=%s];\n", id, d.text(label...))
}

func (d dot) edge(from, to string, dashed bool, label []string) string {
	style := ""
	if dashed {
		style = ", style=dashed"
	}
	return fmt.Sprintf("    %s -> %s [label=%s%s];\n", from, to, d.text(label...), style)
}

func (dot) endGroup() string { return "  }\n" }
func (dot) close() string    { return "}\n" }

// text quotes lines as one string. Graphviz reads backslashes in labels once more, and entities too.
func (dot) text(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
	for i := range lines {
		lines[i] = escape.Replace(lines[i])
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

type mermaid struct{}

func (mermaid) open() string { return "flowchart LR\n" }

func (m mermaid) group(n int, title string) string {
	return fmt.Sprintf("  subgraph finding_%d[%s]\n", n, m.text(title))
}

func (m mermaid) node(id string, label []string) string {
	return fmt.Sprintf("    %s[%s]\n", id, m.text(label...))
}

func (m mermaid) edge(from, to string, dashed bool, label []string) string {
	line, arrow := "--", "-->"
	if dashed {
		line, arrow = "-.", ".->"
	}
	return fmt.Sprintf("    %s %s %s %s %s\n", from, line, m.text(label...), arrow, to)
}

func (mermaid) endGroup() string { return "  end\n" }
func (mermaid) close() string    { return "" }

// text quotes lines as one string. What could mean something to Mermaid, Markdown or HTML is written as
// its number.
func (mermaid) text(lines ...string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, line := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		for _, r := range line {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,=-", r) {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, "#%d;", r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}
