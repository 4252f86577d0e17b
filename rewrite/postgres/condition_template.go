package postgres

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/shape"
)

// Conditions hold literals, most of them as the grammar prints them, and nothing tells which of the text's each of them
// was. So for a template a second text is planned, in which every plain literal is another one, and no two are the
// same: where these come out in a condition is where a third text's come out.

// A condition is that of one predicate in a [template]: for each text of its Where what stands between literals of the
// statement's text, and which these are.
type condition []conditionText

// A conditionText has literal number literals[i] of the draft between texts[i] and texts[i+1].
type conditionText struct {
	texts    []string
	literals []int
}

// Literals that stand in for those of a text are this, and a number of so many digits.
const (
	standIn       = "7309"
	standInDigits = 5
	firstStandIn  = 10_000
)

// standInFor returns what stands in for the i-th literal of a text, which is of a kind.
func standInFor(i int, mark shape.Mark) string {
	number := standIn + strconv.Itoa(firstStandIn+i)
	switch mark {
	case shape.IntegerMark:
		return number
	case shape.LargeMark:
		return number + "000000"
	case shape.DecimalMark:
		return number + ".5"
	}
	return "'" + number + "'"
}

// templatesOf returns the conditions of the predicates that were decided on, by statement; nil without any. It reports
// whether they are told from the literals of the text.
func (r *Rewriter) templatesOf(d *draft, s Session) (conditions [][]condition, ok bool) {
	if !slices.ContainsFunc(d.plans, func(p *Plan) bool { return len(p.Predicates) > 0 }) {
		return nil, true
	}
	if strings.Contains(d.text, standIn) {
		return nil, false
	}
	var text strings.Builder
	var instead []string
	pos := 0
	for at, mark := range leftOut(d.statements) {
		t := d.statements[at.statement].toks[at.token]
		if d.statements[at.statement].is(at.token-1, "LIMIT", "OFFSET", "FIRST", "NEXT") {
			instead = append(instead, "")
			continue
		}
		instead = append(instead, standInFor(len(instead), mark)) // shorter than maxTemplated: five digits are enough
		text.WriteString(d.text[pos:t.Start] + instead[len(instead)-1])
		pos = t.End
	}
	text.WriteString(d.text[pos:])
	other := r.decide(read(text.String(), &s), s)
	if len(other.plans) != len(d.plans) {
		return nil, false
	}
	literals := d.plainLiterals()
	for i, p := range d.plans {
		of := make([]condition, len(other.plans[i].Predicates))
		for j := range of {
			if of[j], ok = conditionOf(other.plans[i].Predicates[j].Where, instead); !ok {
				return nil, false
			}
		}
		conditions = append(conditions, of)
		// What hangs on a literal in any other way is no template.
		if !reflect.DeepEqual(filled(other.plans[i].Predicates, of, literals), p.Predicates) {
			return nil, false
		}
	}
	return conditions, true
}

// conditionOf cuts the texts of a condition where literals stand that stand in for those of a text. It reports whether
// each of them is as it was put into the text.
func conditionOf(where, instead []string) (c condition, ok bool) {
	c = make(condition, len(where))
	for i, text := range where {
		cut := &c[i]
		for at := strings.Index(text, standIn); at >= 0; at = strings.Index(text, standIn) {
			number := text[at+len(standIn):]
			n, err := strconv.Atoi(number[:min(len(number), standInDigits)])
			if n -= firstStandIn; err != nil || n < 0 || n >= len(instead) {
				return nil, false
			}
			if strings.HasPrefix(instead[n], "'") {
				at--
			}
			if at < 0 || !strings.HasPrefix(text[at:], instead[n]) {
				return nil, false
			}
			cut.texts, cut.literals = append(cut.texts, text[:at]), append(cut.literals, n)
			text = text[at+len(instead[n]):]
		}
		cut.texts = append(cut.texts, text)
	}
	return c, true
}

// filled returns predicates with literals in their conditions.
func filled(predicates []rewrite.Predicate, conditions []condition, literals []string) []rewrite.Predicate {
	out := slices.Clone(predicates)
	for i := range out {
		out[i].Where = make([]string, len(conditions[i]))
		for j := range conditions[i] {
			out[i].Where[j] = conditions[i][j].fill(literals)
		}
	}
	return out
}

func (c *conditionText) fill(literals []string) string {
	if len(c.literals) == 0 {
		return c.texts[0]
	}
	var b strings.Builder
	for i, n := range c.literals {
		b.WriteString(c.texts[i])
		b.WriteString(literals[n])
	}
	b.WriteString(c.texts[len(c.literals)])
	return b.String()
}

// plainLiterals returns the literals that [leftOut] gives.
func (d *draft) plainLiterals() []string {
	var literals []string
	for at := range leftOut(d.statements) {
		literals = append(literals, d.statements[at.statement].tok(at.token))
	}
	return literals
}
