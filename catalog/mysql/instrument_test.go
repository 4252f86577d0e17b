package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// zoo holds one table for each property that adding columns could disturb.
const zoo = `
SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO';
CREATE TABLE no_key (a INT, b TEXT);
INSERT INTO no_key VALUES (1, 'x'), (1, 'x'), (NULL, NULL);
CREATE TABLE empty_one (id INT PRIMARY KEY);
CREATE TABLE composite (a INT, b VARCHAR(20) CHARACTER SET latin1, c DECIMAL(10,2), PRIMARY KEY (b, a),
	KEY part (b(3)), UNIQUE (c)) COMMENT='it''s';
INSERT INTO composite VALUES (1, 'one', 1.10), (2, 'two', 2.20);
CREATE TABLE counter (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 1000;
INSERT INTO counter VALUES (0, 1), (5, 2);
CREATE TABLE stamped (id INT PRIMARY KEY, v INT, t TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	d DATETIME(3) DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3));
INSERT INTO stamped VALUES (1, 1, '2020-01-01 00:00:00', '2020-02-30 00:00:00'),
	(2, 2, '2021-01-01 00:00:00', NULL), (3, 3, '0000-00-00', '0000-00-00');
CREATE TABLE computed (id INT PRIMARY KEY, v INT, w INT AS (v * 2) VIRTUAL,
	s VARCHAR(30) AS (concat(v, '!')) STORED, KEY (s), hidden INT INVISIBLE DEFAULT 7);
INSERT INTO computed (id, v) VALUES (1, 10), (2, 20);
CREATE TABLE parent (id INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE child (id INT PRIMARY KEY, parent_id INT,
	FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL);
INSERT INTO parent VALUES (1), (2);
INSERT INTO child VALUES (1, 1), (2, 2);
CREATE TABLE unicode (id INT PRIMARY KEY, name VARCHAR(50) COLLATE utf8mb4_unicode_ci, j JSON,
	FULLTEXT (name)) DEFAULT CHARSET=utf8mb4;
INSERT INTO unicode VALUES (1, 'naïve 😀', '{"a": 1}');
CREATE TABLE ` + "`odd ``name``, with 日本`" + ` (` + "`a ``b`" + ` INT);
INSERT INTO ` + "`odd ``name``, with 日本`" + ` VALUES (1), (2);
CREATE TABLE parts (id INT, v INT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 3;
INSERT INTO parts VALUES (1, 1), (2, 2), (3, 3), (4, 4);
CREATE TABLE packed (id INT PRIMARY KEY, v VARCHAR(100)) ROW_FORMAT=COMPRESSED;
INSERT INTO packed VALUES (1, 'x');
CREATE TABLE log_of_triggers (what VARCHAR(20));
CREATE TABLE triggered (id INT PRIMARY KEY, v INT);
INSERT INTO triggered VALUES (1, 1), (2, 2);
CREATE TRIGGER triggered_bi BEFORE INSERT ON triggered FOR EACH ROW SET NEW.v = NEW.v + 1;
CREATE TRIGGER triggered_bu BEFORE UPDATE ON triggered FOR EACH ROW SET NEW.v = -1;
CREATE TRIGGER triggered_au AFTER UPDATE ON triggered FOR EACH ROW INSERT INTO log_of_triggers VALUES ('update');
CREATE VIEW a_view AS SELECT * FROM composite;
CREATE TABLE not_transactional (id INT) ENGINE=MyISAM;
INSERT INTO not_transactional VALUES (1);
CREATE TABLE too_wide (a VARCHAR(16300) CHARACTER SET utf8mb4, b VARCHAR(250) CHARACTER SET latin1);
CREATE TABLE taken (id INT PRIMARY KEY, isotap_rowid INT);
`

// ofMariaDB and ofMySQL hold what one of them alone has.
const ofMariaDB = `
CREATE TABLE checked (id INT PRIMARY KEY, v INT CHECK (v > 0));
SET check_constraint_checks = 0;
INSERT INTO checked VALUES (1, 1), (2, -1);
SET check_constraint_checks = DEFAULT;
CREATE SEQUENCE a_sequence;
CREATE TABLE versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING;
`

const ofMySQL = `
CREATE TABLE checked (id INT PRIMARY KEY, v INT, CONSTRAINT positive CHECK (v > 0) NOT ENFORCED);
INSERT INTO checked VALUES (1, 1), (2, -1);
SET sql_generate_invisible_primary_key = 1;
CREATE TABLE key_of_the_server (a INT, b INT DEFAULT (a + 1));
SET sql_generate_invisible_primary_key = 0;
INSERT INTO key_of_the_server (a) VALUES (1), (1), (NULL);
CREATE TABLE by_expression (id BINARY(16) DEFAULT (UUID_TO_BIN(UUID())) PRIMARY KEY, v INT,
	l JSON DEFAULT (JSON_ARRAY()), at DATE DEFAULT (CURDATE()));
INSERT INTO by_expression (v) VALUES (1), (2);
CREATE TABLE functional (id INT PRIMARY KEY, j JSON, KEY multi ((CAST(j->'$.a' AS UNSIGNED ARRAY))),
	KEY sum ((id * 2)), KEY back (id DESC) INVISIBLE);
INSERT INTO functional VALUES (1, '{"a": [1, 2]}'), (2, '{"a": [2]}');
CREATE TABLE ranges (id INT, at DATE, PRIMARY KEY (id, at)) PARTITION BY RANGE COLUMNS (at) SUBPARTITION BY HASH (id) SUBPARTITIONS 2
	(PARTITION old VALUES LESS THAN ('2020-01-01'), PARTITION new VALUES LESS THAN (MAXVALUE));
INSERT INTO ranges VALUES (1, '2019-01-01'), (2, '2021-01-01');
CREATE TABLE in_columns (id INT PRIMARY KEY, p POINT NOT NULL SRID 4326, s INT STORAGE DISK, SPATIAL KEY (p)) COMMENT 'x';
INSERT INTO in_columns VALUES (1, ST_SRID(POINT(1, 2), 4326), 1);
`

// unfit returns the tables of the zoo that cannot be instrumented, and a word of the reason.
func unfit(backFill bool) map[string]string {
	reasons := map[string]string{"a_view": "view", "not_transactional": "MyISAM",
		"too_wide": "Row size too large", "taken": "not isotap's"}
	if testdb.EngineName() != testdb.MySQL.Name {
		reasons["a_sequence"], reasons["versioned"] = "sequence", "system-versioned"
	} else {
		backFill = true
	}
	if backFill {
		reasons["triggered"] = "UPDATE trigger"
	}
	return reasons
}

// newZoo makes a database with the zoo and returns its tables.
func newZoo(t *testing.T) (schema string, db *sql.DB, tables []string) {
	t.Helper()
	schema = testdb.NewDatabase(t)
	db = testdb.Open(t, schema)
	db.SetMaxOpenConns(1) // the script sets session variables
	run(t, db, zoo)
	if testdb.EngineName() == testdb.MySQL.Name {
		run(t, db, ofMySQL)
	} else {
		run(t, db, ofMariaDB)
	}
	run(t, db, "SET sql_mode = DEFAULT;\n")
	rows, err := db.Query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return schema, db, tables
}

// definitions returns the text of SHOW CREATE TABLE of each table, and contents its rows.
func definitions(t *testing.T, db *sql.DB, tables []string) map[string]string {
	m := map[string]string{}
	for _, table := range tables {
		m[table] = dump(t, db, "SHOW CREATE TABLE "+quote(table))
	}
	return m
}

func contents(t *testing.T, db *sql.DB, tables []string) map[string]string {
	m := map[string]string{}
	for _, table := range tables {
		if table != "a_sequence" { // reading it is harmless, but says nothing
			m[table] = dump(t, db, "SELECT * FROM "+quote(table))
		}
	}
	return m
}

func compare(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for table, b := range before {
		if after[table] != b {
			t.Errorf("%s of %s\nbefore: %s\nafter:  %s", what, table, b, after[table])
		}
	}
}

// TestInstrumentAndStripLeaveTablesAsTheyWere: instrument and strip leave every kind of table as it was.
func TestInstrumentAndStripLeaveTablesAsTheyWere(t *testing.T) {
	for _, backFill := range []bool{false, true} {
		name := map[bool]string{false: "by default expression", true: "by back-fill"}[backFill]
		t.Run(name, func(t *testing.T) {
			schema, db, tables := newZoo(t)
			shape, rows := definitions(t, db, tables), contents(t, db, tables)
			reasons := unfit(backFill)

			o := catalog.Options{Schemas: []string{schema}, WListBytes: sqlmysql.DefaultWListBytes,
				BackFill: backFill, Batch: 2}
			result, err := Instrument(t.Context(), connect(t), o)
			if err != nil {
				t.Fatal(err)
			}
			checkResult(t, schema, tables, result, reasons)
			compare(t, "rows", rows, contents(t, db, tables))
			for _, table := range tables {
				if reasons[table] != "" {
					continue
				}
				all := number(t, db, "SELECT COUNT(*) FROM "+quote(table))
				if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM "+quote(table)+
					" WHERE isotap_wlist = '0'"); n != all {
					t.Errorf("%s: %d rows with an id and a list, of %d", table, n, all)
				}
			}

			if _, err = Strip(t.Context(), connect(t), o); err != nil {
				t.Fatal(err)
			}
			compare(t, "definition", shape, definitions(t, db, tables))
			compare(t, "rows", rows, contents(t, db, tables))
		})
	}
}

// checkResult compares a first run's result with what should become of the tables.
func checkResult(t *testing.T, schema string, tables []string, result catalog.Result, reasons map[string]string) {
	t.Helper()
	if len(result.Already) != 0 {
		t.Errorf("already instrumented: %v", result.Already)
	}
	for _, table := range tables {
		changed := slices.Contains(result.Changed, schema+"."+table)
		i := slices.IndexFunc(result.LeftOut, func(l catalog.LeftOut) bool { return l.Table == schema+"."+table })
		switch {
		case reasons[table] == "":
			if !changed || i >= 0 {
				t.Errorf("%s: changed %v, left out %v", table, changed, i >= 0)
			}
		case changed || i < 0:
			t.Errorf("%s was not left out", table)
		case !strings.Contains(result.LeftOut[i].Reason, reasons[table]):
			t.Errorf("%s was left out for %q, want %q", table, result.LeftOut[i].Reason, reasons[table])
		}
	}
}

// TestInstrumentedTablesTakeUnknowingStatements: instrumented tables take statements that do not know of it.
func TestInstrumentedTablesTakeUnknowingStatements(t *testing.T) {
	schema, db, _ := newZoo(t)
	if _, err := Instrument(t.Context(), connect(t), catalog.Options{Schemas: []string{schema}}); err != nil {
		t.Fatal(err)
	}
	run(t, db, `
INSERT INTO no_key VALUES (2, 'y');
INSERT INTO no_key SELECT * FROM no_key;
INSERT INTO composite VALUES (3, 'three', 3.30);
REPLACE INTO composite VALUES (3, 'three', 3.40);
UPDATE child SET parent_id = 1;
INSERT INTO triggered VALUES (3, 3);
`)
	want := 8
	if testdb.EngineName() == testdb.MySQL.Name {
		want-- // VALUES without a column list leave an invisible column's expression default out
	}
	if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM no_key"); n != want {
		t.Errorf("%d distinct ids on 8 rows, want %d", n, want)
	}
	if got := dump(t, db, "SELECT * FROM composite NATURAL JOIN composite c2 WHERE a = 3"); !strings.HasPrefix(got,
		"[a b c]\n") {
		t.Errorf("NATURAL JOIN shows %s", got)
	}
}

func TestInstrumentedAndCreatedTablesLookTheSame(t *testing.T) {
	for _, bytes := range []int{0, 255, 1000} {
		for _, backFill := range []bool{false, true} {
			schema := testdb.NewDatabase(t)
			db := testdb.Open(t, schema)
			run(t, db, "CREATE TABLE t (id INT PRIMARY KEY);\n")
			if _, err := Instrument(t.Context(), connect(t), catalog.Options{Schemas: []string{schema},
				WListBytes: bytes, BackFill: backFill}); err != nil {
				t.Fatal(err)
			}
			got := dump(t, db, "SHOW CREATE TABLE t")
			run(t, db, "DROP TABLE t;\nCREATE TABLE t (id INT PRIMARY KEY, "+
				sqlmysql.RowIDDefinition+", "+sqlmysql.WListDefinition(bytes)+");\n")
			if want := dump(t, db, "SHOW CREATE TABLE t"); got != want {
				t.Errorf("bytes %d, back-fill %v:\ninstrumented %s\ncreated      %s", bytes, backFill, got, want)
			}
		}
	}
}

func TestInstrumentAndStripTwiceChangeNothingMore(t *testing.T) {
	schema, db, tables := newZoo(t)
	c, o := connect(t), catalog.Options{Schemas: []string{schema}, WListBytes: 255}
	first, err := Instrument(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	shape := definitions(t, db, tables)
	ids := dump(t, db, "SELECT id, isotap_rowid FROM stamped")
	o.WListBytes = 100
	second, err := Instrument(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Changed) != 0 || !slices.Equal(second.Already, first.Changed) {
		t.Errorf("second run: changed %v, already %v", second.Changed, second.Already)
	}
	compare(t, "definition", shape, definitions(t, db, tables))
	if got := dump(t, db, "SELECT id, isotap_rowid FROM stamped"); got != ids {
		t.Errorf("ids changed from %s to %s", ids, got)
	}

	if first, err = Strip(t.Context(), c, o); err != nil || len(first.Changed) == 0 {
		t.Fatalf("Strip: %v, %v", first, err)
	}
	if second, err = Strip(t.Context(), c, o); err != nil || len(second.Changed)+len(second.LeftOut) != 0 {
		t.Errorf("second Strip: %v, %v", second, err)
	}
}

func TestInterruptedInstrumentGoesOnWhereItStopped(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, `
CREATE TABLE a (id INT PRIMARY KEY);
CREATE TABLE b (id INT PRIMARY KEY, t TIMESTAMP NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE c (id INT PRIMARY KEY);
INSERT INTO a `+testdb.Numbers(100)+`;
INSERT INTO b (id) `+testdb.Numbers(100)+`;
INSERT INTO c `+testdb.Numbers(100)+`;
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := catalog.Options{Schemas: []string{schema}, BackFill: true, Batch: 10}
	o.Progress = func(p catalog.Progress) {
		if p.Table == schema+".b" && p.Rows >= 50 {
			cancel()
		}
	}
	c := connect(t)
	result, err := Instrument(ctx, c, o)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), schema+".b") {
		t.Fatalf("interrupted: %v", err)
	}
	if !slices.Equal(result.Changed, []string{schema + ".a"}) {
		t.Errorf("interrupted: changed %v", result.Changed)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM b WHERE isotap_rowid IS NULL"); n == 0 || n == 100 {
		t.Fatalf("%d rows without an id: not interrupted half-way", n)
	}
	cache, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if cache.Table(schema, "b").Instrumented {
		t.Error("half an instrumented table counts as one")
	}
	// The server goes on by its defaults, or by the back-fill: both must finish the table.
	o.BackFill = false
	if result, err = Instrument(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(result.Changed, []string{schema + ".b", schema + ".c"}) ||
		!slices.Equal(result.Already, []string{schema + ".a"}) {
		t.Errorf("second run: %+v", result)
	}
	if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM b WHERE isotap_wlist = '0' AND t = '2020-01-01'"); n != 100 {
		t.Errorf("%d of 100 rows have an id and their old time", n)
	}
}

func TestResumedBackFillDoesNotFireTriggers(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, `
CREATE TABLE t (v INT, isotap_rowid VARBINARY(64) INVISIBLE);
INSERT INTO t VALUES (1);
CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW SET NEW.v = -1;
`)
	result, err := Instrument(t.Context(), connect(t), catalog.Options{Schemas: []string{schema}})
	if err != nil || len(result.LeftOut) != 1 || !strings.Contains(result.LeftOut[0].Reason, "trigger") {
		t.Errorf("Instrument: %+v, %v", result, err)
	}
	if v := number(t, db, "SELECT v FROM t"); v != 1 {
		t.Errorf("v became %d", v)
	}
}

func TestInstrumentFillsTablesOfManyBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100));\nINSERT INTO t SELECT n, REPEAT('x', 50) FROM ("+
		testdb.Numbers(100_000)+") AS s;\n")
	c := connect(t)
	for _, backFill := range []bool{false, true} {
		o := catalog.Options{Schemas: []string{schema}, WListBytes: 255, BackFill: backFill}
		begin := time.Now()
		if _, err := Instrument(t.Context(), c, o); err != nil {
			t.Fatal(err)
		}
		t.Logf("back-fill %v: 100,000 rows instrumented in %v", backFill, time.Since(begin))
		if n := number(t, db, "SELECT COUNT(DISTINCT isotap_rowid) FROM t"); n != 100_000 {
			t.Errorf("%d distinct ids", n)
		}
		if _, err := Strip(t.Context(), c, o); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStripLeavesOtherPeoplesColumnsAlone(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, "CREATE TABLE t ("+rewrite.RowIDColumn+" VARBINARY(64), "+rewrite.WListColumn+" TEXT);\n")
	result, err := Strip(t.Context(), connect(t), catalog.Options{Schemas: []string{schema}})
	if err != nil || len(result.Changed) != 0 {
		t.Errorf("Strip: %+v, %v", result, err)
	}
}
