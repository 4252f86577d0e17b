package footprint

import (
	"fmt"
	"slices"
	"strings"
)

// A Schema is what must be known of the tables. The zero Schema has none.
type Schema struct {
	tables []*Table
	enums  map[string][]string // types of PostgreSQL's, by name
}

// A Table is a relation, or a view over some.
type Table struct {
	Schema  string // empty: that which statements mean when they name none
	Name    string // as it is spelled where it is defined
	Columns []Column
	// Keys are the primary key and the unique keys of columns that are never NULL.
	Keys [][]string
	// References are its foreign keys.
	References []Reference
	// Triggers says that writes of it fire triggers.
	Triggers bool
	// View says that it is none; definition is its query, nil where that is not known.
	View       bool
	definition *query
	checks     []expr // its CHECK constraints, cut at their ANDs
}

// A Column of a table.
type Column struct {
	Name    string
	NotNull bool
	// Text says that its values are texts: a server may convert to compare them with a number.
	Text bool
	// Derived says that the server works its value out anew on each UPDATE: a generated column, MySQL's ON UPDATE.
	Derived bool
	// Type is its type's name in small letters, with what stands in parentheses behind it: Size and Scale (0: nothing),
	// or Members. Array says that its values are arrays of that. MySQL's UNSIGNED is left out.
	Type        string
	Size, Scale int
	Members     []string
	Array       bool
	// Counts says that the server counts it up where an INSERT has no value for it; Always that it is refused one
	// (PostgreSQL).
	Counts, Always bool
}

// A Reference is a foreign key: a function from the rows of its table to those of Parent.
type Reference struct {
	Name          string
	Columns       []string
	Parent        string   // the table's name as the definition spells it, with its schema if that is given
	ParentColumns []string // empty: the primary key
	// OnDelete and OnUpdate say that the server then writes the rows that refer to what is deleted or changed.
	OnDelete, OnUpdate bool
}

// Add adds a table. One of the same name is replaced.
func (s *Schema) Add(t *Table) {
	s.tables = slices.DeleteFunc(s.tables, func(o *Table) bool {
		return strings.EqualFold(o.Name, t.Name) &&
			strings.EqualFold(o.Schema, t.Schema)
	})
	s.tables = append(s.tables, t)
}

// Tables returns the tables in the order of their definition.
func (s *Schema) Tables() []*Table { return slices.Clone(s.tables) }

// Table finds a table by its name, in any case. Without a schema, or with one that no table of that name names, it must
// be the only one of its name, or that of no schema; nil otherwise.
func (s *Schema) Table(schema, name string) *Table {
	var found []*Table
	for _, t := range s.tables {
		if !strings.EqualFold(t.Name, name) {
			continue
		}
		if strings.EqualFold(t.Schema, schema) {
			return t
		}
		if schema == "" || t.Schema == "" {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// parent finds the table that a foreign key refers to, and the columns there.
func (s *Schema) parent(t *Table, r *Reference) (*Table, []string) {
	schema, name, qualified := strings.Cut(r.Parent, ".")
	if !qualified {
		schema, name = t.Schema, r.Parent
	}
	p := s.Table(schema, name)
	switch {
	case p == nil:
		return nil, nil
	case len(r.ParentColumns) > 0:
		return p, r.ParentColumns
	case len(p.Keys) > 0:
		return p, p.Keys[0]
	}
	return p, nil
}

// A Function maps each row of Child to a row of Parent, by a foreign key.
type Function struct {
	Name                           string
	Child, Parent                  *Table
	ChildColumns, ParentColumns    []string // one for one
	cascadesDelete, cascadesUpdate bool
}

// Functions returns the foreign keys whose two tables are known.
func (s *Schema) Functions() []Function {
	var all []Function
	for _, t := range s.tables {
		for i := range t.References {
			r := &t.References[i]
			p, columns := s.parent(t, r)
			if p == nil || len(columns) != len(r.Columns) {
				continue
			}
			name := r.Name
			if name == "" {
				name = fmt.Sprintf("%s(%s)", t.Name, strings.Join(r.Columns, ","))
			}
			all = append(all, Function{name, t, p, t.spell(r.Columns), p.spell(columns), r.OnDelete, r.OnUpdate})
		}
	}
	return all
}

// Column finds a column by its name, in any case; nil when there is none.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// Attributes are the names of all columns.
func (t *Table) Attributes() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// spell returns columns in the case of their definition.
func (t *Table) spell(columns []string) []string {
	spelled := make([]string, len(columns))
	for i, name := range columns {
		spelled[i] = name
		if c := t.Column(name); c != nil {
			spelled[i] = c.Name
		}
	}
	return spelled
}

// addKey adds a unique key if none of its columns can be NULL; those of a primary key cannot.
func (t *Table) addKey(columns []string, primary bool) {
	if len(columns) == 0 || slices.Contains(columns, "") {
		return
	}
	columns = t.spell(columns)
	for _, name := range columns {
		c := t.Column(name)
		if c == nil || !primary && !c.NotNull {
			return
		}
		c.NotNull = true
	}
	if primary {
		t.Keys = slices.Insert(t.Keys, 0, columns)
	} else {
		t.Keys = append(t.Keys, columns)
	}
}

// keyColumn reports whether a column is part of a key.
func (t *Table) keyColumn(name string) bool {
	return slices.Contains(slices.Concat(t.Keys...), name)
}

// sorted orders attributes as the table does, each once.
func (t *Table) sorted(set map[string]bool) []string {
	names := []string{}
	for _, c := range t.Columns {
		if set[c.Name] {
			names = append(names, c.Name)
		}
	}
	return names
}
