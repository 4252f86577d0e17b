package explore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// A recording has PostgreSQL's parameters in quotes, as they came: put into a text, one with a quote in it would be
// SQL.
func TestValuesThatWouldBeSQLAreNotPlayed(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want bool
	}{
		{"'ann@example.org'", true}, {"5", true}, {"-5", true}, {"NULL", true}, {"'it''s'", true}, {"''", true},
		{"'x'); DROP TABLE account; --'", false}, {"'it's'", false}, {"'" + strings.Repeat("x", 70) + "'", false}, {"'a' || 'b'", false},
	} {
		for _, family := range []dbms.Family{dbms.PostgreSQLFamily, dbms.MySQLFamily} {
			if got := isOneValue(family, c.arg); got != c.want {
				t.Errorf("%v: %s: %v", family, c.arg, got)
			}
		}
	}
	two := newStatement(dbms.PostgreSQLFamily, &history.Stmt{Kind: history.Insert}, "INSERT INTO t VALUES ('x'); DROP TABLE t")
	if two.reach != beyond {
		t.Error("a text of two statements is played")
	}
}

// What a copy runs by itself may write where the client's own does.
func TestDatabasesThatLeadElsewhereAreNotPlayed(t *testing.T) {
	other := testdb.NewDatabase(t)
	for _, c := range []struct {
		name   string
		family dbms.Family
		setup  []string
		want   bool
	}{
		{"a trigger writes into another database", dbms.MySQLFamily, []string{"CREATE TABLE t (id INT)",
			"CREATE TRIGGER audit AFTER INSERT ON t FOR EACH ROW INSERT INTO " + other + ".log VALUES (NEW.id)"}, true},
		{"a trigger writes into its own", dbms.MySQLFamily, []string{"CREATE TABLE t (id INT)", "CREATE TABLE log (id INT)",
			"CREATE VIEW v AS SELECT id FROM t", "CREATE TRIGGER audit AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)"}, false},
		{"a function asks another database", dbms.PostgreSQLFamily, []string{
			"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM dblink(''x'', ''y''); RETURN 1; END'"}, true},
		{"a function calculates", dbms.PostgreSQLFamily, []string{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, target := newTarget(t, c.family, c.setup)
			server, err := runner.Server(target)
			if err != nil {
				t.Fatal(err)
			}
			server.Database = target.Database
			err = withConnection(t.Context(), server, func(conn *replay.Connection) error {
				_, err := readSchema(conn, c.family)
				return err
			})
			var elsewhere *ElsewhereError
			if errors.As(err, &elsewhere) != c.want || err != nil && !c.want {
				t.Errorf("%v", err)
			}
		})
	}
}

func withConnection(ctx context.Context, server replay.Server, do func(*replay.Connection) error) error {
	r, err := replay.NewRunner(ctx, server)
	if err != nil {
		return err
	}
	defer r.Close()
	conn, err := r.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(conn)
}
