package random

import (
	"fmt"
	"strconv"
	"strings"
)

// query draws a SELECT that locks nothing.
func (s *source) query() string {
	if s.g.engine.old() {
		return oneOf(s, s.plain, s.plain, s.plain, s.join, s.aggregate, s.grouped, s.distinct, s.derived)()
	}
	if s.g.profile.Deep && s.chance(50) {
		return s.deepQuery()
	}
	return oneOf(s, s.plain, s.plain, s.plain, s.join, s.aggregate, s.grouped, s.distinct, s.setOperation, s.derived,
		s.with, s.window)()
}

// whole is a table as the only item of FROM. Its columns are named with it, since subqueries have columns of the same
// names.
func (s *source) whole() (*table, scope) {
	t := s.oneTable(s.g.tables)
	return t, scope{{t.name, t.columns, t}}
}

// where draws a WHERE clause: a row by its key, or any condition, or none.
func (s *source) where(sc scope, key []*column) string {
	switch n := s.n(100); {
	case n < 40 && len(key) > 0:
		return " WHERE " + sc[0].name(key[0]) + " = " +
			s.keyIn(sc[0].table, func() int { return 1 + s.n(s.g.profile.Rows+1) })
	case n < 85:
		return " WHERE " + s.condition(sc, s.depth())
	}
	return ""
}

// output draws what a query gives: everything, some columns, or expressions. It gives the number of columns as well, 0
// for everything.
func (s *source) output(sc scope) (string, int) {
	switch n := s.n(100); {
	case n < 35:
		return "*", 0
	case n < 70:
		all := sc.references()
		chosen := some(s, 1+s.n(len(all)), all)
		texts := make([]string, len(chosen))
		for i, r := range chosen {
			texts[i] = r.text
		}
		return strings.Join(texts, ", "), len(texts)
	}
	texts := make([]string, 1+s.n(3))
	for i := range texts {
		texts[i] = s.expression(sc, oneOf(s, integer, decimal, text), s.depth()) + " AS e" + strconv.Itoa(i)
	}
	return strings.Join(texts, ", "), len(texts)
}

// plain reads one table.
func (s *source) plain() string {
	t, sc := s.whole()
	out, n := s.output(sc)
	sql := "SELECT " + out + " FROM " + t.name + s.where(sc, t.key)
	if !s.chance(25) {
		return sql
	}
	order := strconv.Itoa(1+s.n(max(n, 1))) + oneOf(s, "", " DESC")
	if !s.chance(50) {
		return sql + " ORDER BY " + order
	}
	if s.g.profile.Closed {
		order = sc[0].everyColumn()
	}
	return sql + " ORDER BY " + order + " LIMIT " + strconv.Itoa(1+s.n(4))
}

// everyColumn is an order that tells all rows apart but equal ones.
func (i item) everyColumn() string {
	all := make([]string, len(i.columns))
	for n, c := range i.columns {
		all[n] = i.name(c)
	}
	return strings.Join(all, ", ")
}

// join reads two or three tables. A product is of two alone: of three that have grown it takes the server a second.
func (s *source) join() string {
	first, from, _ := s.table()
	sc := scope{first}
	more := 1 + s.n(2)
	for range more {
		next, name, _ := s.table()
		sc = append(sc, next)
		switch n := s.n(100); {
		case n < 10 && more == 1:
			from += " CROSS JOIN " + name
			continue
		case n < 60:
			from += " JOIN "
		case n < 85:
			from += " LEFT JOIN "
		default:
			from += " RIGHT JOIN "
		}
		from += name + " ON " + s.reference(sc[:len(sc)-1], integer) + " = " + s.leaf(scope{next}, integer)
	}
	out, _ := s.output(sc)
	return "SELECT " + out + " FROM " + from + s.where(sc, nil)
}

// aggregates draws aggregate functions.
func (s *source) aggregates(sc scope) string {
	texts := make([]string, 1+s.n(3))
	for i := range texts {
		switch s.n(4) {
		case 0:
			texts[i] = "COUNT(*)"
		case 1:
			texts[i] = "COUNT(DISTINCT " + s.anyReference(sc) + ")"
		default:
			texts[i] = oneOf(s, "SUM(", "MIN(", "MAX(", "AVG(") + s.leaf(sc, integer) + ")"
		}
	}
	return strings.Join(texts, ", ")
}

func (s *source) aggregate() string {
	t, sc := s.whole()
	return "SELECT " + s.aggregates(sc) + " FROM " + t.name + s.where(sc, nil)
}

func (s *source) grouped() string {
	t, sc := s.whole()
	by := oneOf(s, t.columns...).name
	sql := "SELECT " + by + ", " + s.aggregates(sc) + " FROM " + t.name + s.where(sc, nil) + " GROUP BY " + by
	if s.chance(30) {
		sql += " HAVING COUNT(*) " + oneOf(s, comparisons...) + " " + strconv.Itoa(s.n(4))
	}
	return sql
}

func (s *source) distinct() string {
	t, sc := s.whole()
	return "SELECT DISTINCT " + oneOf(s, t.columns...).name + " FROM " + t.name + s.where(sc, nil)
}

// setOperation joins two or three queries of one integer column.
func (s *source) setOperation() string {
	part := func() string {
		t, sc := s.whole()
		return "SELECT " + s.expression(sc, integer, 1) + " FROM " + t.name + s.where(sc, t.key)
	}
	sql := part()
	for range 1 + s.n(2) {
		sql += oneOf(s, " UNION ", " UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ") + part()
	}
	return sql
}

// derived reads a query in FROM.
func (s *source) derived() string {
	t, sc := s.whole()
	out := some(s, 1+s.n(len(t.columns)), t.columns)
	outer := scope{{"d", out, nil}}
	return fmt.Sprintf("SELECT d.* FROM (SELECT %s FROM %s%s) AS d%s", names(out), t.name, s.where(sc, t.key),
		s.where(outer, nil))
}

// with reads a common table expression, once or twice.
func (s *source) with() string {
	t, sc := s.whole()
	out := some(s, 1+s.n(len(t.columns)), t.columns)
	outer := scope{{"w", out, nil}}
	return fmt.Sprintf("WITH w AS (SELECT %s FROM %s%s) SELECT %s FROM w%s", names(out), t.name, s.where(sc, t.key),
		names(out), s.where(outer, nil))
}

func (s *source) window() string {
	t, sc := s.whole()
	by, of := oneOf(s, t.columns...).name, oneOf(s, t.columns...).name
	function := oneOf(s, "ROW_NUMBER()", "RANK()", "COUNT(*)", "SUM("+s.leaf(sc, integer)+")")
	if s.g.profile.Closed && function == "ROW_NUMBER()" {
		function = "RANK()"
	}
	return fmt.Sprintf("SELECT %s, %s OVER (PARTITION BY %s ORDER BY %s) AS r FROM %s%s", of, function, by, of, t.name,
		s.where(sc, nil))
}

// locking draws a query that locks what it reads.
func (s *source) locking() string {
	t, sc := s.whole()
	sql := "SELECT * FROM " + t.name + s.where(sc, t.key)
	if s.chance(30) {
		if s.g.engine.postgresql() {
			return sql + " FOR SHARE"
		}
		return sql + " LOCK IN SHARE MODE"
	}
	sql += " FOR UPDATE"
	switch n := s.n(100); {
	case n < 4 && !s.g.engine.old():
		sql += " NOWAIT"
	case n < 15 && s.g.engine.skipsLocked():
		sql += " SKIP LOCKED"
	}
	return sql
}
