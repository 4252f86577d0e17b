package reduce

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// texts makes the statements simpler.
func (r *reduction) texts() {
	for i := range r.best.Steps {
		r.text(r.best.Steps[i].SQL, func(s *scenario.Scenario, sql string) {
			s.Steps = slices.Clone(s.Steps)
			s.Steps[i].SQL = sql
		})
	}
	for i := range r.best.Setup {
		r.text(r.best.Setup[i], func(s *scenario.Scenario, sql string) {
			s.Setup = slices.Clone(s.Setup)
			s.Setup[i] = sql
		})
	}
}

// text makes one statement simpler, again and again. Set puts it in its place in a scenario.
func (r *reduction) text(sql string, set func(*scenario.Scenario, string)) {
	for smaller := true; smaller && r.err == nil; {
		smaller = false
		for _, candidate := range simpler(r.family, sql) {
			c := *r.best
			set(&c, candidate)
			if r.try(&c) {
				sql, smaller = candidate, true
				break
			}
		}
	}
}

// simpler returns texts that have less of a statement, the shortest first: without one of its clauses, one element of a
// list, one side of AND or OR, with a literal in place of what is in parentheses, with * for the columns.
func simpler(family dbms.Family, sql string) []string {
	c := candidates{sql: sql, t: tokens(family, sql)}
	for i := range c.t {
		c.at(i)
	}
	c.values()
	slices.SortStableFunc(c.all, func(a, b string) int { return len(a) - len(b) })
	return slices.Compact(c.all)
}

// candidates collects texts that are shorter than a statement.
type candidates struct {
	sql string
	t   []token
	all []string
}

// add adds the statement with other tokens instead of those from one place to another.
func (c *candidates) add(from, to int, instead ...token) {
	candidate := join(slices.Concat(c.t[:from], instead, c.t[to:]))
	if len(candidate) < len(c.sql) && candidate != "" {
		c.all = append(c.all, candidate)
	}
}

var one = token{"1", true}

// at adds what can be left out at a place.
func (c *candidates) at(i int) {
	t, end := c.t, endOf(c.t, i)
	switch word := t[i].word(); {
	case slices.Contains(clauses, word):
		c.add(i, clauseEnd(t, i))
	case word == "AND", word == "OR":
		c.add(i, operandEnd(t, i+1))
		c.add(operandStart(t, i), i+1)
	case word == "NOT" && i+1 < len(t):
		c.add(i, i+1)
	case word == ",":
		c.add(i, elementEnd(t, i+1))
		c.add(elementStart(t, i), i+1)
	case word == "(" && end > i+2:
		c.add(i, end, one)
		c.add(i+1, end-1, one)
		c.add(i, end, t[i+1:end-1]...)
		if i > 0 && isWord(t[i-1].text) {
			c.add(i-1, end, one)
		}
	case word == "SELECT" && i+1 < len(t) && t[i+1].text != "*":
		if from := slices.IndexFunc(t[i:], func(w token) bool { return w.word() == "FROM" }); from > 0 {
			c.add(i+1, i+from, token{"*", true})
		}
	case word == "CASE":
		if end := caseEnd(t, i); end > 0 {
			c.add(i, end, one)
		}
	}
}

// values adds an INSERT of one row without each of its columns and the value that goes with it.
func (c *candidates) values() {
	at := slices.IndexFunc(c.t, func(w token) bool { return w.word() == "VALUES" })
	if at < 2 || at+1 >= len(c.t) || c.t[at-1].text != ")" || c.t[at+1].text != "(" {
		return
	}
	columns, values := elements(c.t, back(c.t, at-1, func(string) bool { return false })), elements(c.t, at+2)
	if len(columns) != len(values) || len(columns) < 2 {
		return
	}
	for i := range columns {
		less := slices.Concat(c.t[:columns[i][0]], c.t[columns[i][1]:values[i][0]], c.t[values[i][1]:])
		c.all = append(c.all, join(less))
	}
}

// elements returns where the elements of a list begin and end, each with the comma before it or, of the first, behind
// it.
func elements(t []token, from int) [][2]int {
	var all [][2]int
	for at := from; ; {
		end := run(t, at, func(w string) bool { return w == "," })
		all = append(all, [2]int{max(at-1, from), end})
		if end >= len(t) || t[end].text != "," {
			break
		}
		at = end + 1
	}
	if len(all) > 1 {
		all[0][1]++
	}
	return all
}

// clauses begin what can be left out whole.
var clauses = []string{"WHERE", "ORDER", "LIMIT", "HAVING", "GROUP", "JOIN", "LEFT", "RIGHT", "CROSS", "UNION",
	"INTERSECT", "EXCEPT",
	"ON", "DEFAULT", "CHECK", "UNIQUE", "FOREIGN", "GENERATED", "PRIMARY", "FOR", "LOCK", "SKIP", "NOWAIT", "DISTINCT"}

// after are the words that a clause ends before.
var after = []string{"WHERE", "ORDER", "LIMIT", "HAVING", "GROUP", "UNION", "INTERSECT", "EXCEPT", "FOR", "LOCK",
	"FROM", "SET", "VALUES", "PRIMARY", "JOIN", "LEFT", "RIGHT", "CROSS"}

// A token is one of SQL, or a word with those that dots join to it, and whether white space or a comment stands before
// it.
type token struct {
	text   string
	spaced bool
}

// word is the token as a keyword.
func (t token) word() string { return strings.ToUpper(t.text) }

// tokens takes a statement apart; one with a string or comment that is not closed is left alone.
func tokens(family dbms.Family, sql string) []token {
	parts, err := sqltoken.Statement(family, sql)
	if err != nil {
		return nil
	}
	var all []token
	dotted, end := false, 0 // the last token is one that a dot and more may follow
	for _, p := range parts {
		spaced := p.Start > end
		end = p.End
		named := p.Kind == sqltoken.Word || p.Text == "."
		if dotted && named && !spaced {
			all[len(all)-1].text += p.Text
			continue
		}
		all = append(all, token{p.Text, spaced})
		dotted = p.Kind == sqltoken.Word
	}
	return all
}

// isWord reports whether a token is a keyword, a number or a name without quotes.
func isWord(token string) bool { return mysqltoken.IsWord(token[0]) }

// join writes tokens as a statement.
func join(t []token) string {
	var b strings.Builder
	for i, word := range t {
		if i > 0 && word.spaced && t[i-1].text != "(" {
			b.WriteByte(' ')
		}
		b.WriteString(word.text)
	}
	return b.String()
}

// endOf returns the place behind the parenthesis that closes the one at i.
func endOf(t []token, i int) int {
	depth := 0
	for j := i; j < len(t); j++ {
		switch t[j].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return len(t)
}

// run returns where a run of tokens ends that begins at i: before a token of the same depth that stops it, or the
// parenthesis that closes what it stands in.
func run(t []token, i int, stops func(word string) bool) int {
	for j := i; j < len(t); j++ {
		switch {
		case t[j].text == "(":
			j = endOf(t, j) - 1
		case t[j].text == ")", j > i && stops(t[j].word()):
			return j
		}
	}
	return len(t)
}

func clauseEnd(t []token, i int) int {
	return run(t, i, func(w string) bool { return slices.Contains(after, w) || w == "," })
}

func operandEnd(t []token, i int) int {
	between := false
	return run(t, i, func(w string) bool {
		if w == "BETWEEN" {
			between = true
		}
		if w == "AND" && between {
			between = false
			return false
		}
		return w == "AND" || w == "OR" || slices.Contains(after, w)
	})
}

func elementEnd(t []token, i int) int {
	return run(t, i, func(w string) bool { return w == "," || slices.Contains(after, w) })
}

// back returns where a run of tokens begins that ends before i.
func back(t []token, i int, stops func(word string) bool) int {
	depth := 0
	for j := i - 1; j >= 0; j-- {
		switch {
		case t[j].text == ")":
			depth++
		case t[j].text == "(":
			if depth--; depth < 0 {
				return j + 1
			}
		case depth == 0 && stops(t[j].word()):
			return j + 1
		}
	}
	return 0
}

func operandStart(t []token, i int) int {
	return back(t, i, func(w string) bool {
		return w == "AND" || w == "OR" || w == "WHERE" || w == "ON" || w == "HAVING" || w == "WHEN"
	})
}

func elementStart(t []token, i int) int {
	return back(t, i, func(w string) bool {
		return w == "," || w == "SELECT" || w == "SET" || w == "BY" ||
			w == "VALUES"
	})
}

// caseEnd returns the place behind the END of the CASE at i; 0 where there is none.
func caseEnd(t []token, i int) int {
	depth := 0
	for j := i; j < len(t); j++ {
		switch t[j].word() {
		case "CASE":
			depth++
		case "END":
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return 0
}
