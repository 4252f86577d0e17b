package postgres

import (
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

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
