package footprint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/robust"
)

// mysqlReader reads the MySQL family's grammar, by TiDB's parser.
type mysqlReader struct{}

func parseMySQL(text string) (tree ast.StmtNode, err error) {
	p := parser.New()
	p.SetMariaDB(true)
	p.EnableWindowFunc(true)
	p.SetStrictDoubleTypeCheck(false)
	err = guard.Call("TiDB's parser", func() error {
		tree, err = p.ParseOneStmt(text, "", "")
		return err
	})
	if failed, ok := errors.AsType[*guard.Panic](err); ok {
		return nil, fmt.Errorf("the grammar failed: %v", failed.Value)
	}
	return tree, err
}

func (mysqlReader) read(text string) (q *query, err error) {
	tree, returned, err := parseReturning(text)
	if err != nil {
		return nil, err
	}
	r := mysqlQuery{}
	if !guard.Whole(func() { q = r.whole(tree, returned) }) {
		return nil, errNotRead
	}
	return q, r.err
}

// placeholders collects where the placeholders stand.
type placeholders struct{ offsets []int }

func (p *placeholders) Enter(n ast.Node) (ast.Node, bool) {
	if m, ok := n.(*test_driver.ParamMarkerExpr); ok {
		p.offsets = append(p.offsets, m.Offset)
	}
	return n, false
}

func (p *placeholders) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// A mysqlQuery reads one statement.
type mysqlQuery struct {
	params placeholders
	err    error
}

// whole reads a statement with the SELECT that stands for its RETURNING; nil where it has none.
func (r *mysqlQuery) whole(tree ast.StmtNode, returned *ast.SelectStmt) *query {
	tree.Accept(&r.params)
	if returned != nil {
		returned.Accept(&r.params)
	}
	slices.Sort(r.params.offsets)
	q := r.read(tree)
	if returned != nil {
		r.fields(q, returned.Fields.Fields)
		q.returns, q.aggregates = true, false
	}
	return q
}

func (r *mysqlQuery) read(n ast.Node) *query {
	switch n := n.(type) {
	case *ast.SelectStmt:
		return r.selects(n)
	case *ast.SetOprStmt:
		q := r.read(n.SelectList)
		r.with(q, n.With)
		return q
	case *ast.SetOprSelectList:
		q := &query{}
		for _, s := range n.Selects {
			q.inner = append(q.inner, r.read(s))
		}
		r.with(q, n.With)
		return q
	case *ast.SubqueryExpr:
		return r.read(n.Query)
	case *ast.InsertStmt:
		return r.insert(n)
	case *ast.UpdateStmt:
		q := &query{verb: updates, sets: r.assignments(n.List), where: r.conditions(n.Where)}
		r.written(q, n.TableRefs, n.Order, n.With)
		return q
	case *ast.DeleteStmt:
		return r.deletes(n)
	}
	r.err = errNotRead
	return &query{}
}

// written adds what UPDATE and DELETE have in common. Of several tables, which are written is told by the assignments.
func (r *mysqlQuery) written(q *query, tables *ast.TableRefsClause, order *ast.OrderByClause, with *ast.WithClause) {
	r.with(q, with)
	r.source(q, tables.TableRefs, true)
	if len(q.from) == 1 && q.from[0].query == nil {
		q.target, q.from = &q.from[0], nil
	}
	r.order(q, order)
}

func (r *mysqlQuery) deletes(n *ast.DeleteStmt) *query {
	q := &query{verb: deletes, where: r.conditions(n.Where)}
	r.written(q, n.TableRefs, n.Order, n.With)
	if n.Tables != nil {
		for _, t := range n.Tables.Tables {
			q.targets = append(q.targets, source{schema: t.Schema.O, table: t.Name.O})
		}
	}
	return q
}

func (r *mysqlQuery) with(q *query, with *ast.WithClause) {
	if with == nil {
		return
	}
	for _, cte := range with.CTEs {
		q.with = append(q.with, named{cte.Name.O, r.read(cte.Query)})
	}
}

func (r *mysqlQuery) order(q *query, order *ast.OrderByClause) {
	if order == nil {
		return
	}
	for _, item := range order.Items {
		q.computed = append(q.computed, r.expr(item.Expr))
	}
}

func (r *mysqlQuery) selects(n *ast.SelectStmt) *query {
	q := &query{}
	r.with(q, n.With)
	for _, row := range n.Lists {
		q.outputs = append(q.outputs, r.exprs(row.Values)...)
	}
	if n.Fields != nil {
		r.fields(q, n.Fields.Fields)
	}
	if n.From != nil {
		r.source(q, n.From.TableRefs, true)
	}
	q.where = append(q.where, r.conditions(n.Where)...)
	if n.Having != nil {
		q.others = append(q.others, r.conditions(n.Having.Expr)...)
	}
	if n.GroupBy != nil {
		q.aggregates = false
		for _, item := range n.GroupBy.Items {
			q.computed = append(q.computed, r.expr(item.Expr))
		}
	}
	for i := range n.WindowSpecs {
		q.computed = append(q.computed, r.leaves(&n.WindowSpecs[i]))
	}
	r.order(q, n.OrderBy)
	q.limited = n.Limit != nil
	if l := n.LockInfo; l != nil && len(l.Tables) == 0 {
		switch l.LockType {
		case ast.SelectLockForUpdate, ast.SelectLockForUpdateNoWait, ast.SelectLockForUpdateWaitN:
			q.lock = robust.UpdateLock
		case ast.SelectLockForShare, ast.SelectLockForShareNoWait:
			q.lock = robust.ShareLock
		case ast.SelectLockForUpdateSkipLocked, ast.SelectLockForShareSkipLocked:
			q.skips = true
		}
	}
	return q
}

func (r *mysqlQuery) fields(q *query, fields []*ast.SelectField) {
	for _, f := range fields {
		if f.WildCard != nil {
			q.outputs = append(q.outputs, expr{kind: star, qualifier: f.WildCard.Table.O})
			continue
		}
		l := leaves{r: r}
		f.Expr.Accept(&l)
		q.aggregates = q.aggregates || l.aggregate
		q.outputs = append(q.outputs, r.expr(f.Expr))
	}
}

func (r *mysqlQuery) insert(n *ast.InsertStmt) *query {
	q := &query{verb: inserts}
	r.source(q, n.Table.TableRefs, true)
	q.target, q.from = &q.from[0], nil
	for _, c := range n.Columns {
		q.columns = append(q.columns, c.Name.O)
	}
	for _, row := range n.Lists {
		q.rows = append(q.rows, r.exprs(row))
	}
	if n.Select != nil {
		q.inner = append(q.inner, r.read(n.Select))
	}
	switch {
	case n.IsReplace:
		q.conflict.kind = replaces
	case len(n.OnDuplicate) > 0:
		q.conflict = conflict{kind: updatesInstead, sets: r.assignments(n.OnDuplicate)}
	case n.IgnoreErr:
		q.conflict.kind = passes
	}
	return q
}

// source reads a source. inner says that all rows of the result have a row of it.
func (r *mysqlQuery) source(q *query, n ast.ResultSetNode, inner bool) {
	switch n := n.(type) {
	case *ast.Join:
		plain := n.Right == nil || n.Tp == ast.CrossJoin
		r.source(q, n.Left, inner && plain)
		if n.Right == nil {
			return
		}
		r.source(q, n.Right, inner && plain)
		var on []expr
		if n.On != nil {
			on = r.conditions(n.On.Expr)
		}
		for _, c := range n.Using {
			on = append(on, expr{kind: column, name: c.Name.O})
		}
		if n.NaturalJoin {
			on = append(on, expr{kind: star})
		}
		if inner && plain {
			q.where = append(q.where, on...)
		} else {
			q.others = append(q.others, on...)
		}
	case *ast.TableSource:
		if t, ok := n.Source.(*ast.TableName); ok {
			q.from = append(q.from, source{schema: t.Schema.O, table: t.Name.O, alias: n.AsName.O})
			return
		}
		q.from = append(q.from, source{query: r.read(n.Source), alias: n.AsName.O})
	default:
		r.err = errNotRead
	}
}

// conditions cuts a condition at its ANDs.
func (r *mysqlQuery) conditions(n ast.ExprNode) []expr {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.ParenthesesExpr:
		return r.conditions(n.Expr)
	case *ast.BetweenExpr:
		if !n.Not {
			return between(r.expr(n.Expr), r.expr(n.Left), r.expr(n.Right))
		}
	case *ast.BinaryOperationExpr:
		if n.Op == opcode.LogicAnd {
			return append(r.conditions(n.L), r.conditions(n.R)...)
		}
		left, isRow := n.L.(*ast.RowExpr)
		right, areRows := n.R.(*ast.RowExpr)
		if n.Op == opcode.EQ && isRow && areRows && len(left.Values) == len(right.Values) {
			var all []expr
			for i := range left.Values {
				all = append(all, expr{kind: equal, args: []expr{r.expr(left.Values[i]), r.expr(right.Values[i])}})
			}
			return all
		}
	}
	return []expr{r.expr(n)}
}

func (r *mysqlQuery) assignments(list []*ast.Assignment) []assignment {
	all := make([]assignment, len(list))
	for i, a := range list {
		all[i] = assignment{a.Column.Table.O, a.Column.Name.O, r.expr(a.Expr)}
	}
	return all
}

func (r *mysqlQuery) exprs(list []ast.ExprNode) []expr {
	all := make([]expr, len(list))
	for i, n := range list {
		all[i] = r.expr(n)
	}
	return all
}

// arithmetic are the operations whose value hangs on their operands alone, and is no condition.
var arithmetic = map[opcode.Op]string{opcode.Plus: "+", opcode.Minus: "-", opcode.Mul: "*", opcode.Div: "/",
	opcode.Mod: "%", opcode.IntDiv: "div"}

// comparisons are those that are told on.
var comparisons = map[opcode.Op]string{opcode.LT: "<", opcode.LE: "<=", opcode.GT: ">", opcode.GE: ">=",
	opcode.NE: "<>"}

func (r *mysqlQuery) expr(n ast.ExprNode) expr {
	switch n := n.(type) {
	case nil:
		return expr{kind: value}
	case *ast.ParenthesesExpr:
		return r.expr(n.Expr)
	case *ast.ColumnNameExpr:
		return expr{kind: column, qualifier: n.Name.Table.O, name: n.Name.Name.O}
	case *test_driver.ParamMarkerExpr:
		i, _ := slices.BinarySearch(r.params.offsets, n.Offset)
		return expr{kind: value, symbol: "$" + strconv.Itoa(i+1)}
	case *test_driver.ValueExpr:
		return literal(n)
	case *ast.BinaryOperationExpr:
		args := []expr{r.expr(n.L), r.expr(n.R)}
		switch {
		case n.Op == opcode.EQ:
			return expr{kind: equal, args: args}
		case arithmetic[n.Op] != "":
			return fold(arithmetic[n.Op], args)
		}
		return expr{kind: computed, op: comparisons[n.Op], args: args}
	case *ast.UnaryOperationExpr:
		return fold("", []expr{r.expr(n.V)})
	case *ast.PatternInExpr:
		if !n.Not && n.Sel == nil {
			return expr{kind: computed, op: "in", args: append([]expr{r.expr(n.Expr)}, r.exprs(n.List)...)}
		}
	case *ast.PatternLikeOrIlikeExpr:
		if !n.Not {
			return expr{kind: computed, op: "like", args: []expr{r.expr(n.Expr), r.expr(n.Pattern)}}
		}
	case *ast.IsNullExpr:
		if !n.Not {
			return expr{kind: computed, op: "null", args: []expr{r.expr(n.Expr)}}
		}
	}
	return r.leaves(n)
}

func literal(n *test_driver.ValueExpr) expr {
	e := expr{kind: value}
	switch v := n.GetValue().(type) {
	case nil:
	case string:
		e.symbol = "=" + v
	case int64, uint64:
		e.symbol, e.numeric = fmt.Sprint("=", v), true
	default:
		e.numeric = true
	}
	return e
}

// leaves returns an expression of any other kind: what matters are the columns and queries in it.
func (r *mysqlQuery) leaves(n ast.Node) expr {
	l := leaves{r: r}
	n.Accept(&l)
	return expr{kind: computed, args: l.args}
}

type leaves struct {
	r         *mysqlQuery
	args      []expr
	aggregate bool
}

func (l *leaves) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.ColumnNameExpr:
		l.args = append(l.args, l.r.expr(n))
	case *ast.SubqueryExpr:
		l.args = append(l.args, expr{kind: subquery, query: l.r.read(n.Query)})
		return n, true
	case *ast.ValuesExpr:
		return n, true // VALUES(c): what was to be inserted
	case *ast.AggregateFuncExpr:
		l.aggregate = true
	}
	return n, false
}

func (l *leaves) Leave(n ast.Node) (ast.Node, bool) { return n, true }
