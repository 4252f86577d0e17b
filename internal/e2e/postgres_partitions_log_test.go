package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/serverlog"
)

// parted is a partitioned table whose rows are written by a trigger, a function and a procedure as well.
var parted = []string{"CREATE TABLE stock (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
	"CREATE TABLE stock_low PARTITION OF stock FOR VALUES FROM (0) TO (100)",
	"CREATE TABLE stock_high PARTITION OF stock FOR VALUES FROM (100) TO (200)",
	"INSERT INTO stock VALUES (1, 10), (2, 10), (101, 10)",
	"CREATE TABLE sale (id int PRIMARY KEY)",
	`CREATE FUNCTION sold() RETURNS trigger AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = NEW.id; RETURN NULL; END $$
		LANGUAGE plpgsql`,
	"CREATE TRIGGER selling AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION sold()",
	`CREATE PROCEDURE sells(int) AS 'UPDATE stock SET n = n - 1 WHERE id = $1' LANGUAGE sql`}

// TestLostUpdateInAPartitionIsNamed has a client lose an update of a partition's row, which it reads and writes by the
// parent or the partition, within a savepoint or not, to who writes it unseen.
func TestLostUpdateInAPartitionIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, write string
		past        bool
	}{
		{"a trigger", "INSERT INTO sale VALUES (1)", false},
		{"a procedure", "CALL sells(1)", false},
		{"DO", "DO 'BEGIN UPDATE stock SET n = n - 1 WHERE id = 1; END'", false},
		{"past isotap by the parent", "UPDATE stock SET n = n - 1 WHERE id = 1", true},
		{"past isotap by the partition", "UPDATE stock_low SET n = n - 1 WHERE id = 1", true},
	} {
		for _, table := range []string{"stock", "stock_low"} {
			for _, nested := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, savepoint %t", tt.name, table, nested), func(t *testing.T) {
					b := newLoggedBench(t, serverlog.Require, parted...)
					x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
					y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
					if tt.past {
						y = b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
					}
					b.exec(x, "BEGIN", "SELECT n FROM "+table+" WHERE id = 1")
					b.exec(y, "BEGIN", tt.write, "COMMIT")
					if nested {
						b.exec(x, "SAVEPOINT s")
					}
					b.exec(x, "UPDATE "+table+" SET n = 9 WHERE id = 1", "COMMIT")
					r := b.undisputed()
					if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 {
						t.Fatalf("%d findings, %+v", len(r.Findings), r.Coverage.Log)
					}
					if told := transactionsOf(r.Findings[0]); !strings.Contains(told, "unseen, from the log") &&
						!strings.Contains(told, "past isotap") {
						t.Errorf("the write is not named: %s", told)
					}
				})
			}
		}
	}
}

// TestReadsOfWritesBehindSavepointsAreExact has a client write rows of partitions by their parent behind savepoints,
// which returns no id, and others read them.
func TestReadsOfWritesBehindSavepointsAreExact(t *testing.T) {
	b := newLoggedBench(t, serverlog.Require, parted...)
	x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.exec(x, "BEGIN", "SAVEPOINT s", "UPDATE stock SET n = 1 WHERE id = 1", "RELEASE s", "SAVEPOINT s",
		"UPDATE stock SET n = 1 WHERE id = 2", "ROLLBACK TO s", "INSERT INTO stock VALUES (102, 1)", "COMMIT")
	b.exec(y, "SELECT n FROM stock WHERE id = 1", "SELECT n FROM stock_low WHERE id = 2", "SELECT n FROM stock WHERE id = 102")
	if r := b.undisputed(); len(r.Findings) > 0 {
		t.Errorf("%d findings", len(r.Findings))
	}
	_, txns, err := analysis.Resolved(t.Context(), b.recording)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, txn := range txns {
		for i := range txn.Stmts {
			for _, a := range txn.Stmts[i].Accesses {
				if a.Inexact {
					t.Errorf("%q is not exact: %+v", txn.Stmts[i].Shape, a)
				}
				if reads++; a.Op == history.Read && (a.Version.Initial() != (a.Row.ID == "2")) {
					t.Errorf("%q reads %v", txn.Stmts[i].Shape, a.Version)
				}
			}
		}
	}
	if reads < 6 {
		t.Errorf("%d accesses", reads)
	}
}
