package oracle

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
)

// otherForms returns a statement's text, and the same with its condition in other forms that hold for the same rows:
// not false and not NULL is true. That of a query is the first one's, where several are combined.
func otherForms(s *statement, engine dbms.Engine) []otherForm {
	all := []otherForm{{text: s.text}}
	where, end := s.condition()
	if where < 0 {
		return all
	}
	from, to := s.tokens[where+1].Start, s.tokens[end-1].End
	condition := s.text[from:to]
	add := func(form, known string) {
		all = append(all, otherForm{text: s.text[:from] + form + s.text[to:], known: known})
	}
	add("CASE WHEN ("+condition+") THEN TRUE ELSE FALSE END", "")
	if exists, ok := s.existsForIn(where+1, end); ok {
		add(exists, "")
	}
	known := ""
	if engine == dbms.MariaDB && s.comparesWithAll(where, end) {
		known = negatedTwice
	}
	add("NOT (NOT ("+condition+"))", known)
	return all
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
	"INTERSECT", "EXCEPT", "MINUS", "RETURNING", "PROCEDURE"}

// condition returns the places of a statement's WHERE and of what stands behind its condition; -1 where it has none.
func (s *statement) condition() (where, end int) {
	where = s.at("WHERE")
	if where < 0 || where+1 == len(s.tokens) {
		return -1, -1
	}
	for end = where + 1; end < len(s.tokens); end++ {
		if s.depths[end] == 0 && slices.ContainsFunc(conditionEnds, s.tokens[end].Is) {
			break
		}
	}
	if end == where+1 {
		return -1, -1
	}
	return where, end
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
