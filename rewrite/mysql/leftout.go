package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// A LEFT JOIN adds columns to rows, and none to their number, where its condition finds one row at most. If nothing
// asks for these columns MariaDB leaves the join out (its opt_table_elimination.cc). ORMs count rows by such joins, as
// SELECT COUNT(*) FROM a LEFT JOIN b ON b.id = a.b_id. A column of isotap's would have the server join, and tell rows
// that nobody read. So what is surely left out shows nothing. Where that is not certain nothing is shown either, and
// the statement is inexact. TiDB does so, too (its rule_join_elimination.go), and of any LEFT JOIN where only the rows
// count that are there, and not how often. MySQL has no such thing.

// An asksFrom says whether something asks for a column of a table.
type asksFrom uint8

const (
	notAsked asksFrom = iota
	maybeAsked
	surelyAsked
)

// An outerJoins finds out what MariaDB leaves out of a query's FROM clause.
type outerJoins struct {
	pl     *planner
	n      *ast.SelectStmt
	srcs   sources
	shown  shownColumns
	merged map[string]bool // columns that USING or NATURAL make one of both sides
	right  bool            // it has RIGHT JOINs
	// onlyOnce says that TiDB may take a row that comes several times for one.
	onlyOnce bool
}

// A shownColumns tells whether what is around a query asks for its column of that name; nil: for all. Some have a name
// of the server's choice: [unnamed].
type shownColumns func(name string) asksFrom

// unnamed is no column's name.
const unnamed = "\x00"

func (c shownColumns) of(name string) asksFrom {
	switch {
	case c == nil:
		return surelyAsked
	case name == "":
		return max(maybeAsked, c(unnamed))
	}
	return c(name)
}

// enterJoins finds out what the server leaves out of a query's FROM clause, and keeps what is known of that until the
// function that it gives is called.
func (pl *planner) enterJoins(n *ast.SelectStmt, srcs sources) (leave func()) {
	shown, joins := pl.nesting.shown, pl.nesting.joins
	pl.nesting.joins = pl.leaveOut(n, srcs)
	return func() { pl.nesting.shown, pl.nesting.joins = shown, joins }
}

// leaveOut takes note of the sources that the server leaves out of a query, or may.
func (pl *planner) leaveOut(n *ast.SelectStmt, srcs sources) *outerJoins {
	if pl.session.Dialect == MySQL || pl.session.JoinsAll ||
		innerJoins(n.From.TableRefs) && onlyNames(srcs) && pl.nesting.with == nil {
		return nil
	}
	o := &outerJoins{pl: pl, n: n, srcs: srcs, merged: make(map[string]bool)}
	switch shown := pl.nesting.shown; {
	case !o.materialized():
		o.shown = shown
	case o.tidb() && shown != nil: // it may compute them nevertheless
		o.shown = func(name string) asksFrom { return max(maybeAsked, shown(name)) }
	}
	o.onlyOnce = o.tidb() && (pl.removed || pl.nesting.joins != nil && pl.nesting.joins.onlyOnce || o.countsOnce())
	for _, s := range srcs {
		o.find(s)
	}
	o.merge(n.From.TableRefs)
	o.walk(n.From.TableRefs)
	return o
}

// onlyNames reports whether there are no queries among the sources.
func onlyNames(srcs sources) bool {
	return !slices.ContainsFunc(srcs, func(s *source) bool {
		_, ok := s.node.Source.(*ast.TableName)
		return !ok
	})
}

// find gives a source its name, and its table, if it has one.
func (o *outerJoins) find(s *source) {
	s.name = s.node.AsName.O
	base, ok := s.node.Source.(*ast.TableName)
	if !ok {
		return
	}
	if s.name == "" {
		s.name = base.Name.O
	}
	if t := o.pl.baseTable(base); t != nil {
		s.table = t
	}
}

// materialized reports whether the query is computed with all its columns, whatever is asked of it.
func (o *outerJoins) materialized() bool {
	use := o.pl.inspectSelect(o.n)
	return o.n.Limit != nil || o.n.GroupBy != nil || o.n.Having != nil || o.n.Distinct || use.aggregate || use.window
}

func (o *outerJoins) tidb() bool { return o.pl.session.Dialect == TiDB }

// countsOnce reports whether the query may have the same result where rows come several times: it removes duplicates,
// or groups and surely asks for no aggregate that counts them.
func (o *outerJoins) countsOnce() bool {
	used := aggregatesOf(o.n)
	groups := o.n.GroupBy != nil || used.sums || used.extremes
	return o.n.Distinct || groups && (!used.sums || used.distinct || o.shown != nil)
}

// countsDistinct reports whether the query gives the number of a column's values on TiDB, and nothing else.
func (o *outerJoins) countsDistinct() bool {
	fields := o.n.Fields.Fields
	if !o.tidb() || len(fields) != 1 || o.n.GroupBy != nil || o.n.Having != nil {
		return false
	}
	of, ok := fields[0].Expr.(*ast.AggregateFuncExpr)
	if !ok || !of.Distinct || !strings.EqualFold(of.F, ast.AggFuncCount) || len(of.Args) != 1 {
		return false
	}
	_, column := bareExpr(of.Args[0]).(*ast.ColumnNameExpr)
	return column
}

// merge takes note of the columns that joins merge.
func (o *outerJoins) merge(n ast.ResultSetNode) {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return
		}
		o.right = o.right || n.Tp == ast.RightJoin
		for _, c := range n.Using {
			o.merged[c.Name.L] = true
		}
		if n.NaturalJoin {
			o.mergeNaturally()
		}
		o.merge(n.Left)
		o.merge(n.Right)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			o.merge(inner)
		}
	}
}

// mergeNaturally counts each name that several tables have as merged.
func (o *outerJoins) mergeNaturally() {
	count := make(map[string]int)
	for _, s := range o.srcs {
		if s.table == nil {
			continue
		}
		for _, c := range s.table.Columns {
			name := strings.ToLower(c.Name)
			if count[name]++; count[name] > 1 {
				o.merged[name] = true
			}
		}
	}
}

// walk looks at the optional sides of outer joins, those that stand around others first.
func (o *outerJoins) walk(n ast.ResultSetNode) {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return
		}
		switch {
		case n.Tp == ast.LeftJoin && n.Right != nil:
			o.optional(n, n.Right)
			o.walk(n.Left)
		case n.Tp == ast.RightJoin && n.Right != nil:
			o.optional(n, n.Left)
			o.walk(n.Right)
		default:
			o.walk(n.Left)
			o.walk(n.Right)
		}
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			o.walk(inner)
		}
	}
}

// optional decides whether the optional side of a join is left out.
func (o *outerJoins) optional(j *ast.Join, side ast.ResultSetNode) {
	of := o.within(side)
	asked := o.askedOutside(j, side, of)
	if asked == surelyAsked {
		o.walk(side)
		return
	}
	one := maybeAsked // that it adds no row
	if conditions, ok := o.conditionsOf(j, side); ok {
		one = o.findsOne(of, conditions)
	}
	if o.countsDistinct() {
		one = surelyAsked // or several, which count once
	}
	switch {
	case one == notAsked && !o.onlyOnce:
		o.walk(side)
	case asked == notAsked && one == surelyAsked && len(of) == 1 && !o.mayJoin(j):
		of[0].leftOut = true
		o.pl.chosen = slices.DeleteFunc(o.pl.chosen, func(c choice) bool { return c.source.node == of[0].node })
	default:
		for _, s := range of {
			s.leftOut, s.reason = true, history.ReasonPlan
		}
	}
}

// mayJoin reports whether TiDB may do a join though nothing asks for what it adds: in a query in FROM, beside another
// one that it does, before ORDER BY or LIMIT, and where it locks.
func (o *outerJoins) mayJoin(j *ast.Join) bool {
	if !o.tidb() {
		return false
	}
	top := o.n.From.TableRefs
	for top != j {
		inner, ok := top.Left.(*ast.Join)
		if !ok || top.Tp != ast.LeftJoin || top.ExplicitParens || !o.within(top.Right).surelyLeftOut() {
			return true
		}
		top = inner
	}
	// It finds MIN and MAX by ordering rows.
	ordered := o.n.OrderBy != nil || o.n.Limit != nil || aggregatesOf(o.n).extremes
	return top.ExplicitParens || o.n != o.pl.alone || o.n.LockInfo != nil || ordered
}

// surelyLeftOut reports whether the server surely reads none of the sources.
func (ss sources) surelyLeftOut() bool {
	return !slices.ContainsFunc(ss, func(s *source) bool { return !s.leftOut || !s.reason.IsZero() })
}

// within returns the sources of a side of a join.
func (o *outerJoins) within(side ast.ResultSetNode) (of sources) {
	for _, own := range flatten(&ast.Join{Left: side}) {
		at := slices.IndexFunc(o.srcs, func(s *source) bool {
			return s.node == own.node || s.node.Source == own.node.Source
		})
		if at >= 0 {
			of = append(of, o.srcs[at])
		}
	}
	return of
}

// askedOutside tells whether something asks for columns of some sources but the condition of their join and those
// within them.
func (o *outerJoins) askedOutside(j *ast.Join, side ast.ResultSetNode, of sources) asksFrom {
	return (&asksOf{o: o, of: of, join: j, side: side}).anywhere()
}

// shownOf tells for which columns of a query in the FROM clause something asks.
func (o *outerJoins) shownOf(s *source) shownColumns {
	if o == nil {
		return nil
	}
	return func(name string) asksFrom { return (&asksOf{o: o, of: sources{s}, only: name}).anywhere() }
}

// someColumns is what is asked of a query that several others may name.
func (o *outerJoins) someColumns() shownColumns {
	if o == nil {
		return nil
	}
	return func(string) asksFrom { return maybeAsked }
}

// namedOnce reports whether one FROM clause of the statement has a common table expression.
func (pl *planner) namedOnce(def *ast.CommonTableExpression) bool {
	count := 0
	for _, tree := range pl.trees {
		tree.Accept(lookInto(func(n ast.Node) (skip bool) {
			if name, ok := n.(*ast.TableName); ok && name.Schema.L == "" && name.Name.L == def.Name.L {
				count++
			}
			return false
		}))
	}
	return count == 1
}

// orders reports whether the server orders the query's rows.
func (o *outerJoins) orders() bool {
	return o.n.Limit != nil || o.n == o.pl.alone && (o.n.GroupBy != nil || !o.pl.inspectSelect(o.n).aggregate)
}

// mayHave reports whether some source may have a column of that name.
func (ss sources) mayHave(name string) bool {
	return slices.ContainsFunc(ss, func(s *source) bool { return s.table == nil || s.table.ColumnInAnyCase(name) != nil })
}
