package postgres

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A UNION leaves out rows that are equal: it becomes a grouping of the rows of the UNION ALL by all columns, where
// that is surely the same, and each group tells the rows that it stands for.

// An outputColumn is a column of a query's result.
type outputColumn struct {
	name      string
	class     string // types of one class have a type in common; empty: a literal of any
	collation string
}

// union looks at the statement's own UNION. Its block has the whole as its node.
func (r *reading) union(n *ast.SelectStmt, sc *scope) ([]*block, error) {
	var blocks []*block
	arms, flat := armsOf(n)
	for _, arm := range arms {
		more, err := r.query(arm, sc)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	if err := uncarried(blocks); err != nil {
		return nil, err
	}
	u, err := r.inspect(n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil {
		return nil, err
	}
	r.missBeside(u)
	if len(all(blocks)) == 0 {
		return blocks, nil
	}
	if reason := r.ungroupableUnion(n, blocks); !flat || !reason.IsZero() {
		if !flat {
			reason = history.ReasonSetOperation
		}
		r.markUnseen(reason)
		r.drop(blocks)
		return blocks, nil
	}
	w := &walker{reading: r, sc: sc}
	shows, err := w.outwards(blocks, all(blocks), n)
	if err != nil {
		return nil, err
	}
	b := &block{n: n, union: blocks, rels: []*relation{{node: n, ref: unionName}}}
	w.take(b.rels[0], shows, false)
	b.sights = b.rels[0].sights
	r.collect(b)
	if n.LimitCount != nil || n.LimitOffset != nil {
		r.markUnseen(history.ReasonGroupsLeftOut)
	}
	return []*block{b}, nil
}

// armsOf returns the queries that UNIONs within a UNION put together. Duplicates do not matter where the outermost
// leaves them out. It is not flat where a part of it is more than that.
func armsOf(n *ast.SelectStmt) (arms []*ast.SelectStmt, flat bool) {
	flat = true
	for _, side := range []*ast.SelectStmt{n.Larg, n.Rarg} {
		if side.Op == ast.SETOP_NONE {
			arms = append(arms, side)
			continue
		}
		more, ok := armsOf(side)
		arms = append(arms, more...)
		flat = flat && ok && side.Op == ast.SETOP_UNION && side.WithClause == nil && side.SortClause == nil &&
			side.LimitCount == nil && side.LimitOffset == nil && side.LockingClause == nil
	}
	return arms, flat
}

// uncarried bars the queries whose columns stars of a set operation's parts hold: these would be different ones.
func uncarried(blocks []*block) error {
	for _, b := range blocks {
		for _, s := range b.sights {
			if s.carried {
				return &queryRefusal{b.carrier(s), history.ReasonDerivedStar}
			}
		}
	}
	return nil
}

// ungroupableUnion returns the reason why a UNION is not surely the same as grouping all rows by all columns, or why
// it must not be made so.
func (r *reading) ungroupableUnion(n *ast.SelectStmt, blocks []*block) history.Reason {
	columns := unionColumns(blocks)
	limited := n.LimitCount != nil || n.LimitOffset != nil
	switch {
	case len(columns) == 0, len(nodes(n.LockingClause)) > 0,
		slices.ContainsFunc(nodes(n.SortClause), func(item ast.Node) bool { return !sortsColumn(item, columns) }):
		return history.ReasonSetOperation
	case beyond(n.SortClause, len(columns)):
		return history.ReasonOrderByPosition
	case r.session.Serializable, r.rewriter.options.StrictPlans:
		return history.ReasonPlan
	}
	for _, b := range blocks {
		switch {
		case b.n.IntoClause != nil, len(nodes(b.n.LockingClause)) > 0:
			return history.ReasonSetOperation
		case limited && r.mayFail(b.n.FromClause, b.n.WhereClause):
			return history.ReasonPlan // the first rows may come from indexes, and others be never read
		}
		if reason := b.tooMuch(); !reason.IsZero() {
			return reason
		}
	}
	return history.Reason{}
}

// sortsColumn reports whether an item of ORDER BY surely names one of a UNION's columns, or a position.
func sortsColumn(item ast.Node, columns []outputColumn) bool {
	s, ok := item.(*ast.SortBy)
	if !ok {
		return false
	}
	switch n := s.Node.(type) {
	case *ast.A_Const:
		_, position := n.Val.(*ast.Integer)
		return position
	case *ast.ColumnRef:
		all, times := fields(n), 0
		for _, c := range columns {
			if c.name == all[0] {
				times++
			}
		}
		return len(all) == 1 && times == 1
	}
	return false
}

// unionColumns returns the columns of a UNION of blocks; none where it is not known that their types go together, and
// that values which are equal also look the same.
func unionColumns(blocks []*block) []outputColumn {
	columns := blocks[0].outputColumns()
	for _, b := range blocks[1:] {
		others := b.outputColumns()
		if len(others) != len(columns) {
			return nil
		}
		for i, c := range others {
			switch first := &columns[i]; {
			case c.class == "":
			case first.class == "":
				first.class, first.collation = c.class, c.collation
			case first.class != c.class || first.collation != c.collation:
				return nil
			}
		}
	}
	return columns
}

// outputColumns returns the columns of a block; none where one of them is neither a column of a table nor a plain
// literal.
func (b *block) outputColumns() []outputColumn {
	var out []outputColumn
	for _, item := range nodes(b.n.TargetList) {
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return nil
		}
		more := b.columnsOf(t)
		if len(more) == 0 {
			return nil
		}
		out = append(out, more...)
	}
	return out
}

// columnsOf returns the columns that an item of the select list stands for; none where they are not surely known.
func (b *block) columnsOf(t *ast.ResTarget) []outputColumn {
	switch n := bare(t.Val).(type) {
	case *ast.A_Const:
		c := outputColumn{name: t.Name}
		if c.name == "" {
			c.name = "?column?"
		}
		switch n.Val.(type) {
		case *ast.Integer:
			c.class = "int"
		case *ast.String:
		default:
			if !n.Isnull {
				return nil
			}
		}
		return []outputColumn{c}
	case *ast.ColumnRef:
		if star(t) != nil {
			return b.starColumns(n)
		}
		return b.columnOf(n, t.Name)
	}
	return nil
}

// starColumns returns the columns that a star holds.
func (b *block) starColumns(ref *ast.ColumnRef) (out []outputColumn) {
	if slices.ContainsFunc(nodes(b.n.FromClause), merges) {
		return nil
	}
	for _, rel := range b.rels {
		if !rel.within(ref) {
			continue
		}
		if rel.base == nil {
			if len(rel.types) == 0 {
				return nil
			}
			for i, c := range rel.types {
				out = append(out, outputColumn{rel.names[i], c.class, c.collation})
			}
			continue
		}
		for i := range rel.base.names {
			c, ok := rel.base.outputColumn(i)
			if !ok {
				return nil
			}
			out = append(out, c)
		}
	}
	return out
}

// columnOf returns the column that a reference is to, under its own name where it gets no other.
func (b *block) columnOf(ref *ast.ColumnRef, name string) (out []outputColumn) {
	names := fields(ref)
	column := names[len(names)-1]
	for _, rel := range b.rels {
		switch {
		case len(names) > 2, len(names) == 2 && names[0] != rel.ref:
			continue
		case rel.base == nil && rel.has(column):
			i := slices.Index(rel.names, column)
			if len(rel.types) == 0 || len(out) > 0 || slices.Contains(rel.names[i+1:], column) {
				return nil
			}
			out = append(out, outputColumn{cmp.Or(name, column), rel.types[i].class, rel.types[i].collation})
			continue
		case rel.base == nil:
			continue
		}
		i := slices.Index(rel.base.names, column)
		if i < 0 {
			continue
		}
		c, ok := rel.base.outputColumn(i)
		if !ok || len(out) > 0 {
			return nil
		}
		if name != "" {
			c.name = name
		}
		out = append(out, c)
	}
	return out
}

// classes are the types, by their names in pg_type, whose equal values look the same.
var classes = map[string]string{"int2": "int", "int4": "int", "int8": "int", "text": "text", "varchar": "text",
	"uuid": "uuid", "bool": "bool",
	"date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz", "bytea": "bytea",
	"oid": "oid"}

// outputColumn is a column of the source as one of a result. Collations that people define may take for equal what
// looks otherwise.
func (s *source) outputColumn(i int) (outputColumn, bool) {
	c := s.table.Columns[i]
	class, ok := classes[c.Type]
	return outputColumn{s.names[i], class, c.Collation}, ok &&
		slices.Contains([]string{"", "default", "C", "POSIX"}, c.Collation)
}

// The names that a UNION has as a query in a FROM clause, and that its columns have there.
const (
	unionName   = "isotap_union"
	unionColumn = "isotap_column_"
)

// groupUnion makes a UNION a SELECT of these items and its columns from the UNION ALL, grouped by the latter.
func (r *reading) groupUnion(b *block, items string) error {
	var list, names, by []string
	for i, c := range unionColumns(b.union) {
		name := unionColumn + strconv.Itoa(i+1)
		list = append(list, unionName+"."+name+" AS "+quoted(c.name))
		names, by = append(names, name), append(by, strconv.Itoa(i+1))
	}
	head := "SELECT " + strings.Join(append(list, items), ", ") + " FROM ("
	tail := fmt.Sprintf(") AS %s (%s) GROUP BY %s", unionName, strings.Join(names, ", "), strings.Join(by, ", "))
	wanted, err := parse(head + "SELECT 1" + tail)
	if err != nil {
		return err
	}
	at := r.places.queries[b.n]
	start := r.st.toks[at.from].Start
	r.edits = append(r.edits, edit{start: start, end: start, text: head})
	r.unionAll(b.n)
	r.insertAfter(r.places.lastOperand(at), tail)
	r.changes = append(r.changes, func() {
		outer, inner := *wanted.(*ast.SelectStmt), *b.n
		inner.WithClause, inner.SortClause, inner.LimitCount, inner.LimitOffset, inner.LimitOption = nil, nil, nil, nil,
			outer.LimitOption
		outer.WithClause, outer.SortClause, outer.LimitCount, outer.LimitOffset = b.n.WithClause, b.n.SortClause,
			b.n.LimitCount, b.n.LimitOffset
		outer.LimitOption = b.n.LimitOption
		outer.FromClause.Items[0].(*ast.RangeSubselect).Subquery = &inner
		*b.n = outer
	})
	return nil
}

// unionAll has the UNIONs of a tree keep all rows.
func (r *reading) unionAll(n *ast.SelectStmt) {
	if n.Op == ast.SETOP_NONE {
		return
	}
	r.unionAll(n.Larg)
	operator := r.places.queries[n].operator
	switch {
	case r.st.is(operator+1, "ALL"):
	case r.st.is(operator+1, "DISTINCT"):
		t := r.st.toks[operator+1]
		r.edits = append(r.edits, edit{start: t.Start, end: t.End, text: "ALL"})
	default:
		r.insertAfter(operator, " ALL")
	}
	r.unionAll(n.Rarg)
	r.changes = append(r.changes, func() { n.All = true })
}

// ungroupable returns the reason why SELECT DISTINCT is not surely the same as grouping by all columns.
func (b *block) ungroupable(u *usage) history.Reason {
	n := b.n
	switch {
	case b.grouped, u.window, n.WindowClause != nil, len(nodes(n.TargetList)) == 0, len(nodes(n.LockingClause)) > 0:
		return history.ReasonDistinct
	case slices.ContainsFunc(nodes(n.TargetList), func(item ast.Node) bool { return !b.groups(item) }):
		return history.ReasonDistinct
	case slices.ContainsFunc(nodes(n.SortClause), func(item ast.Node) bool { return !b.sortsOutput(item) }):
		return history.ReasonDistinct
	}
	return history.Reason{}
}

// groups reports whether an item of the select list can be grouped by: a star is of an unknown number of columns,
// and errors about types that do not compare would point elsewhere.
func (b *block) groups(item ast.Node) bool {
	t, ok := item.(*ast.ResTarget)
	if !ok || star(item) != nil {
		return false
	}
	ref, ok := bare(t.Val).(*ast.ColumnRef)
	if !ok {
		return !document(t.Val)
	}
	all := fields(ref)
	for _, rel := range b.rels {
		if rel.base == nil {
			continue
		}
		i := slices.Index(rel.base.names, all[len(all)-1])
		if i >= 0 && slices.Contains([]string{"json", "xml", "point", "polygon", "refcursor"},
			rel.base.table.Columns[i].Type) {
			return false
		}
	}
	return true
}

// document reports whether an expression may be of a type that does not compare: json, xml.
func document(n ast.Node) (may bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.String:
			may = may || strings.Contains(n.SVal, "json") || strings.Contains(n.SVal, "xml") ||
				strings.ContainsAny(n.SVal, "#") || n.SVal == "->"
		case *ast.XmlExpr, *ast.JsonObjectConstructor, *ast.JsonArrayConstructor:
			may = true
		}
		return true
	}, n)
	return may || !whole
}

// sortsOutput reports whether an item of ORDER BY is one of the select list's.
func (b *block) sortsOutput(item ast.Node) bool {
	s, ok := item.(*ast.SortBy)
	if !ok {
		return false
	}
	if c, ok := bare(s.Node).(*ast.A_Const); ok {
		_, position := c.Val.(*ast.Integer)
		return position
	}
	names, _ := b.outputs()
	ref, ok := bare(s.Node).(*ast.ColumnRef)
	if ok && len(fields(ref)) == 1 && slices.Contains(names, fields(ref)[0]) {
		return true
	}
	// Whether literals are equal must not count: the plan is one for all texts that differ in them.
	return !literals(s.Node) && slices.ContainsFunc(nodes(b.n.TargetList), func(t ast.Node) bool {
		target, ok := t.(*ast.ResTarget)
		return ok && reflect.DeepEqual(target.Val, s.Node)
	})
}

// literals reports whether an expression may hold literals.
func literals(n ast.Node) (found bool) {
	whole := pgtree.Walk(func(n ast.Node) bool {
		_, literal := n.(*ast.A_Const)
		found = found || literal
		return true
	}, n)
	return found || !whole
}

// groupInstead makes SELECT DISTINCT a SELECT that groups by all of its columns.
func (r *reading) groupInstead(b *block) error {
	n, at := b.n, r.places.queries[b.n]
	distinct := at.from + 1
	if !r.st.is(distinct, "DISTINCT") || r.plan.Locking != history.NoLock {
		return errUnplaced
	}
	var positions []string
	for i := range nodes(n.TargetList) {
		positions = append(positions, strconv.Itoa(i+1))
	}
	by := strings.Join(positions, ", ")
	wanted, err := parse("SELECT 1 GROUP BY " + by)
	if err != nil {
		return err
	}
	r.edits = append(r.edits, edit{start: r.st.toks[distinct].Start, end: r.st.toks[distinct].End, text: "ALL"})
	end := r.places.clause(at.listEnd+1, at.to)
	for r.st.is(end, "FROM", "WHERE") && end < at.to {
		end = r.places.clause(end+1, at.to)
	}
	r.insertAfter(end-1, " GROUP BY "+by)
	r.changes = append(r.changes, func() {
		n.DistinctClause = nil
		n.GroupClause = wanted.(*ast.SelectStmt).GroupClause
	})
	return nil
}
