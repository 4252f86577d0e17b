// Package footprint tells what a SQL statement of either family reads and writes, relation by relation and attribute by
// attribute, in the words of package robust: the statements of a basic transaction program that stand for it.
//
// The statement is read by its family's grammar: TiDB's parser for the MySQL family (mysql.go), the port of
// PostgreSQL's that package rewrite/postgres uses (postgres.go, ADR 20). Both give a tree of what matters here
// (tree.go), from which the accesses are derived (read.go, write.go), by the schema of its tables (schema.go), which
// files of definitions give (ddl.go and its kind).
//
// What cannot be decided is taken so that no dependency is missed, and told in notes:
//
//   - A statement is by key when its condition has an equality of each column of a primary key, or of a unique key of
//     NOT NULL columns, with a parameter, a constant or arithmetic of these. Conditions beside these make it a choice:
//     what they look at is read, and the row is written, or it is not.
//   - It is by predicate otherwise; always in joins (a statement for each relation), subqueries, aggregates, which give
//     a row where there is none, with SKIP LOCKED, and where it changes the key itself.
//   - INSERT … ON CONFLICT, ON DUPLICATE KEY UPDATE, INSERT IGNORE look for the key by a predicate, and then insert, or
//     update, or neither. REPLACE deletes by a predicate and inserts. MERGE does all that it may do, by a predicate.
//   - A foreign key with an action makes a statement over the table that refers.
//
// All functions are pure, and may be called from several goroutines.
package footprint

import (
	"errors"
	"fmt"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
)

// Param spells parameter n of a statement, counted from 1, as the family has it.
func Param(family dbms.Family, n int) string {
	if family == dbms.MySQLFamily {
		return "?"
	}
	return fmt.Sprintf("$%d", n)
}

// A reader reads a family's grammar.
type reader interface {
	read(text string) (*query, error)
	define(s *Schema, text string) error
}

var readers = map[dbms.Family]reader{dbms.PostgreSQLFamily: postgresReader{}, dbms.MySQLFamily: mysqlReader{}}

// errNotRead is the error of statements of a kind whose accesses are not known: others than SELECT, INSERT, UPDATE,
// DELETE, REPLACE and MERGE.
var errNotRead = errors.New("of this kind of statement it is not known what it reads and writes")

// A Footprint is what a statement does, in order.
type Footprint struct {
	Steps []Step
	Notes []string // what could not be decided
}

// A Step does one of several things.
type Step struct {
	Either   []Access // one of these
	Optional bool     // or nothing
	Repeated bool     // any number of times
}

// An Access is what a statement does to the rows of one relation: a statement of a BTP.
type Access struct {
	Table              *Table
	Type               robust.Type
	Lock               robust.Lock
	PRead, Read, Write robust.Set
	// Key are the columns of the key by which the row is found; nil if it is not.
	Key []string
	// Values are, by column, what is known of all rows that are used: "$n", that the column equals parameter n, or "="
	// and a constant.
	Values map[string]string
	// Shows are the columns that the client gets of the row, by their place among all that it gets, from 0. It is nil
	// where that may be other rows too.
	Shows map[int]string
}

// Of reads a statement. Parameters are spelled as the family does ($1, ?). An error says why it cannot be read, or
// which table or column there is not.
func Of(family dbms.Family, text string, schema *Schema) (*Footprint, error) {
	q, err := readers[family].read(text)
	if err != nil {
		return nil, err
	}
	d := deriver{schema: schema}
	d.query(q, nil, true)
	if d.err != nil {
		return nil, d.err
	}
	return &Footprint{d.steps, d.notes}, nil
}

// Anything returns the steps of a statement of which no more is known than a table that it reads, and whether it
// writes.
func Anything(t *Table, writes bool) []Step {
	all := robust.Of(t.Attributes()...)
	if !writes {
		return []Step{{Either: []Access{{Table: t, Type: robust.PredSel, PRead: all, Read: all}}}}
	}
	return []Step{
		{Either: []Access{{Table: t, Type: robust.PredUpd, PRead: all, Read: all, Write: all}}},
		{Either: []Access{{Table: t, Type: robust.PredDel, PRead: all, Write: all}}},
		{Either: []Access{{Table: t, Type: robust.Ins, Write: all}}, Repeated: true},
	}
}
