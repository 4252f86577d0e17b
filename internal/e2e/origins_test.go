package e2e

import (
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestLostUpdatesOfForeignRowsAreFound loses an update of a row that a client beside the proxy made while it ran, or
// wrote over without a trace. Where the row has no identity, statements that met it are not exact.
func TestLostUpdatesOfForeignRowsAreFound(t *testing.T) {
	testdb.Only(t, "tables have invisible columns", "mariadb", "mariadb118", "mysql")
	// There a column's expression is no default for an INSERT without a list of columns.
	unlisted := testdb.EngineName() == "mysql"
	const table, row = "CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 10)"
	for _, tt := range []struct {
		name   string
		setup  []string
		beside string
		nobody bool // the row has no identity
	}{
		{"inserted", []string{table}, row, unlisted},
		{"inserted by a SELECT", []string{table}, "INSERT INTO stock (id, n) SELECT 1, 10", false},
		{"updated", []string{table, row}, "UPDATE stock SET n = 11", false},
		{"inserted without identity", []string{table},
			"INSERT INTO stock (id, n, isotap_rowid, isotap_wlist) VALUES (1, 10, NULL, NULL)", true},
		{"inserted without versions", []string{table},
			"INSERT INTO stock (id, n, isotap_wlist) VALUES (1, 10, NULL)", true},
		{"emptied of versions", []string{table, row}, "UPDATE stock SET n = 10, isotap_wlist = ''", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil, tt.setup...)
			b.exec(b.direct, tt.beside)
			x, y := b.conn(b.through), b.conn(b.through)
			defer x.Close()
			defer y.Close()
			b.updatesCurrentRows(x)
			b.updatesCurrentRows(y)
			b.exec(x, "BEGIN", "SELECT n FROM stock WHERE id = 1")
			b.exec(y, "BEGIN", "SELECT n FROM stock WHERE id = 1", "UPDATE stock SET n = 9 WHERE id = 1", "COMMIT")
			b.exec(x, "UPDATE stock SET n = 8 WHERE id = 1", "COMMIT")
			r := b.analyze()
			if tt.nobody {
				if reads := r.Coverage.Kinds[history.Select]; reads.Exact > 0 || r.Coverage.Reasons[history.ReasonNoIdentity] == 0 {
					t.Errorf("coverage %+v", r.Coverage)
				}
				return
			}
			if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.LostUpdate {
				t.Errorf("findings %v, coverage %+v", r.Findings, r.Coverage)
			}
		})
	}
}
