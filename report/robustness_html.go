package report

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/isotap/isotap/robust"
)

// RobustnessHTML writes what [Robustness] does as one page that needs nothing but itself, with the summary graph of the
// last setting drawn: programs are boxes, counterflow dependencies dashed, the first cycle that makes them not robust
// lit. The error is w's.
func RobustnessHTML(w io.Writer, workload *robust.Workload, answers []*robust.Answer) error {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "robustness", newRobustPage(workload, answers)); err != nil {
		return fmt.Errorf("render the HTML report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the HTML report: %w", err)
	}
	return nil
}

// The limits that keep the page light; the JSON has everything.
const (
	robustCards    = 20
	robustPageSets = 50 // of one test
	robustPrograms = 100
)

// A robustPage is what the template shows.
type robustPage struct {
	CSS               template.CSS
	Verdict, Tone     string
	Name, Size        string
	Setting           string // of the drawing and the cards
	Rows              []robustRow
	Promotion         string
	Map               *programMap
	Cards             []robustCard
	MoreCards         int
	Programs          []robustProgram
	MorePrograms      int
	Notes, Assumption []string
}

// A robustRow is what one setting says.
type robustRow struct{ Setting, Graph, ReadCommitted, Snapshot, Levels string }

// A robustCard says why a set of programs is not robust.
type robustCard struct {
	Anchor, Set, Level string
	Columns            []string // the transactions, by their programs
	Rows               []robustStepRow
	Proof              []string
	Cycle              []string // where no execution was found
	MinWidth           int
}

// A robustStepRow is a step of an execution, in the column of its transaction.
type robustStepRow struct{ Cells []robustCell }

// A robustCell is empty but for one of a row.
type robustCell struct {
	Open, First, Last bool
	Lead, SQL         string
	Marked            bool
}

// A robustProgram is a program with its statements.
type robustProgram struct {
	Name, Levels string
	Statements   []robustCell
}

func newRobustPage(w *robust.Workload, answers []*robust.Answer) *robustPage {
	r := &robustness{terminal: &terminal{}, programs: w.Programs}
	last := answers[len(answers)-1]
	test := robust.TypeII
	if last.Of(test).Robust {
		test = robust.Snapshot
	}
	p := &robustPage{
		CSS: template.CSS(pageCSS), Name: printable(w.Name), Setting: last.Graph.Setting.String(),
		Assumption: robust.Assumptions,
		Size: fmt.Sprintf("%s over %s, unfolded into %d", plural(len(w.Programs), "program"),
			plural(len(w.Schema.Relations), "relation"), len(last.Graph.Nodes)),
		Map: newProgramMap(last, test),
	}
	p.Verdict, p.Tone = robustVerdict(last)
	if last.Promotion != nil {
		p.Promotion = r.promotion(last.Promotion)
	}
	for _, a := range answers {
		p.Rows = append(p.Rows, robustRow{
			Setting: a.Graph.Setting.String(), Graph: fmt.Sprintf("%d nodes, %d edges (%d counterflow)",
				len(a.Graph.Nodes), len(a.Graph.Edges), a.Graph.Counterflows()),
			ReadCommitted: r.maximal(a.Of(robust.TypeII), robustPageSets), Snapshot: r.maximal(a.Of(robust.Snapshot),
				robustPageSets), Levels: r.levels(a.Levels),
		})
	}
	of := last.Of(test)
	for i, why := range of.Witnesses[:min(len(of.Witnesses), robustCards)] {
		p.Cards = append(p.Cards, newRobustCard(last, why, fmt.Sprintf("set-%d", i+1), r.set(of.Minimal[i]), test))
	}
	p.MoreCards = len(of.Minimal) - len(p.Cards)
	for i, program := range w.Programs[:min(len(w.Programs), robustPrograms)] {
		p.Programs = append(p.Programs, newRobustProgram(program, last.Levels[i]))
	}
	p.MorePrograms = len(w.Programs) - len(p.Programs)
	p.Notes = r.allNotes(w)
	return p
}

func robustVerdict(a *robust.Answer) (text, tone string) {
	switch {
	case a.Of(robust.TypeII).Robust:
		return "Safe together at READ COMMITTED", "clean"
	case a.Of(robust.Snapshot).Robust:
		return "Not robust against READ COMMITTED, but against SNAPSHOT ISOLATION", "hazard"
	}
	return "Robust against neither READ COMMITTED nor SNAPSHOT ISOLATION", "hazard"
}

func newRobustCard(a *robust.Answer, w *robust.Witness, anchor, set string, t robust.Test) robustCard {
	c := robustCard{Anchor: anchor, Set: set, Level: t.Level().String()}
	if w.Schedule == nil {
		for _, e := range w.Cycle {
			c.Cycle = append(c.Cycle, printable(a.Graph.Describe(e)))
		}
		return c
	}
	s := w.Schedule
	marked := make(map[robust.Step]bool)
	for _, d := range w.Proof {
		marked[d.From], marked[d.To] = true, true
		c.Proof = append(c.Proof, printable(s.Explain(d)))
	}
	first, final := make(map[int]int), make(map[int]int)
	for i := len(s.Order) - 1; i >= 0; i-- {
		first[s.Order[i].Run] = i
	}
	for i, step := range s.Order {
		final[step.Run] = i
	}
	for i, run := range s.Runs {
		c.Columns = append(c.Columns, fmt.Sprintf("T%d %s", i+1, printable(run.Program.Name)))
	}
	for i, step := range s.Order {
		row := robustStepRow{Cells: make([]robustCell, len(s.Runs))}
		for run := range row.Cells {
			row.Cells[run].Open = first[run] < i && i < final[run]
		}
		cell := &row.Cells[step.Run]
		cell.Open, cell.First, cell.Last = true, i == first[step.Run], i == final[step.Run]
		cell.Lead, cell.SQL, _ = strings.Cut(printable(s.Describe(step)), ": ")
		cell.Marked = marked[step]
		c.Rows = append(c.Rows, row)
	}
	c.MinWidth = 240 * len(s.Runs)
	return c
}

func newRobustProgram(p *robust.Program, level robust.Level) robustProgram {
	out := robustProgram{Name: printable(p.Name), Levels: level.String()}
	if p.Label() != p.Name {
		out.Name += " (" + printable(p.Label()) + ")"
	}
	for _, q := range p.Statements() {
		out.Statements = append(out.Statements, robustCell{Lead: printable(q.String()), SQL: printable(q.SQL)})
	}
	return out
}
