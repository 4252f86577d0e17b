package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/sqltoken"
)

// A written program is one as its file has it.
type written struct {
	name, short string
	file        string
	line        int
	params      []string
	body        []item
}

// An item of a program: a *statement, *branch, *loop, assignment or end.
type item any

// A statement of SQL.
type statement struct {
	line   int
	sql    string   // as written
	text   string   // with the family's placeholders in the place of variables, and without INTO
	params []string // the variables of the placeholders, in order; of PostgreSQL's each once
	into   []string
	// misses says that the program asks whether it found a row.
	misses bool
}

// A branch runs one of its bodies.
type branch struct{ bodies [][]item }

// A loop runs its body any number of times. Its variables get new values each time.
type loop struct {
	vars []string
	body []item
}

// An assignment gives a variable the value of another, or a new one.
type assignment struct{ to, from string }

// An end of the transaction.
type end struct{ rollback bool }

// maxNesting bounds IF and LOOP in each other.
const maxNesting = 50

// A parser reads a file's tokens.
type parser struct {
	file   Source
	family dbms.Family
	toks   []sqltoken.Token
	at     int
	depth  int
	last   *statement            // read before
	into   map[string]*statement // by variable, that which gave it its value
}

// parse reads a file.
func parse(file Source, family dbms.Family) ([]*written, error) {
	toks, err := sqltoken.Scan(family, file.Text)
	var open *sqltoken.Error
	if errors.As(err, &open) {
		return nil, &Error{file.Name, open.Line, open.Err}
	} else if err != nil {
		return nil, err
	}
	p := parser{file: file, family: family, toks: toks}
	var all []*written
	for p.at < len(p.toks) {
		w, err := p.program()
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (p *parser) errorf(format string, args ...any) error {
	line := 1
	if n := len(p.toks); n > 0 {
		line = p.toks[min(p.at, n-1)].Line
	}
	return &Error{p.file.Name, line, fmt.Errorf(format, args...)}
}

// is reports whether the tokens from here on are these.
func (p *parser) is(texts ...string) bool {
	for i, text := range texts {
		if p.at+i >= len(p.toks) || !p.toks[p.at+i].Is(text) {
			return false
		}
	}
	return true
}

// take passes the tokens if they are these.
func (p *parser) take(texts ...string) bool {
	if !p.is(texts...) {
		return false
	}
	p.at += len(texts)
	return true
}

func (p *parser) expect(text, where string) error {
	if p.take(text) {
		return nil
	}
	return p.errorf("%s: %s is missing %s", where, text, p.here())
}

// here returns what stands here.
func (p *parser) here() string {
	if p.at < len(p.toks) {
		return fmt.Sprintf("before %q", p.toks[p.at].Text)
	}
	return "at the end of the file"
}

// word takes a name.
func (p *parser) word() (string, bool) {
	if p.at < len(p.toks) && p.toks[p.at].Kind == sqltoken.Word {
		p.at++
		return p.toks[p.at-1].Text, true
	}
	return "", false
}

// variables takes :a, :b.
func (p *parser) variables() []string {
	var names []string
	for p.at < len(p.toks) && p.toks[p.at].Kind == sqltoken.Param {
		names = append(names, p.toks[p.at].Text)
		p.at++
		if !p.take(",") {
			break
		}
	}
	return names
}

func (p *parser) program() (*written, error) {
	const header = "a program begins with Name (:parameter, ...):"
	p.last, p.into = nil, map[string]*statement{}
	w := &written{file: p.file.Name, line: p.toks[p.at].Line}
	var ok bool
	if w.name, ok = p.word(); !ok {
		return nil, p.errorf("%s; there is none %s", header, p.here())
	}
	if p.take("[") {
		if w.short, ok = p.word(); !ok {
			return nil, p.errorf("%s; there is no short name %s", header, p.here())
		}
		if err := p.expect("]", header); err != nil {
			return nil, err
		}
	}
	if err := p.expect("(", header); err != nil {
		return nil, err
	}
	w.params = p.variables()
	for _, closing := range []string{")", ":"} {
		if err := p.expect(closing, header); err != nil {
			return nil, err
		}
	}
	var err error
	if w.body, err = p.items(); err != nil {
		return nil, err
	}
	if !p.take("COMMIT") && !p.take("END") {
		return nil, p.errorf("program %s: COMMIT is missing %s", w.name, p.here())
	}
	return w, p.expect(";", "COMMIT")
}

// items reads what stands before the keyword that ends a program, a branch or a loop.
func (p *parser) items() ([]item, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.errorf("IF and LOOP are nested too deep")
	}
	defer func() { p.depth-- }()
	var all []item
	for p.at < len(p.toks) && !p.closes() {
		next, err := p.item()
		if err != nil {
			return nil, err
		}
		all = append(all, next...)
	}
	return all, nil
}

func (p *parser) closes() bool {
	return p.is("ELSE") || p.is("ELSIF") || p.is("ELSEIF") || p.is("END") || p.is("ENDIF") || p.is("COMMIT") &&
		p.depth == 1
}

func (p *parser) item() ([]item, error) {
	switch {
	case p.take(";"):
		return nil, nil
	case p.is("IF"):
		return p.branch()
	case p.is("LOOP"), p.is("WHILE"), p.is("FOR"):
		return p.loop()
	case p.is("COMMIT"), p.is("ROLLBACK"), p.is("ABORT"):
		e := end{rollback: !p.is("COMMIT")}
		p.at++
		return []item{e}, p.expect(";", "the end of a transaction")
	case p.is("BEGIN"), p.is("START", "TRANSACTION"), p.is("SET"):
		p.rest()
		return nil, p.expect(";", "a statement")
	case p.toks[p.at].Kind == sqltoken.Param:
		return p.assignment()
	}
	if write := instead[strings.ToUpper(p.toks[p.at].Text)]; write != "" {
		return nil, p.errorf("of %s it is not known what it reads and writes: %s", strings.ToUpper(p.toks[p.at].Text),
			write)
	}
	s := p.statement(p.rest(), "")
	if err := p.expect(";", "a statement"); err != nil {
		return nil, err
	}
	p.last = s
	for _, name := range s.into {
		p.into[name] = s
	}
	return []item{s}, nil
}

// instead says, of kinds of statements that are not read, what to write in their place.
var instead = map[string]string{
	"CALL":    "write the statements of the procedure in its place",
	"DO":      "write the statements of its block in its place",
	"EXECUTE": "write the statement that was prepared in its place",
	"COPY":    "write INSERT INTO in a LOOP in the place of COPY FROM, and SELECT in that of COPY TO",
	"LOAD":    "write INSERT INTO in a LOOP in its place",
}

// rest takes the tokens up to a semicolon.
func (p *parser) rest() []sqltoken.Token {
	from := p.at
	for p.at < len(p.toks) && !p.toks[p.at].Is(";") {
		p.at++
	}
	return p.toks[from:p.at]
}

// statement makes a statement of tokens, behind a word that they lack. Comments are left out.
func (p *parser) statement(toks []sqltoken.Token, before string) *statement {
	s := &statement{line: toks[0].Line}
	text, sql := []byte(before), []byte(before)
	received := -1 // the last token of INTO
	for i, t := range toks {
		gap := ""
		if i > 0 && toks[i-1].End < t.Start {
			sql = append(sql, ' ')
			if gap = " "; toks[i-1].Line < t.Line {
				gap = "\n" // which makes 'a' 'b' one string
			}
		}
		sql = append(sql, t.Text...)
		switch {
		case i <= received:
		case t.Is("INTO") && i+1 < len(toks) && toks[i+1].Kind == sqltoken.Param:
			received = s.receives(toks, i+1)
		case t.Kind == sqltoken.Param:
			text = append(append(text, gap...), s.placeholder(p.family, t.Text)...)
		default:
			text = append(append(text, gap...), t.Text...)
		}
	}
	s.text, s.sql = string(text), string(sql)
	return s
}

// receives takes the variables of INTO from token i, and returns the last one's place.
func (s *statement) receives(toks []sqltoken.Token, i int) (last int) {
	for {
		s.into = append(s.into, toks[i].Text)
		if i+2 >= len(toks) || !toks[i+1].Is(",") || toks[i+2].Kind != sqltoken.Param {
			return i
		}
		i += 2
	}
}

// placeholder spells a variable.
func (s *statement) placeholder(family dbms.Family, name string) string {
	n := slices.Index(s.params, name)
	if n < 0 || family == dbms.MySQLFamily {
		n = len(s.params)
		s.params = append(s.params, name)
	}
	return footprint.Param(family, n+1)
}
