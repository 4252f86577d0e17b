package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
)

// zoo holds one table for each property that adding columns could disturb.
const zoo = `
CREATE TABLE plain (id int PRIMARY KEY, v text DEFAULT 'x' NOT NULL);
INSERT INTO plain VALUES (1, 'a'), (2, 'b');
CREATE TABLE no_key (a int);
INSERT INTO no_key VALUES (1), (1), (NULL);
CREATE TABLE empty ();
CREATE UNLOGGED TABLE unlogged (a int);
CREATE TABLE "Odd ""Name" ("A" int);
CREATE TABLE generated (id int GENERATED ALWAYS AS IDENTITY, a int, b int GENERATED ALWAYS AS (a + 1) STORED);
INSERT INTO generated (a) VALUES (1), (2);
CREATE TABLE parts (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 (v int, id int NOT NULL);
ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES FROM (10) TO (20);
INSERT INTO parts VALUES (1, 1), (11, 11);
CREATE TABLE parent (id int);
CREATE TABLE child (more text) INHERITS (parent);
INSERT INTO child VALUES (1, 'x');
CREATE TABLE logged (id int, v int);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v = NEW.v + 1; RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON logged FOR EACH ROW EXECUTE FUNCTION touch();
CREATE VIEW a_view AS SELECT * FROM plain;
CREATE MATERIALIZED VIEW materialized AS SELECT * FROM plain;
CREATE TABLE audited (id int);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO nowhere SELECT NEW.*; RETURN NEW; END $$;
CREATE TRIGGER audit AFTER INSERT ON audited FOR EACH ROW EXECUTE FUNCTION audit();
CREATE TABLE compared (id int, v int);
CREATE TRIGGER compared BEFORE UPDATE ON compared FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION touch();
CREATE TABLE silent (id int);
CREATE TRIGGER silent BEFORE UPDATE ON silent FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TABLE typed_by (id int);
CREATE FUNCTION typed() RETURNS typed_by LANGUAGE sql AS 'SELECT 1';
CREATE TABLE listed_by (id int, v int);
CREATE FUNCTION lister() RETURNS TABLE (a int, b int) LANGUAGE sql AS 'SELECT * FROM listed_by';
CREATE TYPE pair AS (a int, b int);
CREATE TABLE of_type OF pair;
CREATE TABLE published (id int PRIMARY KEY);
CREATE PUBLICATION instrument_test FOR TABLE published;
CREATE TABLE taken (id int, isotap_rowid int);
CREATE TABLE granted (a int, b int);
CREATE SCHEMA elsewhere;
CREATE TABLE elsewhere.plain (a int)
`

// instrumentedZoo are the tables of the zoo that can have the columns, without those that inherit them.
var instrumentedZoo = []string{"elsewhere.plain", `public.Odd "Name`, "public.empty", "public.generated",
	"public.granted", "public.logged",
	"public.no_key", "public.parent", "public.parts", "public.plain", "public.unlogged"}

// looks describes the tables of a database, their columns, rights and rows.
func looks(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out []string
	read := func(query string) {
		rows, err := db.Query(query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			out = append(out, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	read(`SELECT concat_ws(' ', c.oid::regclass, c.relkind, c.relpersistence, c.relacl, a.attname,
		format_type(a.atttypid, a.atttypmod), a.attnotnull,
		a.attislocal, a.attinhcount, a.attacl, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE n.nspname IN ('public', 'elsewhere') AND c.relkind <> 'i' ORDER BY c.oid::regclass::text, a.attnum`)
	for _, table := range []string{"plain", "no_key", "generated", "parts", "ONLY parent", "child", "materialized"} {
		read("SELECT '" + table + " ' || x::text FROM " + table + " x ORDER BY 1")
	}
	return out
}

func instrument(t *testing.T, database string, change func(context.Context, *Conn, catalog.Options) (catalog.Result,
	error), o catalog.Options) catalog.Result {
	t.Helper()
	c, err := NewConn(target(t), database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := change(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStripLeavesTablesAsTheyWereBeforeInstrument(t *testing.T) {
	name, db := newDatabase(t, zoo)
	reader := role(t, name, "")
	run(t, db, "GRANT SELECT (a), UPDATE (b) ON granted TO "+reader)
	before := looks(t, db)

	var worked []string
	r := instrument(t, name, Instrument,
		catalog.Options{WListBytes: 100, Progress: func(p catalog.Progress) { worked = append(worked, p.Table) }})
	slices.Sort(r.Changed)
	if !slices.Equal(r.Changed, instrumentedZoo) || len(r.Already) > 0 || r.Rights != 1 {
		t.Errorf("instrumented %v, already %v, rights of %d", r.Changed, r.Already, r.Rights)
	}
	if len(worked) != len(r.Changed)+len(r.LeftOut) {
		t.Errorf("progress was shown for %v", worked)
	}
	wantLeftOut(t, r.LeftOut)
	run(t, db, `INSERT INTO plain VALUES (3, 'c');
DELETE FROM plain WHERE id = 3`)
	again := instrument(t, name, Instrument, catalog.Options{WListBytes: 300})
	if len(again.Changed) > 0 || len(again.Already) != len(instrumentedZoo) {
		t.Errorf("a second time it instrumented %v, and left %v as they were", again.Changed, again.Already)
	}
	c := load(t, name)
	for _, table := range []string{"plain", "parts", "part_2", "child", "unlogged"} {
		if got := c.Table("public", table); !got.Instrumented || !got.Exposed || got.WListBytes != 100 ||
			len(got.Stored) != len(got.Columns)+2 {
			t.Errorf("%s: %+v", table, got)
		}
	}
	if got := c.Table("public", "audited"); got.Instrumented || got.Exposed {
		t.Errorf("audited: %+v", got)
	}
	for query, want := range map[string]int{
		"SELECT count(DISTINCT isotap_rowid) FROM no_key":                                               3,
		"SELECT count(*) FROM parts WHERE octet_length(isotap_wlist) = 16 AND isotap_rowid IS NOT NULL": 2,
		"SELECT count(*) FROM pg_class WHERE has_column_privilege('" + reader +
			"', 'granted', 'isotap_wlist', 'UPDATE')": -1,
	} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil || want >= 0 && n != want || want < 0 && n == 0 {
			t.Errorf("%s: %d, %v", query, n, err)
		}
	}

	r = instrument(t, name, Strip, catalog.Options{})
	if slices.Sort(r.Changed); !slices.Equal(r.Changed, instrumentedZoo) || len(r.LeftOut) > 0 {
		t.Errorf("stripped %v, left out %v", r.Changed, r.LeftOut)
	}
	if after := looks(t, db); !reflect.DeepEqual(after, before) {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if r := instrument(t, name, Strip, catalog.Options{}); len(r.Changed) > 0 {
		t.Errorf("a second time it stripped %v", r.Changed)
	}
}

// wantLeftOut checks which tables of the zoo were left out, and why.
func wantLeftOut(t *testing.T, got []catalog.LeftOut) {
	t.Helper()
	reasons := map[string]string{}
	for _, l := range got {
		reasons[strings.TrimPrefix(l.Table, "public.")] = l.Reason
	}
	want := map[string]string{
		"a_view": "a view", "materialized": "a materialized view", "audited": "trigger audit uses whole rows",
		"compared": "trigger compared uses whole rows",
		"silent":   "written in internal", "typed_by": "row type is used by function",
		"listed_by": "function lister names it",
		"of_type":   "typed table", "published": "published", "taken": "not isotap's",
	}
	for table, reason := range want {
		if !strings.Contains(reasons[table], reason) {
			t.Errorf("%s was left out for %q", table, reasons[table])
		}
	}
	if len(reasons) != len(want) {
		t.Errorf("left out: %v", reasons)
	}
}

func TestInstrumentGoesOnWhereItStopped(t *testing.T) {
	name, db := newDatabase(t, `
CREATE TABLE a (id int);
CREATE TABLE b (id int, isotap_rowid uuid);
CREATE TABLE c (id int, isotap_rowid uuid DEFAULT '00000000-0000-0000-0000-000000000001', isotap_wlist bytea)`)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := NewConn(target(t), name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = Instrument(ctx, c, catalog.Options{Progress: func(p catalog.Progress) {
		if p.Done == 1 {
			cancel()
		}
	}})
	if err == nil {
		t.Fatal("it was not interrupted")
	}
	r := instrument(t, name, Instrument, catalog.Options{})
	if fmt.Sprint(r.Already, r.Changed) != "[public.a] [public.b public.c]" {
		t.Errorf("already %v, changed %v, left out %v", r.Already, r.Changed, r.LeftOut)
	}
	if got := load(t, name).Table("public", "c"); !got.Instrumented || got.WListBytes != 0 {
		t.Errorf("%+v", got)
	}
	run(t, db, "CREATE VIEW shows AS SELECT * FROM a")
	r = instrument(t, name, Strip, catalog.Options{})
	if len(r.LeftOut) != 1 || r.LeftOut[0].Table != "public.a" ||
		!strings.Contains(r.LeftOut[0].Reason, "view shows depends on") {
		t.Errorf("left out %v", r.LeftOut)
	}
}

func TestTriggersThatUseWholeRows(t *testing.T) {
	for source, want := range map[string]bool{
		"BEGIN RETURN NEW; END": false, "BEGIN NEW.a := OLD.b; RETURN (new); END": false,
		`BEGIN NEW."a" = 1; RETURN OLD; END`: false,
		"BEGIN RETURN NULL; END":             false, "INSERT INTO log VALUES (NEW.a, NEW . b)": false,
		"IF renewed THEN threshold := 1; END IF": false,
		"INSERT INTO log SELECT NEW.*":           true, "IF OLD IS DISTINCT FROM NEW THEN": true,
		"x := to_jsonb(NEW)": true, "NEW := OLD": true,
		"INSERT INTO log SELECT (NEW).*": true, "RETURN coalesce(NEW, OLD)": true,
	} {
		if got := wholeRow(source); got != want {
			t.Errorf("%s: %t", source, got)
		}
	}
}
