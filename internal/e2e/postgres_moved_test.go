package e2e

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// TestRowsThatMoveAreTheSameRows moves versions of transactions that wrote several to each other's places, past isotap
// too: nobody has read what was replaced, and nothing is overwritten twice.
func TestRowsThatMoveAreTheSameRows(t *testing.T) {
	for _, move := range []string{"VACUUM (FULL) twice, loose",
		"CLUSTER twice USING twice_pkey; CLUSTER loose USING loose_b"} {
		t.Run(move, func(t *testing.T) {
			b := newPostgresBench(t, "CREATE TABLE twice (id int PRIMARY KEY, v int)",
				"CREATE TABLE loose (a int, b int)", "CREATE INDEX loose_b ON loose (b)",
				"INSERT INTO loose SELECT i, -i FROM generate_series(1, 9) i")
			c, past := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
				b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			b.exec(c, "BEGIN", "INSERT INTO twice VALUES (1, 1)", "UPDATE twice SET v = 2", "COMMIT",
				"UPDATE loose SET b = 0 WHERE a = 3", "DELETE FROM loose WHERE a < 3")
			b.exec(past, move)
			b.exec(c, "SELECT * FROM twice", "SELECT * FROM loose",
				"UPDATE loose SET b = 1 WHERE a > 3", "UPDATE twice SET v = 3")
			b.exec(past, move)
			b.exec(c, "SELECT * FROM twice", "SELECT * FROM loose", "UPDATE loose SET b = 2",
				"SELECT * FROM twice, loose")
			for _, f := range b.analyze().Findings {
				if f.Class == analyzer.Violation {
					t.Errorf("%s: %v", f.Anomaly, f.Explanation)
				}
			}
		})
	}
}

// TestUpdateWaitingInATriggerReplacesNewestVersion has two updates of one row, of which the second waits for the
// first before its BEFORE trigger runs: PostgreSQL 18 then returns the version of its snapshot as the old one.
func TestUpdateWaitingInATriggerReplacesNewestVersion(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)",
		"CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
		"CREATE TRIGGER same BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION same()")
	one, two := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
		b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.exec(one, "BEGIN", "UPDATE t SET v = v + 1")
	done := make(chan error, 1)
	go func() {
		_, err := two.Exec(t.Context(), "UPDATE t SET v = v + 1")
		done <- err
	}()
	b.awaitLock()
	b.exec(one, "COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, f := range b.analyze().Findings {
		t.Errorf("%s: %v", f.Anomaly, f.Explanation)
	}
}

// TestLocksBelowASavepointAreGivenBack has a row changed by another between a locking read that was taken back and the
// transaction's end, which reads what the other one left: the server kept its word.
func TestLocksBelowASavepointAreGivenBack(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)")
	one, two := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
		b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.exec(one, "BEGIN", "SAVEPOINT a", "SELECT v FROM t WHERE id = 1 FOR UPDATE", "ROLLBACK TO a")
	b.exec(two, "UPDATE t SET v = 1 WHERE id = 1")
	b.exec(one, "SELECT v FROM t WHERE id = 1", "COMMIT")
	r := b.analyze()
	if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.NonRepeatableRead ||
		r.Findings[0].Class != analyzer.Hazard {
		t.Errorf("findings %+v, want the non-repeatable read as a hazard", r.Findings)
	}
}

// TestWholeObjectsAreWrittenWithTheirKey has programs set the key of a row too, to the value that it has: it is known
// which row that is, by text and by parameters; and where the key becomes another one.
func TestWholeObjectsAreWrittenWithTheirKey(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newPostgresBench(t, "CREATE TABLE feature (project varchar(9), name text, kind text, PRIMARY KEY (project, name))",
				"INSERT INTO feature VALUES ('p', 'a', 'x'), ('p', 'b', 'x')")
			one, two := b.connect(b.through(), mode), b.connect(b.through(), mode)
			const update = "UPDATE feature SET project = $1, name = $2, kind = $3 WHERE project = $4 AND name = $5"
			write := func(c *pgx.Conn, name, kind, of string) {
				t.Helper()
				if tag, err := c.Exec(t.Context(), update, "p", name, kind, "p", of); err != nil || tag.RowsAffected() != 1 {
					t.Fatalf("%s of %s: %s %v", update, of, tag, err)
				}
			}
			b.exec(one, "BEGIN", "SELECT * FROM feature WHERE name = 'a'")
			b.exec(two, "BEGIN", "SELECT * FROM feature WHERE name = 'a'")
			write(one, "a", "y", "a")
			b.exec(one, "COMMIT")
			write(two, "a", "z", "a")
			b.exec(two, "COMMIT")
			write(one, "c", "x", "b") // another key
			r := b.analyze()
			if len(r.Findings) != 1 || r.Findings[0].Anomaly != analyzer.LostUpdate {
				t.Errorf("findings %v, want the lost update", r.Findings)
			}
			if key, changed := r.Coverage.Reasons[history.ReasonKey], r.Coverage.Reasons[history.ReasonKeyChanged]; key != 0 || changed != 1 {
				t.Errorf("of %d updates the key is not known, and of %d it changed, want 0 and 1", key, changed)
			}
		})
	}
}

// TestKeysThatAreEqualInAnotherTypeAreNotTakenForOne has parameters of types in which two keys are equal: the row's key
// becomes the other one.
func TestKeysThatAreEqualInAnotherTypeAreNotTakenForOne(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE feature (name varchar(9) PRIMARY KEY, kind int)", "INSERT INTO feature VALUES ('a', 1), ('b', 1)",
		"CREATE TABLE big (id bigint PRIMARY KEY, kind int)", "INSERT INTO big VALUES (9007199254740993, 1), (2, 1)")
	c := b.connect(b.through(), pgx.QueryExecModeExec)
	for _, u := range []struct {
		table, key, now, of string
		types               []uint32
	}{
		{"feature", "name", "a ", "a ", []uint32{pgtype.TextOID, pgtype.BPCharOID}},
		{"big", "id", "9007199254740992", "9007199254740992", []uint32{pgtype.Int8OID, pgtype.Float8OID}},
		{"feature", "name", "b", "b", []uint32{pgtype.VarcharOID, pgtype.VarcharOID}},
		{"big", "id", "2", "2", []uint32{pgtype.Int4OID, pgtype.NumericOID}},
	} {
		update := "UPDATE " + u.table + " SET " + u.key + " = $1, kind = 2 WHERE " + u.key + " = $2"
		tag, err := c.PgConn().ExecParams(t.Context(), update, [][]byte{[]byte(u.now), []byte(u.of)}, u.types, nil, nil).Close()
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %s %v", update, tag, err)
		}
	}
	r := b.analyze()
	if changed := r.Coverage.Reasons[history.ReasonKeyChanged]; changed != 2 {
		t.Errorf("of %d updates the key changed, want 2: %v", changed, r.Coverage.Reasons)
	}
}
