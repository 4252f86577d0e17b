package postgres

import (
	"testing"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// TestRenamedSchemasTypesAreReadAgain has a table in one schema whose column's type is in another, which is
// renamed.
func TestRenamedSchemasTypesAreReadAgain(t *testing.T) {
	database, db := newDatabase(t, "CREATE SCHEMA aside; CREATE DOMAIN aside.feeling AS int; "+
		"CREATE TABLE v (id aside.feeling PRIMARY KEY)")
	c := load(t, database)
	planner := sqlpostgres.New(c, sqlpostgres.Options{})
	for _, statement := range []string{"ALTER SCHEMA aside RENAME TO moved",
		"ALTER DOMAIN moved.feeling RENAME TO mood", "ALTER DOMAIN moved.mood SET SCHEMA public"} {
		run(t, db, statement)
		touching(c, planner, statement, "pg_catalog", "public")
		fresh, err := Load(t.Context(), target(t), database)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Table("public", "v").Columns[0].Full, fresh.Table("public",
			"v").Columns[0].Full; got != want {
			t.Errorf("%s: the column is of type %s, not %s", statement, got, want)
		}
		fresh.Close()
	}
}
