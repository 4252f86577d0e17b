package random

import (
	"fmt"
	"strconv"

	"github.com/isotap/isotap/dbms"
)

// laterals reports whether there is LATERAL.
func (e Engine) laterals() bool { return e.postgresql() || e.Name == dbms.MySQL && !e.old() }

// deepQuery draws a SELECT of a form that IsoRel's generator does not have. The order of rows does not change what it
// returns: a LIMIT stands behind an order of all columns, and windows rank or count, which is the same for equal rows.
func (s *source) deepQuery() string {
	forms := []func() string{s.windowOfWith, s.twoWiths, s.groupedJoin, s.derivedUnion, s.derivedLimit, s.nestedSets}
	if s.g.engine.laterals() {
		forms = append(forms, s.lateral, s.lateral)
	}
	return oneOf(s, forms...)()
}

// windowOfWith chooses rows by a window over a common table expression.
func (s *source) windowOfWith() string {
	t, sc := s.whole()
	out := some(s, 1+s.n(len(t.columns)), t.columns)
	by, of := oneOf(s, out...).name, oneOf(s, out...).name
	window := oneOf(s, "RANK()", "DENSE_RANK()", "COUNT(*)")
	rank := &column{name: "r", of: integer}
	outer := scope{{"v", append(out[:len(out):len(out)], rank), nil}}
	return fmt.Sprintf("WITH w AS (SELECT %s FROM %s%s), v AS (SELECT w.*, %s OVER (PARTITION BY %s ORDER BY %s) AS r FROM w) "+
		"SELECT * FROM v WHERE v.r <= %d AND %s", names(out), t.name, s.where(sc, nil), window, by, of, 1+s.n(3),
		s.condition(outer, 1))
}

// twoWiths joins a common table expression with itself, or with a table, through another one.
func (s *source) twoWiths() string {
	t, sc := s.whole()
	out := some(s, 1+s.n(len(t.columns)), t.columns)
	with := item{"w", out, nil}
	other, from, _ := s.table()
	if s.chance(40) {
		s.alias++
		other = item{"a" + strconv.Itoa(s.alias), out, nil}
		from = "w " + other.alias
	}
	of := oneOf(s, integer, integer, text)
	joined := scope{{"v", []*column{{name: "x", of: of}, {name: "n", of: integer}}, nil}}
	return fmt.Sprintf("WITH w AS (SELECT %s FROM %s%s), v AS (SELECT %s AS x, COUNT(*) AS n FROM w LEFT JOIN %s ON %s GROUP BY 1) "+
		"SELECT v.x, v.n FROM v WHERE %s", names(out), t.name, s.where(sc, t.key), s.leaf(scope{with}, of), from,
		s.comparison(scope{with, other}, 1), s.condition(joined, 1))
}

// groupedJoin groups the rows of a join in FROM.
func (s *source) groupedJoin() string {
	first, from, _ := s.table()
	second, name, _ := s.table()
	sc := scope{first, second}
	kind := oneOf(s, integer, text)
	inner := scope{{"d", []*column{{name: "x", of: kind}, {name: "y", of: integer}}, nil}}
	sql := fmt.Sprintf("SELECT d.x, COUNT(*), %s(d.y) FROM (SELECT %s AS x, %s AS y FROM %s %s %s ON %s) AS d%s GROUP BY d.x",
		oneOf(s, "MAX", "MIN", "SUM"), s.expression(sc, kind, 1), s.expression(sc, integer, 1), from,
		oneOf(s, "JOIN", "LEFT JOIN", "RIGHT JOIN"), name, s.comparison(sc, 1), s.where(inner, nil))
	if s.chance(30) {
		sql += " HAVING " + oneOf(s, "MIN", "MAX") + "(d.y) " + oneOf(s, comparisons...) + " " + s.literal(integer)
	}
	return sql
}

// derivedUnion reads a set operation in FROM.
func (s *source) derivedUnion() string {
	outer := scope{{"u", []*column{{name: "x", of: integer}}, nil}}
	return "SELECT u.x, COUNT(*) FROM (" + s.sets(" UNION ALL ", " UNION ") + ") AS u WHERE " + s.condition(outer, 1) + " GROUP BY u.x"
}

// sets joins two queries of a column x.
func (s *source) sets(operations ...string) string {
	part := func() string {
		t, sc := s.whole()
		return "SELECT " + s.expression(sc, integer, 1) + " AS x FROM " + t.name + s.where(sc, t.key)
	}
	return part() + oneOf(s, operations...) + part()
}

// nestedSets has a set operation within another.
func (s *source) nestedSets() string {
	return fmt.Sprintf("SELECT x FROM (%s) AS u%s%s", s.sets(" UNION ", " INTERSECT ", " EXCEPT "),
		oneOf(s, " EXCEPT ", " UNION ALL ", " INTERSECT ", " UNION "), s.sets(" UNION "))
}

// derivedLimit reads the first rows of a table by an order of all columns.
func (s *source) derivedLimit() string {
	t, sc := s.whole()
	outer := scope{{"d", t.columns, nil}}
	out, _ := s.output(outer)
	return fmt.Sprintf("SELECT %s FROM (SELECT * FROM %s%s ORDER BY %s LIMIT %d) AS d%s", out, t.name, s.where(sc, nil),
		sc[0].everyColumn(), 1+s.n(4), s.where(outer, nil))
}

// lateral joins each row of a table with what a query makes of it.
func (s *source) lateral() string {
	first, from, _ := s.table()
	second, name, _ := s.table()
	sc := scope{second, first}
	of := oneOf(s, integer, text)
	inner := fmt.Sprintf("SELECT %s(%s) AS x, COUNT(*) AS n FROM %s WHERE %s", oneOf(s, "MAX", "MIN"), s.leaf(scope{second}, of),
		name, s.comparison(sc, 1))
	joined := scope{first, {"l", []*column{{name: "x", of: of}, {name: "n", of: integer}}, nil}}
	out, _ := s.output(joined)
	if s.chance(50) {
		return fmt.Sprintf("SELECT %s FROM %s, LATERAL (%s) AS l WHERE %s", out, from, inner, s.condition(joined, 1))
	}
	return fmt.Sprintf("SELECT %s FROM %s LEFT JOIN LATERAL (%s) AS l ON %s", out, from, inner, s.comparison(joined, 1))
}

// deepExpressions are forms of expressions beside IsoRel's.
func (s *source) deepExpressions(sc scope, of valueType, depth int) []func() string {
	inner := func(of valueType) string { return s.expression(sc, of, depth-1) }
	all := []func() string{
		func() string { // a CASE within a CASE
			return fmt.Sprintf("CASE WHEN %s THEN CASE %s WHEN %s THEN %s WHEN %s THEN %s ELSE %s END ELSE %s END",
				s.condition(sc, depth-1), inner(integer), s.literal(integer), inner(of), s.literal(integer), s.typed(of),
				inner(of), s.typed(of))
		},
		func() string { return "NULLIF(" + inner(of) + ", " + s.typed(of) + ")" },
	}
	if of == integer {
		all = append(all,
			func() string { return oneOf(s, "GREATEST(", "LEAST(") + inner(of) + ", " + inner(of) + ")" },
			func() string { return s.count(sc, depth-1) })
	}
	return all
}

// count draws a subquery that counts.
func (s *source) count(sc scope, depth int) string {
	i, from, ok := s.table()
	if !ok {
		return s.leaf(sc, integer)
	}
	return "(SELECT COUNT(*) FROM " + from + " WHERE " + s.condition(append(scope{i}, sc...), depth) + ")"
}

// deepCondition draws a condition of a form beside IsoRel's.
func (s *source) deepCondition(sc scope, depth int) string {
	switch s.n(5) {
	case 0:
		return s.quantified(sc, depth-1)
	case 1:
		return s.rowWithin(sc, depth-1)
	case 2:
		return "CASE WHEN " + s.condition(sc, depth-1) + " THEN " + s.condition(sc, depth-1) + " ELSE " + s.comparison(sc, 0) + " END"
	case 3:
		return s.distinctFrom(sc, depth-1)
	}
	return s.againstScalar(sc, depth-1)
}

// againstScalar compares a column with one value of another table.
func (s *source) againstScalar(sc scope, depth int) string {
	return s.leaf(sc, integer) + " " + oneOf(s, comparisons...) + " " + s.scalar(sc, integer, depth)
}

// quantified compares a column with all values of a query, or any.
func (s *source) quantified(sc scope, depth int) string {
	i, from, ok := s.table()
	r := s.reference(scope{i}, integer)
	if !ok || r == "" {
		return s.comparison(sc, 0)
	}
	return fmt.Sprintf("%s %s %s (SELECT %s FROM %s WHERE %s)", s.leaf(sc, integer), oneOf(s, comparisons...), oneOf(s, "ALL", "ANY"),
		r, from, s.condition(append(scope{i}, sc...), depth))
}

// rowWithin looks for two values at once.
func (s *source) rowWithin(sc scope, depth int) string {
	i, from, ok := s.table()
	r := s.reference(scope{i}, integer)
	if !ok || r == "" {
		return s.comparison(sc, 0)
	}
	return fmt.Sprintf("(%s, %s) %s (SELECT %s, %s FROM %s WHERE %s)", s.leaf(sc, integer), s.leaf(sc, integer),
		oneOf(s, "IN", "NOT IN"), r, s.leaf(scope{i}, integer), from, s.condition(append(scope{i}, sc...), depth))
}

// distinctFrom compares where NULL equals NULL.
func (s *source) distinctFrom(sc scope, depth int) string {
	left, right := s.leaf(sc, integer), s.expression(sc, integer, depth)
	if s.g.engine.postgresql() {
		return left + oneOf(s, " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + right
	}
	return oneOf(s, "", "NOT ") + "(" + left + " <=> " + right + ")"
}

// wide draws a WHERE clause of a write that may fit many rows, or none, by what other tables hold; now and then there
// is none.
func (s *source) wide(sc scope) string {
	switch n := s.n(100); {
	case n < 25:
		return ""
	case n < 75:
		return " WHERE " + s.againstScalar(sc, 1)
	}
	return " WHERE " + s.deepCondition(sc, 1)
}

// rekey changes the key of one row, or of many.
func (s *source) rekey() string {
	t, sc := s.target()
	if len(t.key) == 0 {
		return s.done(s.update())
	}
	key := t.key[0].name
	if s.chance(60) {
		return s.done("UPDATE " + t.name + " SET " + key + " = " + s.oldKey(t) + s.narrow(t, sc))
	}
	return s.done("UPDATE " + t.name + " SET " + key + " = " + key + oneOf(s, " + 100", " - 100", " + 1") + s.narrow(t, sc))
}

// notRead returns the table that subqueries of a joined write leave alone: in MySQL's family its own.
func (s *source) notRead(written *table) *table {
	if s.g.engine.postgresql() {
		return nil
	}
	return written
}

// joinedUpdate sets constants in the rows for which another table has some that fit.
func (s *source) joinedUpdate() string {
	t, sc := s.target()
	columns := t.writable(false)
	i, from, ok := s.table()
	if !ok || len(columns) == 0 {
		return s.done(s.update())
	}
	s.written = s.notRead(t)
	c := s.columnsIn(1, columns)[0]
	on := s.comparison(append(sc, i), 1)
	if s.g.engine.postgresql() {
		return s.done(fmt.Sprintf("UPDATE %s SET %s = %s FROM %s WHERE %s", t.name, c.name, s.value(c), from, on))
	}
	return s.done(fmt.Sprintf("UPDATE %s JOIN %s ON %s SET %s.%s = %s", t.name, from, on, t.name, c.name, s.value(c)))
}

// joinedDelete deletes the rows for which another table has some that fit.
func (s *source) joinedDelete() string {
	t, sc := s.target()
	i, from, ok := s.table()
	if !ok {
		return s.done(s.delete())
	}
	s.written = s.notRead(t)
	on := s.comparison(append(sc, i), 1) + " AND " + s.condition(sc, 1)
	if s.g.engine.postgresql() {
		return s.done(fmt.Sprintf("DELETE FROM %s USING %s WHERE %s", t.name, from, on))
	}
	return s.done(fmt.Sprintf("DELETE %s FROM %s JOIN %s WHERE %s", t.name, t.name, from, on))
}
