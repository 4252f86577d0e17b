package random

import (
	"slices"
	"strings"
	"testing"
)

// The statements of a round that has a template are of its kinds, whatever the profile's weights say; those of one that
// has none are as without templates.
func TestTransactionsFollowTheirTemplate(t *testing.T) {
	p := Profile{Rollback: 1, Templates: []Template{
		{Name: "a", Transactions: [][]string{{"select", "update"}, {"delete"}}},
		{Name: "b", Transactions: [][]string{{"locking"}}}}}
	for seed, want := range map[uint64]string{0: "a", 11: "a", 12: "", 23: "", 24: "b", 48: "a"} {
		g := New(Engine{Name: "mariadb"}, p, seed)
		if g.Template() == nil {
			plain := New(Engine{Name: "mariadb"}, Profile{Rollback: 1}, seed)
			if want != "" || !slices.Equal(g.Transaction(1), plain.Transaction(1)) {
				t.Errorf("seed %d has no template, or is another without", seed)
			}
			continue
		}
		if g.Template().Name != want {
			t.Errorf("seed %d has template %s", seed, g.Template().Name)
		}
		if want != "a" {
			continue
		}
		for n, verbs := range [][]string{{"BEGIN", "SELECT", "UPDATE"}, {"BEGIN", "DELETE"}, {"BEGIN", "SELECT", "UPDATE"}} {
			texts := g.Transaction(n + 1)
			for i, verb := range verbs {
				if got, _, _ := strings.Cut(texts[i], " "); got != verb && !(verb == "SELECT" && (got == "WITH" || got[0] == '(')) {
					t.Errorf("seed %d, transaction %d: %q", seed, n+1, texts)
				}
			}
			if len(texts) != len(verbs)+1 {
				t.Errorf("seed %d, transaction %d: %q", seed, n+1, texts)
			}
		}
	}
	p.Weights = map[string]int{"delete": 0}
	if texts := New(Engine{Name: "mariadb"}, p, 0).Transaction(2); strings.HasPrefix(texts[1], "DELETE") {
		t.Errorf("a kind that the profile leaves out: %q", texts)
	}
	for _, bad := range []Template{{Name: "x"}, {Name: "x", Transactions: [][]string{{"selcet"}}}} {
		if err := (Profile{Templates: []Template{bad}}).Check(); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
