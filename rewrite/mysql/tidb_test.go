package mysql

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isotap/isotap/rewrite"
)

// exposedSchema is the test schema on a server that has no invisible columns.
func exposedSchema() tables {
	ts := testSchema()
	for name, t := range ts {
		ts[name] = with(t, func(t *rewrite.Table) { t.Exposed = t.Instrumented && !t.View && !t.Temporary })
	}
	return ts
}

// TestTiDBGolden compares the plans for TiDB with testdata/tidb; run with -rewrite to write them anew.
func TestTiDBGolden(t *testing.T) {
	r := New(exposedSchema(), Options{})
	datadriven.Walk(t, "testdata/tidb", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := session(t, d.CmdArgs)
			s.Dialect, s.Version = TiDB, 80400
			p := r.Plan(d.Input, s)
			out := render(p, d.HasArg("full"))
			if p.Plain != "" {
				out = "plain: " + p.Plain + "\n" + out
			}
			return out
		})
	})
}
