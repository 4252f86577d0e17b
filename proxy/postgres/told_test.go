package postgres

import (
	"testing"

	"github.com/isotap/isotap/history"
)

// TestToldTablesHaveTheirRowsKnown: a client that fills a table directly behind its definition is observed as one that
// comes when the table was read.
func TestToldTablesHaveTheirRowsKnown(t *testing.T) {
	r := newRig(t, nil)
	converse(t, r.proxied, r.database, queries(
		"CREATE TABLE made (id int PRIMARY KEY, v text)", "INSERT INTO made VALUES (1, 'a'), (2, 'b')",
		"UPDATE made SET v = 'c' WHERE id = 1", "SELECT v FROM made WHERE id = 1",
		"CREATE INDEX made_v ON made (v)", "INSERT INTO made VALUES (3, 'd')"))
	if err := r.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.planner.Invalidate()
	converse(t, r.proxied, r.database, queries("SELECT id FROM made ORDER BY v"))
	if n := r.catalog.Misled(); n > 0 {
		t.Errorf("%d readings had something else than was told", n)
	}
	oid := r.catalog.Table("public", "made").OID
	versions := make(map[string]uint64) // by row: the one that was left last
	counts := make(map[history.Op]int)
	for _, txn := range r.recorded() {
		for _, st := range txn.Stmts {
			if st.Kind != history.DDL && st.Observation != history.Exact {
				t.Errorf("%s is %v: %s", st.Shape, st.Observation, st.Reason)
			}
			for i, a := range st.Accesses {
				id := st.TupleIDs[i]
				if a.Row.Table != "public.made" || id.Leaf != oid {
					t.Errorf("%s: row %+v in table %d, which is %d", st.Shape, a.Row, id.Leaf, oid)
				}
				if a.Op == history.Read && versions[a.Row.ID] != id.CTID {
					t.Errorf("%s: row %s has the version at %d, not the last one, at %d", st.Shape, a.Row.ID, id.CTID,
						versions[a.Row.ID])
				}
				if a.Op != history.Read {
					versions[a.Row.ID] = id.NewID
				}
				counts[a.Op]++
			}
		}
	}
	if counts[history.Read] != 4 || len(versions) != 3 {
		t.Errorf("%v, %v", counts, versions)
	}
}
