package sqlcomments_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/isotap/isotap/examples/comments/sqlcomments"
	"github.com/isotap/isotap/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// comments are what both servers say that they were sent: with these words, and the line of this file.
var comments = regexp.MustCompile(`/\*controller='orders%23pay%20it%27s',file='sqlcomments%2Fsqlcomments_test.go',line='\d+'\*/`)

// says runs a statement that shows its own text, sent as it is, with values, and prepared.
func says(t *testing.T, c driver.Connector, shows, withValue string) {
	t.Helper()
	db := sql.OpenDB(sqlcomments.Wrap(c))
	defer db.Close()
	ctx := sqlcomments.Action(t.Context(), "orders#pay it's")
	read := func(how string, row *sql.Row) {
		t.Helper()
		var text string
		if err := row.Scan(&text); err != nil || !comments.MatchString(text) {
			t.Errorf("%s: sent %q, %v", how, text, err)
		}
	}
	read("as it is", db.QueryRowContext(ctx, shows))
	read("with a value", db.QueryRowContext(ctx, withValue, 1))
	prepared, err := db.PrepareContext(ctx, withValue)
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	read("prepared", prepared.QueryRowContext(context.Background(), 1))
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		t.Fatal(err)
	}
	read("in a transaction", tx.QueryRowContext(ctx, shows))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestCommentsReachMariaDB(t *testing.T) {
	config, err := mysql.ParseDSN(testdb.Current(t).DSN(testdb.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	const shows = "SELECT info FROM information_schema.processlist WHERE id = CONNECTION_ID()"
	says(t, c, shows, shows+" AND 1 = ?")
}

func TestCommentsReachPostgreSQL(t *testing.T) {
	config, err := pgx.ParseConfig(testdb.PostgreSQL(t).DSN(testdb.NewPostgreSQLDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	says(t, stdlib.GetConnector(*config), "SELECT current_query()", "SELECT current_query() WHERE $1::int = 1")
}

func TestCommentsOfPgxReachPostgreSQL(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), testdb.PostgreSQL(t).DSN(testdb.NewPostgreSQLDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	db, ctx := sqlcomments.WrapPgx(conn), sqlcomments.Action(t.Context(), "orders#pay it's")
	read := func(how string, row pgx.Row) {
		t.Helper()
		var text string
		if err := row.Scan(&text); err != nil || !comments.MatchString(text) {
			t.Errorf("%s: sent %q, %v", how, text, err)
		}
	}
	const shows, withValue = "SELECT current_query()", "SELECT current_query() WHERE $1::int = 1"
	read("with a value", db.QueryRow(ctx, withValue, 1))
	batch := &pgx.Batch{}
	batch.Queue(shows)
	results := db.SendBatch(ctx, batch)
	read("in a batch", results.QueryRow())
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		t.Fatal(err)
	}
	read("in a transaction", tx.QueryRow(ctx, shows))
	nested, err := tx.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := nested.Query(ctx, withValue, 1)
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	read("in a nested one", rows)
	rows.Close()
	if _, err := db.Exec(ctx, "CREATE TEMPORARY TABLE said AS "+shows+" AS text"); err != nil {
		t.Fatal(err)
	}
	read("executed", conn.QueryRow(ctx, "SELECT text FROM said"))
}
