package analyzer

import (
	"slices"
	"strings"
)

// FoldTables puts # in place of the number at the end of every table's name in a statement's shape.
// Tables of one design are often spread over numbered copies (sysbench's sbtest1 to sbtestN, shards,
// months). Statements that are the same but for that number come from the same line of a program, and
// what goes wrong between two of the copies goes wrong between any. A name is a table's by its place:
// after FROM, JOIN, UPDATE, INTO and their kind; columns keep their numbers.
func FoldTables(shape string) string {
	words := wordsOf(shape)
	var names []string
	var at clause
	for i := range words {
		if w := &words[i]; at.step(shape, words, i) && len(stem(w.text)) < len(w.text) {
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

// A word of a statement is a name or keyword (without its quotes), or one other character.
type word struct {
	at   int // where its text begins
	text string
	name bool
}

// wordsOf takes a shape apart. Comments and strings, of which a shape has few, count as other
// characters; what stands in double quotes is a name, as PostgreSQL has it.
func wordsOf(shape string) []word {
	var words []word
	for i := 0; i < len(shape); {
		switch c := shape[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case wordByte(c):
			from := i
			for i < len(shape) && wordByte(shape[i]) {
				i++
			}
			words = append(words, word{from, shape[from:i], true})
		case c == '`' || c == '"' || c == '\'':
			n := strings.IndexByte(shape[i+1:], c)
			if n < 0 {
				return words
			}
			words = append(words, word{i + 1, shape[i+1 : i+1+n], c != '\''})
			i += n + 2
		case strings.HasPrefix(shape[i:], "/*"):
			n := strings.Index(shape[i:], "*/")
			if n < 0 {
				return words
			}
			i += n + 2
		default:
			words = append(words, word{i, shape[i : i+1], false})
			i++
		}
	}
	return words
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// A clause is where in a statement a walk over its words is.
type clause struct {
	expect bool // a table's name comes next
	list   bool // a comma makes another one come
}

// step takes in word i and reports whether it is the name of a table, without its schema's.
func (c *clause) step(shape string, words []word, i int) bool {
	w := &words[i]
	if !w.name {
		c.mark(w.text, words, i)
		return false
	}
	quoted := w.at > 0 && (shape[w.at-1] == '`' || shape[w.at-1] == '"')
	if !quoted && c.keyword(strings.ToUpper(w.text), words, i) || !c.expect {
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
