package rewrite

import (
	"slices"
	"strings"
)

// A Table is what the rewriters of both families must know of one table or view. Each family's own has it, and more.
type Table struct {
	Name         string // history.Row.Table: "schema.table"
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

// CascadesFrom reports whether a foreign key of another table reacts when the column gets another value. Names that
// differ in case only count as one.
func (t *Table) CascadesFrom(column string) bool {
	return slices.ContainsFunc(t.CascadesUpdate, func(c string) bool { return c == "" || strings.EqualFold(c, column) })
}

// A Column is what the rewriters of both families must know of a table's column.
type Column struct {
	Name      string
	Type      string // the type's name in lower case, without size: "int", "varchar", and as pg_type has it, "int4"
	Full      string // the type as the server spells it: "decimal(10,2) unsigned", "numeric(10,2)"
	Collation string // empty for what is no text
	Generated bool
	NotNull   bool
}

func (c Column) named(name string) bool { return c.Name == name }

// ColumnNamed finds a family's column by its name as the server spells it; nil when there is none.
func ColumnNamed[C interface{ named(name string) bool }](columns []C, name string) *C {
	if i := slices.IndexFunc(columns, func(c C) bool { return c.named(name) }); i >= 0 {
		return &columns[i]
	}
	return nil
}

// An Index of a table.
type Index struct {
	Name    string
	Columns []string // a prefix, a function or an expression appears as ""
	Primary bool
	Unique  bool
}
