package mysqltoken_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// kinds are the letters by which a test writes them.
const kinds = "wnsdv?m"

// cut writes the tokens of a text, each behind the letter of its kind.
func cut(text mysqltoken.Text) string {
	var all []string
	for i, t := range text.Tokens {
		all = append(all, kinds[t.Kind:t.Kind+1]+text.TokenText(i))
	}
	return strings.Join(all, " ")
}

var ansi, noBackslashes = mysqltoken.Mode{ANSIQuotes: true}, mysqltoken.Mode{NoBackslashEscapes: true}

var rules = []struct {
	text, want string
	mode       mysqltoken.Mode
}{
	{text: "SELECT a.b, c FROM t", want: "wSELECT wa m. nb m, wc wFROM wt"},
	{text: "a . select", want: "wa m. nselect"},
	{text: "`a``b`.1x", want: "n`a``b` m. n1x"},
	{text: `'it''s' 'a\'b' "c"`, want: `s'it''s' s'a\'b' s"c"`},
	{text: `"a""b" 'c\'d'`, want: `n"a""b" s'c\'d'`, mode: ansi},
	{text: `'a\' b`, want: `s'a\' wb`, mode: noBackslashes},
	{text: "n'a' X'41' b'1' _utf8'a'", want: "sn'a' sX'41' sb'1' w_utf8 s'a'"},
	{text: "1 1.5 .5 5. 1e3 1e+3 0x1F 0b01 0x 1a 1.5x", want: "d1 d1.5 d.5 d5. d1e3 d1e+3 d0x1F d0b01 w0x w1a d1.5 wx"},
	{text: "@a @`b c` @'d' @@global.x ?", want: "v@a v@`b c` v@'d' v@@global.x ??"},
	{text: "a<=>b:=c->>d||e!=f", want: "wa m<=> wb m:= wc m->> wd m|| we m!= wf"},
	{text: "a--b", want: "wa m- m- wb"},
	{text: "a-- b\nc#d\ne/* f /* */g", want: "wa wc we wg"},
	{text: "a /*!50000 b */ c", want: "wa wc"},
	{text: "a..1", want: "wa m. d.1"},
	{text: "é$_1", want: "wé$_1"},
}

func TestTokensAreThoseOfTheServers(t *testing.T) {
	for _, r := range rules {
		text := mysqltoken.Scan(r.text, r.mode)
		if got := cut(text); got != r.want || text.Broken() {
			t.Errorf("%s: %s, want %s; broken: %v", r.text, got, r.want, text.Broken())
		}
		check(t, text)
	}
}

func TestWhatServersRefuseIsBroken(t *testing.T) {
	for _, c := range []struct {
		text                string
		open                int
		strange, unbalanced bool
	}{
		{"SELECT 'a", 7, false, false},
		{"SELECT `a", 7, false, false},
		{"SELECT /* a", 7, false, false},
		{"SELECT 'a' /*", 11, false, false},
		{"SELECT @`a", 8, false, false},
		{"SELECT \x01", -1, true, false},
		{"SELECT 1--\xA0", -1, true, false},
		{"SELECT (1", -1, false, true},
		{"SELECT 1)(", -1, false, true},
		{"SELECT 'it''s' -- (", -1, false, false},
	} {
		text := mysqltoken.Scan(c.text, mysqltoken.Mode{})
		if text.Open != c.open || text.Strange != c.strange || text.Unbalanced != c.unbalanced {
			t.Errorf("%q: open at %d, strange %v, unbalanced %v", c.text, text.Open, text.Strange, text.Unbalanced)
		}
		check(t, text)
	}
}

func TestExecutableCommentsAreNoted(t *testing.T) {
	text := mysqltoken.Scan("/*a*/ SELECT /*! 1; */ 2 /*M!100 3*/ /*T!x*/", mysqltoken.Mode{})
	var got []string
	for _, c := range text.Comments {
		got = append(got, text.SQL[c.Start:c.End])
	}
	want := []string{"/*! 1; */", "/*M!100 3*/", "/*T!x*/"}
	if !slices.Equal(got, want) || text.Comments[0].Token != 1 || text.Comments[2].Token != 2 || !text.Separated {
		t.Errorf("comments %q, %+v", got, text.Comments)
	}
}

func TestTextsOfTooManyTokensAreLong(t *testing.T) {
	bounds := mysqltoken.Mode{MaxTokens: 1000, MaxComments: 10}
	many := strings.Repeat("1,", bounds.MaxTokens/2)
	for _, c := range []struct {
		text         string
		long, goesOn bool
	}{
		{many, false, false}, {many + "1", true, false}, {many + "1;1", true, true}, {many + "/*!1*/", false, false},
		{strings.Repeat("/*!1*/", bounds.MaxComments), false, false},
		{strings.Repeat("/*!1*/", bounds.MaxComments+1), true, false},
	} {
		text := mysqltoken.Scan(c.text, bounds)
		if text.Long != c.long || text.GoesOn != c.goesOn {
			t.Errorf("%d bytes, %d tokens: long %v, goes on %v", len(c.text), len(text.Tokens), text.Long, text.GoesOn)
		}
		check(t, text)
		if text := mysqltoken.Scan(c.text, mysqltoken.Mode{}); text.Long {
			t.Errorf("%d bytes are long without a bound", len(c.text))
		}
	}
}

func TestScanningAllocatesTheTokensAlone(t *testing.T) {
	sql := "SELECT a, `b`, 'c', 1.5, @d FROM t WHERE id = ? /* why */ ORDER BY 1"
	if n := testing.AllocsPerRun(100, func() { _ = mysqltoken.Scan(sql, mysqltoken.Mode{}) }); n > 1 {
		t.Errorf("%v allocations, want that of the tokens", n)
	}
}

// FuzzScan checks what the package promises of every text in every mode.
func FuzzScan(f *testing.F) {
	for _, r := range rules {
		f.Add(r.text, r.mode.ANSIQuotes, r.mode.NoBackslashEscapes)
	}
	for _, text := range []string{"'", `'\`, "@", "@@", "/*", "/*/", "/*!", "--", "a.", ".", "0x", "1e+", "n'", ")("} {
		f.Add(text, false, false)
	}
	mutate.Fuzz(f, func(t *testing.T, sql string, ansiQuotes, noBackslashes bool) {
		mode := mysqltoken.Mode{ANSIQuotes: ansiQuotes, NoBackslashEscapes: noBackslashes}
		text := mysqltoken.Scan(sql, mode)
		check(t, text)
		checkAlone(t, text)
	}, mutate.SQL...)
}

// check demands that tokens are in order, with nothing between them but white space, comments and strange bytes, at
// depths that follow from the parentheses.
func check(t *testing.T, text mysqltoken.Text) {
	t.Helper()
	end, depth, placeholders := 0, 0, 0
	for i, token := range text.Tokens {
		if token.Start < end || token.End <= token.Start || token.End > len(text.SQL) {
			t.Fatalf("%q: token %d is [%d, %d) behind %d", text.SQL, i, token.Start, token.End, end)
		}
		checkGap(t, text, end, token.Start)
		if text.TokenText(i) == ")" {
			depth--
		}
		if token.Depth != depth {
			t.Fatalf("%q: token %d is %d deep, want %d", text.SQL, i, token.Depth, depth)
		}
		if text.TokenText(i) == "(" {
			depth++
		}
		if token.Kind == mysqltoken.Placeholder {
			placeholders++
		}
		end = token.End
	}
	if text.Long {
		return
	}
	checkGap(t, text, end, len(text.SQL))
	if placeholders != text.Placeholders || depth != 0 && !text.Unbalanced {
		t.Fatalf("%q: %d placeholders of %d, %d open parentheses", text.SQL, text.Placeholders, placeholders, depth)
	}
}

// checkGap demands that text[from:to] is white space and comments, in a way of its own: by what it begins with.
func checkGap(t *testing.T, text mysqltoken.Text, from, to int) {
	t.Helper()
	gap := text.SQL[from:to]
	for gap != "" {
		switch {
		case strings.HasPrefix(gap, "/*"):
			_, rest, closed := strings.Cut(gap[2:], "*/")
			if gap = rest; !closed && (text.Open < 0 || to != len(text.SQL)) {
				t.Fatalf("%q: a comment in [%d, %d) is not closed", text.SQL, from, to)
			}
		case gap[0] == '#', strings.HasPrefix(gap, "--"):
			_, gap, _ = strings.Cut(gap, "\n")
		case gap[0] <= ' ', gap[0] == 0x7f:
			if strings.IndexByte(" \t\n\v\f\r", gap[0]) < 0 && !text.Strange {
				t.Fatalf("%q is not strange", text.SQL)
			}
			gap = gap[1:]
		default:
			t.Fatalf("%q: %q is in no token", text.SQL, gap)
		}
	}
}

// checkAlone demands that each token of a whole text is the same one when it stands alone, but for what hangs on those
// before it.
func checkAlone(t *testing.T, text mysqltoken.Text) {
	t.Helper()
	if text.Broken() || len(text.Tokens) > 100 {
		return
	}
	for i, token := range text.Tokens {
		if token.Kind == mysqltoken.Name || text.TokenText(i) == "(" || text.TokenText(i) == ")" {
			continue
		}
		alone := mysqltoken.Scan(text.TokenText(i), text.Mode)
		if len(alone.Tokens) != 1 || alone.Tokens[0].Kind != token.Kind {
			t.Fatalf("%q: %q alone is %s", text.SQL, text.TokenText(i), cut(alone))
		}
	}
}
