package postgres

import (
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
		"called": sqlpostgres.PlainFunction, "total": sqlpostgres.AggregateFunction, "largest": sqlpostgres.MixedFunction,
		"mingled": sqlpostgres.MixedFunction, "nope": sqlpostgres.NoFunction, "sum": sqlpostgres.NoFunction})

	epochs := [2]uint64{reloaded.Epoch(), refreshed.Epoch()}
	run(t, db, "CREATE AGGREGATE plain(float8) (SFUNC = float8pl, STYPE = float8);\nDROP FUNCTION \"Other\".mingled(text)")
	reload(t, reloaded)
	if err := refreshed.Refresh([]rewrite.TableName{{Table: "plain"}, {Schema: "Other", Table: "mingled"}}); err != nil {
		t.Fatal(err)
	}
	holds(map[string]sqlpostgres.FunctionKind{"plain": sqlpostgres.MixedFunction, "mingled": sqlpostgres.AggregateFunction})
	if reloaded.Epoch() == epochs[0] || refreshed.Epoch() == epochs[1] {
		t.Errorf("no epoch begins: %d, %d after %v", reloaded.Epoch(), refreshed.Epoch(), epochs)
	}
}
