package jsonlines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/recorder/jsonlines"
)

// FuzzImport checks that any text is imported or refused with its place, and that what was imported is
// exported as a text that gives the same again.
func FuzzImport(f *testing.F) {
	doc, err := os.ReadFile("../../docs/recording-json.md")
	if err != nil {
		f.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(doc)) {
		if code, ok := strings.CutPrefix(line, "    {"); ok {
			example.WriteString("{" + code)
		}
	}
	f.Add(example.String())
	f.Add(strings.ReplaceAll(example.String(), `"end"`, `"fin"`))
	f.Add("{\"isotap\":{\"format\":1}}\n")
	mutate.Fuzz(f, func(t *testing.T, text string) {
		dir := t.TempDir()
		first := filepath.Join(dir, "first")
		if err := jsonlines.Import(t.Context(), strings.NewReader(text), "x", first); err != nil {
			if !strings.HasPrefix(err.Error(), "x:") {
				t.Fatalf("the error has no place: %v", err)
			}
			return
		}
		once := export(t, first)
		second := filepath.Join(dir, "second")
		if err := jsonlines.Import(t.Context(), strings.NewReader(once), "once", second); err != nil {
			t.Fatalf("what was exported is refused: %v\n%s", err, once)
		}
		if again := export(t, second); again != once {
			t.Fatalf("exported\n%s\nand then\n%s", once, again)
		}
	})
}
