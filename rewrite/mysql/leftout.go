package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// A LEFT JOIN adds columns to rows, and none to their number, where its condition finds one row at most. If nothing
// asks for these columns MariaDB leaves the join out (its opt_table_elimination.cc); ORMs count so: SELECT COUNT(*) FROM
// a LEFT JOIN b ON b.id = a.b_id. A column of isotap's would have the server join, and tell rows that nobody read. So
// what is surely left out shows nothing. Where that is not certain nothing is shown either, and the statement is
// inexact. MySQL has no such thing.

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
	if pl.session.Dialect != MariaDB || pl.session.JoinsAll {
		return nil
	}
	o := &outerJoins{pl: pl, n: n, srcs: srcs, merged: make(map[string]bool)}
	if !o.materialized() {
		o.shown = pl.nesting.shown
	}
	for _, s := range srcs {
		o.find(s)
	}
	o.merge(n.From.TableRefs)
	o.walk(n.From.TableRefs)
	return o
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
			o.walk(n.Left)
			o.optional(n, n.Right)
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
	one := maybeAsked // whether one row is found at most
	if conditions, ok := o.conditionsOf(j, side); ok {
		one = o.findsOne(of, conditions)
	}
	switch {
	case one == notAsked:
		o.walk(side)
	case asked == notAsked && one == surelyAsked && len(of) == 1:
		of[0].leftOut = true
		o.pl.chosen = slices.DeleteFunc(o.pl.chosen, func(c choice) bool { return c.source.node == of[0].node })
	default:
		for _, s := range of {
			s.leftOut, s.reason = true, history.ReasonPlan
		}
	}
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
