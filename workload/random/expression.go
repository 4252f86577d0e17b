package random

import (
	"fmt"
	"strings"
)

// An item is a source of rows in a query's FROM.
type item struct {
	alias   string
	columns []*column
	table   *table // nil: it is a query's
}

// A scope is what an expression may name.
type scope []item

// A reference is a column as an expression names it.
type reference struct {
	text string
	of   valueType
}

func (sc scope) references() []reference {
	var all []reference
	for _, i := range sc {
		for _, c := range i.columns {
			all = append(all, reference{i.name(c), c.of})
		}
	}
	return all
}

// name writes a column of the item.
func (i item) name(c *column) string { return i.alias + "." + c.name }

// reference draws a column of a type; empty where the scope has none.
func (s *source) reference(sc scope, of valueType) string {
	if s.aimed() {
		if r := s.aimedReference(sc, of); r != "" {
			return r
		}
	}
	var fitting []string
	for _, r := range sc.references() {
		if r.of == of {
			fitting = append(fitting, r.text)
		}
	}
	if len(fitting) == 0 {
		return ""
	}
	return oneOf(s, fitting...)
}

// leaf draws a column of the type, or a literal.
func (s *source) leaf(sc scope, of valueType) string {
	if r := s.reference(sc, of); r != "" && s.chance(75) {
		return r
	}
	if of == date && s.g.engine.postgresql() {
		return "DATE " + s.literal(of)
	}
	return s.literal(of)
}

// depth is how far a statement's expressions and conditions are nested.
func (s *source) depth() int { return s.g.profile.Depth }

// expression draws an expression of a type whose value stays small: numbers under 10,000, texts under 20 characters.
func (s *source) expression(sc scope, of valueType, depth int) string {
	if depth == 0 || s.chance(40) {
		return s.leaf(sc, of)
	}
	inner := func(of valueType) string { return s.expression(sc, of, depth-1) }
	general := []func() string{
		func() string { return "COALESCE(" + inner(of) + ", " + s.typed(of) + ")" },
		func() string {
			return "CASE WHEN " + s.condition(sc, depth-1) + " THEN " + inner(of) + " ELSE " + s.typed(of) + " END"
		},
		func() string { return s.scalar(sc, of, depth-1) },
	}
	if s.g.profile.Deep {
		general = append(general, s.deepExpressions(sc, of, depth)...)
	}
	if s.chance(50) {
		return oneOf(s, general...)()
	}
	switch of {
	case integer:
		return oneOf(s,
			func() string { return "(" + inner(integer) + " + " + s.literal(integer) + ") % 1000" },
			func() string { return "(" + inner(integer) + " - " + inner(integer) + ") % 1000" },
			func() string { return "(" + inner(integer) + " * 2) % 1000" },
			func() string { return "ABS(" + inner(integer) + ")" },
			func() string { return "CHAR_LENGTH(" + inner(text) + ")" },
		)()
	case decimal:
		return oneOf(s, func() string { return "ABS(" + inner(decimal) + ")" },
			func() string { return "ROUND(" + inner(decimal) + ")" })()
	case text:
		return oneOf(s,
			func() string { return "UPPER(" + inner(text) + ")" },
			func() string { return "LOWER(" + inner(text) + ")" },
			func() string {
				cut := "SUBSTRING(CONCAT(" + inner(text) + ", " + s.literal(text) + "), 1, 8)"
				if s.g.profile.Closed { // a collation may take 'x ' for 'x'
					return "TRIM(" + cut + ")"
				}
				return cut
			},
			func() string { return "TRIM(" + inner(text) + ")" },
		)()
	}
	return s.leaf(sc, of)
}

// typed draws a literal whose type is plain to the server too.
func (s *source) typed(of valueType) string {
	if of == date {
		return "DATE " + s.literal(of)
	}
	return s.literal(of)
}

// scalar draws a subquery with one value.
func (s *source) scalar(sc scope, of valueType, depth int) string {
	i, from, ok := s.table()
	inner := scope{i}
	r := s.reference(inner, of)
	if !ok || r == "" {
		return s.leaf(sc, of)
	}
	return fmt.Sprintf("(SELECT %s(%s) FROM %s WHERE %s)", oneOf(s, "MAX", "MIN"), r, from,
		s.condition(append(inner, sc...), depth))
}

var comparisons = []string{"=", "=", "<>", "<", "<=", ">", ">="}

// condition draws a condition.
func (s *source) condition(sc scope, depth int) string {
	if depth <= 0 {
		return s.comparison(sc, 0)
	}
	if s.g.profile.Deep && s.chance(25) {
		return s.deepCondition(sc, depth)
	}
	switch n := s.n(100); {
	case n < 45:
		return s.comparison(sc, depth-1)
	case n < 55:
		return "(" + s.condition(sc, depth-1) + oneOf(s, " AND ", " OR ") + s.condition(sc, depth-1) + ")"
	case n < 60:
		return "NOT (" + s.condition(sc, depth-1) + ")"
	case n < 70:
		return s.anyReference(sc) + oneOf(s, " IS NULL", " IS NOT NULL")
	case n < 78:
		of := oneOf(s, integer, decimal)
		return s.leaf(sc, of) + " BETWEEN " + s.literal(of) + " AND " + s.literal(of)
	case n < 86:
		return s.leaf(sc, integer) + oneOf(s, " IN (", " NOT IN (") + s.list(integer) + ")"
	case n < 90:
		return s.leaf(sc, text) + " LIKE " + oneOf(s, "'a%'", "'%b'", "'_'", "'%'")
	case n < 95:
		return s.exists(sc, depth-1)
	}
	return s.within(sc, depth-1)
}

func (s *source) comparison(sc scope, depth int) string {
	of := oneOf(s, integer, integer, integer, decimal, text, date)
	if s.reference(sc, of) == "" {
		of = integer
	}
	left, by, right := s.leaf(sc, of), oneOf(s, comparisons...), s.comparand(sc, of, depth)
	if s.g.profile.Deep && left == right { // both may be what the focus has
		right = s.typed(of)
	}
	return left + " " + by + " " + right
}

// comparand draws what a column is compared with. The types of the family's literals are not always plain to it.
func (s *source) comparand(sc scope, of valueType, depth int) string {
	if of == date {
		return s.typed(of)
	}
	return s.expression(sc, of, depth)
}

func (s *source) anyReference(sc scope) string {
	all := sc.references()
	if len(all) == 0 {
		return "1"
	}
	return oneOf(s, all...).text
}

func (s *source) list(of valueType) string {
	all := make([]string, 1+s.n(4))
	for i := range all {
		all[i] = s.literal(of)
	}
	return strings.Join(all, ", ")
}

func (s *source) exists(sc scope, depth int) string {
	i, from, ok := s.table()
	if !ok {
		return s.comparison(sc, 0)
	}
	return oneOf(s, "EXISTS", "NOT EXISTS") + " (SELECT 1 FROM " + from + " WHERE " +
		s.condition(append(scope{i}, sc...), depth) + ")"
}

func (s *source) within(sc scope, depth int) string {
	i, from, ok := s.table()
	r := s.reference(scope{i}, integer)
	if !ok || r == "" {
		return s.comparison(sc, 0)
	}
	return fmt.Sprintf("%s IN (SELECT %s FROM %s WHERE %s)", s.leaf(sc, integer), r, from,
		s.condition(append(scope{i}, sc...), depth))
}

// table draws a table, under a new alias, and how FROM names it. There is none (ok is false) where a write may not read
// its own table and there is no other.
func (s *source) table() (i item, from string, ok bool) {
	var all []*table
	for _, t := range s.g.tables {
		if t != s.written {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return i, "", false
	}
	t := s.oneTable(all)
	s.alias++
	i = item{fmt.Sprintf("a%d", s.alias), t.columns, t}
	return i, t.name + " " + i.alias, true
}
