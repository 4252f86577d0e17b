package counterexample

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// A solution is of the values in an execution.
type solution struct {
	filling
	schedule *robust.Schedule
	said     map[string]*footprint.Values // by the statement's text
	writes   []write
}

// A write is of a column of a row that is there, at a place in the order.
type write struct {
	at, run int
	row     *row
	column  string
	cell    string // of the value; empty: not known
}

// solve finds values for an execution: for variables, and for the rows that it begins with.
func solve(tables *Tables, w *robust.Witness) (*solution, error) {
	s := w.Schedule
	x := &solution{schedule: s, said: map[string]*footprint.Values{},
		filling: filling{solver: newSolver(), tables: tables, byName: map[robust.Tuple]*row{}, literals: literals(s)}}
	for _, run := range s.Runs {
		for at, tuples := range run.Tuples {
			for _, t := range tuples {
				r, err := x.row(t)
				if err != nil {
					return nil, err
				}
				r.inserted = r.inserted || run.Program.Statements[at].Type == robust.Ins
			}
		}
	}
	for at, step := range s.Order {
		if step.At == len(s.Runs[step.Run].Program.Statements) {
			continue
		}
		if err := x.use(at, step); err != nil {
			return nil, err
		}
	}
	for i := range w.Proof {
		x.match(&w.Proof[i])
	}
	for _, r := range x.rows {
		x.complete(r)
	}
	for i := 0; i < len(x.rows); i++ { // grows
		x.refer(x.rows[i])
	}
	x.number()
	return x, nil
}

// literals are the constants by which the programs of an execution name tuples.
func literals(s *robust.Schedule) map[string]bool {
	all := map[string]bool{}
	for _, run := range s.Runs {
		for _, q := range run.Program.Statements {
			for _, expression := range slices.Concat(q.Key, q.Pinned) {
				all[expression] = true
			}
		}
	}
	return all
}

// use ties the values in a statement to those in the rows that it uses.
func (x *solution) use(at int, step robust.Step) error {
	run := &x.schedule.Runs[step.Run]
	q := run.Program.Statements[step.At]
	said := x.said[q.Text]
	if said == nil {
		var err error
		if said, err = x.tables.values(q.Statement); err != nil {
			return err
		}
		x.said[q.Text] = said
	}
	for i := range q.Params { // in their order, so that values are the same each time
		if place, known := said.Params[i+1]; known && !place.List {
			x.of(x.param(step, i+1), place.Column)
		}
	}
	for _, t := range run.Tuples[step.At] {
		r := x.byName[t]
		x.name(step, r)
		x.parents(step, r)
		x.find(at, step, said, r)
		if q.Type == robust.KeyUpd || q.Type == robust.PredUpd {
			x.write(at, step, said, r)
		}
	}
	return nil
}

// match has what a transaction writes be something that the predicate of another one is about, where that does not find
// it: it runs before the row is as it says.
func (x *solution) match(d *robust.Dependency) {
	if d.Kind != robust.PredicateRW || slices.Contains(x.schedule.Runs[d.From.Run].Tuples[d.From.At], d.Tuple) {
		return
	}
	said := x.said[x.schedule.Runs[d.From.Run].Program.Statements[d.From.At].Text]
	r, at := x.byName[d.Tuple], len(x.schedule.Order)
	for _, c := range said.Found {
		if c.Table == r.table {
			x.demand(&c, x.seen(at, d.To.Run, r, c.Column),
				func(o *footprint.Operand) string { return x.operand(at, d.From, o, r) })
		}
	}
}

// name ties a row's key to the expressions that a statement names it by.
func (x *solution) name(step robust.Step, r *row) {
	q := x.schedule.Runs[step.Run].Program.Statements[step.At]
	for i, expression := range q.Key {
		x.unite(x.cell(r, r.table.Keys[0][i]), x.variable(step, expression))
	}
}

// parents ties the columns of a row to those that the program's foreign keys map them to.
func (x *solution) parents(step robust.Step, r *row) {
	run := &x.schedule.Runs[step.Run]
	for _, p := range run.Program.Statements[step.At].Parents {
		for _, f := range x.tables.schema.Functions() {
			if f.Name != p.ForeignKey || len(run.Tuples[p.At]) != 1 {
				continue
			}
			parent := x.byName[run.Tuples[p.At][0]]
			for i, column := range f.ChildColumns {
				x.unite(x.cell(r, column), x.cell(parent, f.ParentColumns[i]))
			}
		}
	}
}

// find has a row be as a statement says of those that it finds, or inserts.
func (x *solution) find(at int, step robust.Step, said *footprint.Values, r *row) {
	q := x.schedule.Runs[step.Run].Program.Statements[step.At]
	operand := func(o *footprint.Operand) string { return x.operand(at, step, o, r) }
	for _, c := range said.Found {
		if c.Table == r.table {
			x.demand(&c, x.seen(at, step.Run, r, c.Column), operand)
		}
	}
	for _, c := range said.Inserted {
		// Of a row that is there already an INSERT says what its key is.
		if c.Table == r.table && (q.Type == robust.Ins || slices.Contains(slices.Concat(r.table.Keys...), c.Column)) {
			x.demand(&c, x.cell(r, c.Column), operand)
		}
	}
}

// write takes note of what a statement writes.
func (x *solution) write(at int, step robust.Step, said *footprint.Values, r *row) {
	for _, c := range said.Written {
		if c.Table != r.table {
			continue
		}
		w := write{at: at, run: step.Run, row: r, column: c.Column}
		if len(c.Operands) == 1 && c.Operands[0].Plus == 0 {
			w.cell = x.operand(at, step, &c.Operands[0], r)
		}
		x.cell(r, c.Column) // NULL would stay NULL
		x.writes = append(x.writes, w)
	}
}

// seen returns the cell of a row's column as a run sees it at a place in the order; empty where that is not known.
func (x *solution) seen(at, run int, r *row, column string) string {
	for _, w := range slices.Backward(x.writes) {
		if w.row == r && w.column == column && (w.run == run || x.committed(w.run, at, run)) {
			return w.cell
		}
	}
	return x.cell(r, column)
}

// committed reports whether a run's snapshot at a place in the order has what another one wrote.
func (x *solution) committed(other, at, run int) bool {
	if x.schedule.Runs[run].Level != robust.ReadCommitted {
		at = slices.IndexFunc(x.schedule.Order, func(s robust.Step) bool { return s.Run == run })
	}
	return x.committedBy(at, other)
}

// committedBy reports whether a run has committed before a place in the order.
func (x *solution) committedBy(at, run int) bool {
	commit := robust.Step{Run: run, At: len(x.schedule.Runs[run].Program.Statements)}
	return slices.Contains(x.schedule.Order[:at], commit)
}

// operand returns the cell of what a row's column is compared with; empty where that is not known.
func (x *solution) operand(at int, step robust.Step, o *footprint.Operand, r *row) string {
	switch {
	case o.Param > 0:
		return x.param(step, o.Param)
	case o.Table == r.table:
		return "" // of another row, maybe
	case o.Table != nil:
		return x.cell(x.joined(at, step, o.Table), o.Column)
	}
	return x.constantCell(o.Constant)
}

// joined returns the row of another table that a statement finds beside: one that the execution has it find, or else
// one that is made.
func (x *solution) joined(now int, step robust.Step, t *footprint.Table) *row {
	run := &x.schedule.Runs[step.Run]
	for at := step.At; at >= 0 && run.Program.Statements[at].Text == run.Program.Statements[step.At].Text; at-- {
		step.At = at // the first of those that stand for one of SQL
	}
	for at := step.At; at < together(run.Program, step.At); at++ {
		if run.Program.Statements[at].Relation == t.Name && len(run.Tuples[at]) > 0 {
			return x.byName[run.Tuples[at][0]]
		}
	}
	name := robust.Tuple{Relation: t.Name, Key: fmt.Sprintf("beside %s.%d", session(step.Run), step.At)}
	known := x.byName[name] != nil
	r, err := x.row(name)
	if err != nil { // a table of another schema
		return &row{table: t, id: name.String(), cells: map[string]string{}}
	}
	if !known {
		x.find(now, step, x.said[run.Program.Statements[step.At].Text], r)
	}
	return r
}

// variable returns the cell of an expression in a statement of a program.
func (x *solution) variable(step robust.Step, expression string) string {
	q := x.schedule.Runs[step.Run].Program.Statements[step.At]
	if !strings.HasPrefix(expression, ":") && !slices.Contains(q.Key, expression) {
		return x.constantCell(expression)
	}
	return fmt.Sprintf("%s %s", session(step.Run), x.schedule.Runs[step.Run].Program.Variable(step.At, expression))
}

// param returns the cell of a statement's parameter.
func (x *solution) param(step robust.Step, n int) string {
	q := x.schedule.Runs[step.Run].Program.Statements[step.At]
	if n > len(q.Params) || q.Params[n-1] == "" {
		return fmt.Sprintf("%s %d $%d", session(step.Run), step.At, n)
	}
	return x.variable(step, q.Params[n-1])
}

// statement writes a statement with the values that were found.
func (x *solution) statement(step robust.Step) (string, error) {
	q := x.schedule.Runs[step.Run].Program.Statements[step.At]
	said := x.said[q.Text]
	return x.tables.bind(q.Statement, func(n int) string {
		place := said.Params[n]
		value := x.value(x.param(step, n), place.Column)
		if place.List {
			return "'{" + strings.Trim(value, "'") + "}'"
		}
		return value
	})
}
