package postgres

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// touching tells a cache of a statement as a session that ran it does.
func touching(c *Cache, planner *sqlpostgres.Rewriter, statement string, path ...string) {
	for _, p := range planner.Plan(statement,
		sqlpostgres.Session{Version: 15, Path: rewrite.ListOf(path...)}).Statements {
		switch {
		case !p.Schema.Changes:
		case p.Schema.Change == nil:
			c.Touch(nil)
		default:
			c.Touch([]rewrite.SchemaChange{p.Schema.Change.In(path)})
		}
	}
}

// A define is a statement about things of a few names: % is one of them.
var defines = []string{
	"CREATE TABLE %t (id int PRIMARY KEY, name varchar(10), v int)",
	"CREATE TABLE %t (id int, %c text UNIQUE NOT NULL)",
	"CREATE TABLE %t (id int REFERENCES %t ON DELETE CASCADE, %c int)",
	"CREATE TABLE %t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
	"CREATE TABLE %t PARTITION OF %t FOR VALUES FROM (%n) TO (%n)", "CREATE TABLE %t () INHERITS (%t)",
	"CREATE TABLE %t (LIKE %t INCLUDING ALL)",
	"CREATE TABLE %t AS SELECT * FROM %t", "SELECT * INTO %t FROM %t", "CREATE UNLOGGED TABLE %t (id int PRIMARY KEY)",
	"CREATE TABLE %t (id mood, row %t)",
	"CREATE TABLE %t (id aside.feeling PRIMARY KEY)",
	"ALTER TABLE %t ADD COLUMN %c int", "ALTER TABLE %t DROP COLUMN %c", "ALTER TABLE %t DROP COLUMN %c CASCADE",
	"ALTER TABLE %t RENAME COLUMN %c TO %c",
	"ALTER TABLE %t RENAME TO %u", "ALTER TABLE %t SET SCHEMA %s", "ALTER TABLE %t ALTER %c TYPE text",
	"ALTER TABLE %t ALTER id TYPE bigint",
	"ALTER TABLE %t ALTER %c SET NOT NULL", "ALTER TABLE %t ADD PRIMARY KEY (id)",
	"ALTER TABLE %t DROP CONSTRAINT %u_pkey CASCADE",
	"ALTER TABLE %t ADD FOREIGN KEY (id) REFERENCES %t (id) ON UPDATE CASCADE",
	"ALTER TABLE %t ATTACH PARTITION %t FOR VALUES FROM (%n) TO (%n)",
	"ALTER TABLE %t DETACH PARTITION %t", "ALTER TABLE %t INHERIT %t", "ALTER TABLE %t NO INHERIT %t",
	"ALTER TABLE %t ENABLE ROW LEVEL SECURITY",
	"ALTER TABLE %t SET UNLOGGED", "ALTER TABLE %t OWNER TO %r", "ALTER TABLE %t DISABLE TRIGGER ALL",
	"ALTER INDEX %u_pkey RENAME TO %u_key",
	"CREATE INDEX %u_key ON %t (id)", "CREATE UNIQUE INDEX ON %t (%c)", "DROP INDEX %u_key",
	"DROP INDEX IF EXISTS %u_pkey, %u_key CASCADE",
	"CREATE VIEW %t AS SELECT * FROM %t", "CREATE VIEW %t AS SELECT a.id FROM %t a JOIN %t b ON a.id = b.id",
	"CREATE OR REPLACE VIEW %t AS SELECT id FROM %t",
	"CREATE VIEW %t AS SELECT %f() AS id FROM %t WHERE id IN (SELECT id FROM %t)",
	"CREATE VIEW %t AS SELECT id FROM %t UNION SELECT id FROM %t",
	"CREATE MATERIALIZED VIEW %t AS SELECT * FROM %t", "REFRESH MATERIALIZED VIEW %t", "ALTER VIEW %t RENAME TO %u",
	"DROP VIEW %t CASCADE",
	"DROP TABLE %t", "DROP TABLE %t CASCADE", "DROP TABLE %t, %t CASCADE", "DROP TABLE IF EXISTS %t", "TRUNCATE %t",
	"TRUNCATE %t CASCADE",
	"CREATE TRIGGER g AFTER INSERT ON %t FOR EACH ROW EXECUTE FUNCTION fires()",
	"CREATE TRIGGER g BEFORE DELETE ON %t EXECUTE FUNCTION fires()", "DROP TRIGGER g ON %t",
	"CREATE RULE l AS ON DELETE TO %t DO INSTEAD NOTHING", "DROP RULE l ON %t", "CREATE POLICY y ON %t USING (true)",
	"GRANT SELECT ON %t TO %r", "REVOKE ALL ON %t FROM %r", "GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %r",
	"REVOKE USAGE ON SCHEMA %s FROM %r",
	"GRANT USAGE ON SCHEMA %s TO PUBLIC", "ALTER ROLE %r BYPASSRLS", "ALTER ROLE %r NOBYPASSRLS",
	"CREATE FUNCTION %f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION %f()", "DROP FUNCTION %f() CASCADE",
	"ALTER FUNCTION %f() RENAME TO other", "DROP FUNCTION IF EXISTS other()",
	"CREATE AGGREGATE %f(int) (SFUNC = int4pl, STYPE = int)", "DROP FUNCTION fires() CASCADE",
	"CREATE OR REPLACE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
	"CREATE SCHEMA %s", "DROP SCHEMA %s CASCADE", "ALTER SCHEMA %s RENAME TO moved", "ALTER SCHEMA moved RENAME TO %s",
	"CREATE SCHEMA %s CREATE TABLE b (id int PRIMARY KEY) CREATE VIEW v AS SELECT * FROM b",
	"CREATE TYPE mood AS ENUM ('sad')", "DROP TYPE mood CASCADE", "CREATE DOMAIN aside.feeling AS int",
	"ALTER TYPE mood ADD VALUE 'happy'", "ALTER TYPE mood RENAME TO temper",
	"VACUUM FULL %t", "CLUSTER %t USING %u_pkey",
	"DO $$ BEGIN DROP TABLE IF EXISTS a, aside.b CASCADE; CREATE TABLE a (id int PRIMARY KEY); END $$",
	"COMMENT ON TABLE %t IS 'c'",
	"CREATE TEMPORARY TABLE %u (id int)", "DISCARD TEMP", "REASSIGN OWNED BY %r TO postgres", "DROP OWNED BY %r",
}

// A chooser fills statements in.
type chooser struct {
	*rand.Rand
	role string
}

func (r chooser) one(of ...string) string { return of[r.IntN(len(of))] }

// relating are the words of statements that make more than simple tables.
var relating = []string{"REFERENCES", "INHERIT", "PARTITION", "VIEW", "TRIGGER", "RULE", "POLICY", "FUNCTION", "AGGREGATE",
	"SECURITY", "mood", "feeling", "row %t", "DO $$", "ROLE", "OWNED"}

// statement returns a definition, of simple tables alone where these are asked for.
func (r chooser) statement(simple bool) string {
	text := r.one(defines...)
	for simple && slices.ContainsFunc(relating, func(word string) bool { return strings.Contains(text, word) }) {
		text = r.one(defines...)
	}
	for _, x := range []struct {
		mark string
		of   []string
	}{
		{"%t", []string{"a", "b", "c", "d", "e", "a", "b", "public.a", "aside.a", "aside.b", "beside.b", `"a"`, "v"}},
		{"%u", []string{"a", "b", "c", "d", "v"}},
		{"%c", []string{"id", "v", "w", "name"}}, {"%s", []string{"aside", "beside", "public"}},
		{"%f", []string{"f", "aside.f", "g"}}, {"%r", []string{r.role}}} {
		for strings.Contains(text, x.mark) {
			text = strings.Replace(text, x.mark, r.one(x.of...), 1)
		}
	}
	for n := r.IntN(3); strings.Contains(text, "%n"); n++ {
		text = strings.Replace(text, "%n", fmt.Sprint(n*10), 1)
	}
	return text
}

var seed = flag.Uint64("seed", 1, "of the random definitions; 0: another one each time")

// What the names in a definition tell, and what is known of the tables, is all that has to be read again.
func TestWhatDefinitionsTouchIsReadAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	// In the first rounds tables are soon related to each other, in the others they stay simple.
	const rounds, statements = 6, 150
	start := *seed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			database, db := newDatabase(t,
				"CREATE SCHEMA aside;\nCREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';\n"+
					"CREATE DOMAIN aside.feeling AS int;\nCREATE TYPE mood AS ENUM ('sad')")
			db.SetMaxOpenConns(1)
			run(t, db, "SET client_min_messages = error")
			some := "r_" + database
			run(t, db, "CREATE ROLE "+some)
			t.Cleanup(func() {
				run(t, testdb.OpenPostgreSQL(t, database), "DROP OWNED BY "+some+" CASCADE;\nDROP ROLE "+some)
			})
			c := load(t, database)
			c.Reads(some, &sqlpostgres.Table{OID: 1})
			var us string
			if err := db.QueryRow("SELECT current_user").Scan(&us); err != nil {
				t.Fatal(err)
			}
			planner := sqlpostgres.New(c, sqlpostgres.Options{})
			r := chooser{rand.New(rand.NewPCG(start, uint64(round))), some}
			var since []string
			failed := 0
			for range statements {
				statement := r.statement(round >= rounds/2)
				if _, err := db.Exec(statement); err != nil {
					failed++
					continue
				}
				touchingAs(c, planner, us, statement, "public")
				since = append(since, statement)
				if r.IntN(3) > 0 {
					continue
				}
				if differences := compared(t, c, database, some, r); differences != "" {
					t.Fatalf("-seed %d: after\n%s\n%s", start, strings.Join(since, ";\n"), differences)
				}
			}
			t.Logf("%d of %d statements failed", failed, statements)
		})
	}
}

func TestViewsGoWithWhatTheyRead(t *testing.T) {
	for _, c := range []struct{ view, drop string }{
		{"CREATE VIEW v AS SELECT * FROM a", "DROP TABLE a CASCADE"},
		{"CREATE MATERIALIZED VIEW v AS SELECT * FROM a", "DROP TABLE a CASCADE"},
		{"CREATE VIEW v AS SELECT 1 WHERE EXISTS (SELECT FROM a)", "DROP TABLE a CASCADE"},
		{"CREATE VIEW v AS SELECT id FROM a UNION SELECT id FROM b", "DROP TABLE a CASCADE"},
		{"CREATE VIEW v AS WITH w AS (SELECT id FROM a) SELECT * FROM w", "DROP TABLE a CASCADE"},
		{"CREATE MATERIALIZED VIEW v AS SELECT f() FROM b", "DROP FUNCTION f() CASCADE"},
		{"CREATE VIEW v AS SELECT 1 FROM b WHERE id = f()", "DROP FUNCTION f CASCADE"},
		{"CREATE VIEW v AS SELECT 1 FROM b WHERE 'sad'::mood = 'sad'", "DROP TYPE mood CASCADE"},
	} {
		t.Run(c.view, func(t *testing.T) {
			database, db := newDatabase(t, "CREATE TABLE a (id int);\nCREATE TABLE b (id int);\n"+
				"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\nCREATE TYPE mood AS ENUM ('sad')")
			run(t, db, c.view)
			cache := load(t, database)
			if cache.Table("public", "v") == nil {
				t.Fatal("the view is not known")
			}
			run(t, db, c.drop)
			touching(cache, sqlpostgres.New(cache, sqlpostgres.Options{}), c.drop, "pg_catalog", "public")
			if cache.Table("public", "v") != nil {
				t.Errorf("still known after %s", c.drop)
			}
		})
	}
}

// compared returns what a cache knows otherwise than one that has just been loaded, asked in any order.
func compared(t *testing.T, c *Cache, database, role string, r chooser) string {
	t.Helper()
	fresh, err := Load(t.Context(), target(t), database)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	fresh.Reads(role, &sqlpostgres.Table{OID: 1})
	var names []name
	for _, schema := range []string{"public", "aside", "beside", "moved"} {
		for _, table := range []string{"a", "b", "c", "d", "e", "v"} {
			names = append(names, name{schema, table})
		}
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var b strings.Builder
	for _, n := range names[:r.IntN(len(names))] {
		got, want := c.Table(n.schema, n.table), fresh.Table(n.schema, n.table)
		if got != nil && got.MadeBy != "" {
			want = likeTold(want, got.MadeBy)
		}
		if !reflect.DeepEqual(got, want) {
			fmt.Fprintf(&b, "%s is known as\n%+v\nnot\n%+v\n", n, got, want)
		} else if got != nil && got.MadeBy == "" && c.Reads(role, got) != fresh.Reads(role, want) {
			fmt.Fprintf(&b, "%s is read by the role: %v\n", n, c.Reads(role, got))
		}
	}
	for _, f := range []string{"f", "g", "other", "fires"} {
		if got, want := c.Functions(f), fresh.Functions(f); got != want {
			fmt.Fprintf(&b, "%s is of kind %d, not %d\n", f, got, want)
		}
	}
	if got, want := related(c.current.Load().graph), related(newGraph(c.current.Load().read)); got != want {
		fmt.Fprintf(&b, "relations are known to be related as\n%s\nnot\n%s\n", got, want)
	}
	return b.String()
}

// related writes what a graph relates.
func related(g *graph) string {
	g.prepare()
	var lines []string
	add := func(what string, key any, oids []uint32) {
		lines = append(lines, fmt.Sprint(what, key, slices.Sorted(slices.Values(oids))))
	}
	for n, oids := range g.plain.all() {
		add("name", n, oids)
	}
	for n, oids := range g.indexes.all() {
		add("index", n, oids)
	}
	for what, of := range map[string]map[uint32][]uint32{"children": g.builder.children, "targets": g.targets,
		"sources": g.sources, "views": g.views} {
		for oid, oids := range of {
			add(what, oid, oids)
		}
	}
	add("typed", "", g.typed)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestWhoDefinesDoesNotWaitForAReading(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int);\nCREATE TABLE b (id int)")
	c := load(t, database)
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	run(t, db, "ALTER TABLE a ADD v int")
	before := c.current.Load()
	c.mu.Lock() // as somebody does who reads
	touching(c, planner, "ALTER TABLE a ADD v int", "public")
	if c.Table("public", "b") == nil || c.current.Load() != before {
		t.Error("a table that was not touched is read again")
	}
	c.mu.Unlock()
	if n := len(table(t, c, "a").Columns); n != 2 {
		t.Errorf("%d columns", n)
	}
	if p := c.pending.Load(); p != nil {
		t.Errorf("still to be read: %+v", p)
	}
}

// TestUnreadableTableIsNotTakenForItsPast: a table that cannot be read is not taken for what it was.
func TestUnreadableTableIsNotTakenForItsPast(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE a (id int)")
	c := load(t, database)
	good := *c.conn.config
	c.conn.config.Port, c.conn.config.Fallbacks = 1, nil
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.Touch([]rewrite.SchemaChange{{Made: []rewrite.TableName{{Schema: "public", Table: "a"}}}})
	for range 2 {
		if got := c.Table("public", "a"); !got.Unread {
			t.Errorf("%+v", got)
		}
	}
	*c.conn.config = good
	time.Sleep(settleAgain / 10) // it failed at once
	if got := c.Table("public", "a"); got.Unread || got.Name != "public.a" {
		t.Errorf("%+v", got)
	}
}

func TestTruncatedTablesAreToldWithoutReading(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY);\nCREATE TABLE b (id int REFERENCES a);\n"+
		"CREATE TABLE c (id int);\n"+
		"CREATE TABLE p (id int) PARTITION BY LIST (id);\nCREATE TABLE p1 PARTITION OF p DEFAULT")
	c := load(t, database)
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	before := c.current.Load()
	for _, statement := range []string{"TRUNCATE a CASCADE", "TRUNCATE public.p"} {
		run(t, db, statement)
		touching(c, planner, statement, "public")
	}
	c.Table("public", "a")
	if got, want := c.Rewritten(), []string{"public.a", "public.b", "public.p", "public.p1"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if c.current.Load() != before {
		t.Error("they were read")
	}
}

// TestTableDroppedAfterARewriteIsTold: a table dropped after it may have been rewritten is told.
func TestTableDroppedAfterARewriteIsTold(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE a (id int PRIMARY KEY);\nCREATE TABLE b (id int)")
	c := load(t, database)
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	for _, statement := range []string{"ALTER TABLE a ALTER id TYPE text", "ALTER TABLE b ADD v int", "DROP TABLE a",
		"DROP TABLE b"} {
		run(t, db, statement)
		touching(c, planner, statement, "public")
	}
	reload(t, c)
	if got := c.Rewritten(); !slices.Equal(got, []string{"public.a"}) {
		t.Errorf("%q", got)
	}
}

// Sessions that define and look up at once see each definition that came before their question.
func TestDefinitionsAndLookupsAtOnce(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE shared (id int)")
	c := load(t, database)
	var sessions sync.WaitGroup
	for i := range 4 {
		sessions.Go(func() {
			db := testdb.OpenPostgreSQL(t, database)
			own := fmt.Sprintf("own%d", i)
			exec(t, db, c, "CREATE TABLE "+own+" (id int)")
			for n := 1; n < 12; n++ {
				if got := len(table(t, c, own).Columns); got != n {
					t.Errorf("%s has %d columns, not %d", own, got, n)
				}
				exec(t, db, c, fmt.Sprintf("ALTER TABLE %s ADD c%d int", own, n))
				table(t, c, "shared")
				c.Reads("postgres", table(t, c, own))
			}
		})
	}
	sessions.Wait()
}

func exec(t *testing.T, db *sql.DB, c *Cache, statement string) {
	if _, err := db.Exec(statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
	touching(c, sqlpostgres.New(c, sqlpostgres.Options{}), statement, "public")
}

// The server tells what there is beside columns and indexes, whatever the statement said.
func TestWhatIsMoreThanSimpleIsRead(t *testing.T) {
	const around = "CREATE TABLE other (id int PRIMARY KEY);\nCREATE TABLE bare ();\n" +
		"CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';\n" +
		"CREATE TYPE mood AS ENUM ('sad');\nCREATE DOMAIN feeling AS text COLLATE \"C\""
	const simple = "CREATE TABLE a (id int PRIMARY KEY, v varchar(3) COLLATE \"C\" DEFAULT 'x' NOT NULL, " +
		"n numeric(4,2), UNIQUE (v, id) INCLUDE (n))"
	for _, script := range []string{
		simple,
		simple + ";\nCREATE TRIGGER g AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION fires()",
		simple + ";\nCREATE RULE l AS ON DELETE TO a DO INSTEAD NOTHING",
		simple + ";\nCREATE TABLE b (id int REFERENCES a ON DELETE CASCADE)",
		simple + ";\nALTER TABLE a ADD FOREIGN KEY (id) REFERENCES other ON UPDATE CASCADE",
		simple + ";\nALTER TABLE a ENABLE ROW LEVEL SECURITY", simple + ";\nCREATE TABLE b () INHERITS (a)",
		"CREATE TABLE a (id int PRIMARY KEY) INHERITS (bare)", "CREATE TABLE a () INHERITS (other)",
		"CREATE TABLE a (id int PRIMARY KEY) PARTITION BY LIST (id)",
		"CREATE TABLE p (id int PRIMARY KEY) PARTITION BY LIST (id);\nCREATE TABLE a PARTITION OF p DEFAULT",
		"CREATE UNLOGGED TABLE a (id int, m mood UNIQUE NOT NULL)", "CREATE TABLE a (id feeling, o other, f int[], r int4range)",
		"CREATE TABLE a (v text NOT NULL);\nCREATE UNIQUE INDEX ON a (v text_pattern_ops)",
		"CREATE TABLE a (v text NOT NULL);\nCREATE UNIQUE INDEX ON a (v) WHERE v > ''",
		"CREATE TABLE a (v text NOT NULL, w text NOT NULL);\nCREATE INDEX ON a (lower(v), w);\nCREATE INDEX ON a USING hash (v)",
		"CREATE TABLE a (id int UNIQUE DEFERRABLE, p point);\nCREATE INDEX ON a USING gist (p)",
		"CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY, g int GENERATED ALWAYS AS (1) STORED, q text DEFAULT current_query())",
		"CREATE TABLE a (id int, gone int, isotap_rowid uuid DEFAULT md5('x')::uuid, isotap_wlist bytea);\nALTER TABLE a DROP gone",
		"CREATE VIEW a AS SELECT * FROM other", "CREATE MATERIALIZED VIEW a AS SELECT * FROM other", "CREATE SEQUENCE a",
		"CREATE FUNCTION a() RETURNS int LANGUAGE sql AS 'SELECT 1'",
	} {
		t.Run(script, func(t *testing.T) {
			database, db := newDatabase(t, around)
			c := load(t, database)
			c.Reads("postgres", &sqlpostgres.Table{OID: 1})
			run(t, db, script)
			made := []rewrite.TableName{{Schema: "public", Table: "a"}, {Schema: "public", Table: "b"},
				{Schema: "public", Table: "p"}}
			c.Touch([]rewrite.SchemaChange{{Made: made}})
			got, fresh := c.Table("public", "a"), load(t, database)
			fresh.Reads("postgres", &sqlpostgres.Table{OID: 1})
			if want := fresh.Table("public", "a"); !reflect.DeepEqual(got, want) {
				t.Errorf("it is known as\n%+v\nnot\n%+v", got, want)
			} else if c.Reads("postgres", got) != fresh.Reads("postgres", want) {
				t.Errorf("that it is read: %t", c.Reads("postgres", got))
			}
			if got, want := c.Functions("a"), fresh.Functions("a"); got != want {
				t.Errorf("a function of kind %d, not %d", got, want)
			}
		})
	}
}
