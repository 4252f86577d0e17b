package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// table finds the table that a name means in this session, or the reason why isotap cannot observe it. Neither: it
// is one of the server's own catalogs, whose rows are nobody's.
func (pl *planner) table(n *ast.RangeVar) (*Table, history.Reason) {
	t, reason := pl.lookup(n)
	if t != nil && slices.ContainsFunc(t.Columns, func(c Column) bool { return rewrite.IsColumn(c.Name) }) {
		pl.whole = history.ReasonOwnName // a star may show it
	}
	if t != nil && t.View && t.TellsText {
		pl.whole = history.ReasonOwnText
	}
	switch {
	case t == nil:
		return nil, reason
	case t.Temporary:
		return nil, history.ReasonTemporaryTable
	case t.Materialized:
		return nil, history.ReasonMaterializedView
	case t.View:
		return nil, history.ReasonView
	case t.Foreign, pl.holdsForeign(t):
		return nil, history.ReasonForeignTable
	case t.OtherStorage:
		return nil, history.ReasonStorage
	case pl.rewriter.schema.Reads(pl.session.Role, t):
		return t, history.Reason{}
	case t.RowSecurity:
		return nil, history.ReasonRowSecurity
	}
	return nil, history.ReasonPrivilege
}

// lookup finds what a name means, whatever it is.
func (pl *planner) lookup(n *ast.RangeVar) (*Table, history.Reason) {
	switch {
	case n.CatalogName != "":
		return nil, history.ReasonUnknownTable
	case n.SchemaName == "" && slices.Contains(pl.silent, n.RelName):
		return nil, history.Reason{}
	case n.SchemaName == "" && slices.Contains(pl.ctes, n.RelName):
		return nil, history.ReasonWith
	case n.SchemaName == "pg_catalog", n.SchemaName == "information_schema", n.SchemaName == "pg_toast":
		return nil, history.Reason{}
	case n.SchemaName == TemporarySchema:
		return nil, history.ReasonTemporaryTable
	case pl.session.unsettled(n.RelName):
		return nil, history.ReasonUncommittedTable
	case n.SchemaName != "":
		if t := pl.rewriter.schema.Table(n.SchemaName, n.RelName); t != nil && !t.Unread {
			return t, history.Reason{}
		}
		return nil, history.ReasonUnknownTable
	}
	tempTables := pl.session.hasTempTable(n.RelName)
	for schema := range pl.session.Path.All() {
		if tempTables && !isTemporary(schema) {
			continue
		}
		if t := pl.rewriter.schema.Table(schema, n.RelName); t != nil && t.Unread {
			return nil, history.ReasonUnknownTable
		} else if t != nil {
			return t, history.Reason{}
		}
	}
	switch {
	case tempTables: // the schema does not have it yet
		return nil, history.ReasonTemporaryTable
	case strings.HasPrefix(n.RelName, "pg_"):
		return nil, history.Reason{}
	}
	return nil, history.ReasonUnknownTable
}

// holdsForeign reports whether some of a table's rows are on other servers.
func (pl *planner) holdsForeign(t *Table) bool {
	for _, leaf := range t.Leaves {
		schema, name, _ := strings.Cut(leaf, ".")
		if l := pl.rewriter.schema.Table(schema, name); l != nil && (l.Foreign || l.Unread) {
			return true
		}
	}
	return false
}

// unsettled reports whether the session may see a table otherwise than the schema has it.
func (s *Session) unsettled(table string) bool {
	return s.AllUnsettled || s.Unsettled.Has(table)
}

// maxNames bounds each of the session's lists of names, in bytes: of more tables nothing is known.
const maxNames = 16 << 10

// Unsettle adds what a statement that is sent creates or changes to the tables that are not as the schema has them.
func (s *Session) Unsettle(p *Plan) {
	s.AllUnsettled = s.AllUnsettled || p.Schema.Changes && len(p.Schema.Changed) == 0 || s.manyNames()
	if s.manyNames() {
		return
	}
	for _, tables := range [][]rewrite.TableName{p.Schema.CreatesTemp, p.Schema.Changed} {
		for _, t := range tables {
			if t.Table != "" {
				s.Unsettled = s.Unsettled.Add(t.Table)
			}
		}
	}
}

// manyNames reports whether a list has reached its bound.
func (s *Session) manyNames() bool { return max(len(s.Unsettled), len(s.Created)) > maxNames }

// AddTempTables adds the temporary tables that a statement creates to those of the session, or to a list like
// Session.TempTables.
func AddTempTables(tempTables rewrite.List, p *Plan) rewrite.List {
	for _, t := range p.Schema.CreatesTemp {
		if t.Table != "" && len(tempTables) <= maxNames {
			tempTables = tempTables.Add(t.Table)
		}
	}
	return tempTables
}

// hasTempTable reports whether the session made a temporary table of that name.
func (s *Session) hasTempTable(table string) bool {
	return s.TempTables != "" && (len(s.TempTables) > maxNames || s.TempTables.Has(table))
}

// written finds the table that a statement writes, which is never one that WITH defines. Catalogs and what has
// rules are refused.
func (pl *planner) written(n *ast.RangeVar) (*Table, error) {
	ctes, silent := pl.ctes, pl.silent
	pl.ctes, pl.silent = nil, nil
	t, reason := pl.table(n)
	pl.ctes, pl.silent = ctes, silent
	switch {
	case t == nil && reason.IsZero():
		return nil, refusal(history.ReasonCatalog)
	case t == nil:
		return nil, refusal(reason)
	case t.Rules:
		return nil, refusal(history.ReasonRule)
	case t.TellsText:
		pl.whole = history.ReasonOwnText
	}
	pl.plan.Target = cmp.Or(t.Root, t.Name)
	return t, nil
}

// A source is a base table in a FROM clause, or the one that a statement writes.
type source struct {
	table *Table
	ref   string // the name that columns are qualified by
	names []string
	only  bool // without those that inherit from it
	// tagged says that its rows are known by isotap's columns.
	tagged bool
}

// sourcesOf finds the base tables of an item of a FROM clause, in the order of the text. What has no rows of tables
// is passed over.
func (pl *planner) sourcesOf(n ast.Node) ([]source, error) {
	switch n := bare(n).(type) {
	case *ast.RangeVar:
		t, reason := pl.table(n)
		if t == nil {
			if reason.IsZero() {
				return nil, nil
			}
			return nil, refusal(reason)
		}
		s, err := pl.sourceOf(t, n)
		return []source{s}, err
	case *ast.JoinExpr:
		if n.Alias != nil {
			return nil, refusal(history.ReasonJoinAlias) // it hides the tables' names
		}
		left, err := pl.sourcesOf(n.Larg)
		if err != nil {
			return nil, err
		}
		right, err := pl.sourcesOf(n.Rarg)
		return append(left, right...), err
	case *ast.RangeTableSample:
		return pl.sourcesOf(n.Relation)
	case *ast.RangeFunction:
		return nil, nil
	case *ast.RangeSubselect:
		return nil, refusal(history.ReasonDerivedTable)
	}
	return nil, refusal(history.ReasonFromItem)
}

// sourceOf returns a table under the names that a FROM clause gives it and its columns.
func sourceOf(t *Table, n *ast.RangeVar) (source, error) {
	s := source{table: t, ref: n.RelName, only: !n.Inh}
	for _, c := range t.Columns {
		s.names = append(s.names, c.Name)
	}
	if n.Alias == nil {
		return s, nil
	}
	s.ref = n.Alias.AliasName
	for i, c := range nodes(n.Alias.ColNames) {
		alias, ok := c.(*ast.String)
		if !ok || i >= len(s.names) {
			return s, refusal(history.ReasonUnparsable)
		}
		s.names[i] = alias.SVal
	}
	if slices.ContainsFunc(s.names, isSystemColumn) {
		return s, refusal(history.ReasonSameName) // it would be found first
	}
	return s, nil
}

// isSystemColumn reports whether a name is that of a column that every table has. No table may have another of that
// name, but an alias may give it to one.
func isSystemColumn(name string) bool {
	switch name {
	case "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax":
		return true
	}
	return false
}

// column returns the name that a column of the table has here.
func (s *source) column(name string) (string, error) {
	i := slices.IndexFunc(s.table.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return "", refusal(history.ReasonUnknownTable)
	}
	here := s.names[i]
	for j, other := range s.names {
		if j != i && other == here {
			return "", refusal(history.ReasonSameName)
		}
	}
	return here, nil
}

// sourceOf returns a table under the names that a FROM clause gives it and its columns.
func (pl *planner) sourceOf(t *Table, n *ast.RangeVar) (source, error) {
	s, err := sourceOf(t, n)
	s.tagged = pl.tagged(t)
	return s, err
}

// columnOf returns the reference to a column of the source.
func (s *source) columnOf(name string) string { return quoted(s.ref) + "." + quoted(name) }

// tagged reports whether the rows of a table are known by isotap's columns.
func (pl *planner) tagged(t *Table) bool {
	return pl.rewriter.options.Columns && t.Instrumented
}

// has reports whether the source has a column of that name.
func (s *source) has(name string) bool { return slices.Contains(s.names, name) }
