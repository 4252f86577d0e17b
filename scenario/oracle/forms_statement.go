package oracle

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// otherForms returns a statement's text, and the same with its conditions in other forms that hold for the same rows:
// not false and not NULL is true. With shallow those alone that stand outside of all parentheses are put otherwise.
func otherForms(s *statement, engine dbms.Engine, shallow bool) []otherForm {
	all := []otherForm{{text: s.text}}
	conditions := s.conditions(shallow)
	if len(conditions) == 0 {
		return all
	}
	inCase, negated, exist, changed := s.text, s.text, s.text, false
	known := ""
	for _, c := range slices.Backward(conditions) {
		from, to := s.tokens[c.from].Start, s.tokens[c.to-1].End
		put := func(into *string, form string) { *into = (*into)[:from] + form + (*into)[to:] }
		condition := s.text[from:to]
		put(&inCase, "CASE WHEN ("+condition+") THEN TRUE ELSE FALSE END")
		put(&negated, "NOT (NOT ("+condition+"))")
		if s.tokens[c.from-1].Is("WHERE") {
			if exists, ok := s.existsForIn(c.from, c.to); ok {
				put(&exist, exists)
				changed = true
			}
		}
		if engine == dbms.MariaDB && s.comparesWithAll(c.from-1, c.to) {
			known = negatedTwice
		}
	}
	all = append(all, otherForm{text: inCase})
	if changed {
		all = append(all, otherForm{text: exist})
	}
	return append(all, otherForm{text: negated, known: known})
}

// negatedTwice is a bug of MariaDB's, which AliSQL has, too (https://github.com/alibaba/AliSQL/issues/175).
const negatedTwice = "AliSQL-175: a comparison with ALL or ANY that is negated twice is negated once"

// comparesWithAll reports whether there is a comparison with ALL, ANY or SOME rows of a query between two places.
func (s *statement) comparesWithAll(from, to int) bool {
	for i := from + 1; i+1 < to; i++ {
		t := s.tokens[i]
		if (t.Is("ALL") || t.Is("ANY") || t.Is("SOME")) && s.tokens[i+1].Text == "(" && !s.tokens[i-1].Is("UNION") {
			return true
		}
	}
	return false
}

// conditionEnds are what may stand behind a condition.
var conditionEnds = []string{"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "UNION",
	"INTERSECT", "EXCEPT", "MINUS", "RETURNING", "PROCEDURE", "WHERE", "SET", "ON", "USING", "JOIN", "INNER", "CROSS",
	"NATURAL", "FULL", "STRAIGHT_JOIN"}

// notOfJoin are what stands behind an ON that begins no condition: of JSON_TABLE, of INSERT.
var notOfJoin = []string{"EMPTY", "ERROR", "DUPLICATE", "CONFLICT"}

// A condition is one, by the places of its first token and of what stands behind it.
type condition struct{ from, to int }

// conditions returns those of a statement, its joins and groups, and of the queries within it, that stand in no other
// one; with shallow those outside of all parentheses.
func (s *statement) conditions(shallow bool) (all []condition) {
	for i := 0; i+1 < len(s.tokens); i++ {
		if !s.beginsCondition(i) || shallow && s.depths[i] > 0 {
			continue
		}
		end := i + 1
		for end < len(s.tokens) && !s.endsCondition(end, s.depths[i]) {
			end++
		}
		if end > i+1 {
			all = append(all, condition{i + 1, end})
		}
		i = end - 1
	}
	return all
}

// beginsCondition reports whether a condition begins behind a place.
func (s *statement) beginsCondition(i int) bool {
	t := s.tokens[i]
	return t.Is("WHERE") || t.Is("HAVING") ||
		t.Is("ON") && !slices.ContainsFunc(notOfJoin, s.tokens[i+1].Is) && (i == 0 || !s.tokens[i-1].Is("DISTINCT"))
}

// endsCondition reports whether a condition that began at a depth of parentheses ends before a place.
func (s *statement) endsCondition(i, depth int) bool {
	t := s.tokens[i]
	switch {
	case s.depths[i] < depth:
		return true
	case s.depths[i] > depth:
		return false
	case t.Is("LEFT"), t.Is("RIGHT"): // or it is a function
		return i+1 < len(s.tokens) && (s.tokens[i+1].Is("JOIN") || s.tokens[i+1].Is("OUTER"))
	}
	return t.Text == "," || slices.ContainsFunc(conditionEnds, t.Is)
}

// existsForIn returns a condition with EXISTS in the place of its first "value IN (SELECT ...)" that all of it hangs
// on. The query becomes a derived table, so that no name in it or in the value means another column. Without one, or
// where it cannot be told, it returns false.
func (s *statement) existsForIn(from, to int) (string, bool) {
	begin := from
	for i := from; i < to; i++ {
		t := s.tokens[i]
		switch {
		case s.depths[i] != 0:
			continue
		case t.Is("OR"), t.Is("XOR"), t.Is("CASE"), t.Is("BETWEEN"), t.Is("||"), t.Is("NOT"):
			return "", false // what follows may hang on it
		case t.Is("AND"), t.Is("&&"):
			begin = i + 1
			continue
		case !t.Is("IN"), i == begin, i+2 >= to, s.tokens[i+1].Text != "(", !s.tokens[i+2].Is("SELECT"):
			continue
		}
		closed := i + 2
		for closed < to && s.depths[closed] > 0 {
			closed++
		}
		if closed == to || closed+1 < to && !s.tokens[closed+1].Is("AND") || s.joinsOtherwise(closed, to) {
			return "", false
		}
		query, name, ok := s.namedQuery(i+2, closed)
		if !ok {
			return "", false
		}
		value := s.text[s.tokens[begin].Start:s.tokens[i-1].End]
		exists := "EXISTS (SELECT 1 FROM (" + query + ") AS isotap_d WHERE isotap_d." + name + " = (" + value + "))"
		return s.text[s.tokens[from].Start:s.tokens[begin].Start] + exists + s.text[s.tokens[closed].End:s.tokens[to-1].End], true
	}
	return "", false
}

// joinsOtherwise reports whether something else than AND joins what stands between two places.
func (s *statement) joinsOtherwise(from, to int) bool {
	for i := from; i < to; i++ {
		if s.depths[i] == 0 && (s.tokens[i].Is("OR") || s.tokens[i].Is("XOR") || s.tokens[i].Is("||")) {
			return true
		}
	}
	return false
}

// namedQuery returns a query of one column, which stands between two places, with a name for it.
func (s *statement) namedQuery(from, to int) (query, name string, ok bool) {
	depth, list := s.depths[from], from+1
	for i := list; i < to; i++ {
		switch t := s.tokens[i]; {
		case s.depths[i] != depth:
		case t.Text == ",", t.Text == "*" && i == list, t.Is("UNION"):
			return "", "", false
		case t.Is("FROM"):
			if i == list {
				return "", "", false
			}
			if i > list+1 && s.tokens[i-2].Is("AS") {
				return s.text[s.tokens[from].Start:s.tokens[to-1].End], s.tokens[i-1].Text, true
			}
			at := s.tokens[i].Start
			return strings.TrimRight(s.text[s.tokens[from].Start:at], " ") + " AS isotap_c " + s.text[at:s.tokens[to-1].End],
				"isotap_c", true
		}
	}
	return "", "", false
}
