package postgres

import (
	"reflect"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

func TestForeignTablesCannotBeWatched(t *testing.T) {
	database, _ := newDatabase(t, `CREATE TABLE plain (id int PRIMARY KEY);
CREATE VIEW seen AS SELECT * FROM plain;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM plain;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE far (id int) SERVER nowhere`)
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewConn(target, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := Unwatched(t.Context(), conn)
	want := []catalog.LeftOut{{Table: "public.far", Reason: "it is a foreign table"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
