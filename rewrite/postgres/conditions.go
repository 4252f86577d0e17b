package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
)

// What a statement chooses of several tables, or by more than the row itself, is told by a wide condition for each
// table: the parts of its WHERE and ON clauses that are about that table alone, and what follows for it by equalities.
// Of the optional side of an outer join ON decides which rows matter. What a query asks of its tables holds for what is
// equal to it in its subqueries, too.

// maxConditions bounds the wide conditions of a statement.
const maxConditions = 16

// conditions collects the wide conditions of a statement.
type conditions struct {
	*planner
	found []rewrite.Predicate
}

// A selection is a query block, with what is known of the rows that matter to it.
type selection struct {
	place
	tables  []*chosen
	unknown []string // names of what else is in the FROM clause
	facts   []fact
	equal   []equality
	outer   []optionalJoin
	order   ordering
}

// A place is where a query stands.
type place struct {
	up   *selection // whose columns it can name
	ctes []string   // names that WITH gives to queries
	// limit is the most rows that the statement shows, if the query's rows become those of the statement.
	limit *rewrite.Limit
	// limited says that rows are left out, and nobody knows which.
	limited bool
	// whole says that the query is the statement, and first is that one, if it has a LIMIT.
	whole bool
	first *ast.SelectStmt
	// exists says that it matters only whether there is a row.
	exists bool
	// compared is what the query's only column is compared with, as in x IN (SELECT ...); nil: nothing.
	compared *chosenColumn
}

// within is the place of a query whose rows do not become those of the statement.
func (s *selection) within() place { return place{up: s, ctes: s.ctes} }

// A chosen table is one of a selection's FROM clause, or the one that a statement writes.
type chosen struct {
	source
	optional bool // there may be no row of it beside those of the others
}

// A chosenColumn is a column of one.
type chosenColumn struct {
	of   *chosen
	name string
}

// A fact is a part of a condition that is about one table. It tells which rows matter of the tables in about.
type fact struct {
	node  ast.Node
	of    *chosen
	only  string // the column, if there is but one
	asked int    // how often it calls one of the askingFunctions
	about []*chosen
}

// An equality says that two columns are equal in the rows that matter of the tables in about.
type equality struct {
	a, b  chosenColumn
	about []*chosen
}

// wideConditions returns the conditions by which a statement chooses rows of each of its tables, as far as they are
// about that table alone.
func (pl *planner) wideConditions(tree ast.Stmt) []rewrite.Predicate {
	if !pl.rewriter.options.Predicates || pl.st.has(0, "SKIP") {
		return nil
	}
	c := &conditions{planner: pl}
	if !guard.Whole(func() { c.statement(tree) }) {
		return nil
	}
	return c.found
}

// statement collects the conditions of the whole statement.
func (c *conditions) statement(tree ast.Stmt) {
	switch n := tree.(type) {
	case *ast.SelectStmt:
		c.query(n, place{whole: true})
	case *ast.InsertStmt:
		if q, ok := n.SelectStmt.(*ast.SelectStmt); ok {
			c.query(q, place{ctes: c.common(n.WithClause, place{}), limited: q.LimitCount != nil})
		}
	case *ast.UpdateStmt:
		s := &selection{place: place{ctes: c.common(n.WithClause, place{})}}
		c.from(s, n.Relation)
		c.choice(s, nodes(n.FromClause), n.WhereClause)
		c.subqueries(s, n.TargetList)
	case *ast.DeleteStmt:
		s := &selection{place: place{ctes: c.common(n.WithClause, place{})}}
		c.from(s, n.Relation)
		c.choice(s, nodes(n.UsingClause), n.WhereClause)
	}
}

// common looks at the queries of a WITH clause, and returns their names with those that are known around.
func (c *conditions) common(with *ast.WithClause, p place) []string {
	names := p.ctes
	if with == nil {
		return names
	}
	for _, n := range nodes(with.Ctes) {
		cte, ok := n.(*ast.CommonTableExpr)
		if !ok {
			continue
		}
		before := names
		if names = append(slices.Clone(names), cte.Ctename); with.Recursive {
			before = names
		}
		if q, ok := cte.Ctequery.(*ast.SelectStmt); ok {
			c.query(q, place{up: p.up, ctes: before})
		}
	}
	return names
}

// query collects the conditions of a query.
func (c *conditions) query(n *ast.SelectStmt, p place) {
	p.ctes = c.common(n.WithClause, p)
	if !p.exists && (n.LimitCount != nil || n.LimitOffset != nil) {
		p.limited = p.limited || p.up != nil || p.limit != nil
		if !p.limited && n.LimitCount != nil && !c.oneRow(n) {
			p.limit = rowsShown(n)
			if p.whole {
				p.first = n
			}
		}
	}
	if n.Op != ast.SETOP_NONE {
		p.whole, p.first = false, nil
		c.query(n.Larg, p)
		c.query(n.Rarg, p)
		return
	}
	s := &selection{place: p}
	c.choice(s, nodes(n.FromClause), n.WhereClause, nodes(n.TargetList)...)
	c.subqueries(s, n.TargetList, n.DistinctClause, n.GroupClause, n.HavingClause, n.WindowClause, n.SortClause,
		n.ValuesLists)
}

// choice collects the conditions of FROM and WHERE clauses; shown are the columns that a query shows.
func (c *conditions) choice(s *selection, items []ast.Node, where ast.Node, shown ...ast.Node) {
	for _, item := range items {
		c.from(s, item)
	}
	c.learn(s, where, s.tables)
	s.simplify()
	if s.compared != nil && len(shown) == 1 {
		if t, ok := shown[0].(*ast.ResTarget); ok {
			if column, ok := s.resolve(t.Val); ok {
				s.equal = append(s.equal, equality{*s.compared, column, s.tables})
			}
		}
	}
	if s.first != nil {
		s.order = s.orderingOf(s.first)
		c.order = s.order
	}
	if !s.limited {
		for _, t := range s.tables {
			c.choosesOf(s, t)
		}
	}
	c.subqueries(s, where)
}

// from adds an item of a FROM clause, and returns its tables.
func (c *conditions) from(s *selection, n ast.Node) []*chosen {
	switch n := bare(n).(type) {
	case *ast.RangeVar:
		return c.named(s, n)
	case *ast.RangeSubselect:
		s.unknown = append(s.unknown, aliasOf(n.Alias))
		if q, ok := n.Subquery.(*ast.SelectStmt); ok {
			p := s.place
			p.whole, p.first = false, nil
			if p.compared = nil; n.Lateral {
				p.up = s
			}
			c.query(q, p)
		}
	case *ast.JoinExpr:
		return c.joined(s, n)
	case *ast.RangeTableSample:
		return c.from(s, n.Relation)
	case *ast.RangeFunction:
		s.unknown = append(s.unknown, aliasOf(n.Alias))
	default:
		s.unknown = append(s.unknown, "")
	}
	return nil
}

// named adds what a name means.
func (c *conditions) named(s *selection, n *ast.RangeVar) []*chosen {
	name := n.RelName
	if n.Alias != nil {
		name = n.Alias.AliasName
	}
	var t *Table
	if n.SchemaName != "" || !slices.Contains(s.ctes, n.RelName) {
		t, _ = c.table(n)
	}
	if t == nil {
		s.unknown = append(s.unknown, name)
		return nil
	}
	of, err := sourceOf(t, n)
	if err != nil {
		s.unknown = append(s.unknown, name)
		return nil
	}
	added := &chosen{source: of}
	s.tables = append(s.tables, added)
	return []*chosen{added}
}

// joined adds a join.
func (c *conditions) joined(s *selection, n *ast.JoinExpr) []*chosen {
	if n.Alias != nil { // it hides the names of its tables
		s.unknown = append(s.unknown, n.Alias.AliasName)
		return nil
	}
	left := c.from(s, n.Larg)
	right := c.from(s, n.Rarg)
	all := slices.Concat(left, right)
	about := all
	switch n.Jointype {
	case ast.JOIN_LEFT:
		about = right
	case ast.JOIN_RIGHT:
		about = left
	case ast.JOIN_FULL:
		about = nil
	}
	join := optionalJoin{optional: about, facts: len(s.facts), equal: len(s.equal)}
	for _, item := range nodes(n.UsingClause) {
		if name, ok := item.(*ast.String); ok {
			s.equate(columnIn(left, name.SVal), columnIn(right, name.SVal), about)
		}
	}
	if !pgtree.Missing(n.Quals) {
		c.learn(s, n.Quals, about)
		c.subqueries(s, n.Quals)
	}
	if n.Jointype == ast.JOIN_FULL {
		join.optional, join.full = all, true
	}
	if n.Jointype != ast.JOIN_INNER {
		join.factsEnd, join.equalEnd = len(s.facts), len(s.equal)
		s.outer = append(s.outer, join)
		for _, t := range join.optional {
			t.optional = true
		}
	}
	return all
}

// columnIn returns the column of a name in the first of some tables that has it.
func columnIn(tables []*chosen, name string) chosenColumn {
	for _, t := range tables {
		if t.has(name) {
			return chosenColumn{t, name}
		}
	}
	return chosenColumn{}
}

// subqueries collects the conditions of the subqueries in parts of a block.
func (c *conditions) subqueries(s *selection, parts ...ast.Node) {
	pgtree.Each(func(n ast.Node) bool {
		link, ok := n.(*ast.SubLink)
		if !ok {
			return true
		}
		if !pgtree.Missing(link.Testexpr) {
			c.subqueries(s, link.Testexpr)
		}
		q, ok := link.Subselect.(*ast.SelectStmt)
		if !ok {
			return false
		}
		p := s.within()
		p.exists = link.SubLinkType == ast.EXISTS_SUBLINK
		if link.SubLinkType == ast.ANY_SUBLINK && (len(nodes(link.OperName)) == 0 || isString(nodes(link.OperName), "=")) {
			if column, ok := s.resolve(link.Testexpr); ok {
				p.compared = &column
			}
		}
		c.query(q, p)
		return false
	}, parts...)
}

// rowsShown returns the most rows that a query shows behind those that it skips.
func rowsShown(n *ast.SelectStmt) *rewrite.Limit {
	of := *n
	of.LimitOffset = nil
	limit, _ := limitOf(&of)
	return limit
}

// oneRow reports whether a query has one row whatever it finds, and shows it.
func (pl *planner) oneRow(n *ast.SelectStmt) bool {
	if n.Op != ast.SETOP_NONE || n.GroupClause != nil || n.HavingClause != nil {
		return false
	}
	limit, known := limitOf(n)
	if u, err := pl.inspect(n.TargetList); err != nil || !u.aggregate {
		return false
	}
	return known && limit != nil && limit.Param < 0 && limit.Rows > 0
}
