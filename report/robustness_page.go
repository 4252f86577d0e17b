package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
)

// The limits of a page.
const (
	pagePairs    = 12 // sets of programs that are shown
	pageNotes    = 5
	pagePromoted = 4
)

// RobustnessPage writes what a reader needs first of programs that ran: which of them are not safe together at READ
// COMMITTED, in one setting, on a page. Sets that an execution shows come first, then what loses a change, then what
// ran most. The error is w's.
func RobustnessPage(w io.Writer, workload *robust.Workload, a *robust.Answer, opts TerminalOptions) error {
	r := &robustness{terminal: &terminal{w: bufio.NewWriter(w), opts: opts.filled()}, programs: workload.Programs}
	r.line(r.paint(bold, printable(workload.Name)), fmt.Sprintf(": %s of %s", plural(len(workload.Programs), "program"),
		plural(len(workload.Schema.Relations), "table")))
	r.someNotes(workload)
	r.line("")
	r.text("  READ COMMITTED      ", r.notSafe(a.Of(robust.TypeII)), "")
	r.text("  SNAPSHOT ISOLATION  ", r.notSafe(a.Of(robust.Snapshot)), "")
	r.text("  cheapest levels     ", r.levels(a.Levels), "")
	r.pairs(a.Of(robust.TypeII))
	r.line("")
	r.text("", r.verdictOf(a), bold)
	if a.Promotion != nil {
		r.text("", r.shortPromotion(a.Promotion), "")
	}
	r.text("", "--verbose has the programs, all sets, an execution of each, and what is assumed; --html draws them.", dim)
	if err := r.w.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// someNotes are the first of what was taken conservatively.
func (r *robustness) someNotes(workload *robust.Workload) {
	all := r.allNotes(workload)
	shown := all[:min(len(all), pageNotes)]
	for _, note := range shown {
		r.text("  note ", note, dim)
	}
	if n := len(all) - len(shown); n > 0 {
		r.text("  ", "and "+plural(n, "more note"), dim)
	}
}

// notSafe says how many programs are not safe by a test.
func (r *robustness) notSafe(t *robust.TestAnswer) string {
	if t.Robust {
		return "safe: all programs together"
	}
	in := make(map[int]bool)
	for _, set := range t.Minimal {
		for _, p := range set {
			in[p] = true
		}
	}
	least := ""
	if !t.Complete {
		least = "at least "
	}
	return fmt.Sprintf("%s%s not found safe together, of %d of the %s", least, plural(len(t.Minimal), "set"), len(in),
		plural(len(r.programs), "program"))
}

// A rankedSet is a set of programs that are not safe together, with why.
type rankedSet struct {
	programs []int
	witness  *robust.Witness
	anomaly  setAnomaly
	calls    int // of the program of it that ran least
}

// A setAnomaly is what an execution of a set shows, the gravest first.
type setAnomaly uint8

const (
	setLostUpdate setAnomaly = iota
	setWriteSkew
	setReadSkew
	setCycle
	setUnproved // no execution was found
)

// ranked returns the sets that have witnesses, what matters most first.
func (r *robustness) ranked(t *robust.TestAnswer) []rankedSet {
	var all []rankedSet
	for i, w := range t.Witnesses {
		s := rankedSet{programs: t.Minimal[i], witness: w, anomaly: anomalyOf(w)}
		for n, p := range s.programs {
			if calls := r.programs[p].Calls; n == 0 || calls < s.calls {
				s.calls = calls
			}
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b rankedSet) int {
		return cmp.Or(cmp.Compare(a.anomaly, b.anomaly), cmp.Compare(b.calls, a.calls))
	})
	return all
}

// anomalyOf returns what the execution of a witness shows.
func anomalyOf(w *robust.Witness) setAnomaly {
	if w.Schedule == nil {
		return setUnproved
	}
	if len(w.Proof) != 2 {
		return setCycle
	}
	missed := func(d robust.Dependency) bool { return d.Kind == robust.RW || d.Kind == robust.PredicateRW }
	one, two := w.Proof[0], w.Proof[1]
	if !missed(one) {
		one, two = two, one
	}
	switch {
	case !missed(one):
		return setCycle
	case one.Tuple == two.Tuple && (missed(two) || two.Kind == robust.WW):
		return setLostUpdate
	case missed(two):
		return setWriteSkew
	}
	return setReadSkew
}

// pairs shows the first sets.
func (r *robustness) pairs(t *robust.TestAnswer) {
	all := r.ranked(t)
	for i, s := range all[:min(len(all), pagePairs)] {
		r.line("")
		r.text(fmt.Sprintf("  %2d  ", i+1), r.paint(bold, r.together(s.programs))+", "+r.shows(&s), "")
		for _, q := range r.statements(s.witness) {
			r.line("      ", clipStatement(printable(q), r.opts.Width-6))
		}
	}
	if n := len(t.Minimal) - min(len(all), pagePairs); n > 0 {
		r.line("")
		r.text("  ", fmt.Sprintf("and %s (--verbose)", plural(n, "more set")), dim)
	}
}

// together names the programs of a set, and how often each ran.
func (r *robustness) together(programs []int) string {
	named := make([]string, len(programs))
	for i, p := range programs {
		named[i] = printable(r.programs[p].Label())
		if n := r.programs[p].Calls; n > 0 {
			named[i] += fmt.Sprintf(" (ran %s)", times(n))
		}
	}
	if len(named) == 1 {
		return named[0] + " beside itself"
	}
	return strings.Join(named, " beside ")
}

// shows says what can go wrong in a set.
func (r *robustness) shows(s *rankedSet) string {
	var tables []string
	for _, d := range s.witness.Proof {
		if !slices.Contains(tables, d.Tuple.Relation) {
			tables = append(tables, printable(d.Tuple.Relation))
		}
	}
	of := strings.Join(tables, " and ")
	switch s.anomaly {
	case setLostUpdate:
		return "lost update of " + of + ": both read a row, and each writes by what it read"
	case setWriteSkew:
		return "write skew of " + of + ": each reads what the other then changes"
	case setReadSkew:
		return "read skew of " + of + ": one reads a part before the other's changes and a part after them"
	case setCycle:
		return "a cycle through " + of
	}
	return "not shown by an execution, and perhaps a false alarm"
}

// statements returns those between which the dependencies of a witness are, each once.
func (r *robustness) statements(w *robust.Witness) (all []string) {
	add := func(q robust.Occurrence) {
		text := cmp.Or(q.SQL, fmt.Sprintf("%s %s %s", q.Name, q.Type, q.Relation))
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if w.Schedule != nil {
		for _, d := range w.Proof {
			for _, step := range []robust.Step{d.From, d.To} {
				add(w.Schedule.Runs[step.Run].Program.Statements[step.At])
			}
		}
	}
	return all
}

// shortPromotion says which selections are to lock, some of them.
func (r *robustness) shortPromotion(p *robust.Promotion) string {
	lead := "All are safe together"
	if len(p.Programs) < len(r.programs) {
		lead = fmt.Sprintf("%d of the %d are safe together", len(p.Programs), len(r.programs))
	}
	var which []string
	for _, s := range p.Statements[:min(len(p.Statements), pagePromoted)] {
		which = append(which, printable(r.programs[s.Program].Label())+": "+
			clipStatement(printable(cmp.Or(s.Statement.SQL, s.Statement.Name)), 2*r.opts.Width/3))
	}
	if n := len(p.Statements) - len(which); n > 0 {
		which = append(which, fmt.Sprintf("and %d more", n))
	}
	return lead + " at READ COMMITTED where these lock what they read (SELECT ... FOR UPDATE): " + strings.Join(which, "; ") + "."
}
