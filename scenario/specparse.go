package scenario

import "fmt"

// A specParser reads the grammar: set-ups, a teardown, sessions, permutations.
type specParser struct {
	scanner specScanner
	token   specToken // the next one
}

func (p *specParser) parse() (*spec, error) {
	s := &spec{}
	err := p.advance()
	for err == nil && p.token.is("setup") {
		var sql string
		sql, err = p.block()
		s.setup = append(s.setup, sql)
	}
	if err == nil {
		s.teardown, err = p.optional("teardown")
	}
	for err == nil && p.token.is("session") {
		var session specSession
		session, err = p.session()
		s.sessions = append(s.sessions, session)
	}
	if err == nil && len(s.sessions) == 0 {
		return nil, p.expected("session")
	}
	for err == nil && p.token.is("permutation") {
		var permutation []specEntry
		permutation, err = p.permutation()
		s.permutations = append(s.permutations, permutation)
	}
	if err == nil && p.token.kind != specEnd {
		err = p.expected("permutation")
	}
	return s, err
}

// advance reads the next token.
func (p *specParser) advance() (err error) {
	p.token, err = p.scanner.next()
	return err
}

func (p *specParser) expected(what string) error {
	return fmt.Errorf("line %d: %s where %s should be", p.token.line, p.token.describe(), what)
}

// block reads a keyword and the SQL behind it.
func (p *specParser) block() (string, error) {
	if err := p.advance(); err != nil {
		return "", err
	}
	return p.sql()
}

func (p *specParser) sql() (string, error) {
	if p.token.kind != specSQL {
		return "", p.expected("{")
	}
	sql := p.token.text
	return sql, p.advance()
}

// optional reads a block that may be missing, as a list of its one text.
func (p *specParser) optional(keyword string) ([]string, error) {
	if !p.token.is(keyword) {
		return nil, nil
	}
	sql, err := p.block()
	return []string{sql}, err
}

// name reads a keyword and the name behind it.
func (p *specParser) name(of string) (string, error) {
	if err := p.advance(); err != nil {
		return "", err
	}
	if p.token.kind != specName {
		return "", p.expected("the name of a " + of)
	}
	name := p.token.text
	return name, p.advance()
}

func (p *specParser) session() (s specSession, err error) {
	s.session.Level = "READ COMMITTED"
	if s.session.Name, err = p.name("session"); err != nil {
		return s, err
	}
	if s.session.Setup, err = p.optional("setup"); err != nil {
		return s, err
	}
	for p.token.is("step") {
		x := Step{Session: s.session.Name}
		s.lines = append(s.lines, p.token.line)
		if x.Name, err = p.name("step"); err != nil {
			return s, err
		}
		if x.SQL, err = p.sql(); err != nil {
			return s, err
		}
		s.steps = append(s.steps, x)
	}
	if len(s.steps) == 0 {
		return s, p.expected("step")
	}
	s.session.Teardown, err = p.optional("teardown")
	return s, err
}

func (p *specParser) permutation() (entries []specEntry, err error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.token.kind == specName {
		entry := specEntry{line: p.token.line, step: p.token.text}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.token.is("(") {
			if err := p.markers(&entry); err != nil {
				return nil, err
			}
		}
		entries = append(entries, entry)
	}
	if len(entries) == 0 {
		return nil, p.expected("the name of a step")
	}
	return entries, nil
}

// markers reads the list in parentheses behind a step.
func (p *specParser) markers(entry *specEntry) error {
	for {
		if err := p.advance(); err != nil {
			return err
		}
		if err := p.marker(entry); err != nil {
			return err
		}
		if !p.token.is(",") {
			break
		}
	}
	if !p.token.is(")") {
		return p.expected(")")
	}
	return p.advance()
}

func (p *specParser) marker(entry *specEntry) error {
	if p.token.is("*") {
		entry.atOnce = true
		return p.advance()
	}
	if p.token.kind != specName {
		return p.expected("* or the name of a step")
	}
	c := Condition{Step: p.token.text}
	if err := p.advance(); err != nil {
		return err
	}
	if p.token.is("notices") {
		if err := p.advance(); err != nil {
			return err
		}
		if p.token.kind != specNumber {
			return p.expected("a number of notices")
		}
		if _, err := fmt.Sscan(p.token.text, &c.Notices); err != nil || c.Notices < 1 {
			return fmt.Errorf("line %d: %s is no number of notices", p.token.line, p.token.text)
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	entry.until = append(entry.until, c)
	return nil
}

// describe is the token for an error.
func (t specToken) describe() string {
	switch t.kind {
	case specEnd:
		return "the end"
	case specSQL:
		return "SQL"
	case specName:
		return fmt.Sprintf("%q", t.text)
	}
	return t.text
}
