package robust

import (
	"fmt"
	"slices"
	"strings"
)

// maxWays is how many linear programs a program is unfolded into at most. One with more is flattened.
const maxWays = 512

// An LTP is a linear transaction program (6.1): one way in which a program can run.
type LTP struct {
	Name       string // the program's; with #1, #2, ... where it has several
	Program    *Program
	Statements []Occurrence
	// Flattened says that this one stands for all ways in which the program can run, of which there are too many: see
	// [Unfold].
	Flattened bool
}

// An Occurrence is a statement at its place in an LTP, where loops may have it twice.
type Occurrence struct {
	*Statement
	// Parents are the occurrences whose tuples its own tuple refers to.
	Parents []Parent
	in      []iteration // of the loops around it, from the outermost
}

// A Parent is a foreign key constraint as it binds an occurrence: the one at a place (from 0) in the same LTP uses the
// tuple that the foreign key maps to.
type Parent struct {
	ForeignKey string
	At         int
}

// An iteration is one run of a loop's body, by a number of its own.
type iteration int

// Unfold returns Unfold≤2 of the programs (6.1): all their linear programs, in order, where no loop runs more than
// twice. That is enough, since a cycle needs two statements of a transaction at most, one for the edge that comes in
// and one for the edge that goes out (Proposition 6.1). A program that can run without any statement has an empty one
// among them.
//
// A program with more than 512 ways to run is flattened into one: every optional part runs, all branches of a choice
// run one after the other, and every loop runs twice; one inside of another once in each iteration of that, so twice in
// all. What can happen with any of the ways can happen with this one, since it has all their statements in their order,
// any two of them in either order if they share a loop, and what runs only at times is no parent of what runs without
// it; so the answer stays sound. It may call programs not robust that are.
func Unfold(programs ...*Program) []*LTP {
	var all []*LTP
	for _, p := range programs {
		all = append(all, p.unfold()...)
	}
	return all
}

func (p *Program) unfold() []*LTP {
	switch {
	case p.Body == nil:
		return []*LTP{{Name: p.Name, Program: p}}
	case p.Body.ways() > maxWays:
		flat := &LTP{Name: p.Name, Program: p, Statements: p.Body.flatten(new(unfolding), nil), Flattened: true}
		flat.bind()
		return []*LTP{flat}
	}
	var all []*LTP
	seen := make(map[string]bool)
	for _, way := range p.Body.unfold(new(unfolding), nil) {
		l := &LTP{Program: p, Statements: way}
		l.bind()
		if id := l.identity(); !seen[id] {
			seen[id] = true
			all = append(all, l)
		}
	}
	for i, l := range all {
		l.Name = p.Name
		if len(all) > 1 {
			l.Name = fmt.Sprintf("%s#%d", p.Name, i+1)
		}
	}
	return all
}

// bind finds the parents of each occurrence.
func (l *LTP) bind() {
	for i := range l.Statements {
		child := &l.Statements[i]
		for _, c := range l.Program.ForeignKeys {
			if c.Child != child.Statement {
				continue
			}
			for at, parent := range l.Statements {
				if parent.Statement == c.Parent && within(child.in, parent.in) {
					child.Parents = append(child.Parents, Parent{ForeignKey: c.ForeignKey, At: at})
				}
			}
		}
	}
}

// within reports whether the inner iterations are inside of the outer ones.
func within(inner, outer []iteration) bool {
	return len(inner) >= len(outer) && slices.Equal(inner[:len(outer)], outer)
}

// identity is the same for two ways of one program that run the same statements, tied alike.
func (l *LTP) identity() string {
	var b strings.Builder
	for _, o := range l.Statements {
		fmt.Fprintf(&b, "%p%v ", o.Statement, o.Parents)
	}
	return b.String()
}

// String returns the names of the statements in order, as the paper writes an LTP.
func (l *LTP) String() string {
	names := make([]string, len(l.Statements))
	for i, o := range l.Statements {
		names[i] = o.Name
	}
	return l.Name + " := " + strings.Join(names, "; ")
}

// An unfolding numbers the iterations.
type unfolding struct {
	last   iteration
	inLoop bool // what is flattened is inside of a loop
}

// enter returns the iterations inside of one more.
func (u *unfolding) enter(in []iteration) []iteration {
	u.last++
	return append(slices.Clip(in), u.last)
}

func (q *Statement) each(f func(*Statement)) { f(q) }

func (q *Statement) ways() int { return 1 }

func (q *Statement) unfold(_ *unfolding, in []iteration) [][]Occurrence {
	return [][]Occurrence{{{Statement: q, in: in}}}
}

func (q *Statement) flatten(_ *unfolding, in []iteration) []Occurrence {
	return []Occurrence{{Statement: q, in: in}}
}

func (s Sequence) each(f func(*Statement)) {
	for _, p := range s {
		if p != nil {
			p.each(f)
		}
	}
}

func (s Sequence) ways() int {
	n := 1
	for _, p := range s {
		if p != nil {
			n = min(n*p.ways(), maxWays+1)
		}
	}
	return n
}

func (s Sequence) unfold(u *unfolding, in []iteration) [][]Occurrence {
	ways := [][]Occurrence{nil}
	for _, p := range s {
		if p != nil {
			ways = product(ways, p.unfold(u, in))
		}
	}
	return ways
}

// product returns each of the first ways followed by each of the second.
func product(first, second [][]Occurrence) [][]Occurrence {
	ways := make([][]Occurrence, 0, len(first)*len(second))
	for _, a := range first {
		for _, b := range second {
			ways = append(ways, slices.Concat(a, b))
		}
	}
	return ways
}

func (s Sequence) flatten(u *unfolding, in []iteration) (all []Occurrence) {
	for _, p := range s {
		if p != nil {
			all = append(all, p.flatten(u, in)...)
		}
	}
	return all
}

func (l *Loop) each(f func(*Statement)) { Sequence{l.Body}.each(f) }

func (l *Loop) ways() int {
	n := Sequence{l.Body}.ways()
	return min(1+n+n*n, maxWays+1)
}

func (l *Loop) unfold(u *unfolding, in []iteration) [][]Occurrence {
	body := Sequence{l.Body}
	once := body.unfold(u, u.enter(in))
	twice := product(once, body.unfold(u, u.enter(in)))
	return slices.Concat([][]Occurrence{nil}, once, twice)
}

// flatten has only the outermost loop run twice: else there were 2ⁿ iterations of n loops in each other.
func (l *Loop) flatten(u *unfolding, in []iteration) []Occurrence {
	body := Sequence{l.Body}
	if u.inLoop {
		return body.flatten(u, u.enter(in))
	}
	u.inLoop = true
	defer func() { u.inLoop = false }()
	return slices.Concat(body.flatten(u, u.enter(in)), body.flatten(u, u.enter(in)))
}

func (c Choice) each(f func(*Statement)) { Sequence(c).each(f) }

func (c Choice) ways() int {
	n := 0
	for _, p := range c {
		n = min(n+Sequence{p}.ways(), maxWays+1)
	}
	return n
}

func (c Choice) unfold(u *unfolding, in []iteration) (ways [][]Occurrence) {
	for _, p := range c {
		ways = append(ways, Sequence{p}.unfold(u, in)...)
	}
	return ways
}

// flatten has each branch in an iteration of its own: none is a parent of what stands outside of it.
func (c Choice) flatten(u *unfolding, in []iteration) (all []Occurrence) {
	for _, p := range c {
		all = append(all, Sequence{p}.flatten(u, u.enter(in))...)
	}
	return all
}

func (o *Optional) each(f func(*Statement)) { Sequence{o.Body}.each(f) }

func (o *Optional) ways() int { return min(1+Sequence{o.Body}.ways(), maxWays+1) }

func (o *Optional) unfold(u *unfolding, in []iteration) [][]Occurrence {
	return append(Sequence{o.Body}.unfold(u, in), nil)
}

func (o *Optional) flatten(u *unfolding, in []iteration) []Occurrence {
	return Sequence{o.Body}.flatten(u, u.enter(in))
}
