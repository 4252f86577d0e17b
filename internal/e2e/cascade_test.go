package e2e

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/serverlog"
)

// A cascading write is a statement on a table whose rows others' foreign keys follow, and how it is observed.
type cascadingWrite struct {
	text string
	want history.Observation
}

// holdCascades compares how writes are recorded with what they have to be.
func holdCascades(t *testing.T, txns []*history.Txn, writes []cascadingWrite) {
	t.Helper()
	var seen []history.Stmt
	for _, x := range txns {
		for _, s := range x.Stmts {
			if (s.Kind == history.Update || s.Kind == history.Delete) && !s.Unseen {
				seen = append(seen, s)
			}
		}
	}
	if len(seen) != len(writes) {
		t.Fatalf("%d of %d statements are recorded", len(seen), len(writes))
	}
	for i, w := range writes {
		if s := seen[i]; s.Observation != w.want {
			t.Errorf("%s: %v (%s); want %v", w.text, s.Observation, s.Reason, w.want)
		}
	}
}

// TestWritesOfNoRowCascadeNothing: foreign keys have nothing to follow where a statement changed no row, so that it is
// exact.
func TestWritesOfNoRowCascadeNothing(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE kind (id INT PRIMARY KEY, v INT)", "INSERT INTO kind VALUES (1, 1), (2, 2), (3, 3)",
		"CREATE TABLE item (id INT PRIMARY KEY, kind INT, FOREIGN KEY (kind) REFERENCES kind (id) ON DELETE CASCADE ON UPDATE CASCADE)",
		"INSERT INTO item VALUES (1, 1), (2, 2), (3, 3)")
	writes := []cascadingWrite{
		{"DELETE FROM kind WHERE id = 9", history.Exact},
		{"DELETE FROM kind WHERE id = 1", history.Inexact},
		{"DELETE IGNORE FROM kind WHERE id = 9", history.Inexact},
		{"UPDATE kind SET id = 8 WHERE id = 9", history.Exact},
		{"UPDATE kind SET id = 2 WHERE id = 2", history.Exact},
		{"UPDATE kind SET id = 5 WHERE id = 2", history.Inexact},
	}
	db := b.open("")
	for _, w := range writes {
		b.exec(db, w.text)
	}
	holdCascades(t, b.txns(), writes)
}

// TestWritesOfNoRowCascadeNothingOnPostgreSQL is as TestWritesOfNoRowCascadeNothing. Parts of WITH are statements, too.
func TestWritesOfNoRowCascadeNothingOnPostgreSQL(t *testing.T) {
	b := newLoggedBench(t, serverlog.Off, cascadeTables...)
	writes := []cascadingWrite{
		{"DELETE FROM kind WHERE id = 9", history.Exact},
		{"DELETE FROM kind WHERE id = 9 RETURNING id", history.Exact},
		{"DELETE FROM kind WHERE id = 1", history.Inexact},
		{"DELETE FROM kind WHERE id = 2 RETURNING id", history.Inexact},
		{"UPDATE kind SET id = 8 WHERE id = 9", history.Exact},
		{"UPDATE kind SET id = 8 WHERE id = 3", history.Inexact},
		{"WITH d AS (DELETE FROM kind WHERE id = 4) DELETE FROM kind WHERE id = 9", history.Inexact},
	}
	c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	for _, w := range writes {
		b.exec(c, w.text)
	}
	b.stop()
	holdCascades(t, recorded(t, b.recording), writes)
}

// TestTheLogMakesCascadesExact: where the server's log tells which rows foreign keys changed, nothing of the statement
// is left open, unless triggers of theirs read something.
func TestTheLogMakesCascadesExact(t *testing.T) {
	for _, tt := range []struct {
		name  string
		extra []string
		want  int // how many of the two statements are exact
	}{
		{"logged tables", nil, 2},
		{"a table further off", []string{"CREATE TABLE part (item int REFERENCES item ON DELETE CASCADE ON UPDATE CASCADE)",
			"INSERT INTO part SELECT generate_series(1, 5)"}, 2},
		{"a trigger further off", []string{"CREATE TABLE part (item int REFERENCES item ON DELETE CASCADE)",
			"CREATE FUNCTION gone() RETURNS trigger AS 'BEGIN RETURN OLD; END' LANGUAGE plpgsql",
			"CREATE TRIGGER gone BEFORE DELETE ON part FOR EACH ROW EXECUTE FUNCTION gone()"}, 0},
		{"an unlogged table", []string{"CREATE UNLOGGED TABLE part (item int REFERENCES item ON DELETE CASCADE)"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, slices.Concat(cascadeTables, tt.extra)...)
			c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(c, "DELETE FROM kind WHERE id = 1", "BEGIN",
				"DELETE FROM kind WHERE id IN (3, 4)", "COMMIT")
			cov := b.undisputed().Coverage
			if n := cov.Kinds[history.Delete].Exact; n != tt.want || cov.Statements != 2 {
				t.Errorf("%d of %d statements are exact; want %d: %v", n, cov.Statements, tt.want, cov.Reasons)
			}
		})
	}
}

// cascadeTables are tables whose rows follow others' by foreign keys.
var cascadeTables = []string{
	"CREATE TABLE kind (id int PRIMARY KEY)", "INSERT INTO kind SELECT generate_series(1, 5)",
	"CREATE TABLE item (id int PRIMARY KEY, kind int REFERENCES kind ON DELETE CASCADE ON UPDATE CASCADE)",
	"INSERT INTO item SELECT i, i FROM generate_series(1, 5) i",
}
