package tap

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
)

// TestRowsThatMoveAreTheSameRows moves versions of transactions that wrote several to each other's places, past isotap
// too: nobody has read what was replaced, and nothing is overwritten twice.
func TestRowsThatMoveAreTheSameRows(t *testing.T) {
	for _, move := range []string{"VACUUM (FULL) twice, loose", "CLUSTER twice USING twice_pkey; CLUSTER loose USING loose_b"} {
		t.Run(move, func(t *testing.T) {
			b := newPostgresBench(t, "CREATE TABLE twice (id int PRIMARY KEY, v int)", "CREATE TABLE loose (a int, b int)", "CREATE INDEX loose_b ON loose (b)",
				"INSERT INTO loose SELECT i, -i FROM generate_series(1, 9) i")
			c, past := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol), b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			b.exec(c, "BEGIN", "INSERT INTO twice VALUES (1, 1)", "UPDATE twice SET v = 2", "COMMIT", "UPDATE loose SET b = 0 WHERE a = 3", "DELETE FROM loose WHERE a < 3")
			b.exec(past, move)
			b.exec(c, "SELECT * FROM twice", "SELECT * FROM loose", "UPDATE loose SET b = 1 WHERE a > 3", "UPDATE twice SET v = 3")
			b.exec(past, move)
			b.exec(c, "SELECT * FROM twice", "SELECT * FROM loose", "UPDATE loose SET b = 2", "SELECT * FROM twice, loose")
			for _, f := range b.analyze().Findings {
				if f.Class == analyzer.Violation {
					t.Errorf("%s: %v", f.Anomaly, f.Explanation)
				}
			}
		})
	}
}
