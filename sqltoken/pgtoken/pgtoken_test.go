package pgtoken_test

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// kinds are the letters by which a test writes them.
const kinds = "wnsd$om"

// cut writes the tokens of a text, each behind the letter of its kind.
func cut(text string, tokens []pgtoken.Token) string {
	var all []string
	for _, t := range tokens {
		all = append(all, kinds[t.Kind:t.Kind+1]+text[t.Start:t.End])
	}
	return strings.Join(all, " ")
}

var rules = []struct {
	text, want  string
	backslashes bool
}{
	{text: `SELECT a."b""c", d FROM t`, want: `wSELECT wa m. n"b""c" m, wd wFROM wt`},
	{text: `'it''s' 'a\' b`, want: `s'it''s' s'a\' wb`},
	{text: `'a\'b' B'\'`, want: `s'a\'b' sB'\'`, backslashes: true},
	{text: `E'a\'b' e'c' N'd' x'41' U&'\0041' u&"a"`, want: `sE'a\'b' se'c' sN'd' sx'41' sU&'\0041' nu&"a"`},
	{text: "E'a'\n'\\'b' c", want: "sE'a'\n'\\'b' wc"},
	{text: "E'a' -- 'x\n\t'\\'b' c", want: "sE'a' -- 'x\n\t'\\'b' wc"},
	{text: "e'a'\r'b'\n--\n'\\'' c", want: "se'a'\r'b'\n--\n'\\'' wc"},
	{text: "E'a' '\\' b", want: `sE'a' s'\' wb`}, // on one line it is a string of its own
	{text: "E'a'/*\n*/'\\' b", want: `sE'a' s'\' wb`},
	{text: "E'a'\n, '\\' b", want: `sE'a' m, s'\' wb`},
	{text: "B'1'\n'\\' b", want: "sB'1'\n'\\' wb", backslashes: true},
	{text: "U&'a'\n'\\' '\\'b'", want: "sU&'a'\n'\\' s'\\'b'", backslashes: true},
	{text: "'a'\n'\\'b' N'c'\n'\\'d'", want: `s'a' s'\'b' sN'c' s'\'d'`, backslashes: true},
	{text: "$$a'b$$ $t$a$$b$t$ $1 a$1 $", want: "s$$a'b$$ s$t$a$$b$t$ $$1 wa$1 o$"},
	{text: "1 1.5 .5 5. 1e3 1E+3 1_000 1..2 1a", want: "d1 d1.5 d.5 d5. d1e3 d1E+3 d1_000 d1 m. d.2 d1a"},
	{text: "\"a\"\n\"b\" $$a$$\n'\\' b", want: "n\"a\" n\"b\" s$$a$$ s'\\' wb"},
	{text: "a<-1 a@-1 a=-b a->>b c||d e?|f", want: "wa o< o- d1 wa o@- d1 wa o= o- wb wa o->> wb wc o|| wd we o?| wf"},
	{text: "a::int b:=c d[1:2]", want: "wa m:: wint wb o:= wc wd m[ d1 m: d2 m]"},
	{text: "a--b\nc/* d /* e */ f */g*/*h*/i", want: "wa wc wg o* wi"},
	{text: "é$_1", want: "wé$_1"},
}

func TestTokensAreThoseOfTheServer(t *testing.T) {
	for _, r := range rules {
		tokens, open := pgtoken.Scan(nil, r.text, r.backslashes)
		if got := cut(r.text, tokens); got != r.want || open >= 0 {
			t.Errorf("%s: %s, want %s; open at %d", r.text, got, r.want, open)
		}
		check(t, r.text, tokens, open)
	}
}

func TestWhatDoesNotEndIsOpen(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT 'a": 7, `SELECT "a`: 7, "SELECT $a$ b $$": 7, "SELECT E'a": 7, "a /* /* */ b": 2, "SELECT 'a' -- '": -1,
		"E'a'\n'\\'": 0,
	} {
		tokens, open := pgtoken.Scan(nil, text, false)
		if open != want {
			t.Errorf("%s: open at %d, want %d", text, open, want)
		}
		check(t, text, tokens, open)
	}
}

func TestScanningIntoRoomAllocatesNothing(t *testing.T) {
	sql := "SELECT a, \"b\", 'c', 1.5, $$d$$ FROM t WHERE id = $1 /* why */ ORDER BY 1"
	room := make([]pgtoken.Token, 0, 100)
	if n := testing.AllocsPerRun(100, func() { _, _ = pgtoken.Scan(room, sql, false) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzScan checks what the package promises of every text.
func FuzzScan(f *testing.F) {
	for _, r := range rules {
		f.Add(r.text, r.backslashes)
	}
	for _, text := range []string{"'", `'\`, "$", "$a", "$a$", "/*", "/*/", "--", "a.", ".", "1e+", "U&'", `u&"`,
		"1.."} {
		f.Add(text, true)
	}
	mutate.Fuzz(f, func(t *testing.T, text string, backslashes bool) {
		tokens, open := pgtoken.Scan(nil, text, backslashes)
		check(t, text, tokens, open)
		if open >= 0 || len(tokens) > 100 {
			return
		}
		for _, token := range tokens { // each is the same one when it stands alone
			own := text[token.Start:token.End]
			alone, _ := pgtoken.Scan(nil, own, backslashes)
			if len(alone) != 1 || alone[0].Kind != token.Kind {
				t.Fatalf("%q: %q alone is %s", text, own, cut(own, alone))
			}
		}
	}, mutate.SQL...)
}

// check demands that tokens are in order, with nothing between them but white space and comments.
func check(t *testing.T, text string, tokens []pgtoken.Token, open int) {
	t.Helper()
	end := 0
	for i, token := range tokens {
		if token.Start < end || token.End <= token.Start || token.End > len(text) {
			t.Fatalf("%q: token %d is [%d, %d) behind %d", text, i, token.Start, token.End, end)
		}
		checkGap(t, text[end:token.Start])
		end = token.End
	}
	rest := text[end:]
	if open >= end { // a comment, which the text ends in
		rest = text[end:open]
	}
	checkGap(t, rest)
}

// checkGap demands that a text is white space and comments that end.
func checkGap(t *testing.T, gap string) {
	t.Helper()
	whole := gap
	for gap != "" {
		switch {
		case strings.HasPrefix(gap, "--"):
			n := strings.IndexAny(gap, "\r\n")
			if n < 0 {
				n = len(gap)
			}
			gap = gap[n:]
		case strings.HasPrefix(gap, "/*"):
			n := 2
			for depth := 1; depth > 0 && n < len(gap); {
				switch {
				case strings.HasPrefix(gap[n:], "/*"):
					depth, n = depth+1, n+2
				case strings.HasPrefix(gap[n:], "*/"):
					depth, n = depth-1, n+2
				default:
					n++
				}
			}
			gap = gap[n:]
		case strings.IndexByte(" \t\n\r\f\v", gap[0]) >= 0:
			gap = gap[1:]
		default:
			t.Fatalf("%q of %q is in no token", gap, whole)
		}
	}
}
