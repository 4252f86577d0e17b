package history

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the documentation's tables")

func TestReasonsAreReadFromTheirTexts(t *testing.T) {
	all := Reasons()
	if ParseReason("") != (Reason{}) || (Reason{}).String() != "" || !(Reason{}).IsZero() {
		t.Error("no reason is not the empty text")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(all).Draw(t, "reason")
		if r.cause.detail != "" {
			detail := rapid.StringN(1, 20, -1).Draw(t, "detail")
			with := r.With(detail)
			if with.String() != r.String()+detail {
				t.Fatalf("%q with %q is %q", r, detail, with)
			}
			if got := with.Detail(); with.Is(r) && got != detail {
				t.Fatalf("%q has the detail %q", with, got)
			}
			r = with
		}
		if got := ParseReason(r.String()); got != r || !got.Is(r) || got.cause == nil {
			t.Fatalf("%q is read as %+v, not %+v", r, got, r)
		}
	})
}

// Whatever another version recorded is written as it was read.
func TestTextsOfReasonsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "like a reason") {
			text = rapid.SampledFrom(Reasons()).Draw(t, "reason").String() + text
		}
		r := ParseReason(text)
		if r.String() != text || r != ParseReason(text) || r.IsZero() != (text == "") || r.Hint() == "" {
			t.Fatalf("%q is read as %+v", text, r)
		}
	})
}

func TestDetailsAreToldFromOtherReasons(t *testing.T) {
	for _, tt := range []struct {
		text   string
		reason Reason
		detail string
	}{
		{"refused with error 1143", ReasonRefused, "1143"},
		{"refused with 42501", ReasonRefusedState, "42501"},
		{"companion failed with error 3024", ReasonCompanionFailed, "3024"},
		{"cursor", ReasonCursor, ""},
		{"cursor read on the server", ReasonReadOnServer, ""},
		{"REPLACE ... SELECT", ReasonReplaceFromSelect, ""},
	} {
		if r := ParseReason(tt.text); !r.Is(tt.reason) || r.Detail() != tt.detail {
			t.Errorf("%q is %q with %q", tt.text, r.cause.text, r.Detail())
		}
	}
	if a, b := ParseReason("one of another version"), ParseReason("another one"); a.Is(b) || !a.Is(a) ||
		a.Is(Reason{}) {
		t.Error("reasons of other versions are taken for each other")
	}
}

func TestEveryReasonSaysWhatHelps(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Reasons() {
		c := r.cause
		if c.text == "" || seen[c.text] {
			t.Errorf("%q is there twice", c.text)
		}
		seen[c.text] = true
		if c.hint == "" || c.hint == (Reason{}).Hint() || !strings.HasSuffix(c.hint, ".") {
			t.Errorf("%q has the hint %q", r, c.hint)
		}
		if c.means == "" && c.postgres == "" {
			t.Errorf("%q has no row in the table", r)
		}
	}
}

// documentation is where the reasons stand for people (go test ./history -run Documented -update rewrites their
// tables).
const documentation = "../docs/reasons.md"

func TestReasonsAreDocumented(t *testing.T) {
	was, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	text := string(was)
	for name, table := range map[string]string{
		"reasons":               tableOf(func(c *cause) string { return c.means }, true),
		"reasons of postgresql": tableOf(func(c *cause) string { return c.postgres }, false),
	} {
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->", name)
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for the %s", documentation, name)
		}
		text = before + begin + table + end + after
	}
	switch {
	case text == string(was):
	case *update:
		if err := os.WriteFile(documentation, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not have the reasons that there are", documentation)
	}
}

// tableOf returns the table of the reasons that mean something: those that mean the same one behind the other share a
// row.
func tableOf(means func(*cause) string, topics bool) string {
	headings := [...]string{tables: "tables", reading: "reads", writing: "writes", settings: "texts and settings"}
	var b strings.Builder
	b.WriteString("| reason | what it means |\n| --- | --- |\n")
	var topic topic
	last := ""
	for _, r := range Reasons() {
		c := r.cause
		meaning := means(c)
		if meaning == "" {
			continue
		}
		same := meaning == last && c.topic == topic
		if last != "" && !same {
			fmt.Fprintf(&b, " | %s |\n", last)
		}
		if topics && c.topic != topic {
			fmt.Fprintf(&b, "| **%s** | |\n", headings[c.topic])
		}
		if same {
			b.WriteString(", ")
		} else {
			b.WriteString("| ")
		}
		fmt.Fprintf(&b, "`%s%s`", c.text, c.detail)
		last, topic = meaning, c.topic
	}
	fmt.Fprintf(&b, " | %s |\n", last)
	return b.String()
}

// Whatever observes takes a declared reason: only what reads recordings makes one of a text. That no text is taken for
// a reason otherwise is the compiler's to see to.
func TestOnlyRecordingsMakeReasonsOfTexts(t *testing.T) {
	readers := []string{"history", "recorder", "recorder/jsonlines"}
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path[len("../"):]))
		if slices.Contains(readers, dir) {
			return nil
		}
		tree, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if use, ok := n.(*ast.SelectorExpr); ok && use.Sel.Name == "ParseReason" {
				t.Errorf("%s makes a reason of a text", files.Position(use.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
