package counterexample

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// A filling is of tables with the rows that an execution begins with: those that it uses, and those that they refer to.
type filling struct {
	*solver
	tables *Tables
	rows   []*row // as they are seen
	byName map[robust.Tuple]*row
	// literals are the constants that programs name tuples by; other values in the keys of tuples are numbers that
	// stand for any.
	literals map[string]bool
}

// A row is a tuple with its columns' cells.
type row struct {
	table    *footprint.Table
	id       string
	cells    map[string]string // by column; of others nothing is known
	inserted bool              // by the execution: it is not there when that begins
}

// row returns a tuple's row.
func (f *filling) row(t robust.Tuple) (*row, error) {
	if r := f.byName[t]; r != nil {
		return r, nil
	}
	table := f.tables.schema.Table("", t.Relation)
	switch {
	case table == nil:
		return nil, fmt.Errorf("the table of %s is not known", t)
	case table.Schema != "":
		return nil, fmt.Errorf("%s is a table of schema %s: a scenario has tables of its own schema alone, "+
			"so that it is played on no others", table.Name, table.Schema)
	}
	r := &row{table: table, id: t.String(), cells: map[string]string{}}
	f.byName[t] = r
	f.rows = append(f.rows, r)
	var key []string
	if len(table.Keys) > 0 {
		key = table.Keys[0]
	}
	parts := strings.Split(t.Key, ",")
	for i, column := range key {
		cell := f.cell(r, column)
		if len(parts) != len(key) {
			continue // a tuple of which the execution knows no more than that it is there
		}
		if n, err := strconv.Atoi(parts[i]); err == nil && n > 0 && !f.literals[parts[i]] {
			f.symbol(cell, n)
		} else {
			f.constant(cell, parts[i])
		}
	}
	return r, nil
}

// cell returns the cell of a row's column.
func (f *filling) cell(r *row, column string) string {
	c := r.table.Column(column)
	if r.cells[c.Name] == "" {
		r.cells[c.Name] = r.id + "." + c.Name
		f.of(r.cells[c.Name], c)
	}
	return r.cells[c.Name]
}

// complete gives rows cells for what they must have: columns that are never NULL, and what CHECK constraints look at.
func (f *filling) complete(r *row) {
	for _, c := range r.table.Columns {
		if c.NotNull && !c.Derived && !c.Counts {
			f.cell(r, c.Name)
		}
	}
	for _, check := range r.table.Checks() {
		f.demand(&check, r.cells[check.Column], func(o *footprint.Operand) string {
			if o.Table != nil {
				return r.cells[o.Column]
			}
			return f.constantCell(o.Constant)
		})
	}
}

// refer ties a row to those that it refers to, which are made where there are none.
func (f *filling) refer(r *row) {
	for _, key := range f.tables.schema.Functions() {
		if key.Child != r.table || slices.ContainsFunc(key.ChildColumns,
			func(c string) bool { return r.cells[c] == "" || f.isNull(r.cells[c]) }) {
			continue // NULL refers to nothing
		}
		if slices.ContainsFunc(f.rows, func(p *row) bool {
			return p.table == key.Parent && !(p.inserted && !r.inserted) && f.refers(&key, r, p)
		}) {
			continue
		}
		parent := &row{table: key.Parent, id: fmt.Sprintf("%s of %s", key.Name, r.id), cells: map[string]string{}}
		for i, column := range key.ParentColumns {
			f.unite(f.cell(parent, column), r.cells[key.ChildColumns[i]])
		}
		f.complete(parent)
		f.rows = append(f.rows, parent)
	}
}

// refers reports whether a row refers to another.
func (f *filling) refers(key *footprint.Function, child, parent *row) bool {
	for i, column := range key.ParentColumns {
		to, from := parent.cells[column], child.cells[key.ChildColumns[i]]
		if to == "" || from == "" || !f.equal(to, from) {
			return false
		}
	}
	return true
}

// inserts returns the statements that fill the tables.
func (f *filling) inserts() []string {
	var all []string
	there := map[string]bool{} // by table and key
	for _, t := range f.tables.ordered() {
		for _, r := range f.rows {
			if r.table != t || r.inserted || t.Schema != "" || there[f.key(r)] {
				continue
			}
			if len(t.Keys) > 0 {
				there[f.key(r)] = true
			}
			all = append(all, f.insert(r))
		}
	}
	return all
}

// key writes a row's table and primary key.
func (f *filling) key(r *row) string {
	key := f.tables.tableName(r.table)
	if len(r.table.Keys) > 0 {
		for _, column := range r.table.Keys[0] {
			key += " " + f.value(f.cell(r, column), nil)
		}
	}
	return key
}

func (f *filling) insert(r *row) string {
	var names, values []string
	always := ""
	for _, c := range r.table.Columns {
		cell := r.cells[c.Name]
		if cell == "" || c.Derived || f.isNull(cell) {
			continue
		}
		names, values = append(names, f.tables.name(c.Name)), append(values, f.value(cell, &c))
		if c.Always {
			always = " OVERRIDING SYSTEM VALUE"
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s)%s VALUES (%s)", f.tables.tableName(r.table), strings.Join(names, ", "),
		always, strings.Join(values, ", "))
}

// ordered puts tables behind those that they refer to, as far as these do not refer to each other.
func (t *Tables) ordered() []*footprint.Table {
	depth := map[*footprint.Table]int{}
	all := t.schema.Tables()
	for range all {
		for _, f := range t.schema.Functions() {
			if f.Child != f.Parent && depth[f.Child] <= depth[f.Parent] && depth[f.Parent] < len(all) {
				depth[f.Child] = depth[f.Parent] + 1
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *footprint.Table) int { return cmp.Compare(depth[a], depth[b]) })
	return all
}
