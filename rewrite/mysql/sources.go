package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// observable reports whether any source has identity columns.
func (ss sources) observable() bool {
	return slices.ContainsFunc(ss, func(s *source) bool { return len(s.shows) > 0 })
}

// unobservable returns the reason why none of the sources can be observed; nil when none need be.
func (ss sources) unobservable() error {
	for _, s := range ss {
		if !s.reason.IsZero() {
			return refusal(s.reason)
		}
	}
	return nil
}

// repeatNames reports whether two queries among the sources pass identities outwards by the same names.
func (ss sources) repeatNames() bool {
	names := make(map[string]bool)
	for _, s := range ss {
		for _, i := range s.shows {
			if s.table == nil && names[i.rowID] {
				return true
			}
			names[i.rowID] = s.table == nil
		}
	}
	return false
}

// named finds the source that a qualifier means, or nil.
func (ss sources) named(qualifier string) *source {
	for _, s := range ss {
		if strings.EqualFold(s.name, qualifier) {
			return s
		}
	}
	return nil
}

// flatten lists the tables of a FROM clause in their order in the text.
func flatten(join *ast.Join) sources {
	var ss sources
	var walk func(n ast.ResultSetNode, outer bool)
	walk = func(n ast.ResultSetNode, outer bool) {
		switch n := n.(type) {
		case *ast.Join:
			walk(n.Left, outer || n.Tp == ast.RightJoin)
			if n.Right != nil {
				walk(n.Right, outer || n.Tp == ast.LeftJoin)
			}
		case *ast.TableSource:
			if inner, ok := n.Source.(*ast.Join); ok {
				walk(inner, outer)
				return
			}
			ss = append(ss, &source{node: n, outer: outer})
		case nil:
		default: // a query in the place of a table
			ss = append(ss, &source{node: &ast.TableSource{Source: n}, outer: outer})
		}
	}
	walk(join, false)
	return ss
}

// resolve finds each source's table. It refuses a statement in which two sources have one name: a
// qualifier would not say which of them is meant.
func (pl *planner) resolve(ss sources) error {
	around := pl.nesting.joined
	pl.nesting.joined = around || len(ss) > 1
	defer func() { pl.nesting.joined = around }()
	optional := pl.nesting.optional
	defer func() { pl.nesting.optional = optional }()
	for i, s := range ss {
		pl.nesting.optional = optional || s.outer
		pl.nesting.shown = pl.nesting.joins.shownOf(s)
		base, ok := s.node.Source.(*ast.TableName)
		switch {
		case s.leftOut:
		case !ok && s.node.AsName.O == "":
			s.reason = history.ReasonDerivedTable
		case !ok && pl.readsAside(s):
		case !ok:
			s.query, _ = s.node.Source.(*ast.SelectStmt)
			s.rows = s.query
			s.shows, s.carries, s.reason = pl.derived(s.node.Source)
		default:
			s.name = base.Name.O
			if err := pl.resolveName(s, base); err != nil {
				return err
			}
		}
		if s.node.AsName.O != "" {
			s.name = s.node.AsName.O
		}
		if other := ss[:i].named(s.name); other != nil && s.name != "" {
			return refusal(history.ReasonAmbiguousTable)
		}
	}
	return nil
}

// resolveName finds what a name in a FROM clause means: a common table expression or a table.
func (pl *planner) resolveName(s *source, base *ast.TableName) error {
	var c *cte
	if base.Schema.L == "" {
		var uncertain bool
		if c, uncertain = pl.nesting.with.find(base.Name.O); uncertain {
			s.reason = history.ReasonWith
			return nil
		}
	}
	switch {
	case c != nil:
		s.shows, s.carries, s.reason = pl.common(c)
		if s.rows, _ = c.def.Query.Query.(*ast.SelectStmt); len(c.def.ColNameList) == 0 {
			s.query = s.rows
		}
		if pl.nesting.joined && slices.ContainsFunc(s.shows, func(i identity) bool { return i.source.Array }) {
			return refusal(history.ReasonJoinedAggregate) // its form elsewhere in the statement would repeat them
		}
	case serverSchema(pl.session, base):
	default:
		if s.table, s.reason = pl.table(base); s.table != nil {
			s.shows = []identity{{rowID: rewrite.RowIDColumn, wList: rewrite.WListColumn,
				source: Source{Table: s.table.Name}}}
		}
	}
	return nil
}

// serverSchema reports whether a table is one of the server's own.
func serverSchema(s *Session, name *ast.TableName) bool {
	schema := name.Schema.L
	if schema == "" {
		schema = strings.ToLower(s.Schema)
	}
	return slices.Contains([]string{"information_schema", "performance_schema", "mysql", "sys"}, schema)
}

// mayHideLocks reports whether the server might answer a SELECT from secondary indexes alone, or without
// looking into one of its tables: the appended columns would then make it read, and lock, rows that
// the original leaves alone. It is decided without the server, on the safe side:
// only columns that the statement surely takes from a table count as needed.
func mayHideLocks(n *ast.SelectStmt, ss sources) bool {
	needed := neededColumns(n, ss)
	for _, s := range ss {
		if s.leftOut {
			continue
		}
		if s.table == nil {
			if len(s.shows) > 0 {
				return true // a merged query takes only the columns that are asked of it
			}
			continue
		}
		if s.outer && len(needed[s]) == 0 {
			return true // table elimination
		}
		if indexed(s.table, needed[s]) {
			return true
		}
	}
	return false
}

// indexed reports whether the table's secondary indexes hold all the columns. Several of them count
// together, because the server may intersect them.
func indexed(t *Table, columns map[string]bool) bool {
	held, secondary := make(map[string]bool), false
	for _, x := range t.Indexes {
		secondary = secondary || !x.Primary
		for _, c := range x.Columns {
			held[strings.ToLower(c)] = true
		}
	}
	if !secondary {
		return false
	}
	for c := range columns {
		if !held[c] {
			return false
		}
	}
	return true
}

// neededColumns gives, for each source, the columns that the statement surely takes from it, in lower
// case: what a join's ON says of the inner side is left out (the table might be eliminated), and so
// is every name that could mean something else.
func neededColumns(n *ast.SelectStmt, ss sources) map[*source]map[string]bool {
	c := columnCollector{sources: ss, needed: make(map[*source]map[string]bool), aliases: make(map[string]bool)}
	for _, s := range ss {
		c.needed[s] = make(map[string]bool)
	}
	for _, f := range n.Fields.Fields {
		if f.WildCard != nil {
			c.star(f.WildCard)
			continue
		}
		f.Expr.Accept(&c)
	}
	if n.Where != nil {
		n.Where.Accept(&c)
	}
	for _, f := range n.Fields.Fields {
		if f.AsName.L != "" {
			c.aliases[f.AsName.L] = true // behind the select list it may mean the item
		}
	}
	if n.Having != nil {
		n.Having.Accept(&c)
	}
	if n.OrderBy != nil {
		n.OrderBy.Accept(&c)
	}
	return c.needed
}

type columnCollector struct {
	sources sources
	needed  map[*source]map[string]bool
	aliases map[string]bool
}

func (c *columnCollector) star(w *ast.WildCardField) {
	for _, s := range c.sources {
		if s.table == nil || w.Table.L != "" && !strings.EqualFold(w.Table.O, s.name) {
			continue
		}
		for _, col := range s.table.Columns {
			if !col.Invisible {
				c.needed[s][strings.ToLower(col.Name)] = true
			}
		}
	}
}

// Enter implements ast.Visitor.
func (c *columnCollector) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		return n, true // its names may be its own tables'
	case *ast.ColumnNameExpr:
		c.column(n.Name)
	}
	return n, false
}

// Leave implements ast.Visitor.
func (c *columnCollector) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func (c *columnCollector) column(n *ast.ColumnName) {
	if n.Table.L != "" {
		if s := c.sources.named(n.Table.O); s != nil {
			c.needed[s][n.Name.L] = true
		}
		return
	}
	if c.aliases[n.Name.L] {
		return
	}
	var owner *source
	for _, s := range c.sources {
		if s.table == nil {
			if len(c.sources) > 1 {
				return // it may be the column of a table that isotap does not know
			}
			continue
		}
		if s.table.ColumnInAnyCase(n.Name.O) == nil {
			continue
		}
		if owner != nil {
			return // NATURAL or USING: the server takes it from either
		}
		owner = s
	}
	if owner != nil {
		c.needed[owner][n.Name.L] = true
	}
}

// merges reports whether a join's columns are not simply those of its sides.
func merges(n ast.ResultSetNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		return n != nil && (n.NaturalJoin || len(n.Using) > 0 || merges(n.Left) || merges(n.Right))
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return merges(inner)
		}
	}
	return false
}

// mergesQuietly reports whether the tables of a FROM clause are merged by USING alone, of columns that the server
// compares without a conversion of which it may warn.
func mergesQuietly(n ast.ResultSetNode, srcs sources) bool {
	switch n := n.(type) {
	case *ast.Join:
		if n == nil {
			return true
		}
		return !n.NaturalJoin && mergesQuietly(n.Left, srcs) && mergesQuietly(n.Right, srcs) &&
			!slices.ContainsFunc(n.Using, func(c *ast.ColumnName) bool { return !srcs.alike(c.Name.O) })
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return mergesQuietly(inner, srcs)
		}
	}
	return true
}

// alike reports whether a name is that of columns of one kind, which hold what they are given.
func (ss sources) alike(name string) bool {
	kind := anyKind
	for _, s := range ss {
		c := s.table.ColumnInAnyCase(name)
		if c == nil {
			continue
		}
		if of := kindOf(c.Type); c.Generated || of == anyKind || kind != anyKind && of != kind {
			return false
		}
		kind = kindOf(c.Type)
	}
	return kind != anyKind
}
