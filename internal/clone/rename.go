package clone

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A renaming has texts of the MySQL family name the copy's schema where they name the source's.
type renaming struct {
	from, to string
	folds    bool            // names that differ by case are the same
	things   map[string]bool // the names of the source's tables, views and sequences
}

// modeOf is how a text is cut that was made under a sql_mode.
func modeOf(sqlMode string) mysqltoken.Mode {
	modes := strings.Split(sqlMode, ",")
	return mysqltoken.Mode{ANSIQuotes: slices.Contains(modes, "ANSI_QUOTES"),
		NoBackslashEscapes: slices.Contains(modes, "NO_BACKSLASH_ESCAPES")}
}

// text returns a text that names the copy. What stands in strings is no name.
func (r *renaming) text(text string, mode mysqltoken.Mode) (string, error) {
	t := names{mysqltoken.Scan(text, mode)}
	switch {
	case t.Open >= 0:
		return "", fmt.Errorf("its text ends within a string, a name or a comment: %s", text)
	case r.preparesSource(&t):
		return "", fmt.Errorf("it makes statements of strings, and one names %s: what it does in the copy cannot be told", r.from)
	}
	type piece struct {
		start, end int
		text       string
	}
	var pieces []piece
	for i, token := range t.Tokens {
		schema, err := r.isSchema(&t, i)
		if err != nil {
			return "", err
		}
		if schema {
			pieces = append(pieces, piece{token.Start, token.End, backquoted(r.to)})
		}
	}
	for _, c := range t.Comments {
		// The server reads it; the mark and the version at its head are no names.
		inner, err := r.text(text[c.Start+len("/*"):c.End-len("*/")], mode)
		if err != nil {
			return "", err
		}
		pieces = append(pieces, piece{c.Start + len("/*"), c.End - len("*/"), inner})
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, p := range pieces {
		b.WriteString(text[at:p.start] + p.text)
		at = p.end
	}
	return b.String() + text[at:], nil
}

// isSchema reports whether a token is the source's name before a dot, and stands for the schema. It may be a table's,
// too, or an alias: a text that has the name without a dot behind it is looked at more closely.
func (r *renaming) isSchema(t *names, i int) (bool, error) {
	if !r.isSource(t.name(i)) || t.is(i-1, ".") || !t.is(i+1, ".") || t.name(i+2) == "" {
		return false, nil
	}
	if t.is(i+3, ".") || t.is(i+3, "(") || t.behindTableKeyword(i) || !r.ambiguous(t) {
		return true, nil
	}
	if !r.things[strings.ToLower(t.name(i+2))] {
		return false, nil
	}
	return false, fmt.Errorf("%s.%s is a column, or a table of the schema: it cannot be told which", t.name(i), t.name(i+2))
}

func (r *renaming) isSource(name string) bool {
	return name == r.from || r.folds && strings.EqualFold(name, r.from)
}

// ambiguous reports whether a text has the source's name for something else than a schema.
func (r *renaming) ambiguous(t *names) bool {
	for i := range t.Tokens {
		if r.isSource(t.name(i)) && !t.is(i+1, ".") && (!t.is(i-1, ".") || r.isSource(t.name(i-2))) {
			return true
		}
	}
	return false
}

// preparesSource reports whether a program makes statements of strings, and has a string that holds the source's name.
func (r *renaming) preparesSource(t *names) bool {
	prepares, named := false, false
	for i, token := range t.Tokens {
		prepares = prepares || t.is(i, "PREPARE") || t.is(i, "EXECUTE") && t.is(i+1, "IMMEDIATE")
		named = named || token.Kind == mysqltoken.String && holdsWord(strings.ToLower(t.TokenText(i)), strings.ToLower(r.from))
	}
	return prepares && named
}

// holdsWord reports whether a text holds a word, and not only as a part of a longer one.
func holdsWord(text, word string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(word)
		if (at == 0 || !mysqltoken.IsWord(text[at-1])) && (end == len(text) || !mysqltoken.IsWord(text[end])) {
			return true
		}
	}
}

// names is a text whose tokens are asked for names.
type names struct{ mysqltoken.Text }

// is reports whether there is a token i of that text, in any case.
func (t *names) is(i int, text string) bool {
	return i >= 0 && i < len(t.Tokens) && strings.EqualFold(t.TokenText(i), text)
}

// name returns the name, or the keyword, that token i is; empty where it is none.
func (t *names) name(i int) string {
	if i < 0 || i >= len(t.Tokens) {
		return ""
	}
	text := t.TokenText(i)
	switch t.Tokens[i].Kind {
	case mysqltoken.Word:
		return text
	case mysqltoken.Name:
		if quote := text[:1]; (quote == "`" || quote == `"`) && len(text) > 1 {
			return strings.ReplaceAll(text[1:len(text)-1], quote+quote, quote)
		}
		return text
	}
	return ""
}

// beforeTables are keywords that a table, view, sequence or routine follows, perhaps behind parentheses.
var beforeTables = []string{"FROM", "JOIN", "STRAIGHT_JOIN", "INTO", "UPDATE", "TABLE", "TABLES", "DELETE", "TRUNCATE",
	"CALL", "REFERENCES", "EXISTS", "TRIGGER", "FUNCTION", "PROCEDURE", "PACKAGE", "BODY", "VIEW", "FOR"}

// behindTableKeyword reports whether a keyword says that token i begins the name of something in a schema.
func (t *names) behindTableKeyword(i int) bool {
	i--
	for t.is(i, "(") {
		i--
	}
	return i >= 0 && t.Tokens[i].Kind == mysqltoken.Word && slices.Contains(beforeTables, strings.ToUpper(t.TokenText(i)))
}

// withoutDefiner takes the clause DEFINER=... out of the head of a definition.
func withoutDefiner(text string, mode mysqltoken.Mode) string {
	const head = 12 // tokens: CREATE ALGORITHM = UNDEFINED DEFINER = user
	t := names{mysqltoken.Scan(text, mode)}
	for i := range min(len(t.Tokens)-2, head) {
		if !t.is(i, "DEFINER") || !t.is(i+1, "=") {
			continue
		}
		last := i + 2
		if last+1 < len(t.Tokens) && t.Tokens[last+1].Kind == mysqltoken.Variable { // @host
			last++
		}
		return text[:t.Tokens[i].Start] + text[t.Tokens[last].End:]
	}
	return text
}

// backquoted quotes an identifier.
func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
