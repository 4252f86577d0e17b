package robust

import (
	"slices"
	"strings"
	"testing"
)

// statements returns statements over R with these names.
func statements(names string) []*Statement {
	var all []*Statement
	for _, name := range strings.Fields(names) {
		all = append(all, &Statement{Name: name, Type: KeyUpd, Relation: "R"})
	}
	return all
}

// written returns an LTP by the names of its statements, with the place from 1 of the parent that each has: "a b<1".
func written(l *LTP) string {
	var words []string
	for _, o := range l.Statements {
		word := o.Name
		for _, p := range o.Parents {
			word += "<" + string(rune('1'+p.At))
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// TestUnfoldingTakesTwoIterationsAtMost: unfolding gives all ways with two iterations at most.
func TestUnfoldingTakesTwoIterationsAtMost(t *testing.T) {
	s := statements("a b c d")
	a, b, c, d := s[0], s[1], s[2], s[3]
	for _, test := range []struct {
		name string
		body Part
		// foreign has b refer to a's tuple.
		foreign bool
		want    []string
	}{
		{name: "nothing", want: []string{""}},
		{name: "a sequence", body: Sequence{a, b}, want: []string{"a b"}},
		{name: "a loop", body: Sequence{a, &Loop{Body: b}}, want: []string{"a", "a b", "a b b"}},
		{name: "a choice", body: Sequence{Choice{a, b}, c}, want: []string{"a c", "b c"}},
		{name: "a choice with nothing", body: Sequence{Choice{a, nil}, c}, want: []string{"a c", "c"}},
		{name: "an option", body: Sequence{a, &Optional{Body: b}}, want: []string{"a b", "a"}},
		{name: "two options", body: Sequence{&Optional{Body: a}, &Optional{Body: b}},
			want: []string{"a b", "a", "b", ""}},
		{name: "an option in a loop", body: &Loop{Body: Sequence{&Optional{Body: a}, b}},
			want: []string{"", "a b", "b", "a b a b", "a b b", "b a b", "b b"}},
		{name: "ways that are the same", body: &Loop{Body: &Optional{Body: a}}, want: []string{"", "a", "a a"}},
		{name: "a loop in a loop", body: &Loop{Body: Sequence{a, &Loop{Body: b}}},
			want: []string{"", "a", "a b", "a b b", "a a", "a a b", "a a b b", "a b a",
				"a b a b", "a b a b b", "a b b a", "a b b a b", "a b b a b b"}},

		{name: "a parent before", body: Sequence{a, c, b}, foreign: true, want: []string{"a c b<1"}},
		{name: "a parent behind", body: Sequence{b, a}, foreign: true, want: []string{"b<2 a"}},
		{name: "a parent of all iterations", body: Sequence{a, &Loop{Body: b}}, foreign: true,
			want: []string{"a", "a b<1", "a b<1 b<1"}},
		{name: "a parent in each iteration", body: &Loop{Body: Sequence{a, b}}, foreign: true,
			want: []string{"", "a b<1", "a b<1 a b<3"}},
		{name: "a parent in a loop before", body: Sequence{&Loop{Body: a}, b}, foreign: true,
			want: []string{"b", "a b", "a a b"}},
		{name: "a parent that is optional", body: Sequence{&Optional{Body: a}, b}, foreign: true,
			want: []string{"a b<1", "b"}},

		{name: "too many ways", body: Sequence{&Optional{Body: a}, b, &Loop{Body: manyWays(c, d)}}, foreign: true,
			want: []string{"a b" + strings.Repeat(" c d", 20)}},
		{name: "too many ways, a parent beside", body: Sequence{&Optional{Body: Sequence{a, b}},
			&Loop{Body: manyWays(c, d)}}, foreign: true,
			want: []string{"a b<1" + strings.Repeat(" c d", 20)}},
		{name: "too many ways, a parent in a branch", body: Sequence{Choice{a, c}, b, &Loop{Body: manyWays(d, nil)}},
			foreign: true,
			want:    []string{"a c b" + strings.Repeat(" d", 20)}},
		{name: "too many ways, loops in each other", body: loops(50, Sequence{a, &Loop{Body: b}}), foreign: true,
			want: []string{"a b<1 a b<3"}},
		{name: "too many ways, a parent in a loop in another", body: loops(50, Sequence{&Loop{Body: a}, b}),
			foreign: true, want: []string{"a b a b"}},
		{name: "too many ways, a loop behind others", body: Sequence{loops(50, a), &Loop{Body: b}}, foreign: true,
			want: []string{"a a b b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &Program{Name: "P", Body: test.body}
			if test.foreign {
				p.ForeignKeys = []Constraint{{Parent: a, ForeignKey: "f", Child: b}}
			}
			var got []string
			for _, l := range Unfold(p) {
				got = append(got, written(l))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// loops is a part in so many loops.
func loops(n int, p Part) Part {
	for range n {
		p = &Loop{Body: p}
	}
	return p
}

// manyWays is ten choices, which no program would have of the same statements: 1024 ways.
func manyWays(a, b *Statement) Part {
	var s Sequence
	for range 10 {
		c := Choice{a}
		if b != nil {
			c = append(c, b)
		} else {
			c = append(c, nil)
		}
		s = append(s, c)
	}
	return s
}

func TestMistakesInWorkloadsAreNamed(t *testing.T) {
	for want, spoil := range map[string]func(*Workload){
		"relation Savings is there twice":                 func(w *Workload) { w.Schema.Relations = append(w.Schema.Relations, w.Schema.Relations[1]) },
		"relation Account: Id of its key is no attribute": func(w *Workload) { w.Schema.Relations[0].Key = []string{"Id"} },
		"foreign key AccountSavings is there twice":       func(w *Workload) { w.Schema.ForeignKeys = append(w.Schema.ForeignKeys, w.Schema.ForeignKeys[0]) },
		"there is no relation Loans":                      func(w *Workload) { w.Schema.ForeignKeys[0].Range = "Loans" },
		"relation Account has no attribute Id":            func(w *Workload) { w.Schema.ForeignKeys[0].Columns = []string{"Id"} },
		"1 columns refer to 0":                            func(w *Workload) { w.Schema.ForeignKeys[0].References = nil },
		"program Balance is there twice": func(w *Workload) {
			w.Programs = append(w.Programs, w.Programs[0])
		},
		"statement q2: there is no relation Loans":          func(w *Workload) { w.Programs[0].Statements()[1].Relation = "Loans" },
		"statement q2: WriteSet is {}, which does not go":   func(w *Workload) { w.Programs[0].Statements()[1].Write = Of() },
		"statement q2: ReadSet is ⊥, which does not go":     func(w *Workload) { w.Programs[0].Statements()[1].Read = Set{} },
		"ReadSet: relation Savings has no attribute Sum":    func(w *Workload) { w.Programs[0].Statements()[1].Read = Of("Sum") },
		"it gives 2 expressions for the key of Savings":     func(w *Workload) { w.Programs[0].Statements()[1].Key = []string{":x", ":y"} },
		"it is key sel, and relation Savings has no key":    func(w *Workload) { w.Schema.Relations[1].Key = nil },
		"only selections have locks of their own":           func(w *Workload) { w.Programs[2].Statements()[1].Lock = UpdateLock },
		"statement q1 is there twice":                       func(w *Workload) { w.Programs[0].Statements()[1].Name = "q1" },
		"there is no such foreign key":                      func(w *Workload) { w.Programs[0].ForeignKeys[0].ForeignKey = "x" },
		"it is about statements that the program does not":  func(w *Workload) { w.Programs[0].ForeignKeys[0].Parent = &Statement{} },
		"its child q2 key sel Savings is not over Account":  func(w *Workload) { w.Programs[0].ForeignKeys[0].Child = w.Programs[0].Statements()[1] },
		"its parent q1 key sel Account is not over Savings": func(w *Workload) { w.Programs[0].ForeignKeys[0].Parent = w.Programs[0].Statements()[0] },
	} {
		t.Run(want, func(t *testing.T) {
			w := SmallBank()
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
			spoil(w)
			if err := w.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
