package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/serverlog"
)

// TestLostUpdateByOneUnseenStatementIsNamed has a client lose an update to a statement outside of a block that shows
// nothing of what it writes.
func TestLostUpdateByOneUnseenStatementIsNamed(t *testing.T) {
	setup := []string{"CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 10), (2, 10)",
		"CREATE TABLE sale (id int)",
		`CREATE FUNCTION sold() RETURNS trigger AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = NEW.id; RETURN NULL; END $$
			LANGUAGE plpgsql`,
		"CREATE TRIGGER selling AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION sold()",
		`CREATE FUNCTION sell(int) RETURNS void AS 'UPDATE stock SET n = n - 1 WHERE id = $1' LANGUAGE sql`,
		`CREATE PROCEDURE in_two(int) AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = $1; COMMIT;
			UPDATE stock SET n = n - 1 WHERE id = 2; END $$ LANGUAGE plpgsql`,
		`CREATE PROCEDURE in_one(int) AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = $1; COMMIT; END $$ LANGUAGE plpgsql`,
		`CREATE PROCEDURE failing(int) AS $$ BEGIN UPDATE stock SET n = n - 1 WHERE id = $1; COMMIT; RAISE 'no'; END $$
			LANGUAGE plpgsql`}
	const shown, added, either = "exact", "unseen, from the log", "within a statement that showed nothing, or past isotap"
	for _, tt := range []struct{ name, before, write, by string }{
		{"COPY in the extended protocol", "", "COPY sale FROM STDIN", either},
		{"EXECUTE of a statement that writes", "PREPARE p AS UPDATE stock SET n = n - 1 WHERE id = 1", "EXECUTE p", shown},
		{"EXECUTE of a function", "PREPARE p AS SELECT sell(1)", "EXECUTE p", either},
		{"EXECUTE of a statement with a trigger", "PREPARE p AS INSERT INTO sale VALUES (1)", "EXECUTE p", added},
		{"a cursor's query", "", "BEGIN; DECLARE c CURSOR FOR SELECT sell(1); FETCH c; COMMIT", added},
		{"a held cursor's query", "", "DECLARE c CURSOR WITH HOLD FOR SELECT sell(1)", either},
		{"a procedure's first transaction", "", "CALL in_two(1)", either},
		{"a procedure's only transaction", "", "CALL in_one(1)", either},
		{"a procedure that fails in the end", "", "CALL failing(1)", either},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Require, setup...)
			x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			if tt.before != "" {
				b.exec(y, tt.before)
			}
			b.exec(x, "BEGIN", "SELECT n FROM stock WHERE id = 1")
			switch {
			case strings.HasPrefix(tt.write, "COPY"):
				b.copyExtended(y, tt.write, "1\n")
			case strings.Contains(tt.write, "failing"):
				if _, err := y.Exec(t.Context(), tt.write); err == nil {
					t.Fatal("it did not fail")
				}
			default:
				b.exec(y, strings.Split(tt.write, "; ")...)
			}
			b.exec(x, "UPDATE stock SET n = 9 WHERE id = 1", "COMMIT")
			r := b.undisputed()
			if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 {
				t.Fatalf("%d findings, %+v", len(r.Findings), r.Coverage.Log)
			}
			if told := transactionsOf(r.Findings[0]); !strings.Contains(told, tt.by) || r.Coverage.Log.Past != 0 {
				t.Errorf("the write is not named: %s", told)
			}
		})
	}
}

// copyExtended copies rows by messages of the extended protocol, with a Sync before the rows as libpq sends it, and one
// behind them.
func (b *postgresBench) copyExtended(c *pgx.Conn, text, rows string) {
	b.t.Helper()
	f := c.PgConn().Frontend()
	f.Send(&pgproto3.Parse{Query: text})
	f.Send(&pgproto3.Bind{})
	f.Send(&pgproto3.Execute{})
	f.Send(&pgproto3.Sync{})
	f.Send(&pgproto3.CopyData{Data: []byte(rows)})
	f.Send(&pgproto3.CopyDone{})
	f.Send(&pgproto3.Sync{})
	if err := f.Flush(); err != nil {
		b.t.Fatal(err)
	}
	for {
		m, err := c.PgConn().ReceiveMessage(context.Background())
		if err != nil {
			b.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			b.t.Fatal(m.Message)
		case *pgproto3.ReadyForQuery:
			return
		}
	}
}
