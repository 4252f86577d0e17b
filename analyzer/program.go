package analyzer

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/programname"
)

// programs numbers the programs of transactions. Statements that differ only in the number at the
// end of a table's name are one statement here (see FoldTables).
type programs struct {
	shapes   map[statementShape]shape
	byClass  map[string]int32
	classes  []class
	index    map[string]int32
	list     []program
	sequence []int32        // scratch
	key      []byte         // scratch
	latest   [16]knownShape // by the place of the statement in its transaction, modulo their number
}

// A statementShape is a statement's text without its literals, and whose SQL it is.
type statementShape struct {
	family dbms.Family
	text   string
}

// A knownShape is a statement's text and its shape.
type knownShape struct {
	statementShape
	shape shape
}

// A shape is a statement's text without its literals, by number.
type shape struct {
	number int32 // of its class
	nested bool  // a locking clause in it does not reach every table
	calls  bool  // it calls functions that may be stored ones
	// selects says that there is a SELECT in it.
	selects bool
}

// A class is the shapes that are one but for the numbers of their tables.
type class struct {
	folded string
	first  string // the shape that was seen first
	shapes int
}

// text returns what the class's shapes have in common.
func (c *class) text() string {
	if c.shapes == 1 {
		return c.first
	}
	return c.folded
}

type program struct {
	shapes  []int32
	level   history.Level
	count   int
	actions programname.Actions
}

func newPrograms() programs {
	return programs{
		shapes:  make(map[statementShape]shape),
		byClass: make(map[string]int32),
		index:   make(map[string]int32),
	}
}

// of returns the program of a transaction whose statements have the given shapes: those in order,
// without what only delimits it (BEGIN, COMMIT, SET, ...), and with loops folded.
func (p *programs) of(t *history.Txn, shapes []shape) int32 {
	p.sequence = p.sequence[:0]
	for i := range t.Stmts {
		switch t.Stmts[i].Kind {
		case history.Begin, history.Commit, history.Rollback, history.Savepoint, history.Release, history.Set,
			history.Lock, history.NamedLock:
		default:
			p.sequence = fold(append(p.sequence, shapes[i].number))
		}
	}
	p.key = append(p.key[:0], byte(t.Level))
	for _, n := range p.sequence {
		p.key = binary.LittleEndian.AppendUint32(p.key, uint32(n))
	}
	n, ok := p.index[string(p.key)]
	if !ok {
		n = int32(len(p.list))
		p.index[string(p.key)] = n
		p.list = append(p.list, program{shapes: slices.Clone(p.sequence), level: t.Level})
	}
	p.list[n].count++
	p.list[n].actions.Add(programname.ActionOf(t))
	return n
}

// maxLoop is the number of statements in the longest loop body that folds.
const maxLoop = 8

// fold takes the last statements off a sequence if they repeat those right before them.
func fold(seq []int32) []int32 {
	for n := 1; n <= maxLoop && 2*n <= len(seq); n++ {
		body := len(seq) - n
		if slices.Equal(seq[body-n:body], seq[body:]) {
			return seq[:body]
		}
	}
	return seq
}

// shape returns the shape of the i-th statement of a transaction. Most transactions are like others, so the shape that
// a statement in that place had before is tried first.
func (p *programs) shape(family dbms.Family, text string, i int) shape {
	latest := &p.latest[i%len(p.latest)]
	if latest.text != text || latest.family != family {
		of := statementShape{family, text}
		*latest = knownShape{of, p.find(of)}
	}
	return latest.shape
}

func (p *programs) find(of statementShape) shape {
	s, ok := p.shapes[of]
	if ok {
		return s
	}
	of.text = strings.Clone(of.text)
	text, folded := of.text, FoldTables(of.family, of.text)
	n, ok := p.byClass[folded]
	if !ok {
		n = int32(len(p.classes))
		p.byClass[folded] = n
		p.classes = append(p.classes, class{folded: folded, first: text})
	}
	p.classes[n].shapes++
	words := wordsOf(of.family, text)
	selects := 0
	for i := range words {
		if words[i].keyword("SELECT") {
			selects++
		}
	}
	s = shape{n, selects > 1 || locksSome(words), calls(words), selects > 0}
	p.shapes[of] = s
	return s
}

// stmts returns the statements of a program.
func (p *programs) stmts(n int32) []string {
	var stmts []string
	for _, s := range p.list[n].shapes {
		stmts = append(stmts, p.classes[s].text())
	}
	return stmts
}

// calls reports whether a statement has a call of what is not surely the server's own function.
func calls(words []word) bool {
	for i := range words[:max(0, len(words)-1)] {
		if next := &words[i+1]; next.text == "(" && words[i].name &&
			!slices.Contains(beforeParenthesis, strings.ToUpper(words[i].text)) {
			return true
		}
	}
	return false
}

// beforeParenthesis are the words and the most usual functions that may stand before a parenthesis.
var beforeParenthesis = []string{"ALL", "AND", "ANY", "AS", "AVG", "BETWEEN", "BY", "CAST", "COALESCE", "CONCAT",
	"COUNT", "DATE",
	"DISTINCT", "ELSE", "EXCEPT", "EXISTS", "FROM", "GREATEST", "GROUP_CONCAT", "HAVING", "IF", "IFNULL", "IN",
	"INTERSECT", "JOIN",
	"JSON_ARRAYAGG", "LEAST", "LENGTH", "LIKE", "LOWER", "MAX", "MIN", "MOD", "NOT", "NOW", "NULLIF", "ON", "OR",
	"OVER", "RANK", "ROUND",
	"ROW_NUMBER", "SELECT", "SUM", "THEN", "UNION", "UPPER", "USING", "VALUES", "WHEN", "WHERE", "YEAR"}

// locksSome reports whether a locking clause names the tables that it is for, or lets others write the rows
// all the same (FOR KEY SHARE).
func locksSome(words []word) bool {
	for i := range words {
		if !words[i].keyword("FOR") {
			continue
		}
		rest := words[i+1:]
		switch {
		case startWith(rest, "KEY", "SHARE"), startWith(rest, "UPDATE", "OF"), startWith(rest, "SHARE", "OF"),
			startWith(rest, "NO", "KEY", "UPDATE", "OF"):
			return true
		}
	}
	return false
}

func startWith(words []word, first ...string) bool {
	return len(words) >= len(first) && slices.EqualFunc(words[:len(first)], first,
		func(w word, upper string) bool { return w.keyword(upper) })
}
