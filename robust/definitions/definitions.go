// Package definitions reads how the tables of a live database are defined, and writes it as SQL that package footprint
// reads: columns, keys, foreign keys, triggers, views. Columns of isotap's own are left out, and so are defaults and
// what triggers do.
//
// What the login may not see is not there. Tables can be made by the text: what counts up by a sequence is an identity
// column there, enums are texts, and so are values of types that TiDB's parser does not know.
package definitions

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/rewrite"
)

// A Table is how a table or a view is defined.
type Table struct {
	Schema, Name string // as the catalog has them
	Spelled      string // the name as SQL spells it
	SQL          string // makes the table, with its keys; empty for a view
	// References is what names other tables: foreign keys and triggers, or the view.
	References string
}

// Views says how PostgreSQL's views are read.
type Views uint8

const (
	// AsWritten gives their queries. The server locks the tables that they read for the moment (ACCESS SHARE).
	AsWritten Views = iota
	// AsUsed gives queries that read the same columns of the same tables. Nothing is locked.
	AsUsed
)

// Tables returns the tables and views of the target's database.
func Tables(ctx context.Context, target dsn.Target, views Views) ([]Table, error) {
	var tables []Table
	var err error
	if target.Family == dbms.PostgreSQLFamily {
		tables, err = readPostgres(ctx, target, views)
	} else {
		tables, err = readMySQL(ctx, target)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tables of %s: %w", target, err)
	}
	return tables, nil
}

// Read returns the definitions of the tables of the target's database.
func Read(ctx context.Context, target dsn.Target) (string, error) {
	tables, err := Tables(ctx, target, AsWritten)
	if err != nil {
		return "", err
	}
	return Text(tables), nil
}

// Text writes definitions one after the other, so that each names only what stands before it.
func Text(tables []Table) string {
	var b strings.Builder
	for _, t := range tables {
		b.WriteString(t.SQL)
	}
	for _, t := range tables {
		b.WriteString(t.References)
	}
	return b.String()
}

// own reports whether a column is isotap's.
func own(column string) bool { return column == rewrite.RowIDColumn || column == rewrite.WListColumn }

// A reading gathers a database's definitions.
type reading struct {
	tables []*Table
	named  map[string]*Table // the tables, without views, as SQL spells them
	// elements are those of CREATE TABLE of the last table.
	elements []string
}

func newReading() reading { return reading{named: make(map[string]*Table)} }

// column adds a column to a table, which is a new one if it is not the last.
func (r *reading) column(schema, name, spelled, definition string) {
	if last := r.last(); last == nil || last.Spelled != spelled {
		r.end()
		t := &Table{Schema: schema, Name: name, Spelled: spelled}
		r.tables = append(r.tables, t)
		r.named[spelled] = t
	}
	if definition != "" {
		r.elements = append(r.elements, definition)
	}
}

// end ends the last table.
func (r *reading) end() {
	if last := r.last(); last != nil && last.SQL == "" {
		last.SQL = fmt.Sprintf("CREATE TABLE %s (\n  %s\n);\n", last.Spelled, strings.Join(r.elements, ",\n  "))
	}
	r.elements = nil
}

func (r *reading) last() *Table {
	if len(r.tables) == 0 {
		return nil
	}
	return r.tables[len(r.tables)-1]
}

// key adds a statement that makes a key of a table. The table may have gone since columns were read.
func (r *reading) key(table, statement string) {
	if t := r.named[table]; t != nil {
		t.SQL += statement + ";\n"
	}
}

// reference adds a statement that makes a foreign key or a trigger of a table, likewise.
func (r *reading) reference(table, statement string) {
	if t := r.named[table]; t != nil {
		t.References += statement + ";\n"
	}
}

// view adds a view.
func (r *reading) view(schema, name, spelled, query string) {
	r.tables = append(r.tables, &Table{Schema: schema, Name: name, Spelled: spelled,
		References: fmt.Sprintf("CREATE VIEW %s AS %s;\n", spelled, strings.TrimSuffix(query, ";"))})
}

// done returns what was gathered.
func (r *reading) done() []Table {
	tables := make([]Table, len(r.tables))
	for i, t := range r.tables {
		tables[i] = *t
	}
	return tables
}
