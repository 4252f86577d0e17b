package footprint

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/robust"
)

// postgresReader reads PostgreSQL's grammar, by the port of it that package rewrite/postgres checks its work with (ADR
// 20).
type postgresReader struct{}

func parsePostgres(text string) (ast.Stmt, error) {
	trees, err := pgtree.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(trees) != 1 {
		return nil, errors.New("not one statement")
	}
	return trees[0], nil
}

func (postgresReader) read(text string) (q *query, err error) {
	tree, err := parsePostgres(text)
	if err != nil {
		return nil, err
	}
	r := postgresQuery{}
	if !guard.Whole(func() { q = r.read(tree) }) {
		return nil, errNotRead
	}
	return q, r.err
}

// A postgresQuery reads one statement.
type postgresQuery struct{ err error }

func (r *postgresQuery) read(n ast.Node) *query {
	switch n := n.(type) {
	case *ast.SelectStmt:
		return r.selects(n)
	case *ast.InsertStmt:
		return r.insert(n)
	case *ast.UpdateStmt:
		q := &query{verb: updates, target: rangeVar(n.Relation), sets: r.assignments(n.TargetList),
			where: r.conditions(n.WhereClause)}
		r.from(q, n.FromClause)
		return r.finish(q, n.ReturningList, n.WithClause)
	case *ast.DeleteStmt:
		q := &query{verb: deletes, target: rangeVar(n.Relation), where: r.conditions(n.WhereClause)}
		r.from(q, n.UsingClause)
		return r.finish(q, n.ReturningList, n.WithClause)
	case *ast.MergeStmt:
		return r.merges(n)
	}
	r.err = errNotRead
	return &query{}
}

func (r *postgresQuery) merges(n *ast.MergeStmt) *query {
	q := &query{verb: merges, target: rangeVar(n.Relation), where: r.conditions(n.JoinCondition)}
	r.source(q, n.SourceRelation, true)
	for _, w := range items(n.MergeWhenClauses) {
		when := w.(*ast.MergeWhenClause)
		q.others = append(q.others, r.conditions(when.Condition)...)
		switch when.CommandType {
		case ast.CMD_UPDATE:
			for _, t := range when.TargetList {
				q.sets = append(q.sets, assignment{column: t.Name, value: r.expr(t.Val)})
			}
		case ast.CMD_DELETE:
			q.removes = true
		case ast.CMD_INSERT:
			q.rows = append(q.rows, r.exprs(when.Values))
		}
	}
	return r.finish(q, n.ReturningList, n.WithClause)
}

func rangeVar(n *ast.RangeVar) *source {
	s := &source{schema: n.SchemaName, table: n.RelName}
	if n.Alias != nil {
		s.alias = n.Alias.AliasName
	}
	return s
}

// finish adds what writes have in common.
func (r *postgresQuery) finish(q *query, returning *ast.NodeList, with *ast.WithClause) *query {
	q.returns = true
	q.outputs = r.targets(returning)
	r.with(q, with)
	return q
}

func (r *postgresQuery) with(q *query, with *ast.WithClause) {
	if with == nil {
		return
	}
	for _, n := range items(with.Ctes) {
		cte := n.(*ast.CommonTableExpr)
		q.with = append(q.with, named{cte.Ctename, r.read(cte.Ctequery)})
	}
}

func (r *postgresQuery) selects(n *ast.SelectStmt) *query {
	q := &query{}
	r.with(q, n.WithClause)
	if n.Op != ast.SETOP_NONE {
		q.inner = []*query{r.selects(n.Larg), r.selects(n.Rarg)}
		return q
	}
	q.outputs = r.targets(n.TargetList)
	for _, list := range items(n.ValuesLists) {
		if l, ok := list.(*ast.NodeList); ok {
			q.outputs = append(q.outputs, r.exprs(l)...)
		}
	}
	q.aggregates = slices.ContainsFunc(items(n.TargetList), aggregatesIn) && len(items(n.GroupClause)) == 0
	r.from(q, n.FromClause)
	q.where = append(q.where, r.conditions(n.WhereClause)...)
	q.others = append(q.others, r.conditions(n.HavingClause)...)
	for _, l := range []*ast.NodeList{n.SortClause, n.GroupClause, n.DistinctClause, n.WindowClause} {
		q.computed = append(q.computed, r.exprs(l)...)
	}
	q.limited = !pgtree.Missing(n.LimitCount) || !pgtree.Missing(n.LimitOffset)
	for _, l := range items(n.LockingClause) {
		if c, ok := l.(*ast.LockingClause); ok {
			q.skips = q.skips || c.WaitPolicy == ast.LockWaitSkip
			q.lock = max(q.lock, locks(c))
		}
	}
	return q
}

// locks returns what a locking clause takes of all rows; FOR … OF, which names tables, counts as none.
func locks(c *ast.LockingClause) robust.Lock {
	switch {
	case len(items(c.LockedRels)) > 0:
	case c.Strength == ast.LCS_FORUPDATE, c.Strength == ast.LCS_FORNOKEYUPDATE:
		return robust.UpdateLock
	case c.Strength == ast.LCS_FORSHARE:
		return robust.ShareLock
	}
	return robust.NoLock
}

func (r *postgresQuery) insert(n *ast.InsertStmt) *query {
	q := &query{verb: inserts, target: rangeVar(n.Relation)}
	for _, c := range items(n.Cols) {
		q.columns = append(q.columns, c.(*ast.ResTarget).Name)
	}
	if s, ok := n.SelectStmt.(*ast.SelectStmt); ok && s != nil {
		if lists := items(s.ValuesLists); len(lists) > 0 && s.Op == ast.SETOP_NONE {
			for _, l := range lists {
				q.rows = append(q.rows, r.exprs(l.(*ast.NodeList)))
			}
			r.with(q, s.WithClause)
		} else {
			q.inner = append(q.inner, r.selects(s))
		}
	}
	if c := n.OnConflictClause; c != nil {
		q.conflict = conflict{kind: passes, where: r.conditions(c.WhereClause)}
		if c.Action == ast.ONCONFLICT_UPDATE {
			q.conflict.kind, q.conflict.sets = updatesInstead, r.assignments(c.TargetList)
		}
		if c.Infer != nil {
			for _, e := range items(c.Infer.IndexElems) {
				q.conflict.columns = append(q.conflict.columns, e.(*ast.IndexElem).Name)
			}
		}
	}
	return r.finish(q, n.ReturningList, n.WithClause)
}

// from reads a list of sources, with their conditions.
func (r *postgresQuery) from(q *query, list *ast.NodeList) {
	for _, n := range items(list) {
		r.source(q, n, true)
	}
}

// source reads a source. inner says that all rows of the result have a row of it.
func (r *postgresQuery) source(q *query, n ast.Node, inner bool) {
	switch n := n.(type) {
	case *ast.RangeVar:
		q.from = append(q.from, *rangeVar(n))
	case *ast.RangeSubselect:
		s := source{query: r.read(n.Subquery)}
		if n.Alias != nil {
			s.alias = n.Alias.AliasName
		}
		q.from = append(q.from, s)
	case *ast.JoinExpr:
		plain := n.Jointype == ast.JOIN_INNER
		r.source(q, n.Larg, inner && plain)
		r.source(q, n.Rarg, inner && plain)
		on := r.conditions(n.Quals)
		for _, name := range texts(n.UsingClause) {
			on = append(on, expr{kind: column, name: name})
		}
		if n.IsNatural {
			on = append(on, expr{kind: star})
		}
		if inner && plain {
			q.where = append(q.where, on...)
		} else {
			q.others = append(q.others, on...)
		}
	case *ast.ParenExpr:
		r.source(q, n.Expr, inner)
	case *ast.RangeFunction:
		q.computed = append(q.computed, r.expr(n))
		s := source{query: &query{}}
		if n.Alias != nil {
			s.alias = n.Alias.AliasName
		}
		q.from = append(q.from, s)
	default:
		r.err = errNotRead
	}
}

// conditions cuts a condition at its ANDs.
func (r *postgresQuery) conditions(n ast.Node) []expr {
	if pgtree.Missing(n) {
		return nil
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return r.conditions(n.Expr)
	case *ast.BoolExpr:
		if n.Boolop == ast.AND_EXPR {
			var all []expr
			for _, a := range items(n.Args) {
				all = append(all, r.conditions(a)...)
			}
			return all
		}
	case *ast.A_Expr:
		if list, ok := n.Rexpr.(*ast.NodeList); ok && n.Kind == ast.AEXPR_BETWEEN && len(list.Items) == 2 {
			return between(r.expr(n.Lexpr), r.expr(list.Items[0]), r.expr(list.Items[1]))
		}
	}
	e := r.expr(n)
	if e.kind == equal && len(e.args) == 2 && e.args[0].kind == computed && e.args[1].kind == computed &&
		len(e.args[0].args) == len(e.args[1].args) && isRow(n) {
		var all []expr // (a, b) = (x, y)
		for i := range e.args[0].args {
			all = append(all, expr{kind: equal, args: []expr{e.args[0].args[i], e.args[1].args[i]}})
		}
		return all
	}
	return []expr{e}
}

func isRow(n ast.Node) bool {
	a, ok := n.(*ast.A_Expr)
	if !ok {
		return false
	}
	_, left := unparenthesised(a.Lexpr).(*ast.RowExpr)
	_, right := unparenthesised(a.Rexpr).(*ast.RowExpr)
	return left && right
}

func unparenthesised(n ast.Node) ast.Node {
	for {
		p, ok := n.(*ast.ParenExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

// targets reads a select list or RETURNING.
func (r *postgresQuery) targets(list *ast.NodeList) []expr {
	var all []expr
	for _, n := range items(list) {
		if t, ok := n.(*ast.ResTarget); ok {
			n = t.Val
		}
		all = append(all, r.expr(n))
	}
	return all
}

func (r *postgresQuery) assignments(list *ast.NodeList) []assignment {
	var all []assignment
	for _, n := range items(list) {
		t := n.(*ast.ResTarget)
		all = append(all, assignment{column: t.Name, value: r.expr(t.Val)})
	}
	return all
}

func (r *postgresQuery) exprs(list *ast.NodeList) []expr {
	all := make([]expr, 0, len(items(list)))
	for _, n := range items(list) {
		all = append(all, r.expr(n))
	}
	return all
}

func (r *postgresQuery) expr(n ast.Node) expr {
	if pgtree.Missing(n) {
		return expr{kind: value}
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return r.expr(n.Expr)
	case *ast.ResTarget:
		return r.expr(n.Val)
	case *ast.ColumnRef:
		return columnRef(n)
	case *ast.ParamRef:
		return expr{kind: value, symbol: "$" + strconv.Itoa(n.Number)}
	case *ast.A_Const:
		return constant(n)
	case *ast.TypeCast:
		return r.expr(n.Arg)
	case *ast.SubLink:
		return expr{kind: computed, args: []expr{r.expr(n.Testexpr), {kind: subquery, query: r.read(n.Subselect)}}}
	case *ast.RowExpr:
		return expr{kind: computed, args: r.exprs(n.Args)}
	case *ast.A_Expr:
		return r.operation(n)
	case *ast.NullTest:
		if n.Nulltesttype == ast.IS_NULL {
			return expr{kind: computed, op: "null", args: []expr{r.expr(n.Arg)}}
		}
	}
	return r.computed(n)
}

// operators are those of arithmetic and texts, whose value hangs on their operands alone; ordering are comparisons that
// are told on.
var (
	operators = []string{"+", "-", "*", "/", "%", "||"}
	ordering  = []string{"<", "<=", ">", ">=", "<>"}
)

func (r *postgresQuery) operation(n *ast.A_Expr) expr {
	op := strings.Join(texts(n.Name), ".")
	switch {
	case n.Kind == ast.AEXPR_OP && op == "=" && n.Lexpr != nil:
		return expr{kind: equal, args: []expr{r.expr(n.Lexpr), r.expr(n.Rexpr)}}
	case n.Kind == ast.AEXPR_OP && slices.Contains(operators, op):
		if pgtree.Missing(n.Lexpr) {
			return fold("", []expr{r.expr(n.Rexpr)})
		}
		return fold(op, []expr{r.expr(n.Lexpr), r.expr(n.Rexpr)})
	case n.Kind == ast.AEXPR_OP && slices.Contains(ordering, op):
		return expr{kind: computed, op: op, args: []expr{r.expr(n.Lexpr), r.expr(n.Rexpr)}}
	case n.Kind == ast.AEXPR_OP_ANY && op == "=":
		return expr{kind: computed, op: "any", args: []expr{r.expr(n.Lexpr), r.expr(n.Rexpr)}}
	case n.Kind == ast.AEXPR_LIKE && op == "~~":
		return expr{kind: computed, op: "like", args: []expr{r.expr(n.Lexpr), r.expr(n.Rexpr)}}
	case n.Kind == ast.AEXPR_IN && op == "=":
		if list, ok := n.Rexpr.(*ast.NodeList); ok {
			return expr{kind: computed, op: "in", args: append([]expr{r.expr(n.Lexpr)}, r.exprs(list)...)}
		}
	}
	return r.computed(n)
}

// computed returns an expression of any other kind: what matters are the columns and queries in it.
func (r *postgresQuery) computed(root ast.Node) expr {
	e := expr{kind: computed}
	pgtree.Each(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ColumnRef:
			e.args = append(e.args, columnRef(n))
		case *ast.SubLink:
			e.args = append(e.args, r.expr(n))
			return false
		case *ast.SelectStmt:
			e.args = append(e.args, expr{kind: subquery, query: r.read(n)})
			return false
		}
		return true
	}, root)
	return e
}

func columnRef(n *ast.ColumnRef) expr {
	e := expr{kind: column}
	fields := items(n.Fields)
	if _, ok := fields[len(fields)-1].(*ast.A_Star); ok {
		e.kind = star
		fields = fields[:len(fields)-1]
	} else {
		e.name = fields[len(fields)-1].(*ast.String).SVal
		fields = fields[:len(fields)-1]
	}
	if len(fields) > 0 {
		e.qualifier = fields[len(fields)-1].(*ast.String).SVal
		e.old = e.qualifier == "old"
	}
	return e
}

func constant(n *ast.A_Const) expr {
	e := expr{kind: value}
	if n.Isnull || n.Val == nil {
		return e // NULL equals nothing
	}
	switch v := n.Val.(type) {
	case *ast.Integer:
		e.symbol, e.numeric = "="+strconv.Itoa(v.IVal), true
	case *ast.Float:
		e.numeric = true
	case *ast.String:
		e.symbol = "=" + v.SVal
	}
	return e
}

// aggregateNames are the aggregates that make one row of none.
var aggregateNames = []string{"count", "sum", "min", "max", "avg", "array_agg", "string_agg", "json_agg", "jsonb_agg",
	"bool_and", "bool_or", "every",
	"bit_and", "bit_or", "stddev", "variance"}

// aggregatesIn reports whether a select list's item aggregates.
func aggregatesIn(n ast.Node) bool {
	found := false
	pgtree.Each(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			return false
		case *ast.FuncCall:
			names := texts(n.Funcname)
			found = found || n.Over == nil && len(names) > 0 && slices.Contains(aggregateNames, names[len(names)-1])
		}
		return true
	}, n)
	return found
}
