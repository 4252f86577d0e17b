package postgres

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

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
	// TellsText reports whether a trigger, a column's default or a view's query may ask for the text of the statement
	// that runs.
	TellsText bool
	// CascadesUpdate and CascadesDelete say to what a foreign key of another table reacts with an action
	// (CASCADE, SET NULL, SET DEFAULT): the server then writes rows that no statement names. Of updates it is
	// those of some columns; an empty name stands for any, where it is not known which, or the server computes it.
	CascadesUpdate []string
	CascadesDelete bool

	// Unread says that nothing is known of the table: it was changed, and could not be read since.
	Unread bool
	OID    uint32
	// Stored are all columns in the server's order, isotap's with them; nil where there are none of isotap's.
	Stored []string
	// Spelled is the table's name as the server reads it wherever it stands: "public"."item".
	Spelled string
	// Rows is about how many rows the table had, with those that inherit from it, when the schema was read. 0: not
	// known.
	Rows int64
	// Key are the columns whose values tell the rows apart, in this order: the primary key, or where it cannot
	// (it is checked late, or equal values of it may look different) a unique index; nil when there is none.
	Key []string
	// Partitioned says that the table holds no rows itself, Root names the partitioned table at the top
	// (history.Row.Table) of a partition, and Leaves are the tables that hold a table's rows, by oid, where
	// there are others than itself: partitions and tables that inherit.
	Partitioned bool
	Root        string
	Leaves      map[uint32]string
	// OtherStorage says that some of the rows are not kept as versions that have a ctid and an xmin (an access
	// method other than heap).
	OtherStorage bool
	// Materialized and Foreign say what a table is that is no ordinary one.
	Materialized, Foreign bool
	// Bases are, of a View, tables of which each of its rows tells by their key which row it was made of. Beside is
	// the reason why there may be others that it was made of; empty where there are none.
	Bases        []Base
	OtherSources history.Reason
	// Unlogged says that the write-ahead log does not tell of its rows.
	Unlogged bool
	// Rules says that the table has rewrite rules, RowSecurity that it has row security switched on (and
	// Forced: for its owner too).
	Rules, RowSecurity, RowSecurityForced bool
}

// A Base is a table that rows of a view are made of.
type Base struct {
	Table rewrite.TableName
	Only  bool     // without those that inherit from it
	Key   []string // the view's columns that hold the values of the table's key, or NULL where there is no row of it
}

// A Column of a table.
type Column struct {
	Name      string
	Type      string // the type's name in lower case, without size: "int", "varchar", "float", ...
	Full      string // the type as the server spells it: "decimal(10,2) unsigned"
	Collation string // empty for what is no text
	Generated bool
	NotNull   bool
	// Custom says that functions of the database's own may be called when a value is read or written as text: its
	// type is no enumeration, nor one that the server brings along.
	Custom bool
}

// An Index of a table.
type Index struct {
	Name    string
	Columns []string // a prefix or functional part appears as ""
	Primary bool
	Unique  bool
	// Orders are the operators by whose results the index gives rows in order, as a distance.
	Orders []string
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
