package mysql

import (
	"reflect"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/mutate"
)

// exposedSchema is the test schema on a server that has no invisible columns.
func exposedSchema() tables {
	ts := testSchema()
	ts["shop.sure"] = table("shop.sure",
		"id int, n int, big bigint, d decimal, c char, v varchar, t text, b varbinary, f double, g int generated")
	for i, c := range map[string][2]string{"d": {"decimal(10,2)", ""}, "c": {"char(5)", "utf8mb4_bin"},
		"v": {"varchar(7)", "utf8mb4_general_ci"}, "t": {"text", "utf8mb4_bin"}} {
		ts["shop.sure"].Column(i).Full, ts["shop.sure"].Column(i).Collation = c[0], c[1]
	}
	for name, t := range ts {
		ts[name] = with(t, func(t *Table) { t.Exposed = t.Instrumented && !t.View && !t.Temporary })
	}
	return ts
}

// TestTiDBGolden compares the plans for TiDB with testdata/tidb; run with -rewrite to write them anew.
func TestTiDBGolden(t *testing.T) {
	r := New(exposedSchema(), Options{})
	datadriven.Walk(t, "testdata/tidb", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := session(t, d.CmdArgs)
			s.Dialect, s.Version, s.Strict = TiDB, 80400, !d.HasArg("mode")
			p := r.Plan(d.Input, s)
			out := render(p, d.HasArg("full"))
			if p.Upstream.Plain != "" {
				out = "plain: " + p.Upstream.Plain + "\n" + out
			}
			return out
		})
	})
}

// FuzzTiDB checks, for any text: no panic; a statement that the parser reads is one that it reads in its
// plain form and in its observed form too, and neither has a star that would show isotap's columns at the
// top of it; a template gives the same plan.
func FuzzTiDB(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s)
	}
	for _, s := range []string{"SELECT * FROM item NATURAL JOIN orders",
		"WITH c AS (SELECT * FROM kv) SELECT c.*, i.* FROM c JOIN item i USING (k)",
		"INSERT INTO item VALUES (1, 'a', 2, 3)", "REPLACE INTO item TABLE orders",
		"UPDATE sure SET n = ?, c = 'x' WHERE id = 1",
		"PREPARE s FROM 'SELECT * FROM item'", "SELECT * FROM item; SELECT * FROM kv",
		"LOAD DATA LOCAL INFILE 'f' INTO TABLE item"} {
		f.Add(s)
	}
	r := New(exposedSchema(), Options{})
	mutate.Fuzz(f, func(t *testing.T, in string) {
		s := testSession()
		s.Dialect, s.Version, s.Strict = TiDB, 80400, true
		p := r.Plan(in, s)
		checkHidden(t, p)
		if p.Upstream.Plain != "" {
			if _, err := r.trees(scan(p.Upstream.Plain, false, false).parserText(), &s, true); err != nil {
				t.Errorf("the plain form %q: %v", p.Upstream.Plain, err)
			}
		}
		if p.Upstream.Pieces != nil && p.Kind != history.DDL && !p.Upstream.Substitutes {
			text := string(p.Append(nil, AppendPlaceholder))
			if _, err := r.trees(scan(text, false, false).parserText(), &s, true); err != nil {
				t.Errorf("the observed form %q: %v", text, err)
			}
		}
		c := NewCache(r, 10, 1<<20)
		c.make(in, s, 0)
		if again := c.make(in, s, 0); !reflect.DeepEqual(again, p) {
			t.Errorf("a template gives another plan:\n%+v\n%+v", again, p)
		}
	}, mutate.SQL...)
}
