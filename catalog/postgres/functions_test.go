package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func TestCacheTellsAggregatesFromOtherFunctions(t *testing.T) {
	database, db := newDatabase(t, `
CREATE SCHEMA "Other";
CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION plain(text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION "Other"."Plain"() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE called() LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int);
CREATE AGGREGATE "Other".total(float8) (SFUNC = float8pl, STYPE = float8);
CREATE AGGREGATE largest(int) (SFUNC = int4larger, STYPE = int, SORTOP = >);
CREATE AGGREGATE mingled(int) (SFUNC = int4pl, STYPE = int);
CREATE FUNCTION "Other".mingled(text) RETURNS int LANGUAGE sql AS 'SELECT 1'
`)
	reloaded, refreshed := load(t, database), load(t, database)
	holds := func(want map[string]sqlpostgres.FunctionKind) {
		t.Helper()
		for _, c := range []*Cache{reloaded, refreshed} {
			for name, kind := range want {
				if got := c.Functions(name); got != kind {
					t.Errorf("%s is of kind %d, not %d", name, got, kind)
				}
			}
		}
	}
	holds(map[string]sqlpostgres.FunctionKind{"plain": sqlpostgres.PlainFunction, "Plain": sqlpostgres.PlainFunction,
		"called": sqlpostgres.PlainFunction, "total": sqlpostgres.AggregateFunction,
		"largest": sqlpostgres.MixedFunction,
		"mingled": sqlpostgres.MixedFunction, "nope": sqlpostgres.NoFunction, "sum": sqlpostgres.NoFunction})

	epochs := [2]uint64{reloaded.Epoch(), refreshed.Epoch()}
	run(t, db, "CREATE AGGREGATE plain(float8) (SFUNC = float8pl, STYPE = float8);\nDROP FUNCTION \"Other\".mingled(text)")
	reload(t, reloaded)
	if err := refreshed.Refresh([]rewrite.TableName{{Table: "plain"},
		{Schema: "Other", Table: "mingled"}}); err != nil {
		t.Fatal(err)
	}
	holds(map[string]sqlpostgres.FunctionKind{"plain": sqlpostgres.MixedFunction,
		"mingled": sqlpostgres.AggregateFunction})
	if reloaded.Epoch() == epochs[0] || refreshed.Epoch() == epochs[1] {
		t.Errorf("no epoch begins: %d, %d after %v", reloaded.Epoch(), refreshed.Epoch(), epochs)
	}
}

// TestCacheKnowsWhoTellsTextsAndReadsCursors has functions, triggers, defaults and views ask for the text that runs,
// some name columns as isotap does, and one fetch from a cursor.
func TestCacheKnowsWhoTellsTextsAndReadsCursors(t *testing.T) {
	database, db := newDatabase(t, `
CREATE TABLE plain (id int PRIMARY KEY, p point);
CREATE INDEX near ON plain USING gist (p);
CREATE TABLE defaulted (id int PRIMARY KEY, q text DEFAULT current_query());
CREATE TABLE audited (id int PRIMARY KEY);
CREATE TABLE family (id int) PARTITION BY RANGE (id);
CREATE TABLE member PARTITION OF family (id DEFAULT length(current_query())) FOR VALUES FROM (0) TO (10);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', Current_Query(); RETURN NULL; END';
CREATE TRIGGER audit AFTER UPDATE ON audited FOR EACH STATEMENT EXECUTE FUNCTION audit();
CREATE FUNCTION asks() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM pg_stat_activity';
CREATE VIEW asking AS SELECT current_query() AS q;
CREATE TYPE pair AS (a int, isotap_1 int);
CREATE FUNCTION names() RETURNS TABLE (id int, isotap_2 text) LANGUAGE sql AS 'SELECT 1, NULL';
CREATE FUNCTION pairs() RETURNS SETOF pair LANGUAGE sql AS 'SELECT 1, 2';
CREATE FUNCTION rows() RETURNS SETOF plain LANGUAGE sql AS 'SELECT * FROM plain';
CREATE FUNCTION takes(named int) RETURNS int LANGUAGE sql AS 'SELECT 1';
ALTER TABLE plain ADD isotap_rowid uuid, ADD isotap_wlist bytea
`)
	c := load(t, database)
	for name, want := range map[string]bool{"plain": false, "defaulted": true, "audited": true, "family": true,
		"member": true, "asking": true} {
		if got := c.Table("public", name).TellsText; got != want {
			t.Errorf("%s tells the text: %v", name, got)
		}
	}
	for name, want := range map[string]sqlpostgres.FunctionKind{"asks": sqlpostgres.TellingFunction,
		"names": sqlpostgres.TellingFunction, "pairs": sqlpostgres.TellingFunction, "rows": sqlpostgres.PlainFunction,
		"takes": sqlpostgres.PlainFunction} {
		if kind := c.Functions(name); kind != want {
			t.Errorf("%s is of kind %d, not %d", name, kind, want)
		}
	}
	for _, x := range c.Table("public", "plain").Indexes {
		if want := x.Name == "near"; slices.Equal(x.Orders, []string{"<->"}) != want || !want && x.Orders != nil {
			t.Errorf("%s gives rows in the order of %q", x.Name, x.Orders)
		}
	}
	run(t, db, "DROP FUNCTION audit CASCADE; DROP FUNCTION asks, names, pairs")
	if reload(t, c); c.ReadsCursors() {
		t.Error("a function reads cursors before there is one")
	}
	run(t, db, "CREATE FUNCTION reads(c refcursor) RETURNS text LANGUAGE plpgsql AS 'DECLARE r record; "+
		"BEGIN Fetch c INTO r; RETURN r::text; END'")
	epoch := c.Epoch()
	if reload(t, c); !c.ReadsCursors() || c.Epoch() == epoch {
		t.Error("a function that reads cursors is not known")
	}
}
