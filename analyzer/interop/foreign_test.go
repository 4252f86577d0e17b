package interop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
)

var update = flag.Bool("update", false, "write the golden files anew")

// verdict is what is found in a history, and what is said of it besides.
func verdict(t testing.TB, h *History) string {
	t.Helper()
	r, err := h.Analyze(t.Context(), analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d transactions: %d committed, %d aborted, %d indeterminate\n", r.Coverage.Txns,
		r.Coverage.Committed, r.Coverage.Aborted, r.Coverage.Indeterminate)
	fmt.Fprintf(&b, "at most: %s\n", strings.Join(r.Levels.Strongest, ", "))
	for _, note := range h.Notes() {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s x%d\n", f.Anomaly, f.Count)
		for _, line := range f.Explanation {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return b.String()
}

// assumptions are those that a history is judged under as well, by its file.
var assumptions = map[string]Options{
	"register-blind.edn":            {LinearizableKeys: true},
	"register-session.edn":          {SequentialKeys: true},
	"register-not-linearizable.edn": {LinearizableKeys: true},
}

func TestHistoriesGetTheirVerdicts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			h, err := ReadFile(t.Context(), nil, file, "", Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s\n%s", h.format, verdict(t, h))
			if o := assumptions[filepath.Base(file)]; o != (Options{}) {
				if h, err = ReadFile(t.Context(), nil, file, h.format, o); err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprintf("with %+v\n%s", o, verdict(t, h))
			}
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("verdict\n%s\nwant\n%s", got, want)
			}
		})
	}
}
