package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/isotap/isotap/scenario"
)

func TestScenariosMatchTheirGoldenFilesAndReadBack(t *testing.T) {
	for name, r := range fixtures() {
		dir := filepath.Join(t.TempDir(), "made")
		if err := Scenarios(dir, r); err != nil {
			t.Fatal(err)
		}
		want := 0
		for i, f := range r.Findings {
			if len(f.Txns()) == 0 {
				continue
			}
			want++
			text, err := os.ReadFile(filepath.Join(dir, scenarioName(f)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				compare(t, name+".scenario.yaml", text)
			}
			s, err := scenario.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			statements := 0
			for _, txn := range f.Txns() {
				statements += len(txn.Stmts)
			}
			if len(s.Steps) < statements || len(s.Sessions) != len(f.Txns()) {
				t.Errorf("%s: %d steps of %d statements, %d sessions", name, len(s.Steps), statements, len(s.Sessions))
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != want {
			t.Errorf("%s: %d files (%v), want %d", name, len(files), err, want)
		}
	}
}
