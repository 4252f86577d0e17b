package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/backends"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/lies"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// TestLyingServerEndsNothing has each answer to everything that this package asks be each lie in turn.
func TestLyingServerEndsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	const script = `CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parent FOR VALUES FROM (0) TO (10);
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES part (id) ON DELETE CASCADE);
CREATE VIEW v AS SELECT id FROM child;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`
	to := target(t)
	to.Address = backends.Start(t, to.Address).Addr
	for name, lie := range lies.PostgresLies {
		t.Run(name, func(t *testing.T) {
			database, db := newDatabase(t, script)
			uses := uses(database, func(i int) error {
				_, err := db.Exec(fmt.Sprintf("ALTER TABLE child SET (fillfactor = %d)", 10+i%90))
				return err
			})
			for what, use := range uses {
				for at := 1; lieAt(t, to, what, at, lie, use); at++ {
				}
			}
		})
	}
}

// uses are what this package does with a connection. Change changes the catalog.
func uses(database string, change func(int) error) map[string]func(context.Context, dsn.Target) error {
	withConn := func(do func(context.Context, *Conn) error) func(context.Context, dsn.Target) error {
		return func(ctx context.Context, target dsn.Target) error {
			conn, err := NewConn(target, database)
			if err != nil {
				return err
			}
			return errors.Join(do(ctx, conn), conn.Close())
		}
	}
	changes := 0
	return map[string]func(context.Context, dsn.Target) error{
		"facts": withConn(func(ctx context.Context, conn *Conn) error { _, err := ServerFacts(ctx, conn); return err }),
		"ping":  withConn(func(ctx context.Context, conn *Conn) error { return conn.Ping(ctx) }),
		"instrument": withConn(func(ctx context.Context, conn *Conn) error {
			_, err := survey(ctx, conn, nil)
			return err
		}),
		"load": func(ctx context.Context, target dsn.Target) error {
			cache, err := Load(ctx, target, database)
			if err != nil {
				return err
			}
			cache.Reads("postgres", &sqlpostgres.Table{OID: 1})
			changes++
			err = errors.Join(cache.Reload(ctx), change(changes), cache.Reload(ctx))
			cache.Touch([]rewrite.SchemaChange{{Made: []rewrite.TableName{{Schema: "public", Table: "child"}}}})
			cache.Table("public", "child")
			return errors.Join(err, cache.failing.err, cache.Close())
		},
		"matching": withConn(func(ctx context.Context, conn *Conn) error {
			p := history.Predicate{Table: "public.child", Of: "public.child", As: "child", Where: "id > 1"}
			_, err := conn.Matching(ctx, []history.Predicate{p, p}, []string{"(1,2)", "(3,4)"})
			return err
		}),
	}
}

// lieAt does something with a server that lies in its at-th answer, and reports whether there was one.
func lieAt(t *testing.T, to dsn.Target, what string, at int, lie lies.PostgresLie,
	use func(context.Context, dsn.Target) error) bool {
	t.Helper()
	relay := lies.PostgreSQL(t, to.Address, at, lie)
	to.Address = relay.Addr
	err := lies.Unpanicked(func() error { return use(t.Context(), to) })
	_, lied := relay.Lied()
	var p *lies.Panic
	switch {
	case errors.As(err, &p):
		t.Fatalf("%s, a lie in place of answer %d: %v", what, at, err)
	case !lied && err != nil:
		t.Fatalf("%s, without a lie: %v", what, err)
	}
	return lied
}

// TestUnexpectedAnswerNamesTheQuery tells a lie by the query's purpose, and drops the connection.
func TestUnexpectedAnswerNamesTheQuery(t *testing.T) {
	moon := query{purpose: "the phases of the moon", text: "SELECT 1, 2", columns: 2, row: true}
	for _, lie := range []string{"a column less", "rows of a column less", "no rows"} {
		t.Run(lie, func(t *testing.T) {
			to := target(t)
			// The transaction's beginning has two answers.
			to.Address = lies.PostgreSQL(t, to.Address, 3, lies.PostgresLies[lie]).Addr
			conn, err := NewConn(to, "postgres")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = conn.read(t.Context(), moon)
			if u := (*catalog.UnexpectedAnswer)(nil); !errors.As(err, &u) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), moon.purpose) {
				t.Errorf("error %v does not say what was asked for", err)
			}
			if conn.pg != nil {
				t.Error("the connection is kept")
			}
			if rows, err := conn.read(t.Context(), moon); err != nil || len(rows[0]) != 1 {
				t.Errorf("after a lie: %v, %v", rows, err)
			}
		})
	}
}

// TestPartitionsInACircleHaveNoTop has two partitioned tables be partitions of each other.
func TestPartitionsInACircleHaveNoTop(t *testing.T) {
	b := newBuilder(&reading{relations: layers[uint32, *relation]{base: map[uint32]*relation{1: {kind: "p"},
		2: {kind: "p"}}}, parents: map[uint32][]uint32{1: {2}, 2: {1}}})
	if top := b.top(1); top != nil {
		t.Errorf("%+v is the top", top)
	}
}

// TestRightsOfARoleThatNobodyAskedAbout are left out.
func TestRightsOfARoleThatNobodyAskedAbout(t *testing.T) {
	if of := rightsOf([]string{"a"}, []row{{"b", "1", "t"}}); len(of) != 1 || len(of["a"].base) != 0 {
		t.Errorf("rights %v", of)
	}
}
