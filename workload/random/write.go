package random

import (
	"fmt"
	"strconv"
	"strings"
)

// target draws the table that a statement writes. Until [source.done] subqueries leave it alone where the engine wants
// that.
func (s *source) target() (*table, scope) {
	t, sc := s.whole()
	if !s.g.engine.changesWhatItReads() {
		s.written = t
	}
	return t, sc
}

// done ends a statement.
func (s *source) done(sql string) string {
	s.written = nil
	return sql
}

// newKey draws a value for a key column that hardly any row has.
func (s *source) newKey() string { return strconv.Itoa(100 + s.n(1_000_000)) }

// row draws the values of a new row for the columns.
func (s *source) row(t *table, columns []*column, key func() string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		if values[i] = s.value(c); t.isKey(c) {
			values[i] = key()
		}
	}
	return "(" + strings.Join(values, ", ") + ")"
}

// given are the columns that an INSERT gives values for: those it must, and some others.
func (s *source) given(t *table) []*column {
	var all []*column
	for _, c := range t.writable(true) {
		if c.required || s.chance(70) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return t.writable(true)
	}
	return all
}

func (s *source) insert() string {
	t, _ := s.target()
	columns := s.given(t)
	rows := make([]string, 1+s.n(2))
	for i := range rows {
		rows[i] = s.row(t, columns, s.newKey)
	}
	return s.done(fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, names(columns), strings.Join(rows, ", ")))
}

// insertSelect inserts what a query gives: values made for each column, out of another table's rows.
func (s *source) insertSelect() string {
	t, _ := s.target()
	i, from, ok := s.table()
	if !ok { // there is no other table to read
		s.written = nil
		return s.query()
	}
	columns := s.given(t)
	values := make([]string, len(columns))
	for n, c := range columns {
		switch {
		case t.isKey(c), c.unique:
			values[n] = s.value(c)
			if t.isKey(c) {
				values[n] = s.newKey()
			}
		case c.refers != nil:
			values[n] = "NULL"
		case c.words != nil:
			values[n] = s.value(c)
		case c.required || c.of == date:
			values[n] = s.typed(c.of)
		default:
			values[n] = s.expression(scope{i}, c.of, 1)
		}
	}
	order := ""
	if s.g.profile.Closed {
		order = " ORDER BY " + i.everyColumn()
	}
	return s.done(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s%s LIMIT 1", t.name, names(columns),
		strings.Join(values, ", "), from, s.condition(scope{i}, 1), order))
}

// oldKey draws a key that a row may have.
func (s *source) oldKey(t *table) string {
	return s.keyIn(t, func() int { return 1 + s.n(s.g.profile.Rows+2) })
}

// upsert inserts a row that may be there, and changes it then.
func (s *source) upsert() string {
	t, sc := s.target()
	set := s.assignments(t, sc[:0], 1)
	if len(t.key) == 0 || set == "" {
		return s.done(s.insert())
	}
	columns := t.writable(true)
	sql := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, names(columns), s.row(t, columns, func() string { return s.oldKey(t) }))
	switch {
	case !s.g.engine.postgresql():
		sql += " ON DUPLICATE KEY UPDATE " + set
	case s.chance(30):
		sql += " ON CONFLICT DO NOTHING"
	default:
		sql += " ON CONFLICT (" + names(t.key) + ") DO UPDATE SET " + set
	}
	return s.done(sql)
}

// replace is the MySQL family's REPLACE; PostgreSQL has none.
func (s *source) replace() string {
	if s.g.engine.postgresql() {
		return s.upsert()
	}
	t, _ := s.target()
	columns := t.writable(true)
	return s.done(fmt.Sprintf("REPLACE INTO %s (%s) VALUES %s", t.name, names(columns), s.row(t, columns, func() string { return s.oldKey(t) })))
}

// assignments draws what an UPDATE sets; empty where the table has nothing but its key.
func (s *source) assignments(t *table, sc scope, most int) string {
	columns := t.writable(false)
	if len(columns) == 0 {
		return ""
	}
	var all []string
	for _, c := range s.columnsIn(1+s.n(min(most, len(columns))), columns) {
		all = append(all, c.name+" = "+s.assigned(c, sc))
	}
	return strings.Join(all, ", ")
}

// assigned draws a new value of a column, made of the row where that is sure to fit.
func (s *source) assigned(c *column, sc scope) string {
	if c.required || c.unique || c.refers != nil || c.words != nil || c.of == date || s.chance(40) {
		return s.value(c)
	}
	return s.expression(sc, c.of, s.depth())
}

func (s *source) update() string {
	t, sc := s.target()
	set := s.assignments(t, sc, 2)
	if set == "" {
		return s.done(s.insert())
	}
	sql := "UPDATE " + t.name + " SET " + set + s.narrow(t, sc)
	if !s.g.engine.postgresql() && len(t.key) > 0 && s.chance(10) {
		sql += " ORDER BY " + names(t.key) + " LIMIT " + strconv.Itoa(1+s.n(2))
	}
	return s.done(sql)
}

func (s *source) delete() string {
	t, sc := s.target()
	return s.done("DELETE FROM " + t.name + s.narrow(t, sc))
}

// narrow draws a WHERE clause that leaves most rows out. One row of a table that others refer to stays.
func (s *source) narrow(t *table, sc scope) string {
	if len(t.key) > 0 && s.chance(s.g.profile.Keyed) {
		return " WHERE " + t.key[0].name + " = " + s.keyIn(t, func() int { return 2 + s.n(s.g.profile.Rows+1) })
	}
	if s.g.profile.Deep && s.chance(35) {
		return s.wide(sc)
	}
	return " WHERE " + s.comparison(sc, 1) + " AND " + s.condition(sc, s.depth())
}
