package postgres

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func columns(names ...string) []sqlpostgres.Column {
	var c []sqlpostgres.Column
	for _, n := range names {
		c = append(c, sqlpostgres.Column{Column: rewrite.Column{Name: n, Type: "int4", Full: "integer"}})
	}
	return c
}

func TestCacheKnowsWhatTablesLookLike(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE SCHEMA "Odd.Schema";
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN small_positive AS positive CHECK (value < 9);
CREATE TABLE plain (gone int, id int NOT NULL, s varchar(10) COLLATE "C", n numeric(5,2), m mood, d small_positive, a int[],
	g int GENERATED ALWAYS AS (id + 1) STORED, i bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (s, id));
ALTER TABLE plain DROP COLUMN gone;
CREATE UNIQUE INDEX u ON plain (n) INCLUDE (m);
CREATE UNIQUE INDEX some_of ON plain (n) WHERE n > 0;
CREATE INDEX expression ON plain ((id + 1), d);
CREATE TABLE "Odd.Schema"."Odd Table" ("Odd ""Column""" int);
CREATE VIEW a_view AS SELECT id + 1 AS a FROM plain;
CREATE MATERIALIZED VIEW materialized AS SELECT id FROM plain;
CREATE UNLOGGED TABLE unlogged (a int);
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE elsewhere (a int) SERVER nowhere;
CREATE TABLE secured (a int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE ruled (a int);
CREATE RULE r AS ON INSERT TO ruled DO ALSO NOTHING;
CREATE TABLE empty ();
CREATE TEMPORARY TABLE passing (a int)
`)
	c := load(t, name)
	for _, want := range []sqlpostgres.Table{
		{Table: rewrite.Table{Name: "public.plain"}, Key: []string{"s", "id"}, Columns: []sqlpostgres.Column{
			{Column: rewrite.Column{Name: "id", Type: "int4", Full: "integer", NotNull: true}},
			{Column: rewrite.Column{Name: "s", Type: "varchar", Full: "character varying(10)", Collation: "C",
				NotNull: true}},
			{Column: rewrite.Column{Name: "n", Type: "numeric", Full: "numeric(5,2)"}},
			{Column: rewrite.Column{Name: "m", Type: "public.mood", Full: "public.mood"}},
			{Column: rewrite.Column{Name: "d", Type: "int4", Full: "public.small_positive"}, Custom: true},
			{Column: rewrite.Column{Name: "a", Type: "_int4", Full: "integer[]"}},
			{Column: rewrite.Column{Name: "g", Type: "int4", Full: "integer", Generated: true}},
			{Column: rewrite.Column{Name: "i", Type: "int8", Full: "bigint", NotNull: true}},
		}, Indexes: []sqlpostgres.Index{
			{Index: rewrite.Index{Name: "expression", Columns: []string{"", "d"}}},
			{Index: rewrite.Index{Name: "plain_pkey", Columns: []string{"s", "id"}, Primary: true, Unique: true}},
			{Index: rewrite.Index{Name: "some_of", Columns: []string{"n"}}},
			{Index: rewrite.Index{Name: "u", Columns: []string{"n", "m"}, Unique: true}},
		}},
		{Table: rewrite.Table{Name: "Odd.Schema.Odd Table"}, Columns: columns(`Odd "Column"`)},
		{Table: rewrite.Table{Name: "public.a_view", View: true}, OtherSources: history.ReasonView,
			NotAgain: true, Columns: columns("a")},
		{Table: rewrite.Table{Name: "public.materialized"}, Materialized: true, Columns: columns("id")},
		{Table: rewrite.Table{Name: "public.unlogged"}, Unlogged: true, Columns: columns("a")},
		{Table: rewrite.Table{Name: "public.elsewhere"}, Foreign: true, Columns: columns("a")},
		{Table: rewrite.Table{Name: "public.secured"}, RowSecurity: true, RowSecurityForced: true,
			Columns: columns("a")},
		{Table: rewrite.Table{Name: "public.ruled"}, Rules: true, Columns: columns("a")},
		{Table: rewrite.Table{Name: "public.empty"}},
	} {
		schema, table := "public", want.Name[len("public."):]
		if want.Name == "Odd.Schema.Odd Table" {
			schema, table = "Odd.Schema", "Odd Table"
		}
		got := c.Table(schema, table)
		if got == nil || got.OID == 0 {
			t.Errorf("%s: %+v", want.Name, got)
			continue
		}
		without := *got
		if spelled := `"` + schema + `"."` + table + `"`; got.Spelled != spelled {
			t.Errorf("%s is spelled %s", spelled, got.Spelled)
		}
		without.OID, without.Spelled = 0, ""
		if !reflect.DeepEqual(without, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", want.Name, without, want)
		}
	}
	for _, absent := range [][2]string{{"public", "none"}, {"public", "PLAIN"}, {"", "plain"}, {"public", "passing"},
		{"pg_catalog", "pg_class"}, {"information_schema", "tables"}, {"public", "plain_pkey"},
		{"public", "plain_i_seq"}} {
		if got := c.Table(absent[0], absent[1]); got != nil {
			t.Errorf("%v found: %+v", absent, got)
		}
	}
}

func TestCacheKnowsWhereRowsAre(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE TABLE parted (id int, at int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (at);
CREATE TABLE highest PARTITION OF high FOR VALUES FROM (15) TO (20);
CREATE TABLE old (a int PRIMARY KEY);
CREATE TABLE other (b int);
CREATE TABLE young (c int) INHERITS (old, other);
CREATE TABLE youngest () INHERITS (young, old)
`)
	c := load(t, name)
	tests := []struct {
		table, root string
		partitioned bool
		leaves, key []string
	}{
		{"parted", "", true, []string{"highest", "low"}, []string{"id", "at"}},
		{"low", "public.parted", false, nil, []string{"id", "at"}},
		{"high", "public.parted", true, []string{"highest"}, []string{"id", "at"}},
		{"highest", "public.parted", false, nil, []string{"id", "at"}},
		{"old", "", false, []string{"old", "young", "youngest"}, nil},
		{"other", "", false, []string{"other", "young", "youngest"}, nil},
		{"young", "", false, []string{"young", "youngest"}, nil},
		{"youngest", "", false, nil, nil},
	}
	for _, tt := range tests {
		got := table(t, c, tt.table)
		want := map[uint32]string{}
		for _, leaf := range tt.leaves {
			want[table(t, c, leaf).OID] = "public." + leaf
		}
		if got.Root != tt.root || got.Partitioned != tt.partitioned || !maps.Equal(got.Leaves, want) ||
			!slices.Equal(got.Key, tt.key) {
			t.Errorf("%s: root %q, partitioned %v, leaves %v, key %v; want %+v", tt.table, got.Root,
				got.Partitioned, got.Leaves, got.Key, tt)
		}
	}
}

func TestCacheKnowsAboutHowManyRowsThereAre(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE TABLE plain AS SELECT generate_series(1, 20) AS a;
CREATE TABLE parted (a int) PARTITION BY RANGE (a);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20);
INSERT INTO parted SELECT generate_series(3, 12);
CREATE TABLE old AS SELECT 1 AS a;
CREATE TABLE young () INHERITS (old);
INSERT INTO young VALUES (1), (2);
ANALYZE;
CREATE TABLE fresh AS SELECT 1 AS a
`)
	c := load(t, name)
	for name, want := range map[string]int64{"plain": 20, "parted": 10, "low": 7, "old": 3, "young": 2, "fresh": 0} {
		if got := table(t, c, name).Rows; got != want {
			t.Errorf("%s: %d rows, not %d", name, got, want)
		}
	}
}

func TestCacheKnowsWhatWritesFire(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE by_row (a int);
CREATE TRIGGER i BEFORE INSERT OR UPDATE ON by_row FOR EACH ROW EXECUTE FUNCTION f();
CREATE TABLE by_statement (a int);
CREATE TRIGGER d AFTER DELETE ON by_statement FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE TABLE cut (a int);
CREATE TRIGGER t AFTER TRUNCATE ON cut FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE TABLE off (a int);
CREATE TRIGGER o BEFORE UPDATE ON off FOR EACH ROW EXECUTE FUNCTION f();
ALTER TABLE off DISABLE TRIGGER o;
CREATE TABLE late (a int UNIQUE DEFERRABLE);
CREATE CONSTRAINT TRIGGER l AFTER UPDATE ON late DEFERRABLE FOR EACH ROW EXECUTE FUNCTION f();
CREATE VIEW instead AS SELECT a FROM by_row;
CREATE TRIGGER v INSTEAD OF DELETE ON instead FOR EACH ROW EXECUTE FUNCTION f();
CREATE TABLE parted (a int) PARTITION BY RANGE (a);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TRIGGER p AFTER INSERT ON parted FOR EACH ROW EXECUTE FUNCTION f();
CREATE TABLE leaf_parted (a int) PARTITION BY RANGE (a);
CREATE TABLE leaf PARTITION OF leaf_parted FOR VALUES FROM (0) TO (10);
CREATE TRIGGER p AFTER UPDATE ON leaf FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER s AFTER DELETE ON leaf FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE TABLE parent (a int PRIMARY KEY, b int UNIQUE);
CREATE TABLE strict_parent (a int PRIMARY KEY);
CREATE TABLE leaf_parent (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE leaf_parent_1 PARTITION OF leaf_parent FOR VALUES FROM (0) TO (10);
CREATE TABLE pair (a int, b int, c int, PRIMARY KEY (a, b));
CREATE TABLE computed (a int GENERATED ALWAYS AS (b + 1) STORED UNIQUE, b int);
CREATE TABLE whole_parent (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);
CREATE TABLE whole_1 PARTITION OF whole_parent FOR VALUES FROM (0) TO (10);
CREATE TABLE child (a int REFERENCES parent ON DELETE SET NULL, b int REFERENCES parent (b) ON UPDATE CASCADE,
	c int REFERENCES strict_parent ON DELETE RESTRICT, d int REFERENCES leaf_parent_1 ON DELETE SET DEFAULT,
	e int, f int, FOREIGN KEY (e, f) REFERENCES pair (b, a) ON UPDATE SET NULL, g int REFERENCES computed (a) ON UPDATE CASCADE,
	h int REFERENCES whole_parent ON UPDATE CASCADE ON DELETE CASCADE)
`)
	c := load(t, name)
	type fires struct {
		insert, update, delete, cascadesDelete bool
		cascadesUpdate                         string
	}
	for name, want := range map[string]fires{
		"by_row":        {insert: true, update: true},
		"by_statement":  {delete: true},
		"cut":           {},
		"off":           {},
		"late":          {update: true},
		"instead":       {delete: true},
		"parted":        {insert: true},
		"part":          {insert: true},
		"leaf_parted":   {update: true},
		"leaf":          {update: true, delete: true},
		"parent":        {cascadesUpdate: `["b"]`, cascadesDelete: true},
		"pair":          {cascadesUpdate: `["a" "b"]`},
		"computed":      {cascadesUpdate: `[""]`},
		"strict_parent": {},
		"leaf_parent":   {cascadesDelete: true},
		"leaf_parent_1": {cascadesDelete: true},
		"whole_parent":  {cascadesUpdate: `["a"]`, cascadesDelete: true},
		"whole_1":       {cascadesUpdate: `["a"]`, cascadesDelete: true},
		"child":         {},
	} {
		got := table(t, c, name)
		cascades := ""
		if got.CascadesUpdate != nil {
			cascades = fmt.Sprintf("%q", got.CascadesUpdate)
		}
		if (fires{got.InsertTrigger, got.UpdateTrigger, got.DeleteTrigger, got.CascadesDelete, cascades}) != want {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
	}
}

// TestCacheKnowsWhatFollowsByForeignKeys: of the tables whose rows foreign keys change along with a table's it is known
// whether some have triggers and whether some are unlogged, however far off they are, and when that changes.
func TestCacheKnowsWhatFollowsByForeignKeys(t *testing.T) {
	name, db := newDatabase(t, `
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TABLE top (a int PRIMARY KEY);
CREATE TABLE middle (a int PRIMARY KEY REFERENCES top ON DELETE CASCADE);
CREATE TABLE bottom (a int PRIMARY KEY REFERENCES middle ON DELETE CASCADE);
CREATE TABLE self (a int PRIMARY KEY, b int REFERENCES self ON DELETE SET NULL);
CREATE TABLE strict (a int PRIMARY KEY);
CREATE TABLE note (a int REFERENCES strict)
`)
	c := load(t, name)
	hold := func(triggers, unlogged string) {
		t.Helper()
		for _, name := range []string{"top", "middle", "self", "strict"} {
			got := table(t, c, name)
			if got.CascadeTriggers != strings.Contains(triggers, name) || got.CascadeUnlogged != strings.Contains(unlogged, name) {
				t.Errorf("%s: triggers %t, unlogged %t", name, got.CascadeTriggers, got.CascadeUnlogged)
			}
		}
	}
	hold("", "")
	for _, tt := range []struct{ text, table, triggers, unlogged string }{
		{"ALTER TABLE bottom SET UNLOGGED", "bottom", "", "top middle"},
		{"CREATE TRIGGER f AFTER DELETE ON bottom EXECUTE FUNCTION f()", "bottom", "top middle", "top middle"},
		{"CREATE TRIGGER f AFTER UPDATE ON self FOR EACH ROW EXECUTE FUNCTION f()", "self", "top middle self", "top middle"},
		{"CREATE TRIGGER f AFTER DELETE ON note EXECUTE FUNCTION f()", "note", "top middle self", "top middle"},
		{"DROP TABLE bottom", "bottom", "self", ""},
	} {
		run(t, db, tt.text)
		if err := c.Refresh([]rewrite.TableName{{Schema: "public", Table: tt.table}}); err != nil {
			t.Fatal(err)
		}
		hold(tt.triggers, tt.unlogged)
	}
}

// TestCacheKnowsTheBasesOfViewsRows: cache knows which rows a views own are made of.
func TestCacheKnowsTheBasesOfViewsRows(t *testing.T) {
	name, _ := newDatabase(t, `
CREATE TABLE base (gone int, a int PRIMARY KEY, b text, c bigint);
ALTER TABLE base DROP COLUMN gone;
CREATE TABLE other (x bigint, y text, z int, PRIMARY KEY (y, x));
CREATE TABLE keyless (a int);
CREATE TABLE heir (d int, PRIMARY KEY (a)) INHERITS (base);
CREATE MATERIALIZED VIEW kept AS SELECT a FROM base;
CREATE FUNCTION own(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE VIEW whole AS SELECT * FROM base;
CREATE VIEW through AS SELECT c, a AS key FROM whole WHERE b > 'x';
CREATE VIEW again AS SELECT through.key AS "{VAR :x", c + 1 AS c FROM through ORDER BY c LIMIT 5;
CREATE VIEW "a) (b {QUERY :quals" AS SELECT a AS ":hasAggs", b AS "\" FROM base AS ":rtable";
CREATE VIEW keyhole AS SELECT b, c FROM base;
CREATE VIEW negated AS SELECT -a AS a FROM base;
CREATE VIEW only_one AS SELECT a FROM ONLY base;
CREATE VIEW joined AS SELECT * FROM base JOIN other ON base.c = other.x;
CREATE VIEW merged AS SELECT a, other.* FROM base JOIN (SELECT x AS c, y FROM other) AS other USING (c);
CREATE VIEW equal AS SELECT c, b, y FROM base, other WHERE a = z AND c > 0 AND z = x AND x = c;
CREATE VIEW half AS SELECT a, x FROM base, other WHERE c = x;
CREATE VIEW twice AS SELECT p.a AS first, q.a AS second FROM base p JOIN base q ON p.a < q.a;
CREATE VIEW optional AS SELECT x, y, z, b FROM other LEFT JOIN base ON a = z;
CREATE VIEW optional_key AS SELECT x, y, a FROM base RIGHT JOIN other ON a = z;
CREATE VIEW there_or_not AS SELECT b, a FROM base LEFT JOIN other ON a = z;
CREATE VIEW outer_only AS SELECT z, x, y FROM other LEFT JOIN base ON z = a AND b > 'x';
CREATE VIEW of_optional AS SELECT z, x, y FROM other LEFT JOIN whole ON z = a;
CREATE VIEW either AS SELECT a, x, y FROM base FULL JOIN other ON z = a;
CREATE VIEW different AS SELECT DISTINCT a FROM base;
CREATE VIEW grouped AS SELECT a, count(*) FROM base JOIN other ON x = c GROUP BY a;
CREATE VIEW counted AS SELECT count(*) FROM base;
CREATE VIEW windowed AS SELECT a, row_number() OVER () AS c FROM base;
CREATE VIEW united AS SELECT a FROM base UNION ALL SELECT z FROM other;
CREATE VIEW sampled AS SELECT a FROM base TABLESAMPLE SYSTEM (10);
CREATE VIEW first_ones AS SELECT a FROM base ORDER BY a LIMIT 2;
CREATE VIEW locked AS SELECT a FROM base FOR UPDATE;
CREATE VIEW cte AS WITH w AS (SELECT a FROM base) SELECT w.a, base.a AS b FROM w, base;
CREATE VIEW sub AS SELECT a FROM base WHERE a IN (SELECT z FROM other);
CREATE VIEW called AS SELECT a, own(1) FROM base;
CREATE VIEW checked AS SELECT a::positive AS p, a FROM base;
CREATE VIEW xml AS SELECT a, query_to_xml('TABLE other', false, false, '') FROM base;
CREATE VIEW set AS SELECT a, generate_series(1, 2), lower(b), g FROM base, generate_series(1, a) g, (VALUES (1)) v;
CREATE VIEW nokey AS SELECT a FROM keyless;
CREATE VIEW materialized AS SELECT a FROM kept;
CREATE VIEW catalogs AS SELECT oid FROM pg_class;
CREATE VIEW mixed AS SELECT a, relname FROM base JOIN pg_class ON relname = b;
CREATE VIEW none AS SELECT 1 AS a
`)
	c := load(t, name)
	for view, want := range map[string]string{
		"whole": "base a", "through": "base key", "again": "base {VAR :x; not again", "a) (b {QUERY :quals": "base :hasAggs",
		"keyhole": "; view", "negated": "; view; not again",
		"only_one": "ONLY base a", "joined": "base a, other y,c", "merged": "base a, other y,c",
		"equal": "base c, other y,c", "half": "base a; view",
		"twice": "base first, base second", "optional": "other y,x, base z", "optional_key": "base a, other y,x",
		"there_or_not": "base a; view", "outer_only": "other y,x; view",
		"of_optional": "other y,x; view", "either": "base a, other y,x", "different": "base a; view",
		"grouped": "base a; view; not again", "counted": "; view; not again", "windowed": "base a; view; not again",
		"united": "; view; not again", "first_ones": "base a; not again", "sampled": "base a; not again", "locked": "; view; not again", "cte": "base b; with; not again", "sub": "base a; subquery; not again",
		"called": "base a; function; not again", "checked": "base a; function; not again",
		"xml": "base a; function; not again", "set": "base a; not again", "nokey": "; view", "materialized": "; view", "catalogs": "",
		"mixed": "base a; not again", "none": "",
	} {
		got := table(t, c, view)
		var bases []string
		for _, b := range got.Bases {
			only := ""
			if b.Only {
				only = "ONLY "
			}
			bases = append(bases, only+b.Table.Table+" "+strings.Join(b.Key, ","))
		}
		text := strings.Join(bases, ", ")
		if !got.OtherSources.IsZero() {
			text += "; " + got.OtherSources.String()
		}
		if got.NotAgain {
			text += "; not again"
		}
		if text != want || !got.View {
			t.Errorf("%s: %q; want %q", view, text, want)
		}
	}
}
