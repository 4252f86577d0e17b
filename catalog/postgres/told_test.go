package postgres

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// touchingAs is [touching] of a session of a role.
func touchingAs(c *Cache, planner *sqlpostgres.Rewriter, role, statement string, path ...string) {
	for _, p := range planner.Plan(statement, sqlpostgres.Session{Version: 15, Role: role, Encoding: "UTF8",
		Path: rewrite.ListOf(append([]string{"pg_catalog"}, path...)...)}).Statements {
		switch {
		case !p.Schema.Changes:
		case p.Schema.Change == nil:
			c.Touch(nil)
		default:
			c.Touch([]rewrite.SchemaChange{p.Schema.Change.In(path)})
		}
	}
}

// likeTold returns what would have been told of a table that was read.
func likeTold(read *sqlpostgres.Table, role string) *sqlpostgres.Table {
	if read == nil {
		return nil
	}
	like := *read
	like.OID, like.MadeBy, like.Rows = 0, role, 0
	return &like
}

// teller runs definitions on the server and tells a cache of them, which reads nothing by itself.
type teller struct {
	t     *testing.T
	cache *Cache
	role  string
	run   func(statement string)
}

func newTeller(t *testing.T, script string) teller {
	database, db := newDatabase(t, script)
	db.SetMaxOpenConns(1)
	x := teller{t: t, cache: load(t, database)}
	x.cache.mu.Lock()
	x.cache.waits = true
	x.cache.mu.Unlock()
	if err := db.QueryRow("SELECT current_user").Scan(&x.role); err != nil {
		t.Fatal(err)
	}
	planner := sqlpostgres.New(x.cache, sqlpostgres.Options{})
	x.run = func(statement string) {
		t.Helper()
		run(t, db, statement)
		touchingAs(x.cache, planner, x.role, statement, "public")
	}
	return x
}

// told returns what is known of a table without a question, nil where nobody has told it; and fails where the server
// says otherwise.
func (x teller) told(table string) *sqlpostgres.Table {
	x.t.Helper()
	n := name{"public", table}
	told := x.cache.pending.Load().tells(n)
	if told == nil {
		return nil
	}
	if got := x.cache.Table(n.schema, n.table); got != told {
		x.t.Errorf("%s is told and yet looked up as %+v", table, got)
	}
	if !x.cache.Reads(x.role, told) || x.cache.Reads("somebody", told) {
		x.t.Errorf("%s: not read by who made it, or by somebody else", table)
	}
	fresh, err := Load(x.t.Context(), target(x.t), x.cache.conn.Target().Database)
	if err != nil {
		x.t.Fatal(err)
	}
	defer fresh.Close()
	if want := likeTold(fresh.Table(n.schema, n.table), x.role); !reflect.DeepEqual(told, want) {
		x.t.Errorf("%s is told as\n%+v\nand read as\n%+v", table, told, want)
	}
	return told
}

// TestPlainDefinitionsTellTheirTables: what texts tell is what the server has.
func TestPlainDefinitionsTellTheirTables(t *testing.T) {
	x := newTeller(t, "CREATE TABLE text (id int)")
	types := []string{"smallint", "INT2", "int", "integer", "int4", "bigint", "int8", "smallserial", "serial2", "serial",
		"serial4", "bigserial", "serial8", "numeric", "numeric(7)", "numeric(10, 2)", "decimal(5,0)", "real", "float4",
		"double precision", "float8", "boolean", "bool", "text", "varchar", "varchar(9)", "character varying",
		"character varying(100)", "uuid", "json", "jsonb", "bytea", "date", "timestamp", "timestamptz",
		"timestamp without time zone", "timestamp with time zone"}
	var columns []string
	for i, of := range types {
		columns = append(columns, fmt.Sprintf(`c%d %s`, i, of))
	}
	for i, statements := range [][]string{
		{"CREATE TABLE %s (" + strings.Join(columns, ", ") + ")"},
		{"CREATE TABLE %s (id int PRIMARY KEY, name varchar(100) NOT NULL, price decimal(10,2) NULL, note text)"},
		{"CREATE TABLE %s (\"Id\" int, b text, PRIMARY KEY (b, \"Id\"))"},
		{"CREATE TABLE public.%s (a int PRIMARY KEY)"},
		{"CREATE TABLE %s (a int, CONSTRAINT other PRIMARY KEY (a))"},
		{"CREATE TABLE %s (a int DEFAULT -1, b text NOT NULL DEFAULT 'x'::text, c timestamptz DEFAULT now(), " +
			"d date DEFAULT CURRENT_DATE, e bool DEFAULT true, f varchar(3) DEFAULT 'y'::character varying(3))"},
		{"CREATE TABLE %s (id integer NOT NULL, name character varying(100) NOT NULL)", "ALTER TABLE %s OWNER TO @",
			"ALTER TABLE ONLY %s ADD CONSTRAINT %s_pkey PRIMARY KEY (id)", "CREATE INDEX %s_name ON %s USING btree (name)",
			"CREATE UNIQUE INDEX a_%s ON %s (name DESC NULLS LAST, id)"},
		{"CREATE TABLE %s (a int)", "ALTER TABLE %s ADD PRIMARY KEY (a)"},
	} {
		table := fmt.Sprintf("t%d", i)
		for _, s := range statements {
			x.run(strings.NewReplacer("%s", table, "@", `"`+x.role+`"`).Replace(s))
			if x.told(table) == nil {
				t.Errorf("not told: %s", s)
			}
		}
	}
	reload(t, x.cache)
	if n := x.cache.misled.Load(); n > 0 {
		t.Errorf("%d readings had something else than was told", n)
	}
}

// TestWhatMayBeMoreThanItsTextIsRead: of these nobody tells.
func TestWhatMayBeMoreThanItsTextIsRead(t *testing.T) {
	x := newTeller(t, "CREATE TABLE parent (id int PRIMARY KEY);\nCREATE TYPE mood AS ENUM ('sad');\nCREATE SCHEMA s")
	for i, s := range []string{"CREATE TABLE %s (a mood)", "CREATE TABLE %s (a int REFERENCES parent)",
		"CREATE TABLE %s (a int UNIQUE)", "CREATE TABLE %s (a int CHECK (a > 0))", "CREATE TABLE %s (a int) INHERITS (parent)",
		"CREATE TABLE %s (LIKE parent)", "CREATE TABLE %s (a int[])", "CREATE TABLE %s (a varchar(3)[])",
		"CREATE TABLE %s (a text COLLATE \"C\")", "CREATE TABLE %s (a int GENERATED ALWAYS AS IDENTITY)",
		"CREATE TABLE %s (a int, b int GENERATED ALWAYS AS (a) STORED)", "CREATE TABLE %s (a text DEFAULT current_query())",
		"CREATE TABLE %s (a int) WITH (fillfactor = 70)", "CREATE TABLE %s (a int) PARTITION BY LIST (a)",
		"CREATE UNLOGGED TABLE %s (a int)", "CREATE TABLE IF NOT EXISTS %s (a int)", "CREATE TABLE %s AS SELECT 1 AS a",
		"CREATE TABLE %s (a timestamp(3))", "CREATE TABLE %s (a char(3))", "CREATE TABLE %s (a interval)",
		"CREATE TABLE %s (a int, UNIQUE (a))", "CREATE TABLE %s (a int CONSTRAINT k PRIMARY KEY)",
		"CREATE TABLE %s ()", "CREATE TABLE %s (a pg_catalog.int4)",
		"CREATE TABLE %s (a int4 DEFAULT 1 + 1)", "CREATE TEMPORARY TABLE %s (a int)", "CREATE TABLE %s (isotap_x int)"} {
		table := fmt.Sprintf("t%d", i)
		x.run(strings.ReplaceAll(s, "%s", table))
		if x.told(table) != nil {
			t.Errorf("told: %s", s)
		}
	}
	for i, then := range []string{"ALTER TABLE %s ADD v int", "ALTER TABLE %s ENABLE ROW LEVEL SECURITY",
		"CREATE INDEX ON %s (a)", "CREATE INDEX i%s ON %s (lower(b))", "CREATE INDEX j%s ON %s (a) WHERE a > 0",
		"CREATE INDEX k%s ON %s USING hash (a)", "CREATE INDEX l%s ON %s (a) INCLUDE (b)", "DROP TABLE %s",
		"ALTER TABLE %s RENAME TO r%s", "GRANT SELECT ON %s TO PUBLIC", "ALTER TABLE %s SET SCHEMA s",
		"CREATE VIEW v%s AS SELECT * FROM %s", "DO $$ BEGIN ALTER TABLE %s DROP b; END $$",
		"CREATE INDEX m%s ON %s (b text_pattern_ops)", "CREATE INDEX n%s ON %s (b COLLATE \"C\")"} {
		table := fmt.Sprintf("u%d", i)
		x.run("CREATE TABLE " + table + " (a int, b text)")
		x.run(strings.ReplaceAll(then, "%s", table))
		if x.told(table) != nil {
			t.Errorf("told, behind %s", then)
		}
		x.cache.Table("public", table)
	}
}

// TestNothingIsToldWhereTheServerAdds: with such things in the database texts do not say all.
func TestNothingIsToldWhereTheServerAdds(t *testing.T) {
	for _, of := range []struct{ add, drop string }{
		{"ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM CURRENT_USER",
			"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO CURRENT_USER"},
		{"CREATE FUNCTION guards() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'", "DROP FUNCTION guards() CASCADE"},
	} {
		x := newTeller(t, "CREATE TABLE known (id int)")
		x.run(of.add)
		if strings.Contains(of.add, "event_trigger") {
			x.run("CREATE EVENT TRIGGER guarding ON ddl_command_end EXECUTE FUNCTION guards()")
		}
		x.run("CREATE TABLE a (id int)")
		if x.told("a") != nil {
			t.Errorf("told before anything was read, behind %s", of.add)
		}
		reload(t, x.cache)
		x.run("CREATE TABLE b (id int)")
		if x.told("b") != nil {
			t.Errorf("told behind %s", of.add)
		}
		x.run(of.drop)
		reload(t, x.cache)
		x.run("CREATE TABLE c (id int)")
		if x.told("c") == nil {
			t.Errorf("not told behind %s", of.drop)
		}
	}
}

// TestRowsOfAToldTableMayMove: that they came into other files is known, though the table was never read before.
func TestRowsOfAToldTableMayMove(t *testing.T) {
	for _, then := range []string{"TRUNCATE a", "ALTER TABLE a ALTER id TYPE text", "DO $$ BEGIN END $$"} {
		x := newTeller(t, "CREATE TABLE b (id int)")
		x.run("CREATE TABLE a (id int)")
		x.run(then)
		if got := x.cache.Rewritten(); !slices.Equal(got, []string{"public.a"}) {
			t.Errorf("%s: %q", then, got)
		}
	}
}

// TestReadingIsRightWhereToldOtherwise: a table is what the server says as soon as that was read.
func TestReadingIsRightWhereToldOtherwise(t *testing.T) {
	x := newTeller(t, "CREATE TABLE b (id int)")
	run(t, testdb.OpenPostgreSQL(t, x.cache.conn.Target().Database), "CREATE TABLE a (id int, v text)")
	forgotten := 0
	x.cache.Changed(func() { forgotten++ })
	x.cache.Touch([]rewrite.SchemaChange{{Made: []rewrite.TableName{{Schema: "public", Table: "a"}},
		Tells: &rewrite.TableDefinition{Table: rewrite.TableName{Schema: "public", Table: "a"}, Creates: true, Role: x.role,
			Columns: []rewrite.Column{{Name: "id", Type: "int4", Full: "integer"}}}}})
	if got := table(t, x.cache, "a"); len(got.Columns) != 1 {
		t.Fatalf("not told: %+v", got)
	}
	x.cache.mu.Lock()
	err := x.cache.settleThis(x.cache.pending.Load())
	x.cache.mu.Unlock()
	if got := table(t, x.cache, "a"); err != nil || len(got.Columns) != 2 || x.cache.misled.Load() != 1 || forgotten != 2 {
		t.Errorf("%v, %+v, %d readings, plans forgotten %d times", err, got, x.cache.misled.Load(), forgotten)
	}
}
