package analysis_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestReadingRecordingsLinksNoProxy holds what is linked by whoever only reads recordings: neither the proxy nor what
// parses SQL.
func TestReadingRecordingsLinksNoProxy(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 10 {
		t.Fatalf("go list names %d packages", len(packages))
	}
	for _, p := range packages {
		for _, heavy := range []string{"isotap/proxy", "isotap/rewrite", "isotap/catalog", "pingcap/tidb",
			"multigres"} {
			if strings.Contains(p, heavy) {
				t.Errorf("it links %s", p)
			}
		}
	}
}
