package counterexample_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/program"
)

// What makes SmallBank's programs serializable holds of the load under which they are not without it (see
// TestRobustSetsHaveNoCycleUnderContention).
func TestRemediesOfSmallBankLeaveNoCycle(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	setting := robust.Setting{ForeignKeys: true}
	w, tables, definitions := benchmark(t, "smallbank")

	t.Run("locks at READ COMMITTED", func(t *testing.T) {
		promoted, tables := compiled(t, dbms.PostgreSQLFamily, definitions,
			promotedText(t, "smallbank", robust.Promote(w.Programs, setting)))
		if !robust.Analyze(promoted.Programs, setting).Robust(robust.TypeII) {
			t.Fatal("they are not robust with the locks")
		}
		l := &load{programs: promoted.Programs, tables: tables}
		findsNothing(t, l.under(t, definitions, fills["smallbank"]))
	})

	t.Run("the cheapest levels", func(t *testing.T) {
		l := &load{programs: w.Programs, levels: robust.Analyze(w.Programs, setting).Allocate(), tables: tables}
		t.Log(l.levels)
		findsNothing(t, l.under(t, definitions, fills["smallbank"]))
	})
}

// promotedText returns the programs of a benchmark with the selections locked that a promotion names, by the lines
// where they are.
func promotedText(t *testing.T, name string, p *robust.Promotion) string {
	t.Helper()
	source, _, err := program.BenchmarkFiles(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(source.Text, "\n")
	for _, s := range p.Statements {
		line := 0
		if _, err := fmt.Sscanf(s.Statement.Origin, source.Name+":%d", &line); err != nil {
			t.Fatal(err)
		}
		plain := s.Statement.SQL + ";"
		locked := strings.Replace(lines[line-1], plain, s.Statement.SQL+" FOR UPDATE;", 1)
		if locked == lines[line-1] {
			t.Fatalf("%s is not in line %d", plain, line)
		}
		lines[line-1] = locked
	}
	return strings.Join(lines, "\n")
}
