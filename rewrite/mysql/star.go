package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A relation is one source of a FROM clause, as stars see it.
type relation struct {
	schema, name string // by which a qualified star finds it
	qualifier    string // quoted, for columns
	base         *ast.TableName
	table        *Table            // that exposes isotap's columns; nil for all others
	query        ast.ResultSetNode // of a derived table or a common table expression; nil for all others
	columns      []ast.CIStr       // the names that the expression's clause gives them, if it does
}

// relations lists the sources of a FROM clause in the order of the text.
func (c *masker) relations(refs *ast.Join) []relation {
	var rs []relation
	for _, s := range flatten(refs) {
		rs = append(rs, c.relation(s.node))
	}
	return rs
}

func (c *masker) relation(n *ast.TableSource) relation {
	r := relation{name: n.AsName.O}
	base, ok := n.Source.(*ast.TableName)
	switch {
	case !ok:
		r.query = n.Source
	case n.AsName.O == "":
		r.schema, r.name = base.Schema.O, base.Name.O
	}
	if ok {
		r.base, r.table = base, c.exposed(base)
		if e := c.cte(base); e != nil {
			r.base, r.query, r.columns = nil, e.Query.Query, e.ColNameList
		}
	}
	r.qualifier = quoted(r.name)
	if r.base != nil { // as TiDB itself spells it in the text of a view
		r.qualifier = quoted(c.schema(r.base)) + "." + r.qualifier
	}
	return r
}

// stars puts lists of columns in the place of the query's stars that would show isotap's.
func (c *masker) stars(n *ast.SelectStmt) {
	if n.From == nil || n.Fields == nil || slices.Contains(c.unasked, n) {
		return
	}
	st, rs := c.pl.st, c.relations(n.From.TableRefs)
	for _, f := range n.Fields.Fields {
		if f.WildCard == nil {
			continue
		}
		list, ok := c.expansion(f.WildCard, n, rs)
		if !ok {
			continue
		}
		if n.Kind == ast.SelectStmtKindTable {
			c.tableStatement(rs[0], list)
			continue
		}
		if first, last := st.star(f); first >= 0 {
			c.edit(st.Tokens[first].Start, st.Tokens[last].End, list)
		}
	}
}

// maxAlias is how long TiDB lets an alias be.
const maxAlias = 255

// keepNames gives the query's items whose subqueries have other words now the names that they had: their text.
func (c *masker) keepNames(n *ast.SelectStmt) {
	if n.Kind != ast.SelectStmtKindSelect || n.Fields == nil || len(c.pl.edits) == 0 {
		return
	}
	within, _, ok := c.pl.st.queryTokens(n)
	if !ok {
		return
	}
	p := &planner{rewriter: c.pl.rewriter, session: c.pl.session, st: c.pl.st.part(0, within.to), into: c.pl.into}
	list, err := p.selectList(n)
	if err != nil {
		return
	}
	for k, it := range list {
		f, start, end := n.Fields.Fields[k], p.st.Tokens[it.first].Start, p.st.Tokens[it.last].End
		if f.WildCard != nil || f.AsName.O != "" || !slices.ContainsFunc(c.pl.edits, func(e edit) bool { return start <= e.start && e.end <= end }) {
			continue
		}
		if e, ok := p.spelledAsIs(it, maxAlias); ok {
			c.edit(e.start, e.end, e.pieces[0].Text)
		}
	}
}

// star finds the tokens of a star: *, t.* or s.t.*; -1 when they are not where the parser says.
func (st *statement) star(f *ast.SelectField) (first, last int) {
	first, ok := slices.BinarySearchFunc(st.Tokens, f.Offset,
		func(t mysqltoken.Token, pos int) int { return t.Start - pos })
	if !ok {
		return -1, -1
	}
	last = first
	for _, part := range []string{f.WildCard.Schema.O, f.WildCard.Table.O} {
		if part == "" {
			continue
		}
		if last >= len(st.Tokens) || unquoted(st.tok(last)) != part || !st.mark(last+1, ".") {
			return -1, -1
		}
		last += 2
	}
	if !st.mark(last, "*") {
		return -1, -1
	}
	return first, last
}

// expansion returns what stands for a star; not ok when it stays.
func (c *masker) expansion(w *ast.WildCardField, n *ast.SelectStmt, rs []relation) (string, bool) {
	if w.Table.O != "" {
		for _, r := range rs {
			if strings.EqualFold(r.name, w.Table.O) && (w.Schema.O == "" || strings.EqualFold(r.schema, w.Schema.O)) {
				return r.list(), r.table != nil && c.pl.checkSpelling(visibleColumns(r.table)...) == nil
			}
		}
		return "", false
	}
	if !slices.ContainsFunc(rs, func(r relation) bool { return r.table != nil }) {
		return "", false
	}
	if merges(n.From.TableRefs) {
		return c.mergedList(n.From.TableRefs)
	}
	lists := make([]string, len(rs))
	for i, r := range rs {
		if lists[i] = r.list(); r.table != nil && c.pl.checkSpelling(visibleColumns(r.table)...) != nil {
			return "", false
		}
	}
	return strings.Join(lists, ", "), true
}

// list returns the relation's columns, or its star where that shows none of isotap's.
func (r *relation) list() string {
	if r.table == nil {
		return r.qualifier + ".*"
	}
	var b strings.Builder
	for i, column := range visibleColumns(r.table) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.qualifier + "." + quoted(column))
	}
	return b.String()
}

// tableStatement makes TABLE t a SELECT.
func (c *masker) tableStatement(r relation, list string) {
	st := c.pl.st
	at := -1
	for i := range st.Tokens {
		if st.is(i, "TABLE") && c.behindName(i+1, r.base) >= 0 {
			if at >= 0 {
				return // which of them it is does not show
			}
			at = i
		}
	}
	if at >= 0 {
		c.edit(st.Tokens[at].Start, st.Tokens[at].End, "SELECT "+list+" FROM")
	}
}

// An output is a column that a source gives to a star, as it is referred to.
type output struct{ qualifier, name string }

// mergedList returns the columns of a join with USING or NATURAL in it.
func (c *masker) mergedList(join *ast.Join) (string, bool) {
	outs, ok := c.outputs(join)
	if !ok || len(outs) == 0 {
		return "", false
	}
	names := make([]string, len(outs))
	for i, o := range outs {
		if c.pl.checkSpelling(o.name) != nil {
			return "", false
		}
		names[i] = o.qualifier + "." + quoted(o.name)
	}
	return strings.Join(names, ", "), true
}

// outputs returns the columns that a star shows of a FROM clause's part, isotap's left out; not ok when
// they cannot be told from the text and the schema.
func (c *masker) outputs(n ast.ResultSetNode) ([]output, bool) {
	switch n := n.(type) {
	case *ast.Join:
		return c.joined(n)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return c.outputs(inner)
		}
		r := c.relation(n)
		names, ok := c.names(&r)
		outs := make([]output, len(names))
		for i, name := range names {
			outs[i] = output{r.qualifier, name}
		}
		return outs, ok
	}
	return nil, false
}

// joined returns the columns of a join: those that its sides share come first, and once.
func (c *masker) joined(n *ast.Join) ([]output, bool) {
	left, ok := c.outputs(n.Left)
	if !ok || n.Right == nil {
		return left, ok
	}
	right, ok := c.outputs(n.Right)
	if !ok {
		return nil, false
	}
	var shared []string
	for _, u := range n.Using {
		shared = append(shared, u.Name.O)
	}
	if n.NaturalJoin {
		shared = common(left, right)
	}
	if n.Tp == ast.RightJoin && len(shared) > 0 {
		left, right = right, left
	}
	isShared := func(o output) bool {
		return slices.ContainsFunc(shared, func(s string) bool { return strings.EqualFold(s, o.name) })
	}
	var outs []output
	for _, o := range left {
		if isShared(o) {
			outs = append(outs, o)
		}
	}
	outs = append(outs, slices.DeleteFunc(left, isShared)...)
	return append(outs, slices.DeleteFunc(right, isShared)...), true
}

// common returns the names that both sides have, in the left one's order.
func common(left, right []output) []string {
	var names []string
	for _, l := range left {
		if slices.ContainsFunc(right, func(r output) bool { return strings.EqualFold(l.name, r.name) }) {
			names = append(names, l.name)
		}
	}
	return names
}

// names returns the names of a relation's columns.
func (c *masker) names(r *relation) ([]string, bool) {
	if len(r.columns) > 0 {
		var names []string
		for _, name := range r.columns {
			names = append(names, name.O)
		}
		return names, true
	}
	if r.query != nil {
		return c.queryNames(r.query)
	}
	schema := c.schema(r.base)
	t := c.pl.rewriter.schema.Table(schema, r.base.Name.O)
	if t == nil || c.pl.session.hasTempTable(schema, r.base.Name.O) {
		return nil, false
	}
	return visibleColumns(t), true
}

// queryNames returns the names of a query's columns, where none of them is that of an expression.
func (c *masker) queryNames(n ast.ResultSetNode) ([]string, bool) {
	switch n := n.(type) {
	case *ast.SetOprStmt:
		if first, ok := n.SelectList.Selects[0].(ast.ResultSetNode); ok {
			return c.queryNames(first)
		}
	case *ast.SelectStmt:
		return c.selectNames(n)
	}
	return nil, false
}

func (c *masker) selectNames(n *ast.SelectStmt) ([]string, bool) {
	var names []string
	for _, f := range n.Fields.Fields {
		column, isColumn := f.Expr.(*ast.ColumnNameExpr)
		switch {
		case f.AsName.O != "":
			names = append(names, f.AsName.O)
		case f.WildCard != nil && f.WildCard.Table.O == "" && n.From != nil && n.With == nil:
			outs, ok := c.outputs(n.From.TableRefs)
			if !ok {
				return nil, false
			}
			for _, o := range outs {
				names = append(names, o.name)
			}
		case isColumn:
			names = append(names, column.Name.Name.O)
		default:
			return nil, false
		}
	}
	return names, true
}

// A naturalJoin is a NATURAL JOIN in the text.
type naturalJoin struct {
	right   *ast.TableSource
	using   []string // the columns that both sides have for the client
	outer   bool
	rewrite bool // isotap's columns would be among those that are compared
}

// enterNatural visits a NATURAL JOIN in the order of the text, and takes note of it.
func (c *masker) enterNatural(n *ast.Join) {
	n.Left.Accept(c)
	j := naturalJoin{outer: n.Tp == ast.LeftJoin || n.Tp == ast.RightJoin}
	j.right, _ = n.Right.(*ast.TableSource)
	if c.exposes(n.Left) && c.exposes(n.Right) {
		left, ok := c.outputs(n.Left)
		right, known := c.outputs(n.Right)
		j.rewrite = ok && known
		j.using = common(left, right)
	}
	c.natural = append(c.natural, j)
	n.Right.Accept(c)
}

// exposes reports whether isotap's columns are among those of a part of a FROM clause.
func (c *masker) exposes(n ast.ResultSetNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		return c.exposes(n.Left) || n.Right != nil && c.exposes(n.Right)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return c.exposes(inner)
		}
		return c.relation(n).table != nil
	}
	return false
}

// naturalJoins makes the NATURAL JOINs of tables with isotap's columns joins that name their columns.
func (c *masker) naturalJoins() {
	st := c.pl.st
	var at []int
	for i := range st.Tokens {
		if st.is(i, "NATURAL") {
			at = append(at, i)
		}
	}
	if len(at) != len(c.natural) {
		return // NATURAL is somebody's name, or stands in a comment
	}
	for k, j := range c.natural {
		if j.rewrite && c.pl.checkSpelling(j.using...) == nil {
			c.naturalJoin(at[k], j)
		}
	}
}

func (c *masker) naturalJoin(at int, j naturalJoin) {
	st := c.pl.st
	i := at + 1
	for st.is(i, "INNER", "LEFT", "RIGHT", "OUTER") {
		i++
	}
	if !st.is(i, "JOIN") || j.right == nil {
		return
	}
	if base, ok := j.right.Source.(*ast.TableName); ok && c.behindName(i+1, base) < 0 || !ok && !st.mark(i+1, "(") {
		return
	}
	end := st.operandEnd(i + 1)
	if end < 0 {
		return
	}
	condition := " USING (" + quotedList(j.using) + ")"
	if len(j.using) == 0 {
		condition = ""
		if j.outer {
			condition = " ON 1"
		}
	}
	pos, gap := c.pl.after(end)
	c.edit(st.Tokens[at].Start, st.Tokens[at].End, "")
	c.edit(pos, pos, condition+gap)
}

// operandEnd returns the last token of the table that begins at token i of a join; -1 when it has
// hints, whose words also stand behind it.
func (st *statement) operandEnd(i int) int {
	depth := st.Tokens[i].Depth
	for j := i + 1; j < len(st.Tokens); j++ {
		t := st.Tokens[j]
		switch {
		case t.Depth > depth, t.Depth == depth && st.mark(j, ")") && j == st.group(i):
		case t.Depth < depth, st.mark(j, ","), st.mark(j, ";"), st.mark(j, ")"), st.is(j, behindTable...):
			return j - 1
		case st.is(j, "USE", "IGNORE", "FORCE"):
			return -1
		}
	}
	return len(st.Tokens) - 1
}

var behindTable = slices.Concat(
	[]string{"NATURAL", "LEFT", "RIGHT", "INNER", "CROSS", "JOIN", "STRAIGHT_JOIN", "ON", "USING"},
	[]string{"WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK", "INTO", "UNION", "EXCEPT",
		"INTERSECT", "SET"},
)
