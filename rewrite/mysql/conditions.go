package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// A chosenSource is a table or a query among those from which a query chooses rows.
type chosenSource struct {
	name  string // by which the query refers to it
	of    string // `schema`.`table`
	node  *ast.TableSource
	table *Table // nil: it is a query, or a table that is not known
	// outer says that it is on the inner side of an outer join: where none of its rows match, NULLs take their place.
	outer bool
	// filters are parts of the query's condition that name no other source.
	filters []conjunct
}

// A scope has the names that a query's conditions may hold.
type scope struct {
	up      *scope // of the query around; nil: it sees none
	sources []*chosenSource
	equal   map[chosenColumn]conjunct // the literals that columns are equal to in every row that counts
}

type chosenColumn struct {
	source *chosenSource
	column *Column
}

// column returns the column that a name means, and whose it is; nil where that is not certain.
func (in *scope) column(name *ast.ColumnName) (*chosenSource, *Column) {
	for ; in != nil && name.Schema.O == ""; in = in.up {
		var owner *chosenSource
		for _, s := range in.sources {
			switch {
			case name.Table.O != "" && !strings.EqualFold(s.name, name.Table.O):
			case s.table == nil:
				return nil, nil
			case name.Table.O == "" && s.table.ColumnInAnyCase(name.Name.O) == nil:
			case owner != nil:
				return nil, nil // NATURAL or USING: the server takes it from either
			default:
				owner = s
			}
		}
		if owner != nil {
			return owner, owner.table.ColumnInAnyCase(name.Name.O)
		}
	}
	return nil, nil
}

// conditions takes note of the conditions by which a statement and the queries in it choose rows. Each is of one table
// alone: of a join it is the part that names no other, and what follows from that by equality. Where the statement
// tells every row that matches, its condition is exact; all others are wide.
func (pl *planner) conditions(n ast.StmtNode) {
	if !pl.rewriter.options.Predicates || pl.st.executable() >= 0 || !pl.into.empty() {
		return
	}
	w := &conditionWalk{planner: pl, ctes: make(map[string]bool)}
	n.Accept(cteNames(w.ctes))
	switch n := n.(type) {
	case *ast.SelectStmt:
		w.query(n, nil, topQuery)
	case *ast.UpdateStmt:
		w.write(n, n.TableRefs, n.Where, w.limitsWrite(n.Limit) && n.TableHints == nil, "SET")
	case *ast.DeleteStmt:
		w.write(n, n.TableRefs, n.Where, w.limitsWrite(n.Limit) && n.TableHints == nil, "")
	default:
		w.within(n, nil)
	}
}

// A conditionWalk goes through the queries of a statement.
type conditionWalk struct {
	*planner
	ctes  map[string]bool // names of common table expressions anywhere in the statement, in lower case
	limit rowLimit        // the statement's
	up    *scope          // of the query being gone through
}

// cteNames collects the names of common table expressions.
type cteNames map[string]bool

// Enter implements ast.Visitor.
func (v cteNames) Enter(n ast.Node) (ast.Node, bool) {
	if c, ok := n.(*ast.CommonTableExpression); ok {
		v[c.Name.L] = true
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v cteNames) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// A queryPlace says where in a statement a query stands.
type queryPlace uint8

const (
	topQuery queryPlace = iota
	existsQuery
	innerQuery
)

// write goes through an UPDATE or DELETE, whose tables stand before a keyword, or its condition.
func (w *conditionWalk) write(n ast.Node, refs *ast.TableRefsClause, where ast.ExprNode, told bool, before string) {
	region := span{1, w.st.last() + 1}
	if before != "" {
		if region.to = w.st.find(1, region.to, 0, before); region.to < 0 {
			return
		}
	}
	b := w.enter(refs, nil)
	if w.limit.rows > 0 && len(b.sources) > 1 {
		return // a row may count for several
	}
	b.simplify(w.st, where)
	b.filterOn(w.st, region, 0)
	b.filterWhere(w.st, where, w.st.clause(span{1, w.st.last() + 1}, 0, "WHERE"))
	b.propagate()
	if told {
		w.tell(b, len(b.sources) == 1)
	}
	w.within(n, &b.scope)
}

// limitsWrite takes note of the LIMIT of an UPDATE or DELETE, which has no offset. It reports whether it is known.
func (w *conditionWalk) limitsWrite(n *ast.Limit) bool {
	if n == nil {
		return true
	}
	at := w.st.find(1, w.st.last()+1, 0, "LIMIT")
	w.limit = rowLimit{rows: at + 1}
	return at > 0 && n.Offset == nil
}

// query goes through a query that sees the names of the one around.
func (w *conditionWalk) query(n *ast.SelectStmt, up *scope, place queryPlace) {
	b := w.enter(n.From, up)
	if from, depth, ok := w.st.queryTokens(n); ok && n.From != nil {
		b.simplify(w.st, n.Where)
		b.filterOn(w.st, w.st.clause(from, depth, "FROM"), depth)
		b.filterWhere(w.st, n.Where, w.st.clause(from, depth, "WHERE"))
		b.propagate()
		told := n.TableHints == nil && (n.LockInfo == nil || !skips(n.LockInfo.LockType))
		switch {
		case n.Limit == nil || place == existsQuery:
		case place == topQuery:
			if told = told && w.underLimit(n, from, depth); told {
				w.order = b.orderingOf(n, w.session.Dialect)
			}
		default:
			told = false // it may have left rows out
		}
		if told {
			// FOR UPDATE OF one table leaves the others' rows unlocked.
			locksSome := n.LockInfo != nil && len(n.LockInfo.Tables) > 0 && len(b.sources) > 1
			w.tell(b, place == topQuery && n.With == nil && b.firstOnly && !locksSome)
		}
	}
	w.within(n, &b.scope)
}

// underLimit takes note of the statement's LIMIT. It reports whether it is one that is known.
func (w *conditionWalk) underLimit(n *ast.SelectStmt, query span, depth int) bool {
	at := w.st.find(query.from, query.to, depth, "LIMIT")
	if at < 0 {
		return false // FETCH FIRST
	}
	w.limit = rowLimit{rows: at + 1, oneRow: n.GroupBy == nil && onlyAggregates(n)}
	switch {
	case n.Limit.Offset == nil:
	case w.st.mark(at+2, ","):
		w.limit.rows, w.limit.offset = at+3, at+1
	default:
		w.limit.offset = at + 3
	}
	return true
}

// enter resolves the tables of a query that sees the names of the one around.
func (w *conditionWalk) enter(refs *ast.TableRefsClause, up *scope) *chosenFrom {
	b := &chosenFrom{scope: scope{up: up, equal: make(map[chosenColumn]conjunct)},
		natural: make(map[*chosenSource]bool), firstOnly: true}
	if refs != nil && refs.TableRefs != nil {
		b.join(w, refs.TableRefs, true)
	}
	return b
}

// source resolves a table of a FROM clause. Names of common table expressions are taken for these everywhere.
func (w *conditionWalk) source(n *ast.TableSource) *chosenSource {
	s := &chosenSource{name: n.AsName.O, node: n}
	base, ok := n.Source.(*ast.TableName)
	if !ok || base.AsOf != nil { // it is read as it was some time ago
		return s
	}
	if s.name == "" {
		s.name = base.Name.O
	}
	schema := base.Schema.O
	if schema == "" {
		if schema = w.session.Schema; w.ctes[base.Name.L] {
			return s
		}
	}
	if s.table, _ = w.table(base); s.table != nil {
		s.of = quoted(schema) + "." + quoted(base.Name.O)
	}
	return s
}

// tell notes the conditions of a query. exact says that the statement tells every row of the first table that its
// condition finds, if that is known in full.
func (w *conditionWalk) tell(b *chosenFrom, exact bool) {
	for i, s := range b.sources {
		if s.table == nil || b.parts[s] {
			continue
		}
		c := choice{source: s, of: s.filters, wide: !exact || i > 0 || b.leftover, limit: w.limit}
		if w.order.of == s {
			c.order = w.order.keys
		}
		if !c.wide && b.where != nil {
			c.of = []conjunct{*b.where}
		}
		if c.wide && c.ofAnyRow() {
			continue
		}
		if w.chosen = append(w.chosen, c); !c.timed() {
			continue
		}
		c.of = slices.DeleteFunc(slices.Clone(s.filters), func(part conjunct) bool { return part.timed })
		if c.wide, c.instead = true, true; !c.ofAnyRow() {
			w.chosen = append(w.chosen, c)
		}
	}
}

// within goes through the queries in a node, which see the names of a scope.
func (w *conditionWalk) within(n ast.Node, names *scope) {
	outside := w.up
	w.up = names
	n.Accept(&queriesWithin{conditionWalk: w, self: n})
	w.up = outside
}

// queriesWithin has a walk visit the queries right below a node.
type queriesWithin struct {
	*conditionWalk
	self    ast.Node
	exists  bool // the next query is that of EXISTS
	derived int  // how many tables of a FROM clause are around
}

// Enter implements ast.Visitor.
func (v *queriesWithin) Enter(n ast.Node) (ast.Node, bool) {
	switch q := n.(type) {
	case *ast.ExistsSubqueryExpr:
		v.exists = true
	case *ast.TableSource, *ast.CommonTableExpression:
		v.derived++
	case *ast.SelectStmt:
		if n == v.self {
			return n, false
		}
		place, names := innerQuery, v.up
		if v.exists {
			place = existsQuery
		}
		if v.derived > 0 {
			names = nil
		}
		v.exists = false
		v.query(q, names, place)
		return n, true
	}
	return n, false
}

// Leave implements ast.Visitor.
func (v *queriesWithin) Leave(n ast.Node) (ast.Node, bool) {
	switch n.(type) {
	case *ast.ExistsSubqueryExpr:
		v.exists = false
	case *ast.TableSource, *ast.CommonTableExpression:
		v.derived--
	}
	return n, true
}
