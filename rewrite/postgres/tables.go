package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// table finds the table that a name means in this session, or says why isotap cannot observe it. Neither: it
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
	case n.SchemaName == "pg_temp":
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
		if tempTables && !strings.HasPrefix(schema, "pg_temp_") {
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
