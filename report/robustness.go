package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
)

// Robustness writes which programs of a workload are safe at which level: the summary graph's size and the maximal
// robust subsets in each setting, then why the programs are not robust in the last one. The answers are of the same
// programs. The error is w's.
func Robustness(w io.Writer, workload *robust.Workload, answers []*robust.Answer, opts TerminalOptions) error {
	r := &robustness{terminal: &terminal{w: bufio.NewWriter(w), opts: opts.filled()}, programs: workload.Programs}
	r.head(workload, answers[0])
	r.notes(workload)
	for _, a := range answers {
		r.setting(a)
	}
	last := answers[len(answers)-1]
	r.witnesses(last, last.Of(robust.TypeII))
	if last.Of(robust.TypeII).Robust || opts.Verbose {
		r.witnesses(last, last.Of(robust.Snapshot))
	}
	r.verdict(last)
	if err := r.w.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type robustness struct {
	*terminal
	programs []*robust.Program
}

// The limits of what is shown without Verbose.
const (
	robustSets      = 10 // of one test
	robustWitnesses = 5
	robustListed    = 24 // programs
	robustNamed     = 12 // of one set
)

func (r *robustness) head(w *robust.Workload, a *robust.Answer) {
	r.line(r.paint(bold, printable(w.Name)), fmt.Sprintf(": %s, %s, unfolded into %d",
		plural(len(w.Schema.Relations), "relation"), plural(len(w.Programs), "program"), len(a.Graph.Nodes)))
	listed := w.Programs
	if !r.opts.Verbose {
		listed = listed[:min(len(listed), robustListed)]
	}
	for _, p := range listed {
		switch {
		case p.Summary != "":
			r.text(fmt.Sprintf("  %-5s ", printable(p.Label())), printable(p.Origin+": "+p.Summary), "")
		case p.Short != "" && p.Short != p.Name:
			r.text(fmt.Sprintf("  %-5s ", printable(p.Short)), printable(p.Name), "")
		}
	}
	if n := len(w.Programs) - len(listed); n > 0 {
		r.text("  ", fmt.Sprintf("and %s (--verbose)", plural(n, "more program")), dim)
	}
}

// notes are what was taken conservatively.
func (r *robustness) notes(workload *robust.Workload) {
	of := r.allNotes(workload)
	for i, note := range of {
		style := dim
		if i < len(workload.Notes) {
			style = yellow
		}
		r.text("  note ", note, style)
	}
}

// allNotes are those of the workload, then those of its programs and their statements.
func (r *robustness) allNotes(workload *robust.Workload) []string {
	var all []string
	for _, note := range workload.Notes {
		all = append(all, printable(note))
	}
	for _, p := range r.programs {
		for _, note := range p.Notes {
			all = append(all, printable(p.Label()+": "+note))
		}
		for _, q := range p.Statements() {
			for _, note := range q.Notes {
				all = append(all, printable(p.Label()+", "+q.Name+": "+note))
			}
		}
	}
	return all
}

func (r *robustness) setting(a *robust.Answer) {
	r.line("")
	r.line(r.paint(bold, a.Graph.Setting.String()), fmt.Sprintf(": %d nodes, %d edges (%d counterflow)",
		len(a.Graph.Nodes), len(a.Graph.Edges), a.Graph.Counterflows()))
	r.sets("READ COMMITTED       ", a.Of(robust.TypeII))
	r.sets("  by type-I cycles   ", a.Of(robust.TypeI))
	r.sets("SNAPSHOT ISOLATION   ", a.Of(robust.Snapshot))
	r.text("  cheapest levels      ", r.levels(a.Levels), "")
}

// promotion says which selections are to lock, and what is robust then.
func (r *robustness) promotion(p *robust.Promotion) string {
	lead := "All programs are robust together"
	if len(p.Programs) < len(r.programs) {
		lead = r.set(p.Programs) + " is robust"
	}
	var which []string
	for _, s := range p.Statements {
		text := r.programs[s.Program].Label() + " " + s.Statement.Name
		if s.Statement.SQL != "" {
			text += " (" + s.Statement.SQL + ")"
		}
		which = append(which, printable(text))
	}
	return lead + " at READ COMMITTED where these lock what they read (SELECT ... FOR UPDATE): " +
		strings.Join(which, "; ")
}

func (r *robustness) sets(lead string, t *robust.TestAnswer) {
	most := robustSets
	if r.opts.Verbose {
		most = len(t.Maximal)
	}
	r.text("  "+lead, r.maximal(t, most), "")
}

// maximal returns a test's maximal robust subsets, at most so many of them.
func (r *robustness) maximal(t *robust.TestAnswer, most int) string {
	switch {
	case t.Robust:
		return "robust: all programs together"
	case len(t.Maximal) == 0:
		return "no program is robust"
	}
	var names []string
	for _, set := range t.Maximal[:min(len(t.Maximal), most)] {
		names = append(names, r.set(set))
	}
	text := strings.Join(names, ", ")
	if !t.Complete || len(names) < len(t.Maximal) {
		text += ", and more"
	}
	return text
}

// set returns a set of programs as the paper prints it; a large one by those that are not in it.
func (r *robustness) set(programs []int) string {
	if r.opts.Verbose || len(programs) <= robustNamed {
		return "{" + strings.Join(r.labels(programs), ", ") + "}"
	}
	var others []int
	for i := range r.programs {
		if !slices.Contains(programs, i) {
			others = append(others, i)
		}
	}
	if len(others) == 0 || len(others) > robustNamed {
		return fmt.Sprintf("{%s and %d more}", strings.Join(r.labels(programs[:robustNamed]), ", "),
			len(programs)-robustNamed)
	}
	return "all but {" + strings.Join(r.labels(others), ", ") + "}"
}

func (r *robustness) labels(programs []int) []string {
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = printable(r.programs[p].Label())
	}
	return names
}

// levels returns the programs of each level.
func (r *robustness) levels(at []robust.Level) string {
	var parts []string
	for _, level := range []robust.Level{robust.ReadCommitted, robust.SnapshotIsolation, robust.Serializable} {
		var of []int
		for i, l := range at {
			if l == level {
				of = append(of, i)
			}
		}
		switch {
		case len(of) == len(at):
			return level.String() + " for all"
		case len(of) > robustNamed && !r.opts.Verbose:
			parts = append(parts, level.String()+" "+plural(len(of), "program"))
		case len(of) > 0:
			parts = append(parts, level.String()+" "+strings.Join(r.labels(of), ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (r *robustness) witnesses(a *robust.Answer, t *robust.TestAnswer) {
	shown := t.Witnesses
	if !r.opts.Verbose {
		shown = shown[:min(len(shown), robustWitnesses)]
	}
	for i, w := range shown {
		r.line("")
		r.text("", fmt.Sprintf("%s is not robust against %s, by itself or with others", r.set(t.Minimal[i]),
			t.Test.Level()), yellow)
		r.witness(a, w, t.Test)
	}
	if n := len(t.Minimal) - len(shown); n > 0 {
		r.line("")
		r.text("", fmt.Sprintf("and %s of programs that are not robust (--verbose, --json)", plural(n, "more set")),
			dim)
	}
}

func (r *robustness) witness(a *robust.Answer, w *robust.Witness, t robust.Test) {
	if w.Schedule == nil {
		r.text("  ", "This cycle is what the test does not allow. No execution was found that it stands for, "+
			"so this may be a false alarm:", "")
		for _, e := range w.Cycle {
			r.text("    ", printable(a.Graph.Describe(e)), "")
		}
		return
	}
	r.text("  ", fmt.Sprintf("This execution is allowed at %s, and no serial one gives the same:", t.Level()), "")
	r.schedule(w.Schedule)
	for _, d := range w.Proof {
		r.text("  ", w.Schedule.Explain(d), "")
	}
}

// schedule writes the steps in order, each transaction in a column of its own as far as there is room.
func (r *robustness) schedule(s *robust.Schedule) {
	for i, run := range s.Runs {
		r.line(fmt.Sprintf("    T%d is %s", i+1, printable(run.Program.Name)))
	}
	indent := 3
	if 4+indent*len(s.Runs) > r.opts.Width/3 {
		indent = 0
	}
	for _, step := range s.Order {
		r.text(fmt.Sprintf("    %sT%d ", strings.Repeat(" ", indent*step.Run), step.Run+1), printable(s.Describe(step)),
			"")
	}
}

func (r *robustness) verdict(a *robust.Answer) {
	r.line("")
	r.text("", r.verdictOf(a), bold)
	if a.Promotion != nil {
		r.text("", r.promotion(a.Promotion), "")
	}
	r.text("Assumed ", strings.Join(robust.Assumptions, "; ")+".", dim)
	if slices.ContainsFunc(a.Graph.Nodes, func(l *robust.LTP) bool { return l.Flattened }) {
		r.text("Note ", "Programs with more than 512 ways to run were taken as one way that has them all.", dim)
	}
}

// verdictOf says at which level the programs are safe.
func (r *robustness) verdictOf(a *robust.Answer) string {
	switch {
	case a.Of(robust.TypeII).Robust:
		return "Every execution of these programs at READ COMMITTED is serializable."
	case a.Of(robust.Snapshot).Robust:
		return "These programs are not robust against READ COMMITTED. Every execution at SNAPSHOT ISOLATION is serializable."
	}
	return "These programs are robust against neither READ COMMITTED nor SNAPSHOT ISOLATION."
}
