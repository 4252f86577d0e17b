package robust

import (
	"errors"
	"fmt"
	"slices"
)

// A Program is a basic transaction program, BTP (5.1): what its transactions do, with loops and branches.
type Program struct {
	Name  string // unique among the programs that are looked at together
	Short string // as NO for NewOrder, in tables; empty: the name
	Body  Part
	// ForeignKeys are the constraints between its statements.
	ForeignKeys []Constraint
	// Single are the variables that have one value in a whole run, loops or not. Schedules alone look at it.
	Single  []string
	Calls   int      // how often it ran, where it was made of a recording; 0 otherwise
	Origin  string   // where it comes from, for people: FILE:LINE, a recording
	Summary string   // what it does, for people, where its name does not tell
	Notes   []string // what could not be decided about it, and was taken so that no dependency is missed
}

// A Part of a program: a [*Statement], [Sequence], [*Loop], [Choice] or [*Optional]. A nil Part does nothing.
type Part interface {
	// each calls f for every statement, in the order in which they are written.
	each(f func(*Statement))
	// ways counts the ways in which the part can run, none told from another; many is as many as there is need to know.
	ways() int
	// unfold returns these ways.
	unfold(u *unfolding, in []iteration) [][]Occurrence
	// flatten returns one way that stands for them all.
	flatten(u *unfolding, in []iteration) []Occurrence
}

// A Sequence is P;P: its parts run one after the other.
type Sequence []Part

// A Loop is loop(P): its body runs any number of times, none included.
type Loop struct{ Body Part }

// A Choice is (P | P): one of its branches runs. It has one branch at least; a nil one does nothing.
type Choice []Part

// An Optional is (P | ε): its body runs, or nothing does.
type Optional struct{ Body Part }

// A Constraint is q_j = f(q_i): whatever tuple the child uses, the parent uses the one that the foreign key maps it to.
// It binds the statements that run in the same iterations: a parent inside of a loop binds children in the same
// iteration, one outside of it binds the children of all.
type Constraint struct {
	Parent     *Statement // q_j, over the range of the foreign key, key-based (or the insertion of that tuple)
	ForeignKey string     // f, by its name in the schema
	Child      *Statement // q_i, over its domain
}

// NewProgram returns a program with its statements named q1, q2, ... in order where they have no names.
func NewProgram(name string, body Part, constraints ...Constraint) *Program {
	p := &Program{Name: name, Body: body, ForeignKeys: constraints}
	for i, q := range p.Statements() {
		if q.Name == "" {
			q.Name = fmt.Sprintf("q%d", i+1)
		}
	}
	return p
}

// Statements returns the statements in the order in which they are written.
func (p *Program) Statements() []*Statement {
	var all []*Statement
	if p.Body != nil {
		p.Body.each(func(q *Statement) { all = append(all, q) })
	}
	return all
}

// Label is the short name if there is one.
func (p *Program) Label() string {
	if p.Short != "" {
		return p.Short
	}
	return p.Name
}

// Check returns what is wrong with the program, all of it.
func (p *Program) Check(s *Schema) error {
	var wrong []error
	statements := p.Statements()
	names := make(map[string]bool)
	for i, q := range statements {
		if names[q.Name] || slices.Contains(statements[:i], q) {
			wrong = append(wrong, fmt.Errorf("statement %s is there twice", q.Name))
		}
		names[q.Name] = true
		if err := q.check(s); err != nil {
			wrong = append(wrong, fmt.Errorf("statement %s: %w", q.Name, err))
		}
	}
	for _, c := range p.ForeignKeys {
		if err := c.check(s, statements); err != nil {
			wrong = append(wrong, fmt.Errorf("constraint by %s: %w", c.ForeignKey, err))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("program %s: %w", p.Name, err)
	}
	return nil
}

func (c *Constraint) check(s *Schema, statements []*Statement) error {
	f := s.ForeignKey(c.ForeignKey)
	switch {
	case f == nil:
		return errors.New("there is no such foreign key")
	case !slices.Contains(statements, c.Parent) || !slices.Contains(statements, c.Child):
		return errors.New("it is about statements that the program does not have")
	case c.Child.Relation != f.Domain:
		return fmt.Errorf("its child %s is not over %s", c.Child, f.Domain)
	case c.Parent.Relation != f.Range:
		return fmt.Errorf("its parent %s is not over %s", c.Parent, f.Range)
	case c.Parent.Type.ByPredicate():
		return fmt.Errorf("its parent %s does not name one tuple", c.Parent)
	}
	return nil
}

// A Workload is a set of programs over a schema.
type Workload struct {
	Name     string
	Schema   *Schema
	Programs []*Program
	Notes    []string // what the answers do not cover
}

// Check returns what is wrong with the schema, and with the programs, all of it.
func (w *Workload) Check() error {
	wrong := []error{w.Schema.Check()}
	names := make(map[string]bool)
	for _, p := range w.Programs {
		if names[p.Name] {
			wrong = append(wrong, fmt.Errorf("program %s is there twice", p.Name))
		}
		names[p.Name] = true
		wrong = append(wrong, p.Check(w.Schema))
	}
	return errors.Join(wrong...)
}
