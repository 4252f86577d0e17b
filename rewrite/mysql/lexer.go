package mysql

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// A tokenKind is what the lexer makes of a stretch of text.
type tokenKind uint8

const (
	word        tokenKind = iota // a keyword or an unquoted name
	name                         // a quoted name, or an unquoted one behind a dot, where no keyword can stand
	str                          // a string, with its prefix if that is n, x or b
	number                       // also 0x1F and 0b01
	variable                     // @user or @@system
	placeholder                  // ?
	punct                        // an operator or another mark
)

// A token of a statement. Comments and white space are not tokens.
type token struct {
	start, end int // bytes of the text
	depth      int // open parentheses around it; a parenthesis itself belongs to the outside
	kind       tokenKind
}

// A statement is a text cut into tokens by MariaDB's lexical rules. The text may hold several
// statements, or none.
type statement struct {
	text         string
	toks         []token
	placeholders int
	broken       bool // something is not closed, or there is a character that no statement has
	// executable is where the first executable comment begins (/*!, /*M!, and TiDB's /*T!); -1 if
	// there is none. Whether its content counts depends on who reads it.
	executable int
	separated  bool // a semicolon stands in an executable comment
	// long says that the text has more tokens than maxTokens, which are not kept, and goesOn that there is a
	// semicolon among those.
	long, goesOn bool
	comments     []comment
	quotes       quotes
}

// quotes are the settings that a text was cut under.
type quotes struct{ ansi, noBackslash bool }

// A comment is an executable one, and the token before which it stands.
type comment struct{ start, end, token int }

// maxTokens is how many tokens of a text are kept. The parser needs some 500 bytes for each.
const maxTokens = 200_000

// maxComments is how many executable comments of a text are kept.
const maxComments = 1000

// scan cuts a text into tokens. It never fails: a text that the server will refuse is broken.
func scan(text string, ansiQuotes, noBackslash bool) *statement {
	l := lexer{st: &statement{text: text, executable: -1, toks: make([]token, 0, min(8+len(text)/5, maxTokens)),
		quotes: quotes{ansiQuotes, noBackslash}},
		ansiQuotes: ansiQuotes, noBackslash: noBackslash}
	for l.pos < len(text) {
		l.next()
	}
	l.st.broken = l.st.broken || l.depth != 0
	return l.st
}

type lexer struct {
	st          *statement
	pos, depth  int
	ansiQuotes  bool
	noBackslash bool
}

// next reads one token, one comment or one blank.
func (l *lexer) next() {
	text, c := l.st.text, l.st.text[l.pos]
	switch {
	case c == ' ' || c >= '\t' && c <= '\r':
		l.pos++
	case c == '#', c == '-' && l.dashComment():
		l.lineComment()
	case c == '/' && l.at(1) == '*':
		l.blockComment()
	case c == '\'', c == '"' && !l.ansiQuotes:
		l.emit(str, l.closing(l.pos, c, !l.noBackslash))
	case c == '"', c == '`':
		l.emit(name, l.closing(l.pos, c, false))
	case c == '@':
		l.variable()
	case c == '?':
		l.st.placeholders++
		l.emit(placeholder, l.pos+1)
	case c >= '0' && c <= '9', c == '.' && isDigit(l.at(1)) && !l.behindName():
		l.number()
	case isWord(c):
		l.word()
	case c == 0 || c < ' ' || c == 0x7f:
		l.st.broken = true
		l.pos++
	default:
		l.emit(punct, l.pos+len(operator(text[l.pos:])))
	}
}

// at is the byte n places ahead; 0 behind the end.
func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.st.text) {
		return l.st.text[l.pos+n]
	}
	return 0
}

func (l *lexer) emit(kind tokenKind, end int) {
	t := token{start: l.pos, end: end, depth: l.depth, kind: kind}
	switch l.st.text[l.pos] {
	case '(':
		l.depth++
	case ')':
		l.depth--
		t.depth = l.depth
		l.st.broken = l.st.broken || l.depth < 0
	}
	if l.pos = end; len(l.st.toks) == maxTokens {
		l.st.long = true
		l.st.goesOn = l.st.goesOn || l.st.text[t.start] == ';'
		return
	}
	l.st.toks = append(l.st.toks, t)
}

// dashComment reports whether two dashes begin a comment: they do before white space, a control
// character or the end. Which bytes beyond ASCII are white space hangs on the character set: a text with two
// dashes before one is broken.
func (l *lexer) dashComment() bool {
	if l.at(1) != '-' {
		return false
	}
	c := l.at(2)
	l.st.broken = l.st.broken || c >= 0x80
	return c <= ' ' || c == 0x7f
}

func (l *lexer) lineComment() {
	if i := strings.IndexByte(l.st.text[l.pos:], '\n'); i >= 0 {
		l.pos += i + 1
	} else {
		l.pos = len(l.st.text)
	}
}

func (l *lexer) blockComment() {
	body := l.st.text[l.pos+2:]
	length := strings.Index(body, "*/")
	if length < 0 {
		l.st.broken = true
		length = len(body) - 2
	}
	content := body[:max(0, length)]
	executable := strings.HasPrefix(content, "!") || strings.HasPrefix(content, "M!") ||
		strings.HasPrefix(content, "T!")
	if executable {
		if l.st.executable < 0 {
			l.st.executable = l.pos
		}
		if len(l.st.comments) < maxComments {
			l.st.comments = append(l.st.comments, comment{l.pos, min(l.pos+2+length+2, len(l.st.text)), len(l.st.toks)})
		} else {
			l.st.long = true
		}
		l.st.separated = l.st.separated || strings.IndexByte(content, ';') >= 0
	}
	end := min(l.pos+2+length+2, len(l.st.text))
	l.pos = end
}

// closing finds the end of what a quote at start opens. Doubled quotes do not end it.
func (l *lexer) closing(start int, quote byte, backslash bool) int {
	text := l.st.text
	for i := start + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && backslash:
			i++
		case text[i] != quote:
		case i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	l.st.broken = true
	return len(text)
}

// variable reads @name, @'name', @`name`, @@name and @@scope.name.
func (l *lexer) variable() {
	text, end := l.st.text, l.pos+1
	if end < len(text) && text[end] == '@' {
		end++
	}
	for end < len(text) {
		switch c := text[end]; {
		case isWord(c) || c == '.':
			end++
		case c == '`' || end == l.pos+1 && (c == '\'' || c == '"'):
			end = l.closing(end, c, c != '`' && !l.noBackslash)
		default:
			l.emit(variable, end)
			return
		}
	}
	l.emit(variable, end)
}

// behindName reports whether the byte before is the end of a name, so that a dot here separates names.
func (l *lexer) behindName() bool {
	if len(l.st.toks) == 0 {
		return false
	}
	t := l.st.toks[len(l.st.toks)-1]
	return t.end == l.pos && (t.kind == word || t.kind == name)
}

// behindDot reports whether a name here is qualified. White space may stand around the dot.
func (l *lexer) behindDot() bool {
	n := len(l.st.toks)
	return n > 1 && l.st.tok(n-1) == "." && (l.st.toks[n-2].kind == word || l.st.toks[n-2].kind == name)
}

// number reads a number; a run of letters and digits that is none is a name.
func (l *lexer) number() {
	text := l.st.text
	end := l.pos
	for end < len(text) && isWord(text[end]) {
		end++
	}
	run := text[l.pos:end]
	switch {
	case l.behindDot() && l.st.toks[len(l.st.toks)-1].end == l.pos:
		l.emit(name, end)
		return
	case strings.HasPrefix(run, "0x") && allOf(run[2:], isHex), strings.HasPrefix(run, "0b") && allOf(run[2:], isBit):
		l.emit(number, end)
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
		l.emit(word, whole)
		return
	}
	l.emit(number, end)
}

// word reads a name or a keyword, or a string whose prefix is one letter.
func (l *lexer) word() {
	text := l.st.text
	end := l.pos
	for end < len(text) && isWord(text[end]) {
		end++
	}
	if end == l.pos+1 && end < len(text) && text[end] == '\'' && strings.IndexByte("nNxXbB", text[l.pos]) >= 0 {
		l.emit(str, l.closing(end, '\'', !l.noBackslash))
		return
	}
	if l.behindDot() {
		l.emit(name, end)
		return
	}
	l.emit(word, end)
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

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isBit(c byte) bool   { return c == '0' || c == '1' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isWord(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
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

// tok is the text of a token.
func (st *statement) tok(i int) string { return st.text[st.toks[i].start:st.toks[i].end] }

// is reports whether token i is one of the keywords; false when there is no such token.
func (st *statement) is(i int, keywords ...string) bool {
	if i < 0 || i >= len(st.toks) || st.toks[i].kind != word {
		return false
	}
	for _, k := range keywords {
		if strings.EqualFold(st.tok(i), k) {
			return true
		}
	}
	return false
}

// mark reports whether token i is the operator or mark.
func (st *statement) mark(i int, mark string) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].kind == punct && st.tok(i) == mark
}

// find returns the first token of [from, to) that is one of the keywords, at the given depth of
// parentheses or, when that is negative, at any; -1 if there is none.
func (st *statement) find(from, to, depth int, keywords ...string) int {
	for i := from; i < to; i++ {
		if (depth < 0 || st.toks[i].depth == depth) && st.is(i, keywords...) {
			return i
		}
	}
	return -1
}

// group returns the token that closes the parenthesis at token i; -1 if i is none or it is not closed.
func (st *statement) group(i int) int {
	if !st.mark(i, "(") {
		return -1
	}
	for j := i + 1; j < len(st.toks); j++ {
		if st.toks[j].depth == st.toks[i].depth && st.mark(j, ")") {
			return j
		}
	}
	return -1
}

// last is the statement's last token but for closing semicolons, -1 if it has none.
func (st *statement) last() int {
	i := len(st.toks) - 1
	for i >= 0 && st.mark(i, ";") {
		i--
	}
	return i
}

// mentions reports whether a name occurs, quoted or not.
func (st *statement) mentions(column string) bool {
	for i, t := range st.toks {
		if t.kind != word && t.kind != name {
			continue
		}
		if s := st.tok(i); strings.EqualFold(s, column) || strings.EqualFold(strings.Trim(s, "`\""), column) {
			return true
		}
	}
	return false
}

// mentionsPrefix reports whether a name occurs that begins so, quoted or not.
func (st *statement) mentionsPrefix(prefix string) bool {
	for i, t := range st.toks {
		if t.kind != word && t.kind != name {
			continue
		}
		s := strings.Trim(st.tok(i), "`\"")
		if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// tokenAt returns the token that begins at a place in the text; -1 if none does.
func (st *statement) tokenAt(pos int) int {
	i := sort.Search(len(st.toks), func(i int) bool { return st.toks[i].start >= pos })
	if i == len(st.toks) || st.toks[i].start != pos {
		return -1
	}
	return i
}

// mentionsCapture reports whether a session variable of isotap's occurs.
func (st *statement) mentionsCapture() bool {
	for i, t := range st.toks {
		if t.kind != variable {
			continue
		}
		s := strings.TrimLeft(st.tok(i), "@'`\"")
		if len(s) >= len(captureVariables) && strings.EqualFold(s[:len(captureVariables)], captureVariables) {
			return true
		}
	}
	return false
}

// maxDepth is how far a statement may nest: the parser's tree is visited recursively, and a stack overflow would
// end the process. Chains of operators nest as parentheses do; maxTokens bounds them.
const maxDepth = 2000

// deep reports whether the parser's tree might be too deep to visit.
func (st *statement) deep() bool {
	if len(st.toks) < maxDepth {
		return false
	}
	return slices.ContainsFunc(st.toks, func(t token) bool { return t.depth > maxDepth })
}

// parserText returns the text for TiDB's parser: of the same length, with the bytes of strings and
// comments that are not ASCII replaced. The parser would judge them by a character set that need not
// be the client's, and their value does not matter here.
func (st *statement) parserText() string {
	if ascii(st.text) {
		return st.text
	}
	b := []byte(st.text)
	i := 0
	for _, t := range st.toks {
		blank(b[i:t.start])
		if t.kind == str {
			blank(b[t.start:t.end])
		}
		i = t.end
	}
	blank(b[i:])
	return string(b)
}

func blank(b []byte) {
	for i := range b {
		if b[i] >= 0x80 {
			b[i] = 'x'
		}
	}
}

// plainNames reports whether all names are of characters whose bytes are known: ASCII, or UTF-8 in a
// session that speaks it.
func (st *statement) plainNames(utf8Session bool) bool {
	if ascii(st.text) {
		return true
	}
	for i, t := range st.toks {
		if t.kind == str {
			continue
		}
		if s := st.tok(i); !ascii(s) && (!utf8Session || !utf8.ValidString(s)) {
			return false
		}
	}
	return true
}
