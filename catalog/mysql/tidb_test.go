package mysql

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// tidb returns the shared TiDB server and isotap's own connection to it.
func tidb(t *testing.T) (*testdb.TiDBServer, *Conn) {
	t.Helper()
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	target, err := dsn.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return server, c
}

const tidbTables = `CREATE TABLE plain (id INT PRIMARY KEY, v INT);
INSERT INTO plain VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50);
CREATE TABLE nokey (v VARCHAR(10), w TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), KEY (v));
INSERT INTO nokey VALUES ('a', '2020-01-02 03:04:05'), ('b', '2020-01-02 03:04:05');
CREATE TABLE split (id BIGINT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 3;
INSERT INTO split VALUES (1, 1), (2, 2), (3, 3);
CREATE TABLE taken (isotap_rowid INT);
CREATE VIEW shown AS SELECT * FROM plain;
CREATE SEQUENCE counted;
`

// TestInstrumentAndStripLeaveTiDBsTables: instrument and strip leave TiDBs tables as they were.
func TestInstrumentAndStripLeaveTiDBsTables(t *testing.T) {
	server, c := tidb(t)
	database := server.NewDatabase(t)
	db := server.Open(t, database)
	run(t, db, tidbTables)
	look := func() string {
		var b strings.Builder
		for _, query := range []string{"SHOW CREATE TABLE plain", "SHOW CREATE TABLE nokey", "SHOW CREATE TABLE split",
			"SHOW CREATE VIEW shown", "SELECT * FROM plain", "SELECT * FROM nokey", "SELECT * FROM split ORDER BY id",
			"SELECT * FROM shown"} {
			b.WriteString(dump(t, db, query))
		}
		return b.String()
	}
	before := look()
	o := catalog.Options{Schemas: []string{database}, WListBytes: 255, Batch: 2}

	result, err := Instrument(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Changed) != 3 || len(result.LeftOut) != 3 {
		t.Errorf("instrumented %v, left out %v", result.Changed, result.LeftOut)
	}
	for _, table := range []string{"plain", "nokey", "split"} {
		if n := number(t, db, "SELECT COUNT(*) - COUNT(DISTINCT isotap_rowid) FROM "+table); n != 0 {
			t.Errorf("%s: %d rows have no id of their own", table, n)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM "+table+
			" WHERE isotap_wlist <> '0' OR isotap_wlist IS NULL"); n != 0 {
			t.Errorf("%s: %d rows have not the initial version", table, n)
		}
	}
	if again, err := Instrument(t.Context(), c, o); err != nil || len(again.Changed) != 0 || len(again.Already) != 3 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if _, err := Strip(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	if after := look(); after != before {
		t.Errorf("stripped tables look like\n%snot like\n%s", after, before)
	}
}

// TestRowsInsertedDirectlyGetIDsOnTiDB: rows inserted behind the proxy get an ID on TiDB.
func TestRowsInsertedDirectlyGetIDsOnTiDB(t *testing.T) {
	server, c := tidb(t)
	database := server.NewDatabase(t)
	db := server.Open(t, database)
	run(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	if _, err := Instrument(t.Context(), c, catalog.Options{Schemas: []string{database}}); err != nil {
		t.Fatal(err)
	}
	run(t, db, "INSERT INTO t (id) VALUES (1), (2)")
	if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM t WHERE isotap_wlist = '0'"); n != 2 {
		t.Errorf("%d of 2 rows have an id of their own and the initial version", n)
	}
}

func TestTheCacheKnowsWhichColumnsTiDBExposes(t *testing.T) {
	server, c := tidb(t)
	database := server.NewDatabase(t)
	run(t, server.Open(t, database), tidbTables)
	if _, err := Instrument(t.Context(), c, catalog.Options{Schemas: []string{database}, WListBytes: 100}); err != nil {
		t.Fatal(err)
	}
	cache, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	table := cache.Table(database, "plain")
	if table == nil || !table.Instrumented || !table.Exposed || table.WListBytes != 100 || len(table.Columns) != 2 {
		t.Errorf("plain is %+v", table)
	}
	if table := cache.Table(database, "taken"); table == nil || table.Instrumented {
		t.Errorf("taken is %+v", table)
	}
}
