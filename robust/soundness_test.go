package robust

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is called robust or safe must have no execution that is not serializable, and the model of executions
// (execution.go) knows nothing of summary graphs. Random programs are small; their runs use few tuples, so that they
// meet.

// A draw makes random programs.
type draw struct{ *rapid.T }

func (d draw) schema() *Schema {
	s := &Schema{Relations: []*Relation{
		{Name: "P", Attributes: []string{"id", "a", "b"}, Key: []string{"id"}},
		{Name: "C", Attributes: []string{"id", "a", "b"}, Key: []string{"id"}},
	}}
	s.ForeignKeys = []*ForeignKey{{Name: "CP", Domain: "C", Columns: []string{"id"}, Range: "P",
		References: []string{"id"}}}
	return s
}

func (d draw) set() Set {
	return []Set{Of(), Of("a"), Of("b"), Of("a", "b")}[rapid.IntRange(0, 3).Draw(d.T, "set")]
}

func (d draw) statement() *Statement {
	q := &Statement{Type: Type(rapid.IntRange(0, types-1).Draw(d.T, "type")),
		Relation: rapid.SampledFrom([]string{"P", "C"}).Draw(d.T, "relation")}
	if q.Type.ByPredicate() {
		q.PRead = d.set()
	} else {
		q.Key = []string{rapid.SampledFrom([]string{":x", ":y"}).Draw(d.T, "key")}
	}
	switch q.Type {
	case Ins, KeyDel, PredDel:
		q.Write = All()
	case KeyUpd, PredUpd:
		q.Read, q.Write = d.set(), d.set()
	default:
		q.Read = d.set()
		q.Lock = rapid.SampledFrom([]Lock{NoLock, NoLock, NoLock, ShareLock, UpdateLock}).Draw(d.T, "lock")
	}
	return q
}

// program draws a program whose foreign keys are those that its names of tuples imply.
func (d draw) program(name string) *Program {
	var body Sequence
	for range rapid.IntRange(1, 3).Draw(d.T, "statements") {
		var part Part = d.statement()
		switch rapid.IntRange(0, 7).Draw(d.T, "part") {
		case 0:
			part = &Loop{Body: part}
		case 1:
			part = &Optional{Body: part}
		case 2:
			part = Choice{part, d.statement()}
		}
		body = append(body, part)
	}
	p := NewProgram(name, body)
	for _, parent := range p.Statements() {
		for _, child := range p.Statements() {
			if parent.Relation == "P" && child.Relation == "C" && len(parent.Key) > 0 &&
				slices.Equal(parent.Key, child.Key) {
				p.ForeignKeys = append(p.ForeignKeys, Constraint{Parent: parent, ForeignKey: "CP", Child: child})
			}
		}
	}
	return p
}

func (d draw) workload() *Workload {
	w := &Workload{Schema: d.schema()}
	for i := range rapid.IntRange(1, 3).Draw(d.T, "programs") {
		w.Programs = append(w.Programs, d.program(fmt.Sprintf("P%d", i+1)))
	}
	return w
}

// An explorer makes random executions of programs.
type explorer struct {
	*rand.Rand
	ltps   []*LTP
	levels map[*Program]Level
	s      Setting
}

// runs returns some runs of linear programs that foreign keys allow; nil where the attempt failed.
func (x *explorer) runs() []Run {
	runs := make([]Run, 2+x.IntN(2))
	for i := range runs {
		l := x.ltps[x.IntN(len(x.ltps))]
		runs[i] = x.run(l, x.levels[l.Program])
		if !runs[i].respects() {
			return nil
		}
	}
	return runs
}

// run returns an instantiation of a linear program: its names get values of 1 and 2, in each iteration anew.
func (x *explorer) run(l *LTP, level Level) Run {
	run := Run{Program: l, Level: level}
	values := make(map[string]string)
	for _, o := range l.Statements {
		var tuples []Tuple
		if o.Type.ByPredicate() {
			for _, key := range []string{"1", "2"} {
				if x.IntN(2) == 0 {
					tuples = append(tuples, Tuple{o.Relation, key})
				}
			}
		} else {
			name := fmt.Sprint(o.in, o.Key)
			if values[name] == "" {
				values[name] = []string{"1", "2"}[x.IntN(2)]
			}
			tuples = []Tuple{{o.Relation, values[name]}}
		}
		run.Tuples = append(run.Tuples, tuples)
	}
	return run
}

// respects reports whether the run's foreign keys hold, when the tuple 1 refers to 1 and 2 to 2.
func (r *Run) respects() bool {
	for at, o := range r.Program.Statements {
		for _, p := range o.Parents {
			for _, child := range r.Tuples[at] {
				if r.Tuples[p.At][0].Key != child.Key {
					return false
				}
			}
		}
	}
	return true
}

// schedule returns an interleaving of the runs: any, or one that splits one of them where the others run.
func (x *explorer) schedule(runs []Run) *Schedule {
	s := &Schedule{Setting: x.s, Runs: runs}
	if x.IntN(2) == 0 {
		end := len(runs[0].Program.Statements) + 1
		at := x.IntN(end)
		s.run(0, 0, at)
		for i := 1; i < len(runs); i++ {
			s.run(i, 0, len(runs[i].Program.Statements)+1)
		}
		s.run(0, at, end)
		return s
	}
	next := make([]int, len(runs))
	for left := len(runs); left > 0; {
		i := x.IntN(len(runs))
		if next[i] <= len(runs[i].Program.Statements) {
			s.run(i, next[i], next[i]+1)
			if next[i]++; next[i] > len(runs[i].Program.Statements) {
				left--
			}
		}
	}
	return s
}

// anomaly looks for an execution that is not serializable.
func (x *explorer) anomaly(tries int) (*Schedule, []Dependency) {
	for range tries {
		runs := x.runs()
		if runs == nil {
			continue
		}
		s := x.schedule(runs)
		if all, err := s.Check(); err == nil {
			if cycle := Cycle(all); cycle != nil {
				return s, cycle
			}
		}
	}
	return nil, nil
}

// explore looks for an execution of the programs that is not serializable, each at its level.
func (w *Workload) explore(seed uint64, s Setting, levels []Level, tries int) (*Schedule, []Dependency) {
	x := &explorer{Rand: rand.New(rand.NewPCG(seed, 0)), ltps: Unfold(w.Programs...), levels: make(map[*Program]Level),
		s: Setting{Tuples: s.Tuples}}
	for i, p := range w.Programs {
		x.levels[p] = levels[i]
	}
	return x.anomaly(tries)
}

var soundTries = flag.Int("schedules", 150, "how many executions of each set of random programs are tried")

func TestWhatIsRobustHasNoAnomalies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t}
		w := d.workload()
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		s := rapid.SampledFrom(Settings).Draw(t, "setting")
		a := Analyze(w.Programs, s)
		seed := rapid.Uint64().Draw(t, "seed")
		for _, test := range []Test{TypeII, Snapshot} {
			if !a.Robust(test) {
				continue
			}
			levels := slices.Repeat([]Level{test.Level()}, len(w.Programs))
			if schedule, cycle := w.explore(seed, s, levels, *soundTries); schedule != nil {
				t.Fatalf("%s, %s: robust, but\n%s\n%v\n%s", s, test, Unfold(w.Programs...), cycle, schedule)
			}
		}
	})
}

// TestSafeMixturesOfLevelsHaveNoAnomalies: what is safe at different levels has no anomalies.
func TestSafeMixturesOfLevelsHaveNoAnomalies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t}
		w := d.workload()
		s := rapid.SampledFrom(Settings).Draw(t, "setting")
		a := Analyze(w.Programs, s)
		levels := a.Allocate()
		if rapid.Bool().Draw(t, "any levels") {
			for i := range levels {
				levels[i] = Level(rapid.IntRange(0, 2).Draw(t, "level"))
			}
		}
		if !a.safe(levels) {
			return
		}
		if schedule, cycle := w.explore(rapid.Uint64().Draw(t, "seed"), s, levels, *soundTries); schedule != nil {
			t.Fatalf("%s, %v: safe, but\n%s\n%v\n%s", s, levels, Unfold(w.Programs...), cycle, schedule)
		}
	})
}

// TestPivotsAreFoundAsByEachPair has the first danger at different levels be the one that a look at each pair of edges
// finds first.
func TestPivotsAreFoundAsByEachPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw{t}.workload()
		a := Analyze(w.Programs, rapid.SampledFrom(Settings).Draw(t, "setting"))
		at := make([]Level, len(a.Programs))
		for i := range at {
			at[i] = Level(rapid.IntRange(0, levels-1).Draw(t, "level"))
		}
		want, there := a.structure.find(fullBitset(len(a.Graph.Nodes)), a.mixed(at))
		if got, found := a.pivots().danger(at); got != want || found != there {
			t.Errorf("at %v: %v, %v; want %v, %v", at, got, found, want, there)
		}
	})
}
