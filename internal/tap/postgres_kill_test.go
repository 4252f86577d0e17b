package tap

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// The parameters of pgx.
const (
	pgxText     = "default_query_exec_mode=simple_protocol"
	pgxPrepared = "default_query_exec_mode=cache_statement"
)

var postgresWorks = []work{
	{"text INSERT", pgxText, one("INSERT INTO entry (marker) VALUES ($1)"), []stmtShape{{history.Insert, history.InsertRow, 1}}},
	{"prepared INSERT", pgxPrepared, one("INSERT INTO entry (marker) VALUES ($1), ($1)"), []stmtShape{{history.Insert, history.InsertRow, 2}}},
	{"text UPDATE", pgxText, updatePostgresSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"prepared UPDATE", pgxPrepared, updatePostgresSlot, []stmtShape{{history.Update, history.UpdateRow, 1}}},
	{"text transaction", pgxText, transactOnPostgres, transaction},
	{"prepared transaction", pgxPrepared, transactOnPostgres, transaction},
}

func updatePostgresSlot(ctx context.Context, c *sql.Conn, slot int, marker string) error {
	_, err := c.ExecContext(ctx, "UPDATE slot SET marker = $1 WHERE id = $2", marker, slot)
	return err
}

func transactOnPostgres(ctx context.Context, c *sql.Conn, _ int, marker string) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var was string
	if err := tx.QueryRowContext(ctx, "SELECT marker FROM slot WHERE id = $1 FOR UPDATE", sharedSlot).Scan(&was); err != nil {
		return err
	}
	if err := updatePostgresSlotIn(ctx, tx, marker); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO entry (marker) VALUES ($1)", marker); err != nil {
		return err
	}
	return tx.Commit()
}

func updatePostgresSlotIn(ctx context.Context, tx *sql.Tx, marker string) error {
	_, err := tx.ExecContext(ctx, "UPDATE slot SET marker = $1 WHERE id = $2", marker, sharedSlot)
	return err
}

// openPgx gives the opener of a database.
func openPgx(database string) opener {
	return func(address, parameters string) (*sql.DB, error) {
		return sql.Open("pgx", fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&%s", address, database, parameters))
	}
}

// A storedEntry is a row of the table entry on PostgreSQL.
type storedEntry struct {
	marker string
	xmin   uint32
	place  string
}

// storedOnPostgres are the entries by their key.
type storedOnPostgres map[string]storedEntry

func readStoredOnPostgres(t *testing.T, db *sql.DB) storedOnPostgres {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, marker, xmin::text::bigint, ctid::text FROM entry")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	s := make(storedOnPostgres)
	for rows.Next() {
		var id string
		var e storedEntry
		if err := rows.Scan(&id, &e.marker, &e.xmin, &e.place); err != nil {
			t.Fatal(err)
		}
		s[id] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s storedOnPostgres) check(a *ack, st *history.Stmt, access int, _ history.Tag) error {
	if len(st.Places) != len(st.Accesses) {
		return fmt.Errorf("%d places of %d rows", len(st.Places), len(st.Accesses))
	}
	got, place := &st.Accesses[access], &st.Places[access]
	if got.Op != history.InsertRow {
		if want := fmt.Sprint(a.changes()); got.Row.ID != want {
			return fmt.Errorf("%v of row %s, not %s", got.Op, got.Row.ID, want)
		}
		return nil
	}
	recorded := storedEntry{a.marker, place.NewXID, fmt.Sprintf("(%d,%d)", place.NewID>>16, place.NewID&0xffff)}
	if s[got.Row.ID] != recorded {
		return fmt.Errorf("the server has %v as row %s, not %v", s[got.Row.ID], got.Row.ID, recorded)
	}
	return nil
}

// doomedPostgresTables makes the tables of the load, and gives a direct connection to them.
func doomedPostgresTables(t *testing.T) (catalog.Target, *sql.DB) {
	t.Helper()
	database := testdb.NewPostgreSQLDatabase(t)
	db := testdb.OpenPostgreSQL(t, database)
	makeDoomedPostgresTables(t, db)
	target, err := catalog.ParseTarget(testdb.PostgreSQL(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	return target, db
}

func makeDoomedPostgresTables(t *testing.T, db *sql.DB) {
	t.Helper()
	runPostgreSQL(t, db, "CREATE TABLE slot (id int PRIMARY KEY, marker text NOT NULL)", "CREATE TABLE entry (id serial PRIMARY KEY, marker text NOT NULL)",
		fmt.Sprintf("INSERT INTO slot SELECT i, '' FROM generate_series(0, %d) i", len(postgresWorks)))
}

func TestKilledProxyHasRecordedEveryAcknowledgedTransactionOfPostgreSQL(t *testing.T) {
	target, db := doomedPostgresTables(t)
	killAgainAndAgain(t, target, openPgx(target.Database), postgresWorks, func() held { return readStoredOnPostgres(t, db) })
}

func TestKilledRelaxedProxyOfPostgreSQLLosesNoMoreThanItsBound(t *testing.T) {
	target, db := doomedPostgresTables(t)
	killRelaxed(t, target, openPgx(target.Database), postgresWorks, func() held { return readStoredOnPostgres(t, db) })
}
