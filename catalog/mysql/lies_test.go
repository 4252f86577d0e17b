package mysql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/internal/lies"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// TestLyingServerEndsNothing has each answer to everything that this package asks be each lie in turn: what is asked
// anew is tried too.
func TestLyingServerEndsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "the relay lies in the packets of one server as of another", "mariadb")
	for name, lie := range lies.MySQLLies {
		t.Run(name, func(t *testing.T) {
			database := testdb.NewDatabase(t)
			run(t, testdb.Open(t, database), `CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TRIGGER g BEFORE UPDATE ON parent FOR EACH ROW SET NEW.id = 1;
`)
			plain := name == "no rows at all" || name == "fifty columns"
			for what, use := range uses(database) {
				for at := 1; lieAt(t, what, at, lie, plain, use); at++ {
				}
			}
		})
	}
}

// uses are what this package does with a connection.
func uses(database string) map[string]func(context.Context, dsn.Target) error {
	schemas := []string{database}
	withConn := func(do func(context.Context, *Conn) error) func(context.Context, dsn.Target) error {
		return func(ctx context.Context, target dsn.Target) error {
			conn, err := Connect(ctx, target)
			if err != nil {
				return err
			}
			return errors.Join(do(ctx, conn), conn.Close())
		}
	}
	return map[string]func(context.Context, dsn.Target) error{
		"load": withConn(func(ctx context.Context, conn *Conn) error {
			cache, err := Load(ctx, conn)
			if err != nil {
				return err
			}
			var failed error
			cache.Configure(CacheOptions{Failed: func(err error) { failed = errors.Join(failed, err) }})
			cache.Changed(Change{Tables: []rewrite.TableName{{Schema: database, Table: "parent"}}})
			cache.Table(database, "parent")
			return errors.Join(failed, cache.Ping(ctx), cache.Close())
		}),
		"instrument": withConn(func(ctx context.Context, conn *Conn) error {
			_, err := Instrument(ctx, conn, catalog.Options{Schemas: schemas, BackFill: true})
			return err
		}),
		"strip": withConn(func(ctx context.Context, conn *Conn) error {
			_, err := Strip(ctx, conn, catalog.Options{Schemas: schemas})
			return err
		}),
		"matching": func(ctx context.Context, target dsn.Target) (err error) {
			schema := oneTable{&sqlmysql.Table{Table: rewrite.Table{Name: database + ".parent"},
				Columns: columnsOf(rewrite.Column{Name: "id", Full: "int(11)", Type: "int"})}}
			m, err := NewMatching(ctx, target, schema)
			if err != nil {
				return err
			}
			of := quote(database) + ".`parent`"
			p := history.Predicate{Table: database + ".parent", Of: of, As: "parent", Where: "id > 1",
				Settings: history.LiteralSettings{TimeZone: "SYSTEM", Collation: "utf8mb4_general_ci"}}
			_, _, err = m.Test(ctx, database, []history.Predicate{p}, []string{",`id`)" + sqlmysql.ImageValues + "1)",
				",`id`)" + sqlmysql.ImageValues + "2)"})
			return errors.Join(err, m.Close())
		},
	}
}

// A oneTable is a schema of one table.
type oneTable struct{ table *sqlmysql.Table }

func (o oneTable) Table(string, string) *sqlmysql.Table { return o.table }
func (o oneTable) Epoch() uint64                        { return 0 }

// lieAt does something with a server that lies in its at-th answer, and reports whether there was one. A lie is plain
// if it answers no query of ours: then the error names the query.
func lieAt(t *testing.T, what string, at int, lie lies.MySQLLie, plain bool,
	use func(context.Context, dsn.Target) error) bool {
	t.Helper()
	relay := lies.MySQL(t, testdb.Current(t).Addr(), at, lie)
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	target.Address = relay.Addr
	err = lies.Unpanicked(func() error { return use(t.Context(), target) })
	question, lied := relay.Lied()
	if p := (*lies.Panic)(nil); errors.As(err, &p) {
		t.Fatalf("%s, a lie in place of answer %d (%s): %v", what, at, head(question), err)
	}
	if u := (*catalog.UnexpectedAnswer)(nil); plain && lied && reads(question) &&
		(!errors.As(err, &u) || u.Purpose == "") {
		t.Errorf("%s, a lie in place of answer %d (%s): error %v does not name the query",
			what, at, head(question), err)
	}
	if !lied && err != nil {
		t.Fatalf("%s, without a lie: %v", what, err)
	}
	return lied
}

// reads reports whether a statement is a query.
func reads(text string) bool {
	text = strings.TrimLeft(text, "\x00\x01")
	return strings.HasPrefix(text, "SELECT") || strings.HasPrefix(text, "SHOW")
}

// TestUnexpectedAnswerNamesTheQuery tells every reader's mistake by the query's purpose, and drops the connection.
func TestUnexpectedAnswerNamesTheQuery(t *testing.T) {
	moon := Query{Purpose: "the phases of the moon", Text: "SELECT 1, 2", Columns: 2}
	for _, tt := range []struct {
		lie string
		ask func(context.Context, *Conn) error
		as  any
	}{
		{"no rows at all", askOne(moon), new(*catalog.UnexpectedAnswer)},
		{"one column", askOne(moon), new(*catalog.UnexpectedAnswer)},
		{"fifty columns", askOne(moon), new(*catalog.UnexpectedAnswer)},
		{"one column", askAll(moon, moon), new(*catalog.UnexpectedAnswer)},
		{"no rows at all", askAll(moon, moon), new(*catalog.UnexpectedAnswer)},
		{"a header alone", executed, new(*guard.Panic)},
	} {
		t.Run(tt.lie, func(t *testing.T) {
			target, err := dsn.Parse(testdb.Current(t).URL())
			if err != nil {
				t.Fatal(err)
			}
			target.Address = lies.MySQL(t, testdb.Current(t).Addr(), 2, lies.MySQLLies[tt.lie]).Addr
			conn, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			err = tt.ask(t.Context(), conn)
			if !errors.As(err, tt.as) {
				t.Fatalf("error %v", err)
			}
			if u := (*catalog.UnexpectedAnswer)(nil); errors.As(err, &u) &&
				!strings.Contains(err.Error(), moon.Purpose) {
				t.Errorf("error %v does not say what was asked for", err)
			}
			if conn.client != nil {
				t.Error("the connection is kept")
			}
			if err := askOne(moon)(t.Context(), conn); err != nil {
				t.Errorf("after a lie: %v", err)
			}
		})
	}
}

func askOne(q Query) func(context.Context, *Conn) error {
	return func(ctx context.Context, c *Conn) error { _, err := c.Query(ctx, q); return err }
}

func askAll(queries ...Query) func(context.Context, *Conn) error {
	return func(ctx context.Context, c *Conn) error { _, err := c.QueryAll(ctx, queries...); return err }
}

func executed(ctx context.Context, c *Conn) error { _, err := c.Exec(ctx, "DO 1"); return err }
