package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// The schema does not have the tables that an open transaction has created. Of those to which isotap has added its
// columns the session keeps what the client gave them, so that they stay hidden.

// Create takes what a statement that was sent creates or changes.
func (s *Session) Create(p *Plan) {
	if s.Created != "" && p.Schema.Changes {
		s.Created = s.without(p.Schema.Changed)
	}
	if len(p.Schema.Created) > 0 && len(s.Created) <= maxNames {
		s.Created = s.Created.Append(string(rewrite.ListOf(p.Schema.Created...)))
	}
}

// without are the created tables without those of some names; of none: without all.
func (s *Session) without(changed []rewrite.TableName) rewrite.List {
	var kept rewrite.List
	for entry := range s.Created.All() {
		name := rewrite.List(entry).Texts()[0]
		if len(changed) > 0 && !slices.ContainsFunc(changed,
			func(t rewrite.TableName) bool { return t.Table == name }) {
			kept = kept.Append(entry)
		}
	}
	return kept
}

// created returns a table that the transaction has created; nil where it is not known.
func (s *Session) created(n *ast.RangeVar) *Table {
	for entry := range s.Created.All() {
		names := rewrite.List(entry).Texts()
		if names[0] != n.RelName || n.CatalogName != "" || n.SchemaName != "" {
			continue
		}
		t := &Table{Name: names[0], Exposed: true, Stored: append(slices.Clone(names[1:]), rewrite.RowIDColumn,
			rewrite.WListColumn)}
		for _, column := range names[1:] {
			t.Columns = append(t.Columns, Column{Name: column})
		}
		return t
	}
	return nil
}

// generated reports whether the server computes a column, which COPY then does not read.
func generated(n *ast.ColumnDef) bool {
	return slices.ContainsFunc(nodes(n.Constraints), func(c ast.Node) bool {
		k, ok := c.(*ast.Constraint)
		return ok && k.Contype == ast.CONSTR_GENERATED
	})
}
