package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A column that a query in FROM computes has a price: the server may join that query in another way, and begin with
// another side of the join. Where the first side has no row it does not come to the other one, and does not meet the
// errors that are in there. So where something may fail for a row a query gets no such column, unless nothing is
// joined. What the server makes one with the statement costs nothing there.

// priced returns the reason why a query in FROM must not show arrays that it computes: the statement might fail where
// it does not, or the other way round. One that gathers the rows of a group has the greatest price.
func (r *reading) priced(shows []*sight) history.Reason {
	least := unasked // of the failures that count
	for _, s := range shows {
		switch {
		case !s.source.Array || s.unbounded, s.single && !s.lookup:
		case s.within == nil && !s.lookup:
			least = overflow
		case least == unasked:
			least = ordinary
		}
	}
	if least != unasked && r.failure() >= least && r.joinsTables() {
		return history.ReasonPlan
	}
	return history.Reason{}
}

// hideCovered takes the sights off the tables of a block for which an index alone might answer. It chooses rows by one
// condition, where the table's own are asked all conditions in the order of the text.
func (r *reading) hideCovered(b *block) error {
	computed, _, err := r.computed(b)
	_, several := bare(b.n.WhereClause).(*ast.BoolExpr)
	if err != nil || r.failure() != ordinary || b.n.LockingClause != nil || !several && !r.joinsTables() {
		return err
	}
	for _, rel := range b.rels {
		if rel.base != nil && len(rel.sights) > 0 && covered(rel.base, computed) {
			r.markUnseen(history.ReasonPlan)
			rel.sights = nil
		}
	}
	return nil
}

// joinsTables reports whether the server joins anything for the statement: tables, or what a condition's query reads.
func (r *reading) joinsTables() bool {
	joins := false
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			joins = joins || len(nodes(n.FromClause)) > 1
		case *ast.JoinExpr, *ast.SubLink, *ast.UpdateStmt, *ast.DeleteStmt, *ast.MergeStmt:
			joins = true
		}
		return !joins
	}, r.stmt)
	return joins || !whole
}

// isLast reports whether a LATERAL query in the statement's FROM clause makes one row of each row of the only other
// item: that one comes first, whatever the price of a column is.
func (w *walker) isLast(n *ast.RangeSubselect, b *block) bool {
	from := nodes(w.around.FromClause)
	if len(from) == 1 {
		join, ok := bare(from[0]).(*ast.JoinExpr)
		if !ok {
			return false
		}
		from = []ast.Node{join.Larg, join.Rarg}
	}
	_, join := bare(from[0]).(*ast.JoinExpr)
	return n.Lateral && w.inStatement() && len(from) == 2 && bare(from[1]) == ast.Node(n) && !join &&
		!hasSubquery(w.around.WhereClause) && b.grouped && b.n.GroupClause == nil && !b.unique &&
		len(w.rels) == 2 && hangsOn(b.n, w.rels[:1])
}

// A failure is how what a statement evaluates may fail for a row that the server comes to with one plan, and not with
// another.
type failure uint8

const (
	unasked failure = iota
	never
	overflow // for values at the end of their types
	ordinary // for others: a zero, a text that is no number
)

// failure returns how the statement may fail so: anywhere but in what is computed of the rows of the result, whatever
// the plan is.
func (r *reading) failure() failure {
	if r.fails == unasked {
		r.fails = never
		if !pgtree.Missing(r.stmt) {
			r.fails = r.failureOf(r.beforeResult())
		}
	}
	return r.fails
}

// failureOf returns how parts of the statement may fail.
func (r *reading) failureOf(parts []ast.Node) failure {
	own, worst := *r.planner, never
	tables := r.allTables()
	own.sums = func(n *ast.FuncCall) bool { return gathers(n) || own.sumsWhole(n, tables) }
	own.patterns = func(*ast.A_Expr) bool { return true } // one pattern for all rows
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			if n.SubLinkType == ast.EXPR_SUBLINK && !(&link{SubLink: n}).harmless() {
				worst = max(worst, overflow) // it may have two rows
			}
		case *ast.RangeVar:
			if t, _ := own.lookup(n); t != nil && t.View && t.NotAgain {
				worst = ordinary
			}
		case *ast.A_Expr, *ast.TypeCast, *ast.FuncCall:
			if isFixed(n) || spellsText(n) {
				return worst != ordinary
			}
			if fails, _ := own.failsItself(n); fails {
				worst = max(worst, severity(n))
			}
		}
		return worst != ordinary
	}, parts...)
	if !whole {
		return ordinary
	}
	return worst
}

// severity is how an operation or a call that may fail does.
func severity(n ast.Node) failure {
	switch n := n.(type) {
	case *ast.A_Expr:
		op := strings.Join(operatorOf(n), ".")
		if n.Kind == ast.AEXPR_OP && (slices.Contains([]string{"+", "-", "*"}, op) ||
			slices.Contains([]string{"/", "%"}, op) && isNumber(n.Rexpr)) {
			return overflow
		}
	case *ast.FuncCall:
		if len(nodes(n.Funcname)) == 1 && slices.Contains([]string{"abs", "sum", "avg"}, lastName(n.Funcname)) {
			return overflow
		}
	}
	return ordinary
}

// isNumber reports whether an expression is a whole number other than zero.
func isNumber(n ast.Node) bool {
	if c, ok := bare(n).(*ast.A_Const); ok {
		number, ok := c.Val.(*ast.Integer)
		return ok && number.IVal != 0
	}
	return false
}

// beforeResult returns the parts of the statement of which the plan decides for which rows they are evaluated.
func (r *reading) beforeResult() []ast.Node {
	switch n := r.stmt.(type) {
	case *ast.SelectStmt:
		if n.Op == ast.SETOP_NONE && n.LimitCount == nil && n.LimitOffset == nil {
			return []ast.Node{n.WithClause, n.FromClause, n.WhereClause}
		}
	case *ast.UpdateStmt:
		return []ast.Node{n.WithClause, n.FromClause, n.WhereClause}
	case *ast.DeleteStmt:
		return []ast.Node{n.WithClause, n.UsingClause, n.WhereClause}
	case *ast.MergeStmt:
		return []ast.Node{n.WithClause, n.SourceRelation, chosenBy(n)}
	}
	return []ast.Node{r.stmt}
}

// allTables returns all tables that the statement names, under their names there.
func (r *reading) allTables() (all []*relation) {
	pgtree.Walk(func(n ast.Node) bool {
		if v, ok := n.(*ast.RangeVar); ok {
			if t, _ := r.lookup(v); t != nil {
				if s, err := r.sourceOf(t, v); err == nil {
					all = append(all, &relation{ref: s.ref, base: &s})
				}
			}
		}
		return true
	}, r.stmt)
	return all
}

// gathering are aggregates and window functions that do not fail, whatever they are given.
var gathering = []string{"array_agg", "string_agg", "json_agg", "jsonb_agg", "bool_and", "bool_or", "every",
	"count", "min", "max", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "first_value", "last_value", "lag", "lead"}

// gathers reports whether a call is of one of them.
func gathers(n *ast.FuncCall) bool {
	names := nodes(n.Funcname)
	return slices.Contains(gathering, lastName(n.Funcname)) && (len(names) == 1 || isString(names[:1], "pg_catalog"))
}

// sumsWhole reports whether a call is of a sum of whole numbers, or of numbers of a fixed width, of tables: it does not
// fail.
func (pl *planner) sumsWhole(n *ast.FuncCall, tables []*relation) bool {
	args := nodes(n.Args)
	if len(args) != 1 || len(nodes(n.Funcname)) != 1 || pl.functions(lastName(n.Funcname)) != NoFunction ||
		!slices.Contains([]string{"sum", "avg"}, lastName(n.Funcname)) {
		return false
	}
	ref, ok := bare(args[0]).(*ast.ColumnRef)
	return ok && typesAre(ref, tables, func(c Column) bool {
		return slices.Contains([]string{"int2", "int4", "int8"}, c.Type) || strings.HasPrefix(c.Full, "numeric(")
	})
}

// isFixed reports whether an expression is the same for all rows: it names no column and reads no table. If it fails,
// it does so for the first row, whichever that is.
func isFixed(n ast.Node) bool {
	fixed := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ColumnRef, *ast.SubLink:
			fixed = false
		}
		return fixed
	}, n)
	return fixed && whole
}

// spellsText reports whether an expression is a cast to text, which does not fail.
func spellsText(n ast.Node) bool {
	cast, ok := n.(*ast.TypeCast)
	return ok && cast.TypeName != nil && cast.TypeName.ArrayBounds == nil && lastName(cast.TypeName.Names) == "text"
}
