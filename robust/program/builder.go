package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// A Builder makes a workload of programs whose statements are known by their footprints.
type Builder struct {
	name   string
	schema *footprint.Schema
	drafts []*Draft
}

// NewBuilder returns a builder without programs.
func NewBuilder(name string, schema *footprint.Schema) *Builder {
	return &Builder{name: name, schema: schema}
}

// A Draft is a program in the making: its Body is made of the parts that it gave.
type Draft struct {
	Body    robust.Part
	Single  []string // see robust.Program
	Notes   []string
	Summary string // see robust.Program
	Calls   int    // likewise
	program robust.Program
	uses    []use
}

// A use is a statement, with what is known of the rows that it uses: the names of the values in their columns.
type use struct {
	q      *robust.Statement
	access *footprint.Access
	values map[string]string
}

// A Statement is where a footprint comes from, and what is known of its values. Equal names stand for equal values.
type Statement struct {
	SQL, Origin string
	Text        string   // SQL with placeholders in place of Params
	Params      []string // the parameters' values, in order; an empty name: not known
	Shown       []string // those that the client gets of a row, in order
	// Misses says that a row that is looked for by its key may not be there.
	Misses bool
	// Several says that the key did not tell rows apart.
	Several bool
}

// Program begins a program. It is nil when there is one of that name.
func (b *Builder) Program(name, short, origin string) *Draft {
	for _, d := range b.drafts {
		if d.program.Name == name {
			return nil
		}
	}
	d := &Draft{program: robust.Program{Name: name, Short: short, Origin: origin}}
	b.drafts = append(b.drafts, d)
	return d
}

// Part returns the part of the program that a footprint stands for; nil when it does nothing.
func (d *Draft) Part(fp *footprint.Footprint, st Statement) robust.Part {
	var parts robust.Sequence
	for i := range fp.Steps {
		step := &fp.Steps[i]
		var either robust.Choice
		for j := range step.Either {
			either = append(either, d.use(&step.Either[j], &st, fp.Notes))
		}
		if step.Optional {
			either = append(either, nil)
		}
		part := oneOf(either)
		if step.Repeated {
			part = &robust.Loop{Body: part}
		}
		parts = append(parts, part)
	}
	return simple(parts)
}

func (d *Draft) use(a *footprint.Access, st *Statement, notes []string) *robust.Statement {
	values := map[string]string{}
	for column, symbol := range a.Values {
		if v := st.resolve(symbol); v != "" {
			values[column] = v
		}
	}
	for i, column := range a.Shows {
		if i < len(st.Shown) && values[column] == "" {
			values[column] = st.Shown[i]
		}
	}
	q := &robust.Statement{Type: a.Type, Relation: a.Table.Name, PRead: a.PRead, Read: a.Read, Write: a.Write,
		Lock: a.Lock,
		SQL:  strings.TrimSpace(st.SQL), Text: st.Text, Params: st.Params, Origin: st.Origin,
		Notes: slices.Clone(notes)}
	d.uses = append(d.uses, use{q, a, values})
	if st.Misses && q.Type.ByKey() {
		byPredicate(q, a.Key, "its row may not be there")
	}
	if st.Several && q.Type.ByKey() {
		byPredicate(q, a.Key, "it used several rows")
	}
	return q
}

// resolve returns the name of a value that a footprint knows as a parameter or constant.
func (st *Statement) resolve(symbol string) string {
	if constant, ok := strings.CutPrefix(symbol, "="); ok {
		return constant
	}
	n := 0
	if _, err := fmt.Sscanf(symbol, "$%d", &n); err == nil && n > 0 && n <= len(st.Params) {
		return st.Params[n-1]
	}
	return ""
}

// byPredicate makes a statement look for its row by a predicate over a key's columns.
func byPredicate(q *robust.Statement, key []string, why string) {
	q.Type = map[robust.Type]robust.Type{robust.KeySel: robust.PredSel, robust.KeyUpd: robust.PredUpd,
		robust.KeyDel: robust.PredDel}[q.Type]
	q.PRead = robust.Of(key...)
	q.Notes = append(q.Notes, "taken as by predicate: "+why)
}

// Workload returns the programs, with the foreign keys between their statements.
func (b *Builder) Workload() (*robust.Workload, error) {
	w := &robust.Workload{Name: b.name, Schema: &robust.Schema{}}
	for _, t := range b.schema.Tables() {
		if t.View {
			continue
		}
		r := &robust.Relation{Name: t.Name, Attributes: t.Attributes()}
		if len(t.Keys) > 0 {
			r.Key = t.Keys[0]
		}
		w.Schema.Relations = append(w.Schema.Relations, r)
	}
	functions := b.functions(w.Schema)
	changed := b.changedKeys()
	for _, d := range b.drafts {
		for i := range d.uses {
			d.uses[i].settle(changed)
		}
		p := robust.NewProgram(d.program.Name, d.Body, d.links(functions)...)
		p.Short, p.Origin, p.Summary, p.Notes = d.program.Short, d.program.Origin, d.Summary, d.Notes
		p.Calls = d.Calls
		p.Single = d.Single
		w.Programs = append(w.Programs, p)
	}
	if err := w.Check(); err != nil {
		return nil, fmt.Errorf("the programs make no workload: %w", err)
	}
	return w, nil
}

// settle takes a statement by predicate whose key's columns some program changes, and names the row of others.
func (u *use) settle(changed map[*footprint.Table]map[string]bool) {
	t := u.access.Table
	if u.q.Type.ByKey() && slices.ContainsFunc(u.access.Key, func(name string) bool { return changed[t][name] }) {
		byPredicate(u.q, u.access.Key, "a program changes the key of "+t.Name)
	}
	if len(t.Keys) == 0 {
		return
	}
	known := 0
	named := make([]string, len(t.Keys[0]))
	for i, name := range t.Keys[0] {
		if named[i] = u.values[name]; named[i] != "" {
			known++
		}
	}
	switch {
	case u.q.Type.ByPredicate() && known > 0:
		u.q.Pinned = named
	case !u.q.Type.ByPredicate() && known == len(named):
		u.q.Key = named
	}
}

// changedKeys returns the columns of keys that programs change.
func (b *Builder) changedKeys() map[*footprint.Table]map[string]bool {
	changed := map[*footprint.Table]map[string]bool{}
	for _, u := range b.updates() {
		t := u.access.Table
		for _, key := range t.Keys {
			for _, name := range key {
				if u.q.Write.Meets(robust.Of(name)) {
					if changed[t] == nil {
						changed[t] = map[string]bool{}
					}
					changed[t][name] = true
				}
			}
		}
	}
	return changed
}

// updates returns the statements that write columns of rows that are there.
func (b *Builder) updates() []use {
	var all []use
	for _, d := range b.drafts {
		for _, u := range d.uses {
			if u.q.Type == robust.KeyUpd || u.q.Type == robust.PredUpd {
				all = append(all, u)
			}
		}
	}
	return all
}

// functions returns the foreign keys, but for those whose columns a program changes: they map a row to more than one.
func (b *Builder) functions(s *robust.Schema) []footprint.Function {
	var stay []footprint.Function
	names := map[string]bool{}
	for _, f := range b.schema.Functions() {
		for n := 2; names[f.Name]; n++ {
			f.Name = fmt.Sprintf("%s#%d", strings.SplitN(f.Name, "#", 2)[0], n)
		}
		names[f.Name] = true
		s.ForeignKeys = append(s.ForeignKeys, &robust.ForeignKey{Name: f.Name, Domain: f.Child.Name,
			Columns: f.ChildColumns, Range: f.Parent.Name, References: f.ParentColumns})
		moved := slices.ContainsFunc(b.updates(), func(u use) bool {
			if u.access.Table != f.Child || !u.q.Write.Meets(robust.Of(f.ChildColumns...)) {
				return false
			}
			u.q.Notes = append(u.q.Notes, fmt.Sprintf("it makes a row refer to another one: %s is left out of account",
				f.Name))
			return true
		})
		if !moved {
			stay = append(stay, f)
		}
	}
	return stay
}

// links finds the pairs of statements whose rows a foreign key ties: what refers has the values that name the other's
// row.
func (d *Draft) links(functions []footprint.Function) []robust.Constraint {
	var all []robust.Constraint
	for _, f := range functions {
		for _, child := range d.uses {
			if child.access.Table != f.Child {
				continue
			}
			for _, parent := range d.uses {
				if parent.access.Table == f.Parent && parent.q != child.q && !parent.q.Type.ByPredicate() &&
					ties(&f, &parent, &child) {
					all = append(all, robust.Constraint{Parent: parent.q, ForeignKey: f.Name, Child: child.q})
				}
			}
		}
	}
	return all
}

func ties(f *footprint.Function, parent, child *use) bool {
	for i, name := range f.ChildColumns {
		v := child.values[name]
		if v == "" || v != parent.values[f.ParentColumns[i]] {
			return false
		}
	}
	return true
}
