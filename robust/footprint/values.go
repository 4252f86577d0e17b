package footprint

import (
	"strconv"

	"github.com/isotap/isotap/dbms"
)

// Values are what a statement says of the values in rows, so far as that is simple: for who makes up rows that it
// finds. What it says by OR, functions or subqueries is not there.
type Values struct {
	Found    []Comparison // of all rows that it finds
	Inserted []Comparison // of the row that it inserts, if that is one
	Written  []Comparison // of the rows that it updates, behind it; one without operands: a value is not known
	// Params tells where parameters stand, by their numbers from 1. Of others that is not known.
	Params map[int]ParamUse
	// Limited says that it may not give all rows that it finds (LIMIT).
	Limited bool
}

// A ParamUse is where a parameter stands: it is compared with a column, put into it, or added to it. List says that it
// is an array of the column's values.
type ParamUse struct {
	Column *Column
	List   bool
}

// A Comparison is of a column with an operand. Op is one of = < <= > >= <> like in null; in has one operand or more,
// null has none.
type Comparison struct {
	Table    *Table
	Column   string
	Op       string
	Operands []Operand
}

// An Operand is a parameter, a column of a row beside, or else a constant; and what is added to it.
type Operand struct {
	Param    int // its number, from 1; 0: none
	Table    *Table
	Column   string
	Constant string
	Plus     int
}

// ValuesOf reads what a statement says of values. Its errors are those of [Of].
func ValuesOf(family dbms.Family, text string, schema *Schema) (*Values, error) {
	q, err := readers[family].read(text)
	if err != nil {
		return nil, err
	}
	d := deriver{schema: schema}
	s := &scope{named: map[string]bool{}}
	if q.target != nil {
		d.bind(s, []source{*q.target})
	}
	d.bind(s, q.from)
	if d.err != nil {
		return nil, d.err
	}
	v := valuer{scope: s, Values: Values{Params: map[int]ParamUse{}, Limited: q.limited}}
	v.Found = v.comparisons(q.where)
	v.inserts(q)
	v.updates(q)
	return &v.Values, nil
}

// Checks are the CHECK constraints of a table's rows, so far as they are simple.
func (t *Table) Checks() []Comparison {
	v := valuer{scope: &scope{sources: []*bound{{name: t.Name, table: t}}}, Values: Values{Params: map[int]ParamUse{}}}
	return v.comparisons(t.checks)
}

// A valuer gathers what one statement says.
type valuer struct {
	scope *scope
	Values
}

func (v *valuer) inserts(q *query) {
	if q.verb != inserts || q.target == nil || v.scope.sources[0].table == nil {
		return
	}
	t := v.scope.sources[0].table
	columns := q.columns
	if columns == nil {
		columns = t.Attributes()
	}
	for _, row := range q.rows {
		for i := range row {
			if i < len(columns) && t.Column(columns[i]) != nil {
				v.place(&row[i], t.Column(columns[i]), false)
				if o, ok := v.operand(&row[i]); ok && len(q.rows) == 1 {
					v.Inserted = append(v.Inserted, Comparison{t, t.Column(columns[i]).Name, "=", []Operand{o}})
				}
			}
		}
	}
}

func (v *valuer) updates(q *query) {
	for _, a := range append(q.sets, q.conflict.sets...) {
		b := v.scope.own(&expr{kind: column, qualifier: a.qualifier, name: a.column})
		if b == nil || b.table.Column(a.column) == nil {
			continue
		}
		c := Comparison{Table: b.table, Column: b.table.Column(a.column).Name, Op: "="}
		v.place(&a.value, b.table.Column(a.column), false)
		if o, ok := v.operand(&a.value); ok {
			c.Operands = []Operand{o}
		}
		v.Written = append(v.Written, c)
	}
}

// mirrored are the operators with their sides exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (v *valuer) comparisons(list []expr) []Comparison {
	var all []Comparison
	for i := range list {
		e := list[i]
		if e.kind == equal {
			e.op = "="
		}
		if mirrored[e.op] != "" && v.scope.own(&e.args[0]) == nil {
			e.op, e.args = mirrored[e.op], []expr{e.args[1], e.args[0]}
		}
		if e.op == "" || len(e.args) == 0 || e.kind == value {
			continue
		}
		if b := v.scope.own(&e.args[0]); b != nil {
			if c, ok := v.comparison(b, &e); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// comparison returns the comparison of a source's column that an expression is.
func (v *valuer) comparison(b *bound, e *expr) (Comparison, bool) {
	of := b.table.Column(e.args[0].name)
	c := Comparison{Table: b.table, Column: of.Name, Op: e.op}
	if e.op == "any" {
		c.Op = "in"
	}
	for i := range e.args[1:] {
		v.place(&e.args[1+i], of, e.op == "any")
		if o, ok := v.operand(&e.args[1+i]); ok {
			c.Operands = append(c.Operands, o)
		}
	}
	return c, c.Op == "null" || mirrored[c.Op] != "" && len(c.Operands) == 1 || c.Op == "like" &&
		len(c.Operands) == 1 || c.Op == "in" && len(c.Operands) > 0
}

// place takes note of where the parameters of an expression stand.
func (v *valuer) place(e *expr, c *Column, list bool) {
	e.each(func(e *expr) {
		n, err := strconv.Atoi(trimSymbol(e, '$'))
		if _, known := v.Params[n]; err == nil && !known {
			v.Params[n] = ParamUse{c, list}
		}
	})
}

// trimSymbol returns an expression's symbol without its mark; nothing where it has another.
func trimSymbol(e *expr, mark byte) string {
	if e.kind == value && e.symbol != "" && e.symbol[0] == mark {
		return e.symbol[1:]
	}
	return ""
}

// operand reads a side of a comparison.
func (v *valuer) operand(e *expr) (Operand, bool) {
	if e.kind == column {
		if b := v.scope.own(e); b != nil {
			return Operand{Table: b.table, Column: b.table.Column(e.name).Name}, true
		}
		return Operand{}, false
	}
	if (e.op == "+" || e.op == "-") && len(e.args) == 2 {
		o, ok := v.operand(&e.args[0])
		n, err := strconv.Atoi(trimSymbol(&e.args[1], '='))
		if e.op == "-" {
			n = -n
		}
		o.Plus += n
		return o, ok && err == nil && o.Table == nil
	}
	if e.kind != value || e.symbol == "" {
		return Operand{}, false
	}
	if n, err := strconv.Atoi(trimSymbol(e, '$')); err == nil {
		return Operand{Param: n}, true
	}
	return Operand{Constant: e.symbol[1:]}, true
}
