package counterexample

import (
	"strings"

	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/sqltoken"
)

// Bind gives a statement of a program as a server takes it: with the values of variables in their places, 1 for those that have
// none, and without what puts columns into variables.
func (t *Tables) Bind(sql string, values map[string]string) (string, error) {
	toks, err := sqltoken.Scan(sql, t.family == footprint.MySQL)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	last := 0 // the end of what was written
	for i := 0; i < len(toks); i++ {
		end := receives(toks, i)
		switch {
		case end > i:
			b.WriteString(strings.TrimSpace(sql[last:toks[i].Start]))
		case toks[i].Kind == sqltoken.Param:
			b.WriteString(sql[last:toks[i].Start])
			b.WriteString(t.literal(values[toks[i].Text], toks, i))
		default:
			continue
		}
		last = toks[end].End
		i = end
	}
	b.WriteString(sql[last:])
	return strings.TrimSpace(b.String()), nil
}

// receives gives the last token of INTO :a, :b, or of RETURNING … INTO :a, :b, that begins with token i; i where none does.
func receives(toks []sqltoken.Token, i int) int {
	into := i
	if toks[i].Is("RETURNING") {
		for into < len(toks) && !toks[into].Is("INTO") {
			into++
		}
	}
	if into+1 >= len(toks) || !toks[into].Is("INTO") || toks[into+1].Kind != sqltoken.Param {
		return i
	}
	end := into + 1
	for end+2 < len(toks) && toks[end+1].Is(",") && toks[end+2].Kind == sqltoken.Param {
		end += 2
	}
	return end
}

// literal writes the value of the variable that is token i: a text where it is compared with a column of texts.
func (t *Tables) literal(value string, toks []sqltoken.Token, i int) string {
	if value == "" {
		value = "1"
	}
	if i >= 2 && toks[i-1].Kind == sqltoken.Mark && t.textual(toks[i-2].Text) {
		return quote(value)
	}
	return value
}

// textual says that a column of this name holds texts.
func (t *Tables) textual(name string) bool {
	for _, table := range t.schema.Tables() {
		for _, c := range table.Columns {
			if c.Text && strings.EqualFold(c.Name, name) {
				return true
			}
		}
	}
	return false
}

func quote(value string) string {
	if strings.HasPrefix(value, "'") {
		return value // a constant of the program
	}
	return "'" + value + "'"
}
