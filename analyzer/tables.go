package analyzer

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/sqltoken"
)

// FoldTables puts # in place of the number at the end of every table's name in the shape of a family's statement.
// Tables of one design are often spread over numbered copies (sysbench's sbtest1 to sbtestN, shards,
// months). Statements that are the same but for that number come from the same line of a program, and
// what goes wrong between two of the copies goes wrong between any. A name is a table's by its place:
// after FROM, JOIN, UPDATE, INTO and their kind; columns keep their numbers.
func FoldTables(family dbms.Family, shape string) string {
	words := wordsOf(family, shape)
	var names []string
	var at clause
	for i := range words {
		if w := &words[i]; at.step(words, i) && len(stem(w.text)) < len(w.text) {
			names = append(names, w.text)
		}
	}
	if len(names) == 0 {
		return shape
	}
	var b strings.Builder
	from := 0
	for _, w := range words {
		if w.name && slices.Contains(names, w.text) {
			b.WriteString(shape[from:w.at])
			b.WriteString(stem(w.text) + "#")
			from = w.at + len(w.text)
		}
	}
	b.WriteString(shape[from:])
	return b.String()
}

// FoldTable does the same to a row's table as [Edge] has it, and leaves its incarnation out.
func FoldTable(table string) string {
	table, _, _ = strings.Cut(table, "@")
	if s := stem(table); len(s) < len(table) && !strings.HasSuffix(s, ".") {
		return s + "#"
	}
	return table
}

// stem returns a name without the digits at its end; the whole name where nothing else is left.
func stem(name string) string {
	if s := strings.TrimRight(name, "0123456789"); s != "" {
		return s
	}
	return name
}

// A word of a statement is a name or keyword (without its quotes), or another token.
type word struct {
	at     int // where its text begins
	text   string
	name   bool
	quoted bool
}

// keyword reports whether a word is this keyword, given in upper case.
func (w *word) keyword(upper string) bool {
	return w.name && !w.quoted && strings.EqualFold(w.text, upper)
}

// wordsOf takes a shape apart.
func wordsOf(family dbms.Family, shape string) []word {
	tokens := sqltoken.Shape(family, shape)
	words := make([]word, 0, len(tokens))
	for _, t := range tokens {
		w := word{at: t.Start, text: t.Text}
		if name, at, ok := t.Name(); ok {
			w = word{at, name, true, t.Kind == sqltoken.Quoted}
		}
		words = append(words, w)
	}
	return words
}

// A clause is where in a statement a walk over its words is.
type clause struct {
	expect bool // a table's name comes next
	list   bool // a comma makes another one come
}

// step takes in word i and reports whether it is the name of a table, without its schema's.
func (c *clause) step(words []word, i int) bool {
	w := &words[i]
	if !w.name {
		c.mark(w.text, words, i)
		return false
	}
	if !w.quoted && c.keyword(strings.ToUpper(w.text), words, i) || !c.expect {
		return false
	}
	if i+1 < len(words) && words[i+1].text == "." {
		return false
	}
	c.expect = false
	return true
}

func (c *clause) mark(text string, words []word, i int) {
	switch text {
	case ".":
	case "(":
		// REPLACE and INSERT are functions, too.
		if i > 0 && slices.Contains([]string{"REPLACE", "INSERT"}, strings.ToUpper(words[i-1].text)) {
			c.expect = false
		}
	case ",":
		c.expect = c.list
	case ")":
		c.expect, c.list = false, false
	default:
		c.expect = false
	}
}

// keyword takes in a keyword that tells where tables are; false for other words.
func (c *clause) keyword(upper string, words []word, i int) bool {
	switch upper {
	case "FROM", "JOIN", "STRAIGHT_JOIN":
		c.expect, c.list = true, true
	case "INTO", "TABLE", "INSERT", "REPLACE", "TRUNCATE":
		c.expect, c.list = true, false
	case "UPDATE":
		before := ""
		if i > 0 {
			before = strings.ToUpper(words[i-1].text)
		}
		c.expect = before != "KEY" && before != "FOR"
		c.list = c.expect
	case "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK":
		return c.expect
	case "SELECT", "WHERE", "ON", "USING", "SET", "GROUP", "ORDER", "LIMIT", "HAVING", "VALUES", "VALUE", "FOR", "LOCK",
		"UNION", "EXCEPT", "INTERSECT":
		c.expect, c.list = false, false
	default:
		return false
	}
	return true
}
