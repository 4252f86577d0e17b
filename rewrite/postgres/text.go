package postgres

import (
	"strings"

	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A statement is one statement of a text: the tokens that belong to it, without the semicolon behind it.
type statement struct {
	text string // the whole text, which the tokens' places count in
	toks []pgtoken.Token
}

// span is the statement's place in the text: from its first token to the end of its last.
func (st *statement) span() (start, end int) {
	return st.toks[0].Start, st.toks[len(st.toks)-1].End
}

// source returns the statement as the client wrote it.
func (st *statement) source() string {
	start, end := st.span()
	return st.text[start:end]
}

// tok returns the text of token i; empty where there is none.
func (st *statement) tok(i int) string {
	if i < 0 || i >= len(st.toks) {
		return ""
	}
	return st.text[st.toks[i].Start:st.toks[i].End]
}

// is reports whether token i is one of the keywords, given in upper case. A name in quotes is none.
func (st *statement) is(i int, keywords ...string) bool {
	if i < 0 || i >= len(st.toks) || st.toks[i].Kind != pgtoken.Word {
		return false
	}
	t := st.tok(i)
	for _, k := range keywords {
		if len(k) == len(t) && strings.EqualFold(k, t) {
			return true
		}
	}
	return false
}

// mark reports whether token i is the given punctuation.
func (st *statement) mark(i int, s string) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.Mark && st.tok(i) == s
}

// sign reports whether token i is the given operator.
func (st *statement) sign(i int, s string) bool {
	return i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.Operator && st.tok(i) == s
}

// find returns the first token from i on that is one of the keywords and stands outside of parentheses and
// brackets opened behind i; -1 where there is none. A keyword that is a name (behind a dot or AS) is passed over.
func (st *statement) find(i int, keywords ...string) int {
	depth := 0
	for ; i < len(st.toks); i++ {
		switch {
		case st.mark(i, "("), st.mark(i, "["):
			depth++
		case st.mark(i, ")"), st.mark(i, "]"):
			if depth--; depth < 0 {
				return -1
			}
		case depth == 0 && st.is(i, keywords...) && !st.mark(i-1, ".") && !st.is(i-1, "AS"):
			return i
		}
	}
	return -1
}

// has reports whether one of the keywords occurs from token i on outside of parentheses.
func (st *statement) has(i int, keywords ...string) bool { return st.find(i, keywords...) >= 0 }

// closing returns the token that closes what token i opens; -1 where none does.
func (st *statement) closing(i int) int {
	depth := 0
	for ; i < len(st.toks); i++ {
		switch {
		case st.mark(i, "("), st.mark(i, "["):
			depth++
		case st.mark(i, ")"), st.mark(i, "]"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// ident returns the name that token i stands for: folded and cut as the server does it, and whether it is one.
func (st *statement) ident(i int) (string, bool) {
	if i < 0 || i >= len(st.toks) {
		return "", false
	}
	switch t := st.tok(i); st.toks[i].Kind {
	case pgtoken.Word:
		return truncated(folded(t)), true
	case pgtoken.Name:
		if t[0] != '"' || len(t) < 2 {
			return "", false // U&"..."
		}
		return truncated(strings.ReplaceAll(t[1:len(t)-1], `""`, `"`)), true
	}
	return "", false
}

// value returns what a plain string or word stands for, and whether token i is one.
func (st *statement) value(i int) (string, bool) {
	if i >= 0 && i < len(st.toks) && st.toks[i].Kind == pgtoken.String {
		t := st.tok(i)
		if t[0] != '\'' || len(t) < 2 || strings.Contains(t, `\`) {
			return "", false
		}
		return strings.ReplaceAll(t[1:len(t)-1], "''", "'"), true
	}
	return st.ident(i)
}

// maxName is the number of bytes that the server keeps of a name (NAMEDATALEN - 1).
const maxName = 63

// truncated cuts a name where the server does, at a whole character.
func truncated(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// folded puts the ASCII letters of a name into lower case.
func folded(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// quoted returns a name between double quotes.
func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// split appends the statements of a text; empty ones are none.
func split(out []statement, text string, toks []pgtoken.Token) []statement {
	from, depth, atomic := 0, 0, 0
	all := statement{text: text, toks: toks}
	cut := func(to int) {
		if from < to {
			out = append(out, statement{text: text, toks: toks[from:to]})
		}
		from, depth, atomic = to+1, 0, 0
	}
	for i := range toks {
		switch {
		case all.mark(i, "("):
			depth++
		case all.mark(i, ")"):
			depth--
		case all.is(i, "BEGIN") && all.is(i+1, "ATOMIC") && all.is(from, "CREATE"):
			atomic++
		case atomic > 0 && all.is(i, "CASE"):
			atomic++
		case atomic > 0 && all.is(i, "END"):
			atomic--
		case depth <= 0 && atomic == 0 && all.mark(i, ";"):
			cut(i)
		}
	}
	cut(len(toks))
	return out
}

// listed returns names as a list of columns.
func listed(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = quoted(name)
	}
	return strings.Join(texts, ", ")
}
