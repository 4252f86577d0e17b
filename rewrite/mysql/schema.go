package mysql

import (
	"strings"

	"github.com/isotap/isotap/rewrite"
)

// A Schema tells a rewriter what the tables look like. Implementations are safe for concurrent use;
// the tables they return are never changed afterwards.
type Schema interface {
	// Table finds a table or view; nil when there is none of that name. An empty schema name finds
	// nothing: the rewriter fills in the session's default schema first.
	Table(schema, name string) *Table
}

// A Table is what the rewriter must know of one table or view.
type Table struct {
	rewrite.Table
	Columns []Column // the client's own, in order; without isotap's
	// Query is that of a view, as the server prints it with the names of schemas; empty where it does not tell.
	Query string
	// Indexes: the clustered index of InnoDB (its primary key) holds every column; a secondary one holds its own and
	// the primary key's.
	Indexes []rewrite.Index
}

// A Column of a table.
type Column struct {
	rewrite.Column
	Invisible bool
	// AutoIncrement says that the column is AUTO_INCREMENT, ComputedDefault that the server works out what it holds
	// where an INSERT does not say it (CURRENT_TIMESTAMP, an expression), and OnUpdate that it does so on each UPDATE.
	AutoIncrement, ComputedDefault, OnUpdate bool
	// Default is the literal that a row has where an INSERT does not name the column; empty where it is not known.
	Default string
}

// Column finds a column by its name as the server spells it; nil when there is none.
func (t *Table) Column(name string) *Column { return rewrite.ColumnNamed(t.Columns, name) }

func visibleColumns(t *Table) []string {
	var names []string
	for _, c := range t.Columns {
		if !c.Invisible {
			names = append(names, c.Name)
		}
	}
	return names
}

// ColumnInAnyCase finds a column by its name in any case, as the servers do; nil when there is none.
func (t *Table) ColumnInAnyCase(name string) *Column {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}
