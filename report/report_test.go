package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isotap/isotap/analyzer"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compare checks got against a golden file.
func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what the report gives (go test ./report -update rewrites it):\n%s", path, got)
	}
}

// unstyled returns a page without its style sheet.
func unstyled(t *testing.T, page []byte) []byte {
	t.Helper()
	before, after, ok := bytes.Cut(page, []byte(pageCSS))
	if !ok {
		t.Fatal("the page has no style sheet")
	}
	return slices.Concat(before, []byte("/* page.css */"), after)
}

func TestReportsMatchTheirGoldenFiles(t *testing.T) {
	for name, r := range fixtures() {
		for file, write := range map[string]func(*bytes.Buffer, *analyzer.Result) error{
			".txt": func(b *bytes.Buffer, r *analyzer.Result) error { return Terminal(b, r, TerminalOptions{}) },
			".verbose.txt": func(b *bytes.Buffer, r *analyzer.Result) error {
				return Terminal(b, r, TerminalOptions{Verbose: true, Color: true, Width: 110})
			},
			".summary.txt": func(b *bytes.Buffer, r *analyzer.Result) error {
				return Summary(b, r, "/tmp/isotap.html")
			},
			".json":      func(b *bytes.Buffer, r *analyzer.Result) error { return JSON(b, r) },
			".html":      func(b *bytes.Buffer, r *analyzer.Result) error { return HTML(b, r) },
			".junit.xml": func(b *bytes.Buffer, r *analyzer.Result) error { return JUnit(b, r, isViolation) },
			".sarif":     func(b *bytes.Buffer, r *analyzer.Result) error { return SARIF(b, r) },
			".dot":       func(b *bytes.Buffer, r *analyzer.Result) error { return DOT(b, r) },
			".mmd":       func(b *bytes.Buffer, r *analyzer.Result) error { return Mermaid(b, r) },
		} {
			t.Run(name+file, func(t *testing.T) {
				var b bytes.Buffer
				if err := write(&b, r); err != nil {
					t.Fatal(err)
				}
				got := b.Bytes()
				if file == ".html" {
					got = unstyled(t, got)
				}
				compare(t, name+file, got)
			})
		}
	}
}
