package mysql

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// newHolders makes a table and users and a role with rights on single columns of it.
func newHolders(t *testing.T) (schema string, db *sql.DB) {
	t.Helper()
	schema = testdb.NewDatabase(t)
	db = testdb.Open(t, schema)
	run(t, db, `
CREATE TABLE t (id INT PRIMARY KEY, v INT);
INSERT INTO t VALUES (1, 1), (2, 2);
CREATE TABLE u (id INT);
DROP USER IF EXISTS reader, `+"`o'writer`@`127.0.0.1`"+`, whole, refers;
CREATE USER reader, `+"`o'writer`@`127.0.0.1`"+`, whole, refers;
DROP ROLE IF EXISTS a_role;
CREATE ROLE a_role;
GRANT SELECT (id, v) ON t TO reader;
GRANT SELECT (id), UPDATE (v), INSERT (id) ON t TO `+"`o'writer`@`127.0.0.1`"+`;
GRANT SELECT ON t TO whole;
GRANT REFERENCES (id) ON t TO refers;
GRANT UPDATE (v) ON t TO a_role;
GRANT SELECT (id) ON u TO a_role
`)
	t.Cleanup(func() {
		run(t, db, "DROP USER reader, `o'writer`@`127.0.0.1`, whole, refers;\nDROP ROLE a_role")
	})
	return schema, db
}

// grants returns what the tables of privileges say of a schema: rights on tables, then on columns.
func grants(t *testing.T, db *sql.DB, schema string) string {
	t.Helper()
	return dump(t, db, "SELECT User, Host, Table_name, Table_priv, Column_priv FROM mysql.tables_priv WHERE Db = '"+
		schema+"' ORDER BY 1, 2, 3") +
		dump(t, db, "SELECT User, Table_name, Column_name, Column_priv FROM mysql.columns_priv WHERE Db = '"+
			schema+"' ORDER BY 1, 2, 3")
}

func TestColumnRightsAreExtendedAndTakenBackExactly(t *testing.T) {
	schema, db := newHolders(t)
	before := grants(t, db, schema)
	c, o := connect(t), catalog.Options{Schemas: []string{schema}, WListBytes: 255}
	result, err := Instrument(t.Context(), c, o)
	if err != nil || len(result.Notes) != 0 {
		t.Fatalf("Instrument: %+v, %v", result, err)
	}
	if result.Rights != 4 {
		t.Errorf("rights of %d holders extended, want 4: reader, writer, and the role's on two tables", result.Rights)
	}
	const want = `[User Table_name Column_priv Column_name]
"a_role" "t" "Select,Update" "isotap_rowid"
"a_role" "t" "Select,Update" "isotap_wlist"
"a_role" "u" "Select" "isotap_rowid"
"a_role" "u" "Select" "isotap_wlist"
"o'writer" "t" "Select,Insert,Update" "isotap_rowid"
"o'writer" "t" "Select,Insert,Update" "isotap_wlist"
"reader" "t" "Select" "isotap_rowid"
"reader" "t" "Select" "isotap_wlist"
`
	during := dump(t, db, "SELECT User, Table_name, Column_priv, Column_name FROM mysql.columns_priv WHERE Db = '"+
		schema+
		"' AND Column_name LIKE 'isotap%' ORDER BY 1, 2, 4")
	if strings.ReplaceAll(during, " \n", "\n") != want {
		t.Errorf("rights on isotap's columns: %s\nwant: %s", during, want)
	}
	if result, err = Instrument(t.Context(), c, o); err != nil || result.Rights != 0 {
		t.Errorf("second run: %+v, %v", result, err)
	}

	if result, err = Strip(t.Context(), c, o); err != nil || result.Rights != 4 {
		t.Errorf("Strip: %+v, %v", result, err)
	}
	if after := grants(t, db, schema); after != before {
		t.Errorf("rights\nbefore: %s\nafter: %s", before, after)
	}
}

// TestHolderOfColumnRightsSeesTheSame: holder of column rights sees what it saw before.
func TestHolderOfColumnRightsSeesTheSame(t *testing.T) {
	schema, db := newHolders(t)
	dsn, err := mysql.ParseDSN(testdb.Current(t).DSN(schema))
	if err != nil {
		t.Fatal(err)
	}
	dsn.User = "reader"
	reader, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	before := dump(t, reader, "SELECT * FROM t")
	c, o := connect(t), catalog.Options{Schemas: []string{schema}, WListBytes: 255}
	if _, err := Instrument(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, reader, "SELECT * FROM t"); got != before {
		t.Errorf("SELECT * gives %s, gave %s", got, before)
	}
	if n := number(t, reader, "SELECT COUNT(DISTINCT isotap_rowid, isotap_wlist) FROM t"); n != 2 {
		t.Errorf("%d ids", n)
	}
	// The rights outlive a table that is dropped; Strip takes them back all the same.
	run(t, db, "DROP TABLE t;\nDROP TABLE u")
	if got := grants(t, db, schema); !strings.Contains(got, "isotap") {
		t.Fatalf("the server took the rights back by itself: %s", got)
	}
	if _, err := Strip(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	if got := grants(t, db, schema); strings.Contains(got, "isotap") {
		t.Errorf("after DROP TABLE and Strip: %s", got)
	}
}

func TestInstrumentSaysWhenItCannotSeeRights(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, fmt.Sprintf("CREATE TABLE t (id INT);\nDROP USER IF EXISTS narrow;\nCREATE USER narrow;\n"+
		"GRANT ALL ON %s.* TO narrow;\n", schema))
	t.Cleanup(func() { run(t, db, "DROP USER narrow;\n") })
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	target.User = "narrow"
	c, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	result, err := Instrument(t.Context(), c, catalog.Options{})
	if err != nil || len(result.Changed) != 1 {
		t.Fatalf("Instrument: %+v, %v", result, err)
	}
	if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "mysql.*") {
		t.Errorf("notes: %q", result.Notes)
	}
}
