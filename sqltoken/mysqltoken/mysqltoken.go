// Package mysqltoken cuts SQL of the MySQL family into tokens. Its rules are those of the servers' own scanners:
// lex_one_token in sql/sql_lex.cc of MySQL and MariaDB. They differ in few places, and from TiDB's (the Scanner of its
// pkg/parser) in few more; what is read here is what they have in common:
//
//   - 'x' is a string, and "x" one unless the mode has ANSI_QUOTES; a doubled quote stands for itself, and backslashes
//     escape unless the mode has NO_BACKSLASH_ESCAPES. A prefix n, x or b belongs to its string, a character set's
//     (_utf8'x') is a word of its own.
//   - Behind a dot, letters and digits are a name: no keyword, and no number.
//   - # begins a comment, and so do two dashes before white space or a control character. Comments do not nest.
//   - What stands in an executable comment (/*! ... */) is not cut. Whether a server reads it depends on its version.
//
// [Scan] holds these promises for every text:
//
//   - Tokens are in the order of the text, none is empty, and none overlaps another.
//   - What stands between two tokens is white space, comments and, where the text is Strange, bytes that begin none.
//   - A token's Depth is the number of parentheses before it that are open; only a text that is not Unbalanced has as
//     many that close.
//   - It allocates the tokens, and what notes executable comments. Nothing refers to other memory than the text's.
//
// The package knows no statements. It imports none of isotap's.
package mysqltoken

import "strings"

// A Kind is what a token is.
type Kind uint8

// The kinds.
const (
	Word        Kind = iota // a keyword or an unquoted name
	Name                    // a quoted name, or an unquoted one behind a dot, where no keyword can stand
	String                  // a string, with its prefix if that is n, x or b
	Number                  // also 0x1F and 0b01
	Variable                // @user or @@system
	Placeholder             // ?
	Mark                    // an operator or another mark
)

// A Token is the part SQL[Start:End] of a text.
type Token struct {
	Start, End int
	Depth      int // open parentheses around it; a parenthesis itself belongs to the outside
	Kind       Kind
}

// Span returns where the token begins in the text, and where it ends.
func (t Token) Span() (start, end int) { return t.Start, t.End }

// A Mode says how texts are cut, and how much of them is kept. The zero Mode is that of a server without settings.
type Mode struct {
	ANSIQuotes         bool // ANSI_QUOTES: what stands in double quotes is a name
	NoBackslashEscapes bool // NO_BACKSLASH_ESCAPES
	// DashComments says that two dashes begin a comment whatever stands behind them, as in standard SQL. It is of no
	// server's.
	DashComments bool
	// MaxTokens and MaxComments are how many tokens and executable comments of a text are kept; 0: all.
	MaxTokens, MaxComments int
}

// A Comment is an executable one (/*! ... */, MariaDB's /*M!, TiDB's /*T!): SQL[Start:End]. It stands before the token
// of that number.
type Comment struct{ Start, End, Token int }

// A Text is SQL that was cut into tokens. It may hold several statements, or none.
type Text struct {
	SQL          string
	Mode         Mode
	Tokens       []Token
	Placeholders int       // how many tokens are placeholders
	Comments     []Comment // the executable ones
	// Open is where a string, a quoted name or a comment begins that does not end; -1 if there is none.
	Open int
	// Strange says that there is a character that begins no token: a control character, or two dashes before a byte
	// that some character sets have for white space.
	Strange    bool
	Unbalanced bool // parentheses do not match
	// Separated says that a semicolon stands in an executable comment.
	Separated bool
	// Long says that not all tokens or executable comments were kept, GoesOn that there is a semicolon among the tokens
	// that were not.
	Long, GoesOn bool
}

// Broken reports whether a server refuses the text for its tokens alone.
func (t *Text) Broken() bool { return t.Open >= 0 || t.Strange || t.Unbalanced }

// TokenText returns the text of token i.
func (t *Text) TokenText(i int) string { return t.SQL[t.Tokens[i].Start:t.Tokens[i].End] }

// Scan cuts a text into tokens. It never fails: what a server would refuse is said in the fields of the result.
func Scan(text string, m Mode) Text {
	room := 8 + len(text)/5
	if m.MaxTokens > 0 {
		room = min(room, m.MaxTokens)
	}
	l := lexer{Text: Text{SQL: text, Mode: m, Open: -1, Tokens: make([]Token, 0, room)}}
	for l.pos < len(text) {
		l.next()
	}
	l.Unbalanced = l.Unbalanced || l.level != 0
	return l.Text
}

// A lexer cuts one text.
type lexer struct {
	Text
	pos   int // of the text: what comes next
	level int // of parentheses that are open there
}

// next reads one token, one comment or one blank.
func (l *lexer) next() {
	text, c := l.SQL, l.SQL[l.pos]
	switch {
	case c == ' ' || c >= '\t' && c <= '\r':
		l.pos++
	case c == '#', c == '-' && l.dashComment():
		l.lineComment()
	case c == '/' && l.at(1) == '*':
		l.blockComment()
	case c == '\'', c == '"' && !l.Mode.ANSIQuotes:
		l.emit(String, l.closing(l.pos, !l.Mode.NoBackslashEscapes))
	case c == '"', c == '`':
		l.emit(Name, l.closing(l.pos, false))
	case c == '@':
		l.variable()
	case c == '?':
		l.Placeholders++
		l.emit(Placeholder, l.pos+1)
	case c >= '0' && c <= '9', c == '.' && IsDigit(l.at(1)) && !l.behindName():
		l.number()
	case IsWord(c):
		l.word()
	case c == 0 || c < ' ' || c == 0x7f:
		l.Strange = true
		l.pos++
	default:
		l.emit(Mark, l.pos+len(operator(text[l.pos:])))
	}
}

// at is the byte n places ahead; 0 behind the end.
func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.SQL) {
		return l.SQL[l.pos+n]
	}
	return 0
}

// emit adds a token that ends there.
func (l *lexer) emit(kind Kind, end int) {
	t := Token{Start: l.pos, End: end, Depth: l.level, Kind: kind}
	switch l.SQL[l.pos] {
	case '(':
		l.level++
	case ')':
		l.level--
		t.Depth = l.level
		l.Unbalanced = l.Unbalanced || l.level < 0
	}
	l.pos = end
	if n := len(l.Tokens); n > 0 && n == l.Mode.MaxTokens {
		l.Long = true
		l.GoesOn = l.GoesOn || l.SQL[t.Start] == ';'
		return
	}
	l.Tokens = append(l.Tokens, t)
}

// dashComment reports whether two dashes begin a comment: they do before white space, a control
// character or the end. Which bytes beyond ASCII are white space hangs on the character set: a text with two
// dashes before one is broken.
func (l *lexer) dashComment() bool {
	if l.at(1) != '-' {
		return false
	}
	c := l.at(2)
	if l.Mode.DashComments {
		return true
	}
	l.Strange = l.Strange || c >= 0x80
	return c <= ' ' || c == 0x7f
}

func (l *lexer) lineComment() {
	if i := strings.IndexByte(l.SQL[l.pos:], '\n'); i >= 0 {
		l.pos += i + 1
	} else {
		l.pos = len(l.SQL)
	}
}

func (l *lexer) blockComment() {
	body := l.SQL[l.pos+2:]
	length := strings.Index(body, "*/")
	if length < 0 {
		l.notClosed(l.pos)
		length = len(body) - 2
	}
	content := body[:max(0, length)]
	executable := strings.HasPrefix(content, "!") || strings.HasPrefix(content, "M!") ||
		strings.HasPrefix(content, "T!")
	if executable {
		if n := len(l.Comments); n == 0 || n != l.Mode.MaxComments {
			l.Comments = append(l.Comments, Comment{l.pos, min(l.pos+2+length+2, len(l.SQL)), len(l.Tokens)})
		} else {
			l.Long = true
		}
		l.Separated = l.Separated || strings.IndexByte(content, ';') >= 0
	}
	end := min(l.pos+2+length+2, len(l.SQL))
	l.pos = end
}

// closing finds the end of what a quote at start opens.
func (l *lexer) closing(start int, backslash bool) int {
	n := Quoted(l.SQL[start:], backslash)
	if n < 0 {
		l.notClosed(start)
		return len(l.SQL)
	}
	return start + n
}

// Quoted returns the length of the string or quoted name that a text begins with, quotes included; -1 if it does not
// end. A quote that is doubled does not end it and, where backslashes escape, nor does one behind a backslash: they do
// in strings, unless the mode says otherwise, and never in names.
func Quoted(text string, backslashes bool) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && backslashes:
			i++
		case text[i] != quote:
		case i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// notClosed notes that what begins at start has no end.
func (l *lexer) notClosed(start int) {
	if l.Open < 0 {
		l.Open = start
	}
}

// variable reads @name, @'name', @`name`, @@name and @@scope.name.
func (l *lexer) variable() {
	text, end := l.SQL, l.pos+1
	if end < len(text) && text[end] == '@' {
		end++
	}
	for end < len(text) {
		switch c := text[end]; {
		case IsWord(c) || c == '.':
			end++
		case c == '`' || end == l.pos+1 && (c == '\'' || c == '"'):
			end = l.closing(end, c != '`' && !l.Mode.NoBackslashEscapes)
		default:
			l.emit(Variable, end)
			return
		}
	}
	l.emit(Variable, end)
}

// behindName reports whether the byte before is the end of a name, so that a dot here separates names.
func (l *lexer) behindName() bool {
	if len(l.Tokens) == 0 {
		return false
	}
	t := l.Tokens[len(l.Tokens)-1]
	return t.End == l.pos && (t.Kind == Word || t.Kind == Name)
}

// behindDot reports whether a name here is qualified. White space may stand around the dot.
func (l *lexer) behindDot() bool {
	n := len(l.Tokens)
	return n > 1 && l.TokenText(n-1) == "." && (l.Tokens[n-2].Kind == Word || l.Tokens[n-2].Kind == Name)
}

// number reads a number; a run of letters and digits that is none is a name.
func (l *lexer) number() {
	text := l.SQL
	end := l.pos
	for end < len(text) && IsWord(text[end]) {
		end++
	}
	run := text[l.pos:end]
	switch {
	case run != "" && l.behindDot() && l.Tokens[len(l.Tokens)-1].End == l.pos:
		l.emit(Name, end)
		return
	case strings.HasPrefix(run, "0x") && allOf(run[2:], isHex), strings.HasPrefix(run, "0b") && allOf(run[2:], isBit):
		l.emit(Number, end)
		return
	}
	end = l.pos + digits(text[l.pos:])
	if end < len(text) && text[end] == '.' {
		end++
		end += digits(text[end:])
	}
	if end < len(text) && (text[end] == 'e' || text[end] == 'E') {
		exp := end + 1
		if exp < len(text) && (text[exp] == '+' || text[exp] == '-') {
			exp++
		}
		if n := digits(text[exp:]); n > 0 {
			end = exp + n
		}
	}
	if whole := l.pos + len(run); end < whole && strings.IndexByte(text[l.pos:end], '.') < 0 {
		l.emit(Word, whole)
		return
	}
	l.emit(Number, end)
}

// word reads a name or a keyword, or a string whose prefix is one letter.
func (l *lexer) word() {
	text := l.SQL
	end := l.pos
	for end < len(text) && IsWord(text[end]) {
		end++
	}
	if end == l.pos+1 && end < len(text) && text[end] == '\'' && strings.IndexByte("nNxXbB", text[l.pos]) >= 0 {
		l.emit(String, l.closing(end, !l.Mode.NoBackslashEscapes))
		return
	}
	if l.behindDot() {
		l.emit(Name, end)
		return
	}
	l.emit(Word, end)
}

// operator returns the operator or mark that text begins with.
func operator(text string) string {
	for _, op := range [...]string{"<=>", "->>", "<=", ">=", "<>", "!=", ":=", "||", "&&", "<<", ">>", "->"} {
		if strings.HasPrefix(text, op) {
			return op
		}
	}
	return text[:1]
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

func isBit(c byte) bool { return c == '0' || c == '1' }
func isHex(c byte) bool { return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// IsWord reports whether a byte can be part of a name without quotes, or of a keyword. Those beyond ASCII can.
func IsWord(c byte) bool {
	return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}

func digits(s string) int {
	n := 0
	for n < len(s) && IsDigit(s[n]) {
		n++
	}
	return n
}

func allOf(s string, f func(byte) bool) bool {
	for i := range len(s) {
		if !f(s[i]) {
			return false
		}
	}
	return s != ""
}
