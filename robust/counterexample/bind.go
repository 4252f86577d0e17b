package counterexample

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/sqltoken"
)

// Bind returns a statement of a program as a server takes it: with the values of variables, by their names in the
// program (:a), in their places, 1 for those that have none.
func (t *Tables) Bind(q *robust.Statement, values map[string]string) (string, error) {
	places, err := t.values(q)
	if err != nil {
		return "", err
	}
	return t.bind(q, func(n int) string {
		name, _, _ := strings.Cut(q.Params[n-1], "#") // #2 stands for a variable's second value
		switch value, known := values[name]; {
		case known:
			return quoted(value, places.Params[n].Column)
		case name != "" && name[0] != ':':
			return quoted(name, places.Params[n].Column)
		}
		return literal(1, places.Params[n].Column)
	})
}

// bind writes a statement with literals in the places of its parameters, which are counted from 1.
func (t *Tables) bind(q *robust.Statement, literal func(n int) string) (string, error) {
	if q.Text == "" {
		return "", fmt.Errorf("%s has no SQL", q)
	}
	toks, err := sqltoken.Scan(t.family, q.Text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	last, question := 0, 0 // the end of what was written, and the question marks there
	for i := range toks {
		if asksForOld(toks[i:]) {
			return strings.TrimSpace(b.String() + q.Text[last:toks[i].Start]), nil
		}
		if toks[i].Kind != sqltoken.Placeholder {
			continue
		}
		question++
		n := question
		if t.family == dbms.PostgreSQLFamily {
			n, _ = strconv.Atoi(toks[i].Text[len("$"):])
		}
		if n < 1 || n > len(q.Params) {
			continue
		}
		b.WriteString(q.Text[last:toks[i].Start])
		b.WriteString(literal(n))
		last = toks[i].End
	}
	return strings.TrimSpace(b.String() + q.Text[last:]), nil
}

// asksForOld reports whether here begins a RETURNING that asks for rows as they were, which PostgreSQL refuses before
// 18. Nothing that is played depends on what it gives.
func asksForOld(toks []sqltoken.Token) bool {
	if !toks[0].Is("RETURNING") {
		return false
	}
	for i := 1; i+1 < len(toks); i++ {
		if toks[i].Is("old") && toks[i+1].Is(".") {
			return true
		}
	}
	return false
}
