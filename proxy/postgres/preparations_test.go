package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// preparedNames returns names with two statements that the client prepared by SQL, each with a variant of isotap's.
func preparedNames() *names {
	n := newNames()
	n.bySQL = map[string]*preparation{
		"a": {forms: []variant{{name: "isotap_1"}}},
		"b": {forms: []variant{{name: "isotap_2"}}, calls: true},
	}
	n.requests = []variantRequest{{of: n.bySQL["a"]}, {of: n.bySQL["b"]}}
	return n
}

func TestVariantsGoWithTheirPreparation(t *testing.T) {
	n := preparedNames()
	n.forget("a")
	n.forget("unknown")
	if !slices.Equal(n.orphans, []string{"isotap_1"}) || len(n.requests) != 1 || n.bySQL["a"] != nil {
		t.Errorf("%v to be closed, %d requests", n.orphans, len(n.requests))
	}
	n.forgetAll()
	if !slices.Equal(n.orphans, []string{"isotap_1", "isotap_2"}) || len(n.requests)+len(n.bySQL) != 0 {
		t.Errorf("%v to be closed, %d requests, %d preparations", n.orphans, len(n.requests), len(n.bySQL))
	}
}

// A client that looks at what is prepared must find its own statements alone.
func TestNothingIsPreparedBesideAClientThatLooks(t *testing.T) {
	for _, c := range []struct {
		text            string
		listed, cursors bool
	}{
		{"SELECT * FROM pg_prepared_statements", true, false},
		{"select * from pg_catalog.PG_Prepared_Statements", true, false},
		{"SELECT * FROM pg_cursors", false, true},
		{"SELECT pg_, _prepared_statements FROM apg_prepared_statement", false, false},
		{"SELECT 'pg_prepared_xacts'", false, false},
		{"", false, false},
	} {
		n := preparedNames()
		n.mayList([]byte(c.text))
		closed := []string(nil)
		if c.listed {
			closed = []string{"isotap_1", "isotap_2"}
		}
		if n.listed != c.listed || n.cursorsListed != c.cursors || !slices.Equal(n.orphans, closed) ||
			len(n.bySQL) != 2 {
			t.Errorf("%s: listed %v, cursors %v, to be closed %v", c.text, n.listed, n.cursorsListed, n.orphans)
		}
		n.mayList([]byte(c.text))
		if !slices.Equal(n.orphans, closed) {
			t.Errorf("%s once more: to be closed %v", c.text, n.orphans)
		}
	}
}

func TestExecutionOfAKnownStatementRunsNoFunctions(t *testing.T) {
	n := preparedNames()
	for name, want := range map[string]bool{"a": true, "b": false, "unknown": false} {
		p := &sqlpostgres.Plan{Session: sqlpostgres.SessionEffect{Prepared: &sqlpostgres.Prepared{Name: name}}}
		if got := n.executesKnown(p); got != want {
			t.Errorf("EXECUTE %s: %v", name, got)
		}
	}
	if n.executesKnown(&sqlpostgres.Plan{Statement: rewrite.Statement{}}) {
		t.Error("a statement that executes none")
	}
}
