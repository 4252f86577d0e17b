package postgres

import (
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A Table is what the rewriter must know of one table or view.
type Table struct {
	rewrite.Table
	Columns []Column // the client's own, in order; without isotap's
	Indexes []Index
	// TellsText says that a trigger, a column's default or a view's query may ask for the text of the statement
	// that runs.
	TellsText bool
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
	rewrite.Column
	// Custom says that functions of the database's own may be called when a value is read or written as text: its
	// type is no enumeration, nor one that the server brings along.
	Custom bool
}

// An Index of a table.
type Index struct {
	rewrite.Index
	// Orders are the operators by whose results the index gives rows in order, as a distance.
	Orders []string
}

// Column finds a column by its name as the server spells it; nil when there is none.
func (t *Table) Column(name string) *Column { return rewrite.ColumnNamed(t.Columns, name) }
