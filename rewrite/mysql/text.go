package mysql

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	parsermysql "github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the literals' types: the parser does not run without a driver

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A statement is a text as the rewriter reads it: the tokens, and what they say. The text may hold several statements,
// or none.
type statement struct {
	mysqltoken.Text
	before int // parameters of the text before it
}

const (
	// maxTokens is how many tokens of a text are kept. TiDB's parser needs some 500 bytes for each.
	maxTokens = 200_000
	// maxComments is how many executable comments of a text are kept.
	maxComments = 1000
)

// scan cuts a text under the settings of a session.
func scan(text string, ansiQuotes, noBackslash bool) *statement {
	return &statement{Text: mysqltoken.Scan(text, mysqltoken.Mode{ANSIQuotes: ansiQuotes, NoBackslashEscapes: noBackslash,
		MaxTokens: maxTokens, MaxComments: maxComments})}
}

// executable is where the first executable comment begins (/*!, /*M!, and TiDB's /*T!); -1 if there is none. Whether
// its content counts depends on who reads it.
func (st *statement) executable() int {
	if len(st.Comments) == 0 {
		return -1
	}
	return st.Comments[0].Start
}

// tok returns the text of token i.
func (st *statement) tok(i int) string { return st.TokenText(i) }

// is reports whether token i is one of the keywords; false when there is no such token.
func (st *statement) is(i int, keywords ...string) bool {
	if i < 0 || i >= len(st.Tokens) || st.Tokens[i].Kind != mysqltoken.Word {
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
	return i >= 0 && i < len(st.Tokens) && st.Tokens[i].Kind == mysqltoken.Mark && st.tok(i) == mark
}

// find returns the first token of [from, to) that is one of the keywords, at the given depth of
// parentheses or, when that is negative, at any; -1 if there is none.
func (st *statement) find(from, to, depth int, keywords ...string) int {
	for i := from; i < to; i++ {
		if (depth < 0 || st.Tokens[i].Depth == depth) && st.is(i, keywords...) {
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
	for j := i + 1; j < len(st.Tokens); j++ {
		if st.Tokens[j].Depth == st.Tokens[i].Depth && st.mark(j, ")") {
			return j
		}
	}
	return -1
}

// last is the statement's last token but for closing semicolons, -1 if it has none.
func (st *statement) last() int {
	i := len(st.Tokens) - 1
	for i >= 0 && st.mark(i, ";") {
		i--
	}
	return i
}

// mentions reports whether a name occurs, quoted or not.
func (st *statement) mentions(column string) bool {
	for i, t := range st.Tokens {
		if t.Kind != mysqltoken.Word && t.Kind != mysqltoken.Name {
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
	for i, t := range st.Tokens {
		if t.Kind != mysqltoken.Word && t.Kind != mysqltoken.Name {
			continue
		}
		s := strings.Trim(st.tok(i), "`\"")
		if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// MentionsCarried reports whether the names under which isotap carries columns outwards may stand in a client's text,
// be it in a string that names a column: then none is carried by that statement.
func MentionsCarried(text string) bool {
	return strings.Contains(strings.ToLower(strings.ReplaceAll(text, `\`, "")), rewrite.CarriedPrefix)
}

// tokenAt returns the token that begins at a place in the text; -1 if none does.
func (st *statement) tokenAt(pos int) int {
	i := sort.Search(len(st.Tokens), func(i int) bool { return st.Tokens[i].Start >= pos })
	if i == len(st.Tokens) || st.Tokens[i].Start != pos {
		return -1
	}
	return i
}

// mentionsCapture reports whether a session variable of isotap's occurs.
func (st *statement) mentionsCapture() bool {
	for i, t := range st.Tokens {
		if t.Kind != mysqltoken.Variable {
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
	if len(st.Tokens) < maxDepth {
		return false
	}
	return slices.ContainsFunc(st.Tokens, func(t mysqltoken.Token) bool { return t.Depth > maxDepth })
}

// parserText returns the text for TiDB's parser: of the same length, with the bytes of strings and
// comments that are not ASCII replaced. The parser would judge them by a character set that need not
// be the client's, and their value does not matter here.
func (st *statement) parserText() string {
	if ascii(st.SQL) {
		return st.SQL
	}
	b := []byte(st.SQL)
	i := 0
	for _, t := range st.Tokens {
		blank(b[i:t.Start])
		if t.Kind == mysqltoken.String {
			blank(b[t.Start:t.End])
		}
		i = t.End
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
	if ascii(st.SQL) {
		return true
	}
	for i, t := range st.Tokens {
		if t.Kind == mysqltoken.String {
			continue
		}
		if s := st.tok(i); !ascii(s) && (!utf8Session || !utf8.ValidString(s)) {
			return false
		}
	}
	return true
}

// quoted returns an identifier between backticks.
func quoted(name string) string {
	b := make([]byte, 0, len(name)+2)
	b = append(b, '`')
	for i := range len(name) {
		if name[i] == '`' {
			b = append(b, '`')
		}
		b = append(b, name[i])
	}
	return string(append(b, '`'))
}

// unquoted returns the name that an identifier, quoted or not, stands for.
func unquoted(ident string) string {
	if len(ident) < 2 || ident[0] != '`' && ident[0] != '"' {
		return ident
	}
	q := ident[:1]
	return strings.ReplaceAll(ident[1:len(ident)-1], q+q, q)
}

// parse returns the tree of the only statement in the text.
func (pl *planner) parse() (ast.StmtNode, error) {
	trees, err := pl.parseAll()
	if err != nil || len(trees) != 1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return trees[0], nil
}

// parseAll returns the trees of the statements in the text.
func (pl *planner) parseAll() ([]ast.StmtNode, error) {
	if !pl.read {
		pl.read = true
		pl.beyond = pl.st.beyondParser(pl.session)
		text := pl.st.without(pl.st.parserText(), pl.beyond.rowAlias, pl.beyond.returning)
		pl.into = pl.st.intoVariables(pl.session)
		text = pl.st.without(pl.st.beyondRead(pl.session).known(pl.st, text), pl.into)
		windows := pl.session.Dialect == TiDB
		pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, windows)
		if pl.failure != nil && !windows && pl.st.mayHaveWindows() {
			pl.trees, pl.failure = pl.rewriter.trees(text, pl.session, true)
		}
	}
	return pl.trees, pl.failure
}

// trees returns the trees of the statements in a text. Where window functions are known, MariaDB's
// unreserved words (rank, groups, ...) are reserved.
func (r *Rewriter) trees(text string, s *Session, windows bool) (nodes []ast.StmtNode, err error) {
	p := r.parsers.Get().(*parser.Parser)
	defer rewrite.ParseSlot(len(text))()
	p.SetMariaDB(s.Dialect != TiDB)
	p.EnableWindowFunc(windows)
	p.SetStrictDoubleTypeCheck(false)
	p.SetSQLMode(s.parserMode())
	whole := guard.Whole(func() { nodes, _, err = p.ParseSQL(text) })
	if !whole { // the parser is in an unknown state and must not come back to the pool
		return nil, refusal(history.ReasonUnparsable)
	}
	nodes = slices.Clone(nodes) // the slice is the parser's, who takes it for the next text
	r.parsers.Put(p)
	return nodes, err
}

// parserMode returns the part of sql_mode that TiDB's parser understands.
func (s *Session) parserMode() parsermysql.SQLMode {
	var m parsermysql.SQLMode
	if s.ANSIQuotes {
		m |= parsermysql.ModeANSIQuotes
	}
	if s.NoBackslashEscapes {
		m |= parsermysql.ModeNoBackslashEscapes
	}
	if s.PipesAsConcat {
		m |= parsermysql.ModePipesAsConcat
	}
	return m
}

// insertAt puts pieces into the text.
func (pl *planner) insertAt(pos int, pieces ...Piece) {
	pl.edits = append(pl.edits, edit{start: pos, end: pos, pieces: pieces})
}

func text(s string) Piece { return Piece{Text: s} }

var tagPiece = Piece{Hole: TagHole}

// after returns the place right behind token i, and the gap that pieces put there need at their end: a blank where the
// next byte would run into them, otherwise nothing. On TiDB the place is behind a comment there: it has that in the
// name of an item of a select list.
func (pl *planner) after(i int) (pos int, gap string) {
	pos = pl.st.Tokens[i].End
	if pl.session.Dialect == TiDB && i+1 < len(pl.st.Tokens) {
		if next := pl.st.Tokens[i+1].Start; strings.TrimSpace(pl.st.SQL[pos:next]) != "" {
			pos = next
		}
	}
	if pos < len(pl.st.SQL) && mysqltoken.IsWord(pl.st.SQL[pos]) {
		gap = " "
	}
	return pos, gap
}

// assemble turns the edits into the plan's pieces, or makes the plan opaque when the result would be
// more than the server takes.
func (pl *planner) assemble() {
	if len(pl.edits) == 0 {
		return
	}
	slices.SortStableFunc(pl.edits, func(a, b edit) int { return a.start - b.start })
	p, src := pl.plan, pl.st.SQL
	if pl.assemblePlain(); !slices.ContainsFunc(pl.edits, func(e edit) bool { return !e.plain }) {
		return
	}
	pos, size := 0, len(src)
	for _, e := range pl.edits {
		if pos < e.start {
			p.Upstream.Pieces = append(p.Upstream.Pieces, text(src[pos:e.start]))
		}
		p.Upstream.Deprecated.Assignments -= strings.Count(src[e.start:e.end], ":=")
		for _, piece := range e.pieces {
			p.Upstream.Deprecated.Assignments += strings.Count(piece.Text, ":=")
			if pl.warnsOfValues() {
				p.Upstream.Deprecated.Values += strings.Count(piece.Text, candidateValue)
			}
			p.Upstream.Pieces = append(p.Upstream.Pieces, piece)
			size += len(piece.Text)
			if piece.Hole != NoHole {
				size += holeSize
			}
		}
		pos = e.end
	}
	if pos < len(src) {
		p.Upstream.Pieces = append(p.Upstream.Pieces, text(src[pos:]))
	}
	pl.hide()
	switch {
	case p.Params+len(p.Upstream.Hidden) > maxParams:
		opaque(p, history.ReasonParameters)
	case size >= pl.session.maxPacket() && !p.Upstream.Substitutes:
		opaque(p, history.ReasonMaxPacket)
	}
}

// assemblePlain makes the plan's plain form of the edits that belong to it.
func (pl *planner) assemblePlain() {
	var b strings.Builder
	pos := 0
	for _, e := range pl.edits {
		if !e.plain {
			continue
		}
		b.WriteString(pl.st.SQL[pos:e.start])
		for _, piece := range e.pieces {
			b.WriteString(piece.Text)
		}
		pos = e.end
	}
	if b.Len() > 0 && b.Len()+len(pl.st.SQL)-pos < pl.session.maxPacket() {
		b.WriteString(pl.st.SQL[pos:])
		pl.plan.Upstream.Plain = b.String()
	}
}

// hide numbers the parameters that the holes become in a prepared statement.
func (pl *planner) hide() {
	if pl.plan.Upstream.Substitutes {
		return
	}
	tok, before, hidden := 0, 0, 0
	for _, e := range pl.edits {
		for ; tok < len(pl.st.Tokens) && pl.st.Tokens[tok].Start < e.start; tok++ {
			if pl.st.Tokens[tok].Kind == mysqltoken.Placeholder {
				before++
			}
		}
		for _, piece := range e.pieces {
			switch piece.Hole {
			case TagHole, RowIDHole, ShownHole, CopyHole:
				pl.plan.Upstream.Hidden = append(pl.plan.Upstream.Hidden,
					Hidden{Index: before + hidden, Hole: piece.Hole, Ordinal: piece.Ordinal})
				hidden++
			}
		}
	}
}
