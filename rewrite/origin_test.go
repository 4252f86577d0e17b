package rewrite

import (
	"strings"
	"testing"
)

func TestOriginReadsSqlcommentersPairs(t *testing.T) {
	for comment, want := range map[string]string{
		"/*file='app/x.py',line='12'*/":                                           "app/x.py:12",
		" /* line='12' , file = 'app/x.py' */ ":                                   "app/x.py:12",
		"/*code.filepath='a%20b%2Fc.go',code.lineno='7',traceparent='00-5b-01'*/": "a b/c.go:7",
		"/*code_file_path='x.rs'*/":                                               "x.rs",
		"/*application='Shop',source_location='app/models/a.rb:3%3Ain'*/":         "app/models/a.rb:3:in",
		`/*file='it\'s.py',line='1'*/`:                                            "it's.py:1",
		"/*file='100%.py',line='1'*/":                                             "100%.py:1",
		"/*line='12'*/":                                                           "",
		"/*profile='a',deadline='3'*/":                                            "",
		"-- file='app/x.py'":                                                      "",
		"/* file: app/x.py */":                                                    "",
		"/*file='" + strings.Repeat("x", 300) + "'*/":                             "",
	} {
		text := "/*x*/ SELECT 1 " + comment
		tokens := [][2]int{{6, 12}, {13, 14}}
		if got := Origin(text, len(tokens), func(i int) (int, int) { return tokens[i][0], tokens[i][1] }); got != want {
			t.Errorf("%s: got %q, want %q", comment, got, want)
		}
	}
}

func TestOriginIsThatOfTheStatementAlone(t *testing.T) {
	const text = "SELECT '; /*file=''x''*/' /*file='a'*/; SELECT 2 /*file='b'*/ ; /*file='c'*/ SELECT 3; /*file='d'*/"
	for _, c := range []struct {
		tokens []string
		want   string
	}{
		{[]string{"SELECT", "'; /*file=''x''*/'"}, "a"},
		{[]string{"SELECT 2"}, "b"},
		{[]string{"SELECT 2", ";"}, "b"},
		{[]string{"SELECT 3"}, "c"},
	} {
		var spans [][2]int
		from := 0
		for _, token := range c.tokens {
			start := from + strings.Index(text[from:], token)
			from = start + len(token)
			spans = append(spans, [2]int{start, from})
		}
		if got := Origin(text, len(spans), func(i int) (int, int) { return spans[i][0], spans[i][1] }); got != c.want {
			t.Errorf("%q: got %q, want %q", c.tokens, got, c.want)
		}
	}
	if got := Origin("SELECT 1; /*file='d'*/", 2, func(i int) (int, int) { return 8 * i, 8 + i }); got != "d" {
		t.Errorf("behind the semicolon: got %q", got)
	}
}
