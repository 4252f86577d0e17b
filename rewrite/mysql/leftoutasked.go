package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// An asksOf looks in a query for names of columns of some of its sources, or for one name alone.
type asksOf struct {
	o    *outerJoins
	of   sources
	only string // in lower case; empty: any
	// join is that of the sources, and side theirs in it: conditions of these are left out. nil: none are.
	join *ast.Join
	side ast.ResultSetNode
	// aliased says that an alias of the select list may hide a name.
	aliased bool
	within  bool     // it is in a subquery
	hidden  []string // what tables are called there
	most    asksFrom
}

// anywhere tells whether something in the query asks for them.
func (v *asksOf) anywhere() asksFrom {
	n := v.o.n
	most := v.inList()
	add := func(a asksFrom) { most = max(most, a) }
	for _, e := range parts(n.Where, nil) {
		add(v.inCondition(e))
	}
	add(v.inJoins(n.From.TableRefs))
	if n.GroupBy != nil {
		for _, item := range n.GroupBy.Items {
			add(v.o.unlessTiDB(v.inOrder(item.Expr)))
		}
	}
	if n.Having != nil {
		for _, e := range parts(n.Having.Expr, nil) {
			add(v.o.unlessTiDB(v.inCondition(e)))
		}
	}
	for i := range n.WindowSpecs {
		add(min(maybeAsked, v.in(&n.WindowSpecs[i])))
	}
	if n.OrderBy == nil {
		return most
	}
	for _, item := range n.OrderBy.Items {
		if a := v.inOrder(item.Expr); v.o.orders() {
			add(a)
		} else {
			add(min(maybeAsked, a))
		}
	}
	return most
}

// unlessTiDB makes what surely asks for a column something that may: on TiDB.
func (o *outerJoins) unlessTiDB(a asksFrom) asksFrom {
	if o.tidb() {
		return min(a, maybeAsked)
	}
	return a
}

// inList tells whether the select list asks for them.
func (v *asksOf) inList() asksFrom {
	most := notAsked
	for _, f := range v.o.n.Fields.Fields {
		var a asksFrom
		switch {
		case f.WildCard != nil:
			a = v.inStar(f.WildCard)
		case f.Expr != nil:
			a = min(v.in(f.Expr), v.o.shown.of(fieldName(f)))
		}
		most = max(most, a)
	}
	return most
}

// inStar tells whether a star has them.
func (v *asksOf) inStar(w *ast.WildCardField) asksFrom {
	most := notAsked
	for _, s := range v.of {
		if w.Table.L != "" && !strings.EqualFold(w.Table.O, s.name) {
			continue
		}
		var names []string
		switch {
		case v.only != "":
			names = []string{v.only}
		case s.table != nil:
			names = visibleColumns(s.table)
		default:
			names = []string{""}
		}
		for _, name := range names {
			a := v.o.shown.of(strings.ToLower(name))
			if w.Table.L == "" && v.o.merged[strings.ToLower(name)] {
				a = min(maybeAsked, a)
			}
			most = max(most, a)
		}
	}
	return most
}

// inJoins tells whether conditions of joins ask for them.
func (v *asksOf) inJoins(n ast.ResultSetNode) asksFrom {
	if n == v.side && v.side != nil {
		return notAsked
	}
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return notAsked
		}
		most := max(v.inJoins(n.Left), v.inJoins(n.Right))
		if n == v.join {
			return most
		}
		if n.On != nil {
			for _, e := range parts(n.On.Expr, nil) {
				a := v.inCondition(e)
				if n.Tp != ast.CrossJoin {
					a = v.o.unlessTiDB(a) // it may leave that join out as well
				}
				most = max(most, a)
			}
		}
		if n.NaturalJoin || slices.ContainsFunc(n.Using, func(c *ast.ColumnName) bool { return v.of.mayHave(c.Name.O) }) {
			most = max(most, maybeAsked)
		}
		return most
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return v.inJoins(inner)
		}
	}
	return notAsked
}

// inCondition is in for a part of a condition, which the server may fold to a constant.
func (v *asksOf) inCondition(e ast.ExprNode) asksFrom {
	a := v.in(e)
	var f folds
	if e.Accept(&f); f.found {
		return min(a, maybeAsked)
	}
	return a
}

// inOrder is in for what is grouped or ordered by.
func (v *asksOf) inOrder(e ast.ExprNode) asksFrom {
	of := *v
	of.aliased = true
	return of.in(e)
}

// in tells whether a node names them.
func (v *asksOf) in(n ast.Node) asksFrom {
	of := *v
	of.most = notAsked
	n.Accept(&of)
	return of.most
}

// Enter implements ast.Visitor.
func (v *asksOf) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		v.inSubquery(n)
		return n, true
	case *ast.ColumnName:
		v.most = max(v.most, v.named(n))
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *asksOf) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// inSubquery looks into a subquery. The server may leave out much of it, but not a part of its condition that names
// a table around it.
func (v *asksOf) inSubquery(n *ast.SubqueryExpr) {
	of := *v
	of.within, of.most = true, notAsked
	q, ok := n.Query.(*ast.SelectStmt)
	if ok && q.From != nil {
		for _, s := range flatten(q.From.TableRefs) {
			of.hidden = append(slices.Clone(of.hidden), s.node.AsName.L)
			if base, is := s.node.Source.(*ast.TableName); is {
				of.hidden = append(of.hidden, base.Name.L)
			}
		}
		for _, e := range parts(q.Where, nil) {
			if !hasSubquery(e) && !v.o.tidb() {
				of.most = max(of.most, of.inCondition(e))
			}
		}
	}
	var all namedColumns
	n.Query.Accept(&all)
	for _, name := range all.names {
		of.most = max(of.most, min(maybeAsked, of.named(name)))
	}
	v.most = max(v.most, of.most)
}

// named tells whether a name is that of one of them.
func (v *asksOf) named(name *ast.ColumnName) asksFrom {
	if v.only != "" && name.Name.L != v.only {
		return notAsked
	}
	if name.Table.L != "" {
		switch {
		case v.of.named(name.Table.O) == nil:
			return notAsked
		case slices.Contains(v.hidden, name.Table.L):
			return maybeAsked
		}
		return surelyAsked
	}
	switch {
	case !v.of.mayHave(name.Name.O):
		return notAsked
	case v.within:
		return maybeAsked
	case v.o.merged[name.Name.L] && !v.o.right:
		return notAsked // it is that of the side that is there
	case v.aliased && fieldNamed(v.o.n.Fields.Fields, name.Name.L) >= 0:
		return maybeAsked
	}
	for _, s := range v.o.srcs {
		if !slices.Contains(v.of, s) && (s.table == nil || s.table.ColumnInAnyCase(name.Name.O) != nil) {
			return maybeAsked
		}
	}
	return surelyAsked
}
