package program

import (
	"slices"

	"github.com/isotap/isotap/sqltoken"
)

// until takes the tokens before one of these words, and the word.
func (p *parser) until(words ...string) ([]sqltoken.Token, error) {
	from, cases := p.at, 0
	for ; p.at < len(p.toks) && !p.toks[p.at].Is(";"); p.at++ {
		switch t := p.toks[p.at]; {
		case t.Is("CASE"):
			cases++
		case t.Is("END"):
			cases--
		case cases <= 0 && slices.ContainsFunc(words, t.Is):
			p.at++
			return p.toks[from : p.at-1], nil
		}
	}
	return nil, p.errorf("%s is missing %s", words[0], p.here())
}

// branch reads IF. The queries in its conditions come before.
func (p *parser) branch() ([]item, error) {
	var before []item
	b := &branch{}
	for otherwise := false; ; {
		p.at++ // IF, ELSIF, ELSE
		if !otherwise {
			queries, err := p.condition("THEN", ":")
			if err != nil {
				return nil, err
			}
			before = append(before, queries...)
		}
		body, err := p.items()
		if err != nil {
			return nil, err
		}
		b.bodies = append(b.bodies, body)
		if otherwise || !p.is("ELSE") && !p.is("ELSIF") && !p.is("ELSEIF") {
			if !otherwise {
				b.bodies = append(b.bodies, nil)
			}
			break
		}
		otherwise = p.is("ELSE")
	}
	if !p.take("END", "IF") && !p.take("ENDIF") {
		return nil, p.errorf("IF: END IF is missing %s", p.here())
	}
	return append(before, b), p.expect(";", "END IF")
}

// condition reads a condition up to a word, and returns the queries in it.
func (p *parser) condition(words ...string) ([]item, error) {
	toks, err := p.until(words...)
	if err != nil {
		return nil, err
	}
	p.asks(toks)
	return p.queries(toks), nil
}

// asks finds out of which statements a condition asks whether they found a row.
func (p *parser) asks(toks []sqltoken.Token) {
	for i, t := range toks {
		switch {
		case t.Is("FOUND") && p.last != nil:
			p.last.misses = true
		case t.Kind == sqltoken.Param && i+1 < len(toks) && toks[i+1].Is("IS"):
			if s := p.into[t.Text]; s != nil {
				s.misses = true
			}
		}
	}
}

// queries returns the query in a condition or a value, if there is one: it is asked as SELECT and the whole.
func (p *parser) queries(toks []sqltoken.Token) []item {
	if !slices.ContainsFunc(toks, func(t sqltoken.Token) bool { return t.Is("SELECT") }) {
		return nil
	}
	return []item{p.statement(toks, "SELECT ")}
}

// loop reads LOOP, WHILE and FOR.
func (p *parser) loop() ([]item, error) {
	l := &loop{}
	var before, within []item
	switch {
	case p.take("WHILE"):
		queries, err := p.condition("LOOP")
		if err != nil {
			return nil, err
		}
		before, within = queries, queries
	case p.take("FOR"):
		p.take("EACH")
		if l.vars = p.variables(); l.vars == nil {
			return nil, p.errorf("FOR: a variable is missing %s", p.here())
		}
		if err := p.expect("IN", "FOR"); err != nil {
			return nil, err
		}
		toks, err := p.until("LOOP")
		if err != nil {
			return nil, err
		}
		before = p.source(toks)
	default:
		p.at++
	}
	body, err := p.items()
	if err != nil {
		return nil, err
	}
	l.body = append(body, within...)
	if !p.take("END", "LOOP") {
		return nil, p.errorf("LOOP: END LOOP is missing %s", p.here())
	}
	return append(before, l), p.expect(";", "END LOOP")
}

// source returns the query that a loop runs over.
func (p *parser) source(toks []sqltoken.Token) []item {
	for len(toks) > 1 && toks[0].Is("(") && toks[len(toks)-1].Is(")") {
		toks = toks[1 : len(toks)-1]
	}
	if len(toks) > 0 && (toks[0].Is("SELECT") || toks[0].Is("WITH")) {
		return []item{p.statement(toks, "")}
	}
	return p.queries(toks)
}

// assignment reads :name = anything.
func (p *parser) assignment() ([]item, error) {
	a := assignment{to: p.toks[p.at].Text}
	p.at++
	if !p.take("=") && !p.take(":=") {
		return nil, p.errorf("= is missing behind %s %s", a.to, p.here())
	}
	toks := p.rest()
	if len(toks) == 0 {
		return nil, p.errorf("%s = what? A value is missing %s", a.to, p.here())
	}
	if len(toks) == 1 && toks[0].Kind == sqltoken.Param {
		a.from = toks[0].Text
	}
	return append(p.queries(toks), a), p.expect(";", "an assignment")
}
