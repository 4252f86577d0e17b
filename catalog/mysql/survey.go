package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/rewrite"
)

// A subject is a table as [Instrument] and [Strip] look at it.
type subject struct {
	schema, table string
	kind, engine  string // information_schema's TABLE_TYPE and ENGINE
	rowID, wList  *auxiliary
	onUpdate      []string // columns that an UPDATE sets by itself
	updateTrigger bool
}

// An auxiliary is a column that bears the name of one of isotap's.
type auxiliary struct {
	ours   bool // it is defined as isotap defines it
	preset bool // it has its default
}

// String returns schema.table, for people.
func (s *subject) String() string { return s.schema + "." + s.table }

// quoted returns the table's name for a statement.
func (s *subject) quoted() string { return quote(s.schema) + "." + quote(s.table) }

// obstacle returns why the table cannot have isotap's columns; empty when it can.
func (s *subject) obstacle() string {
	switch {
	case s.kind == "VIEW":
		return "a view: the tables behind it are instrumented"
	case s.kind == "SEQUENCE":
		return "a sequence"
	case s.kind == "SYSTEM VERSIONED":
		return "system-versioned: its history would keep isotap's columns"
	case s.kind != "BASE TABLE":
		return strings.ToLower(s.kind)
	case !strings.EqualFold(s.engine, "InnoDB"):
		return fmt.Sprintf("its engine is %s: only InnoDB has transactions to observe", s.engine)
	case s.rowID != nil && !s.rowID.ours, s.wList != nil && !s.wList.ours:
		return fmt.Sprintf("it has a column %s or %s that is not isotap's", rewrite.RowIDColumn, rewrite.WListColumn)
	}
	return ""
}

// instrumented reports whether nothing is left to do.
func (s *subject) instrumented() bool { return s.rowID != nil && s.rowID.preset && s.wList != nil }

// survey looks at the tables that the options cover, in order of their names.
func survey(ctx context.Context, c *Conn, o catalog.Options, ours columns) ([]*subject, error) {
	var subjects []*subject
	byName := map[name]*subject{}
	err := each(ctx, c, Query{Purpose: "the tables", Columns: 4,
		Text: "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES"}, func(r row) {
		if !covers(o, r[0]) {
			return
		}
		s := &subject{schema: r[0], table: r[1], kind: r[2], engine: r[3]}
		subjects = append(subjects, s)
		byName[name{s.schema, s.table}] = s
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, c, Query{Purpose: "the columns that concern isotap's", Columns: 6,
		Text: `SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, EXTRA, COLUMN_DEFAULT FROM information_schema.COLUMNS
		WHERE COLUMN_NAME IN ('` + rewrite.RowIDColumn + `', '` + rewrite.WListColumn + `') OR EXTRA LIKE '%on update%'`}, func(r row) {
		if s := byName[name{r[0], r[1]}]; s != nil {
			s.addColumn(r[2], strings.ToLower(r[3]), r[4], r[5], ours)
		}
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, c, Query{Purpose: "the UPDATE triggers of tables", Columns: 2,
		Text: `SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS
		WHERE EVENT_MANIPULATION = 'UPDATE'`}, func(r row) {
		if s := byName[name{r[0], r[1]}]; s != nil {
			s.updateTrigger = true
		}
	})
	slices.SortFunc(subjects, func(a, b *subject) int { return strings.Compare(a.String(), b.String()) })
	return subjects, err
}

func (s *subject) addColumn(column, kind, extra, preset string, ours columns) {
	a := &auxiliary{preset: preset != "" && preset != "NULL"}
	switch column {
	case rewrite.RowIDColumn:
		a.ours = ours.made(extra) && kind == "varbinary(64)"
		s.rowID = a
	case rewrite.WListColumn:
		a.ours = ours.made(extra) && (strings.HasPrefix(kind, "varbinary(") || kind == "longblob")
		s.wList = a
	default:
		s.onUpdate = append(s.onUpdate, column)
	}
}

// each calls f with the rows of a query's result.
func each(ctx context.Context, c *Conn, q Query, f func(row)) error {
	rows, err := c.Query(ctx, q)
	for _, r := range rows {
		f(r)
	}
	return err
}
