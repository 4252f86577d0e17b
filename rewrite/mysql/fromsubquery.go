package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A subquery's FROM clause may have a query of one table, or name one of the WITH clause. In the copy such a query
// passes the identities of its rows outwards. The copy of a query of the WITH clause stands in the place of its name:
// the client's is read as it was (ADR 62).

// readSources finds the tables of a subquery's FROM clause, and the queries of tables among them, which count as tables
// of the columns that they show. It returns what a copy has in their places, and reports whether there is nothing else.
func (pl *planner) readSources(n *ast.SelectStmt, srcs sources) (passing []replacement, ok bool) {
	for i, s := range srcs {
		name, base := s.node.Source.(*ast.TableName)
		var c *cte
		if base && name.Schema.L == "" {
			c, _ = pl.nesting.with.find(name.Name.O)
		}
		var r []replacement
		switch query, derived := s.node.Source.(*ast.SelectStmt); {
		case derived && s.node.AsName.L != "" && !s.node.Lateral && len(s.node.ColumnNames) == 0:
			r, ok = pl.passOutwards(s, query)
		case c != nil && plainTable(name):
			r, ok = pl.inPlaceOf(n, s, name, c)
		case c == nil && base && pl.isView(name):
			ok = pl.seeThrough(s, name)
		default:
			ok = base && pl.baseSources(sources{s})
		}
		if !ok || srcs[:i].named(s.name) != nil {
			return nil, false
		}
		passing = append(passing, r...)
	}
	slices.SortFunc(passing, func(a, b replacement) int { return a.at.from - b.at.from })
	return passing, true
}

// passOutwards has a source that is a query of one table count as a table, and returns what has a copy of the query
// pass that table's identities outwards.
func (pl *planner) passOutwards(s *source, query *ast.SelectStmt) ([]replacement, bool) {
	of, ok := pl.plainBody(query)
	if !ok {
		return nil, false
	}
	shown, ok := shownTable(query, of)
	if !ok {
		return nil, false
	}
	verb := pl.verbOf(query)
	end := pl.st.group(verb - 1)
	if verb < 0 || end < 0 {
		return nil, false
	}
	from := pl.st.find(verb+1, end, pl.st.Tokens[verb].Depth, "FROM")
	if from < 0 {
		return nil, false
	}
	s.table, s.name = shown, s.node.AsName.O
	name := ", " + quoted(of.name) + "."
	passing := []replacement{{span{from, from}, []Piece{text(name + rewrite.RowIDColumn + name + rewrite.WListColumn + " ")}}}
	flat, ok := pl.ungrouped(query, span{verb, end})
	passing = append(passing, flat...)
	slices.SortFunc(passing, func(a, b replacement) int { return a.at.from - b.at.from })
	return passing, ok
}

// shownTable returns a table of the columns that a query of one table shows. Of what its rows do not have as its groups
// do no condition may ask.
func shownTable(query *ast.SelectStmt, of *source) (shown *Table, ok bool) {
	shown = &Table{Table: of.table.Table}
	for _, f := range query.Fields.Fields {
		if f.WildCard != nil {
			for _, c := range of.table.Columns {
				c.Generated = c.Generated || query.Distinct && kindOf(c.Type) != numeric
				shown.Columns = append(shown.Columns, c)
			}
			continue
		}
		column, isColumn := f.Expr.(*ast.ColumnNameExpr)
		if !isColumn && f.AsName.O != "" && query.GroupBy != nil {
			shown.Columns = append(shown.Columns, Column{Column: rewrite.Column{Name: f.AsName.O, Generated: true}})
			continue
		}
		if !isColumn {
			return nil, false
		}
		c, _, known := sources{of}.owner(column.Name)
		if !known {
			return nil, false
		}
		as := *c
		if f.AsName.O != "" {
			as.Name = f.AsName.O
		}
		if query.Distinct || query.GroupBy != nil { // texts that are equal need not be the same
			grouped := query.GroupBy == nil || (&block{n: query, srcs: sources{of}}).groupsBy(column.Name)
			as.Generated = as.Generated || !grouped || kindOf(c.Type) != numeric
		}
		shown.Columns = append(shown.Columns, as)
	}
	for i := range shown.Columns {
		if shown.ColumnInAnyCase(shown.Columns[i].Name) != &shown.Columns[i] {
			return nil, false // the server refuses it
		}
	}
	return shown, true
}

// ungrouped returns what makes a query, whose tokens these are, show the rows of its groups, or those that DISTINCT
// leaves out: it has all of them. What it aggregates is NULL there.
func (pl *planner) ungrouped(query *ast.SelectStmt, at span) (flat []replacement, ok bool) {
	st := pl.st
	depth := st.Tokens[at.from].Depth
	first := st.tokenAt(query.Fields.Fields[0].Offset)
	for i := at.from + 1; query.Distinct && i < first; i++ {
		if st.is(i, "DISTINCT", "DISTINCTROW") {
			flat = append(flat, replacement{at: span{i, i + 1}})
		}
	}
	if query.GroupBy == nil {
		return flat, !query.Distinct || len(flat) > 0
	}
	list, err := pl.selectList(query)
	group := st.find(first, at.to, depth, "GROUP")
	if err != nil || group < 0 {
		return nil, false
	}
	for i, f := range query.Fields.Fields {
		if _, isColumn := f.Expr.(*ast.ColumnNameExpr); !isColumn && f.WildCard == nil {
			flat = append(flat, replacement{span{list[i].first, list[i].last + 1}, []Piece{text("NULL AS " + quoted(f.AsName.O))}})
		}
	}
	return append(flat, replacement{at: span{group, at.to}}), true
}

// plainBody returns the table of a query that shows columns of all its rows, or of those that a condition fits which
// may be evaluated once more.
func (pl *planner) plainBody(query *ast.SelectStmt) (*source, bool) {
	if query.Kind != ast.SelectStmtKindSelect || query.From == nil || query.With != nil || query.LockInfo != nil || query.TableHints != nil ||
		query.SelectIntoOpt != nil || query.Limit != nil || query.OrderBy != nil || query.Having != nil || !groupsByShown(query) ||
		len(query.WindowSpecs) > 0 || hasSubquery(query.Fields) {
		return nil, false
	}
	srcs := flatten(query.From.TableRefs)
	if len(srcs) != 1 || !pl.baseSources(srcs) || pl.checkSpelling(srcs[0].name) != nil || !pl.harmless(query, srcs) {
		return nil, false
	}
	return srcs[0], true
}

// groupsByShown reports whether a query, if it groups, does so by columns.
func groupsByShown(query *ast.SelectStmt) bool {
	if u := inspectWrite(query.Fields); query.GroupBy == nil {
		var all aggregates
		query.Fields.Accept(&all)
		return !all.sums && !all.extremes && !all.distinct && !u.window
	}
	return !query.GroupBy.Rollup && !query.Distinct && query.Fields.Fields[0].WildCard == nil && !inspectWrite(query.Fields).window &&
		!slices.ContainsFunc(query.GroupBy.Items, func(item *ast.ByItem) bool {
			_, isColumn := item.Expr.(*ast.ColumnNameExpr)
			return !isColumn
		})
}

// inPlaceOf has a source that names a query of the WITH clause count as a table, and returns what stands in a copy in
// the place of the name.
func (pl *planner) inPlaceOf(n *ast.SelectStmt, s *source, name *ast.TableName, c *cte) ([]replacement, bool) {
	query, ok := c.def.Query.Query.(*ast.SelectStmt)
	if !ok || c.def.IsRecursive || len(c.def.ColNameList) > 0 {
		return nil, false
	}
	verb := pl.verbOf(n)
	at, ok := pl.clauseSpans(n, verb, pl.st.group(verb-1))
	if verb < 0 || !ok {
		return nil, false
	}
	end := at.end
	if at.where >= 0 {
		end = at.where
	}
	place := -1
	for i := at.from + 1; i < end; i++ {
		if pl.st.isName(i, name.Name.O) && !pl.st.mark(i-1, ".") && !pl.st.mark(i+1, ".") {
			if place >= 0 {
				return nil, false
			}
			place = i
		}
	}
	alias := ""
	if s.node.AsName.L == "" {
		alias = " AS " + quoted(name.Name.O)
	}
	named := *s
	named.node = &ast.TableSource{Source: query, AsName: name.Name}
	if s.node.AsName.L != "" {
		named.node.AsName = s.node.AsName
	}
	outside := pl.nesting.with
	pl.nesting.with = c.scope
	passing, ok := pl.passOutwards(&named, query)
	pl.nesting.with = outside
	if !ok || place < 0 || pl.st.Tokens[place].Kind == mysqltoken.String || pl.checkSpelling(name.Name.O) != nil {
		return nil, false
	}
	s.table, s.name = named.table, named.name
	body := pl.verbOf(query)
	copied := pl.replaced(span{body, pl.st.group(body - 1)}, passing)
	return []replacement{{span{place, place + 1}, slices.Concat([]Piece{text("(")}, copied, []Piece{text(")" + alias)})}}, true
}
