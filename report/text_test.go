package report

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"pgregory.net/rapid"
)

func TestStatementTextPutsArgumentsBack(t *testing.T) {
	for _, c := range []struct {
		shape string
		args  []string
		want  string
	}{
		{"SELECT 1", nil, "SELECT 1"},
		{"UPDATE `t` SET `a` = ? WHERE `id` = ?", []string{"'it''s'", "7"},
			"UPDATE `t` SET `a` = 'it''s' WHERE `id` = 7"},
		{"SELECT ? , ?", []string{"'?'", "2"}, "SELECT '?' , 2"},
		{"SELECT `a?b`, \"c?\", '?', ? FROM t", []string{"1"}, "SELECT `a?b`, \"c?\", '?', 1 FROM t"},
		{"SELECT /* ? */ ? # ?\n, ? -- ?", []string{"1", "2"}, "SELECT /* ? */ 1 # ?\n, 2 -- ?"},
		{"SELECT `a``?`, ?", []string{"1"}, "SELECT `a``?`, 1"},
		{"SELECT ?-?", []string{"2", "1"}, "SELECT 2-1"},
		{"SELECT ?--?", []string{"2", "1"}, "SELECT 2--1"},
		{"SELECT 'never closed ?", []string{"1"}, "SELECT 'never closed ? -- with 1"},
		{"SELECT * FROM t WHERE id IN (?)", []string{"1", "2", "3"}, "SELECT * FROM t WHERE id IN (1, 2, 3)"},
		{"INSERT INTO t VALUES (?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a)", []string{"1", "2", "3", "4"},
			"INSERT INTO t VALUES (1, 2), (3, 4) ON DUPLICATE KEY UPDATE a = VALUES(a)"},
		{"INSERT INTO t VALUES (?, ?)", []string{"1", "2", "3"}, "INSERT INTO t VALUES (?, ?) -- with 1, 2, 3"},
		{"INSERT INTO t VALUES (?), (DEFAULT)", []string{"1", "2"}, "INSERT INTO t VALUES (?), (DEFAULT) -- with 1, 2"},
		{"SELECT * FROM t WHERE a IN (?) AND b IN (?)", []string{"1", "2", "3"},
			"SELECT * FROM t WHERE a IN (?) AND b IN (?) -- with 1, 2, 3"},
		{"SELECT ?, ?", []string{"1"}, "SELECT ?, ? -- with 1"},
		{"SELECT ?, ?", nil, "SELECT ?, ?"},
		{"", nil, "COMMIT"},
	} {
		s := &history.Stmt{Kind: history.Commit, Shape: c.shape, Args: c.args}
		if got := statementText(dbms.MySQLFamily, s); got != c.want {
			t.Errorf("%q with %q: got %q, want %q", c.shape, c.args, got, c.want)
		}
	}
	for _, c := range []struct {
		shape string
		args  []string
		want  string
	}{
		{"SELECT d ? ? FROM t WHERE d ?| ?", []string{"'k'", "'{a}'"}, "SELECT d ? 'k' FROM t WHERE d ?| '{a}'"},
		{"SELECT d #>> ?, ` ?", []string{"'{a}'", "1"}, "SELECT d #>> '{a}', ` 1"},
		{`UPDATE "t?" SET n=?, m=m-?`, []string{"1", "2"}, `UPDATE "t?" SET n=1, m=m-2`},
		{"SELECT /* /* */ ? */ ? FROM t", []string{"1"}, "SELECT /* /* */ ? */ 1 FROM t"},
	} {
		if got := statementText(dbms.PostgreSQLFamily, &history.Stmt{Shape: c.shape, Args: c.args}); got != c.want {
			t.Errorf("%q with %q: got %q, want %q", c.shape, c.args, got, c.want)
		}
	}
	if got := statementText(dbms.MySQLFamily, nil); got != "" {
		t.Errorf("no statement reads %q", got)
	}
}

func TestStatementTextKeepsEveryArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &history.Stmt{
			Shape: rapid.StringOf(rapid.RuneFrom([]rune("a?`'\"#-/* \n"))).Draw(t, "shape"),
			Args:  rapid.SliceOfN(rapid.StringMatching(`<[0-9]{3}>`), 1, 4).Draw(t, "args"),
		}
		got := statementText(rapid.SampledFrom(dbms.Families).Draw(t, "family"), s)
		for _, arg := range s.Args {
			i := strings.Index(got, arg)
			if i < 0 {
				t.Fatalf("%q lacks %q or has it out of order", got, arg)
			}
			got = got[i+len(arg):]
		}
	})
}

func TestPrintableTextHoldsNothingThatActsUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		got := printable(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if printable(got) != got {
			t.Fatalf("%q is not printable yet", got)
		}
	})
}

func TestWrapKeepsTheTextAndTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab é日  "))).Draw(t, "text")
		width := rapid.IntRange(1, 12).Draw(t, "width")
		lines := wrap(s, width)
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width {
				t.Fatalf("line %q is wider than %d", l, width)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got, want := squeeze(strings.Join(lines, " ")), squeeze(s); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"}, {number(999), "999"}, {number(1000), "1,000"}, {number(-1234567), "-1,234,567"},
		{percent(0, 0), "0%"}, {percent(0, 9), "0%"}, {percent(9, 9), "100%"}, {percent(999_999, 1_000_000), ">99.9%"},
		{percent(1, 1_000_000), "<0.1%"}, {percent(1, 2), "50%"}, {percent(1, 3), "33.3%"},
		{percent(9995, 10000), ">99.9%"}, {percent(999, 1000), "99.9%"},
		{duration(0), "0 ns"}, {duration(999), "999 ns"}, {duration(1500), "1.5 µs"},
		{duration(-12_345_678), "-12.3 ms"},
		{duration(2_000_000_000), "2 s"}, {duration(61_000_000_000), "1 min 01 s"},
		{duration(3_660_000_000_000), "1 h 01 min"},
		{times(1), "once"}, {times(2), "twice"}, {times(3), "3 times"}, {plural(1, "hazard"), "1 hazard"},
		{plural(0, "hazard"), "0 hazards"},
		{clip("日本語", 2), "日…"}, {clip("日本語", 3), "日本語"}, {clipMiddle("0123456789", 5), "01…89"},
		{clipMiddle("01234", 5), "01234"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestTerminalKeepsItsWidthAndSendsNoControls: terminal keeps to its width and sends no controls.
func TestTerminalKeepsItsWidthAndSendsNoControls(t *testing.T) {
	for name, r := range fixtures() {
		for _, width := range []int{0, 1, 40, 120} {
			var b bytes.Buffer
			if err := Terminal(&b, r, TerminalOptions{Width: width, Verbose: true}); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && treacherous(r) }) {
				t.Errorf("%s: control characters reach a terminal without colours", name)
			}
			limit := max(width, 40)
			if width == 0 {
				limit = 80
			}
			for line := range strings.Lines(b.String()) {
				// Headings stand on one line whatever the width: they are what people search for.
				heading := strings.HasPrefix(line, "HAZARD") || strings.HasPrefix(line, "VIOLATION")
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > limit && !heading {
					t.Errorf("%s at width %d: %d characters in %q", name, limit, n, line)
				}
			}
		}
	}
}

func TestSummaryFitsTenLines(t *testing.T) {
	for name, r := range map[string]*analyzer.Result{"none": {}, "clean": clean(), "many": crowd(50),
		"hostile": hostile()} {
		var b bytes.Buffer
		if err := Summary(&b, r, "/tmp/report.html"); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n > 10 {
			t.Errorf("%s: %d lines", name, n)
		}
		if !strings.HasSuffix(b.String(), "  report: /tmp/report.html\n") {
			t.Errorf("%s: the summary does not end with the report's path:\n%s", name, b.String())
		}
	}
}

func TestLowCoverageIsSaidAloud(t *testing.T) {
	none := &analyzer.Result{}
	low := clean()
	low.Coverage.Exact, low.Coverage.Opaque = 4000, 1196
	for name, c := range map[string]struct {
		r    *analyzer.Result
		want string
		warn bool
	}{
		"nothing recorded": {none, "Nothing observed", true},
		"low":              {low, "No anomaly found", true},
		"good":             {clean(), "No anomaly found", false},
	} {
		var b bytes.Buffer
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return Terminal(w, c.r, TerminalOptions{}) },
			func(w io.Writer) error { return Summary(w, c.r, "") },
		} {
			b.Reset()
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "WARNING") != c.warn || !strings.Contains(b.String(), c.want) {
				t.Errorf("%s: want %q, warning %v; got\n%s", name, c.want, c.warn, b.String())
			}
		}
		if page := renderHTML(t, c.r); strings.Contains(page, "class=\"caution\"") != c.warn ||
			!strings.Contains(page, "<h1>"+c.want+"</h1>") {
			t.Errorf("%s: the page does not say %q, warning %v", name, c.want, c.warn)
		}
	}
}

func TestColorIsForTerminalsOnly(t *testing.T) {
	if UseColor(&bytes.Buffer{}) {
		t.Error("a buffer gets colours")
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if UseColor(f) {
		t.Error("a file gets colours")
	}
	// The null device is a character device, as a terminal is.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !UseColor(null) {
		t.Error("a character device gets no colours")
	}
	t.Setenv("NO_COLOR", "1")
	if UseColor(null) {
		t.Error("NO_COLOR is not heeded")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if UseColor(null) {
		t.Error("a dumb terminal gets colours")
	}
}

func TestTerminalCountsFindingsPastTheLimit(t *testing.T) {
	f := &analyzer.Finding{ID: "a", Anomaly: analyzer.LostUpdate, Class: analyzer.Hazard,
		Summary: "Something was lost.", Count: 1}
	r := &analyzer.Result{Findings: []*analyzer.Finding{f, f, f}}
	var out strings.Builder
	if err := Terminal(&out, r, TerminalOptions{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "Something was lost."); n != 1 ||
		!strings.Contains(out.String(), "… and 2 more findings, seen less often") {
		t.Errorf("%d findings shown of 3 with limit 1:\n%s", n, out.String())
	}
}

func TestNoLevelIsSatisfiedByWhatWasNotSeen(t *testing.T) {
	const satisfied = "satisfies every level"
	for _, tt := range []struct {
		name   string
		change func(c *analyzer.Coverage)
		want   string // empty: the levels are satisfied
	}{
		{"all was seen", func(*analyzer.Coverage) {}, ""},
		{"writers that nobody saw", func(c *analyzer.Coverage) { c.UnseenOrigins = 1 },
			"1 read of versions that nobody was seen to write"},
		{"statements that kept tags", func(c *analyzer.Coverage) { c.OldTags = 1 },
			"1 statement that isotap did not observe left rows under the tags that they had"},
		{"reads of what is undone", func(c *analyzer.Coverage) { c.Levels = map[history.Level]int{history.ReadUncommitted: 2} },
			"2 transactions ran at READ UNCOMMITTED, and what such reads met"},
		{"opaque statements", func(c *analyzer.Coverage) { c.Opaque, c.Exact = 3000, 2208 },
			"57.6% of the statements were not observed exactly"},
		{"rows without identity", func(c *analyzer.Coverage) { c.Reasons = map[history.Reason]int{history.ReasonNoIdentity: 3} },
			"3 statements met rows without identity"},
		{"rows that were changed and nobody knows which", func(c *analyzer.Coverage) {
			c.Reasons = map[history.Reason]int{history.ReasonKey: 2, history.ReasonKeyChanged: 1}
		}, "of 3 statements it is not known which rows they changed (key)"},
		{"rows that foreign keys changed", func(c *analyzer.Coverage) { c.Cascades = 2 },
			"2 statements changed rows by foreign keys, and which is not known (cascade)"},
		{"transactions of one statement", func(c *analyzer.Coverage) { c.Several = 0 },
			"no transaction had two statements that read or write rows"},
		{"conditions without a test", func(c *analyzer.Coverage) { c.Untested = 2 },
			"2 conditions could not be held against all that was written"},
		{"versions without values", func(c *analyzer.Coverage) { c.Imageless = 1 },
			"1 row version could not be held against conditions"},
		{"transactions that the disk did not take", func(c *analyzer.Coverage) { c.Unrecorded, c.Unreadable = 2, 1 },
			"the recording lacks 3 transactions"},
		{"a damaged recording", func(c *analyzer.Coverage) { c.Damaged = true }, "the recording is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clean()
			tt.change(&r.Coverage)
			var b, brief strings.Builder
			if err := Terminal(&b, r, TerminalOptions{Width: 10_000}); err != nil {
				t.Fatal(err)
			}
			if err := Summary(&brief, r, ""); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(b.String(), satisfied); got != (tt.want == "") {
				t.Errorf("it says %q: %v\n%s", satisfied, got, b.String())
			}
			for _, text := range []string{b.String(), brief.String()} {
				if !strings.Contains(text, tt.want) {
					t.Errorf("it does not say %q:\n%s", tt.want, text)
				}
			}
		})
	}
}

// TestLevelsAreSatisfiedAsFarAsConditionsWereSeen: what is claimed names what was not looked at.
func TestLevelsAreSatisfiedAsFarAsConditionsWereSeen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		modes  []string
		change func(c *analyzer.Coverage)
		want   string
	}{
		{"no conditions", []string{"items"}, func(*analyzer.Coverage) {}, "as far as rows tell (predicates were not observed)"},
		{"conditions of one run", []string{"predicates", "items"}, func(*analyzer.Coverage) {},
			"as far as rows tell (predicates were not observed in every run)"},
		{"conditions of all statements", []string{"predicates"}, func(c *analyzer.Coverage) { c.Looked, c.Conditions = 9, 9 },
			"as far as rows and conditions tell"},
		{"a LIMIT that any rows do for", []string{"predicates"}, func(c *analyzer.Coverage) {
			c.Looked, c.Conditions, c.Without = 9, 8, map[analyzer.NoCondition]int{analyzer.AnyRows: 1}
		}, "as far as rows and conditions tell"},
		{"conditions of some", []string{"predicates"}, func(c *analyzer.Coverage) {
			c.Looked, c.Conditions, c.Wide = 9, 8, 3
			c.Without = map[analyzer.NoCondition]int{analyzer.Volatile: 1}
		}, "as far as rows tell, and the conditions of 5 of 9 statements that looked for rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clean()
			run := r.Runs[0]
			r.Runs = nil
			for _, mode := range tt.modes {
				run.Mode = mode
				r.Runs = append(r.Runs, run)
			}
			tt.change(&r.Coverage)
			if got, want := levels(r), "satisfies every level, strict serializability too, "+tt.want; got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}

// TestTheSummaryHasTenLines: with each of the reasons for doubt, too.
func TestTheSummaryHasTenLines(t *testing.T) {
	r := clean()
	c := &r.Coverage
	c.UnseenOrigins, c.Log.Past, c.Log.Unlogged, c.Log.Either, c.PutBack, c.Untested, c.Imageless, c.Unrecorded = 1, 2, 3, 4, 5, 6, 7, 8
	c.OldTags, c.Cascades = 10, 12
	c.Log.Left = 9
	c.Several, c.Exact, c.Inexact, r.Baseline = 0, 1000, 4208, "accepted.json"
	c.Reasons = map[history.Reason]int{history.ReasonNoIdentity: 3, history.ReasonKey: 11}
	var b strings.Builder
	if err := Summary(&b, r, "report.html"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 10 {
		t.Errorf("it has %d lines:\n%s", n, b.String())
	}
	for _, why := range doubts(c) {
		if !strings.Contains(b.String(), why) {
			t.Errorf("it does not say %q:\n%s", why, b.String())
		}
	}
}
