package mysql

import (
	"slices"
	"strings"
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
	Name         string   // history.Row.Table: "schema.table"
	Columns      []Column // the client's own, in order; without isotap's
	Indexes      []Index
	View         bool
	Temporary    bool
	Instrumented bool // it has isotap's columns
	// Exposed says that SELECT * shows isotap's columns: the server has no invisible ones.
	Exposed bool
	// WListBytes is the size of isotap_wlist; lists are cut at whole tags to fit it. 0: unbounded.
	WListBytes int
	// Triggers by the event that they fire on.
	InsertTrigger, UpdateTrigger, DeleteTrigger bool
	// CascadesUpdate and CascadesDelete say to what a foreign key of another table reacts with an action
	// (CASCADE, SET NULL, SET DEFAULT): the server then writes rows that no statement names. Of updates it is
	// those of some columns; an empty name stands for any, where it is not known which, or the server computes it.
	CascadesUpdate []string
	CascadesDelete bool
}

// A Column of a table.
type Column struct {
	Name      string
	Type      string // the type's name in lower case, without size: "int", "varchar", "float", ...
	Full      string // the type as the server spells it: "decimal(10,2) unsigned"
	Collation string // empty for what is no text
	Invisible bool
	Generated bool
	NotNull   bool
	// Numbered says that the server numbers the column (AUTO_INCREMENT), Filled that it works out what the column
	// holds where an INSERT does not say it (CURRENT_TIMESTAMP, an expression), and Refreshed that it does so on each
	// UPDATE.
	Numbered, Filled, Refreshed bool
}

// An Index of a table. The clustered index of InnoDB (its primary key) holds every column; a
// secondary one holds its own and the primary key's.
type Index struct {
	Name    string
	Columns []string // a prefix or functional part appears as ""
	Primary bool
	Unique  bool
}

// CascadesFrom reports whether a foreign key of another table reacts when the column gets another value. Names that
// differ in case only count as one.
func (t *Table) CascadesFrom(column string) bool {
	return slices.ContainsFunc(t.CascadesUpdate, func(c string) bool { return c == "" || strings.EqualFold(c, column) })
}

// Column finds a column by its name as the server spells it; nil when there is none.
func (t *Table) Column(name string) *Column {
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return &t.Columns[i]
	}
	return nil
}

func visibleColumns(t *Table) []string {
	var names []string
	for _, c := range t.Columns {
		if !c.Invisible {
			names = append(names, c.Name)
		}
	}
	return names
}
