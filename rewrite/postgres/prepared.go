package postgres

import (
	"github.com/isotap/isotap/history"
)

// prepares classifies PREPARE, which reads and writes no rows.
func (v verb) prepares() {
	name, ok := v.ident(1)
	as, types := 2, ""
	if v.mark(2, "(") {
		closing := v.closing(2)
		if closing < 0 {
			return
		}
		as, types = closing+1, v.text[v.toks[2].Start:v.toks[closing].End]
	}
	if !ok || !v.is(as, "AS") || as+1 >= len(v.toks) {
		return
	}
	_, end := v.span()
	v.p.Session.Prepared = &Prepared{Name: name, Text: v.text[v.toks[as+1].Start:end], Types: types,
		From: v.toks[1].Start, To: v.toks[1].End}
}

// executes classifies EXECUTE. What it runs only the session can tell: it knows what was prepared under the name.
func (v verb) executes() {
	v.opaque(history.ReasonExecute)
	if name, ok := v.ident(1); ok && (len(v.toks) == 2 || v.mark(2, "(")) {
		v.p.Session.Prepared = &Prepared{Name: name, From: v.toks[1].Start, To: v.toks[1].End}
	}
}

// within finds what a statement runs by EXECUTE inside of it.
func (v verb) within() {
	for i := range v.toks {
		if !v.is(i, "EXECUTE") || v.is(0, "CREATE") && !v.is(i-1, "AS") {
			continue
		}
		if name, ok := v.ident(i + 1); ok {
			v.p.Session.Prepared = &Prepared{Name: name, From: v.toks[i+1].Start, To: v.toks[i+1].End, Within: true}
		}
		return
	}
}

// Execution is the script of an EXECUTE that runs a statement of another name than the one that stands there: the one
// that was prepared from the text of a script, by which its result is understood.
func Execution(text string, of *Prepared, name string, script *Script) *Script {
	plan := *script.Statements[0]
	plan.Predicates = nil // their parameters are expressions
	s := &Script{Statements: []*Plan{&plan}, text: text}
	s.splice([]edit{{start: of.From, end: of.To, text: name}})
	return s
}
