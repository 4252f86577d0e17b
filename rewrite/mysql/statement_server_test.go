package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"github.com/isotap/isotap/internal/testdb"
)

// TestSelectReturnsTheSamePlusIdentities runs rewritten queries and demands that, without their last
// columns, names, types and rows are the original's.
func TestSelectReturnsTheSamePlusIdentities(t *testing.T) {
	for _, query := range []string{
		"SELECT * FROM t ORDER BY id",
		"SELECT t.*, 1 FROM t ORDER BY 1",
		"SELECT c1+1, c1 + 2 /* x */ FROM t ORDER BY id",
		"SELECT c1 + 2 -- x\n FROM t ORDER BY id",
		"SELECT`s`FROM`t`ORDER BY`id`",
		"SELECT t.*FROM t ORDER BY id",
		"SELECT id AS `from`, 'lit''eral', \"x\" y, NULL, -1 FROM t ORDER BY 1 LIMIT 1, 2",
		"SELECT x.id, y.s FROM t x LEFT JOIN t y ON y.id = x.c1 / 10 ORDER BY x.id, y.id",
		"SELECT * FROM t x NATURAL JOIN t y ORDER BY id",
		"SELECT * FROM t x JOIN t y USING (id) ORDER BY id",
		"SELECT * FROM t x RIGHT JOIN (SELECT 5 AS five) d ON x.id = d.five",
		"(SELECT id FROM t WHERE id = 1)",
		"SELECT id FROM t WHERE c1 = (SELECT MAX(c1) FROM t)",
		"SELECT id, (SELECT COUNT(*) FROM t y WHERE y.c1 = x.c1) FROM t x ORDER BY id",
		"SELECT id FROM t WHERE id = 1 FOR UPDATE",
		"SELECT id FROM t WHERE id = 1 LOCK IN SHARE MODE;",
		"SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1",
		"SELECT id FROM t HAVING id > 3 ORDER BY id",
		"SELECT EXTRACT(YEAR FROM ts), TRIM(BOTH 'a' FROM s), @n := id FROM t ORDER BY id",
		"SELECT * FROM t STRAIGHT_JOIN information_schema.SCHEMATA i ON i.SCHEMA_NAME = 'mysql' ORDER BY id",
	} {
		if onTiDB() && (strings.Contains(query, "SHARE MODE") || strings.Contains(query, "SQL_CALC_FOUND_ROWS")) {
			continue // an error there
		}
		tw := newTwins(t)
		tw.create(mixedTable, mixedRows)
		p := tw.plan(query)
		wantColumns, want := rows(t, tw.original, query)
		gotColumns, got := rows(t, tw.proxied, literal(p, Values{}))
		hidden := 2 * len(p.Result.Sources)
		if !slices.Equal(gotColumns[:len(gotColumns)-hidden], wantColumns) {
			t.Errorf("%s: columns %q, want %q", query, gotColumns, wantColumns)
		}
		for i := range got {
			cells := strings.Split(got[i], "|")
			if id := cells[len(cells)-hidden]; id != "NULL" && !strings.HasPrefix(id, `"r`) {
				t.Errorf("%s: row %d has the row id %s", query, i, id)
			}
			got[i] = strings.Join(cells[:len(cells)-hidden], "|")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestInsertIsTransparentAndNamesItsRows runs inserts as they are and rewritten, and demands the same
// outcome, and rows whose ids are the tag and their ordinal.
func TestInsertIsTransparentAndNamesItsRows(t *testing.T) {
	const table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL, b VARCHAR(5) DEFAULT 'x', " +
		"c INT DEFAULT 5 INVISIBLE, g INT AS (a + 1) STORED)"
	for _, tc := range []struct {
		query, mode string
		written     bool
	}{
		{"INSERT INTO t (a, b) VALUES (1, 'y')", "", true},
		{"INSERT INTO t (a) VALUES (1), (2), ('3')", "", true},
		{"INSERT t VALUES (NULL, 1, 'y', DEFAULT)", "", true},
		{"INSERT INTO t VALUES (100, 1, DEFAULT, DEFAULT)", "", true},
		{"INSERT INTO t VALUES (100, 1, DEFAULT, NULL)", "",
			testdb.EngineName() != testdb.MySQL.Name && !onTiDB()}, // an error there
		{"INSERT INTO t VALUES (100, 1, DEFAULT, 5)", "STRICT_ALL_TABLES", false},
		{"INSERT INTO t () VALUES (0, 1, 'y', DEFAULT)", "", true},
		{"INSERT INTO t VALUES ()", "", true},
		{"INSERT INTO t VALUES ()", "STRICT_ALL_TABLES", false},
		{"INSERT INTO t () VALUES (), ()", "", true},
		{"INSERT INTO t (b) VALUES ('y')", "", true},
		{"INSERT INTO t (b) VALUES ('y')", "STRICT_ALL_TABLES", false},
		{"INSERT INTO t (id, a) VALUES (50, 1), (50, 2)", "", false},
		{"INSERT IGNORE INTO t (id, a) VALUES (50, 1), (50, 2), (51, 2)", "", false},
		{"INSERT INTO t (a, b) VALUES (1, 'too long')", "", true},
		{"INSERT INTO t (a, b) VALUES (1, 'too long')", "STRICT_ALL_TABLES", false},
		{"INSERT INTO t (id, a) VALUES (7, id + 1)", "", true},
		{"INSERT INTO t SET a = 1, b = 'y' -- end", "", true},
		{"INSERT INTO t SET b = CONCAT('y', a), a = 3;", "", true},
	} {
		tw := newTwins(t, "SET sql_mode = '"+tc.mode+"'")
		tw.create(table, "INSERT INTO t (id, a) VALUES (1, 1)")
		for i, c := range tw.rewriter.schema.(tables)[tw.session.Schema+".t"].Columns {
			tw.rewriter.schema.(tables)[tw.session.Schema+".t"].Columns[i].Invisible = c.Name == "c"
		}
		p := tw.plan(tc.query)
		tag := tw.nextTag()
		want := tw.outcome(tw.original, tc.query)
		got := tw.outcome(tw.proxied, literal(p, Values{Tag: tag}))
		if got != want {
			t.Errorf("%s (%s): rewritten %+v\noriginal  %+v", tc.query, tc.mode, got, want)
		}
		if !tc.written {
			continue
		}
		_, wlists := tw.versions()
		for i := range p.Writes.Inserts {
			id := string(AppendRowID(nil, tag, i))
			if wlists[id] != tag.String() {
				t.Errorf("%s: row %s has the list %q", tc.query, id, wlists[id])
			}
		}
		if len(wlists) != 1+p.Writes.Inserts {
			t.Errorf("%s: %d rows, want %d", tc.query, len(wlists), 1+p.Writes.Inserts)
		}
	}
}

func TestPreparedInsertNamesItsRows(t *testing.T) {
	tw := newTwins(t)
	tw.create("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)")
	tag := tw.nextTag()
	query, args := prepared(tw.plan("INSERT INTO t VALUES (?, 1), (3, ?), (?, ?)"), Values{Tag: tag}, []any{2, 7, 4, 8})
	stmt, err := tw.proxied.PrepareContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	if _, err := stmt.ExecContext(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	values, wlists := tw.versions()
	for i, want := range []string{`"2"|"1"`, `"3"|"7"`, `"4"|"8"`} {
		id := string(AppendRowID(nil, tag, i))
		if values[id] != want || wlists[id] != tag.String() {
			t.Errorf("row %s holds %s with the list %s, want %s", id, values[id], wlists[id], want)
		}
	}
}

// TestDeleteReturnsWhatItDeleted runs deletes as they are and rewritten, and compares the identities
// that come back with the rows that went.
func TestDeleteReturnsWhatItDeleted(t *testing.T) {
	for _, query := range []string{
		"DELETE FROM t WHERE c1 = 10",
		"DELETE FROM t ORDER BY c1 DESC, id LIMIT 2;", // MariaDB only: MySQL captures rows that it then leaves
		"DELETE FROM t -- all",
		"DELETE FROM t WHERE id = 77",
		"DELETE QUICK FROM t WHERE id IN (SELECT c1 FROM (SELECT 1 AS c1) x) /* c */",
	} {
		if (testdb.EngineName() == testdb.MySQL.Name || onTiDB()) && strings.Contains(query, "LIMIT") {
			continue
		}
		tw := newTwins(t)
		tw.create(mixedTable, mixedRows)
		n, _ := exec(t, tw.original, query).RowsAffected()
		before, _ := tw.versions()
		returned := tw.deleted(query)
		after, _ := tw.versions()
		if int64(len(returned)) != n {
			t.Errorf("%s: %d rows returned, the original deletes %d", query, len(returned), n)
		}
		for _, id := range returned {
			if _, there := after[id]; there || before[id] == "" {
				t.Errorf("%s: returned row %s, which was not deleted", query, id)
			}
		}
		if len(before)-len(after) != len(returned) {
			t.Errorf("%s: %d rows are gone, %d were returned", query, len(before)-len(after), len(returned))
		}
		if got, want := tw.contents(tw.proxied), tw.contents(tw.original); got != want {
			t.Errorf("%s: left %s, want %s", query, got, want)
		}
	}
}

// deleted runs a DELETE rewritten, and returns the row ids that it returns, or captures where there is no
// RETURNING.
func (tw *twins) deleted(query string) []string {
	tw.t.Helper()
	text := literal(tw.plan(query), Values{Tag: tw.nextTag()})
	var ids []string
	if tw.session.Dialect == MariaDB {
		_, lines := rows(tw.t, tw.proxied, text)
		for _, line := range lines {
			ids = append(ids, strings.Trim(strings.Split(line, "|")[0], `"`))
		}
		return ids
	}
	exec(tw.t, tw.proxied, text)
	entries, _ := tw.captured()
	for _, e := range entries {
		ids = append(ids, e.RowID)
	}
	return ids
}

func TestCreatedTablesLookTheSameToTheClient(t *testing.T) {
	testdb.Only(t, "others show isotap's columns", "mariadb", testdb.MariaDB118.Name, testdb.MySQL.Name)
	for _, query := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) DEFAULT 'x,)', KEY (a)) COMMENT 'c'",
		"CREATE TABLE IF NOT EXISTS t (id INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))",
		"CREATE OR REPLACE TABLE t (id INT CHECK (id > 0), u UUID) ENGINE = InnoDB;", // MariaDB only
		"CREATE TABLE t (id INT CHECK (id > 0), u JSON DEFAULT (JSON_ARRAY())) ENGINE = InnoDB;",
	} {
		if testdb.EngineName() == testdb.MySQL.Name && strings.Contains(query, "OR REPLACE") {
			continue
		}
		tw := newTwins(t)
		exec(t, tw.original, query)
		exec(t, tw.proxied, literal(tw.planDDL(query), Values{}))
		want, _ := rows(t, tw.original, "SELECT * FROM t")
		got, _ := rows(t, tw.proxied, "SELECT * FROM t")
		if !slices.Equal(got, want) {
			t.Errorf("%s: columns %v, want %v", query, got, want)
		}
		exec(t, tw.proxied, "INSERT INTO t (id) VALUES (1), (2)")
		if _, lists := tw.versions(); len(lists) != 2 {
			t.Errorf("%s: rows have the ids %v, want two", query, lists)
		}
	}
}

func (tw *twins) planDDL(query string) *Plan {
	tw.rewriter = New(tables{}, Options{})
	return tw.plan(query)
}

// TestSubstitutedCountsLookLikeTheFunctions compares every part of the column definitions.
func TestSubstitutedCountsLookLikeTheFunctions(t *testing.T) {
	c, err := client.Connect(testdb.Current(t).Addr(), "root", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, s := New(tables{}, Options{}), testSession()
	if onTiDB() {
		s.Dialect, s.Version = ParseVersion(c.GetServerVersion())
	}
	for _, tc := range []struct {
		query string
		value func(v Values) int64 // of the first column
	}{
		{"SELECT ROW_COUNT()", func(v Values) int64 { return v.RowCount }},
		{"SELECT found_rows( ) , ROW_COUNT() AS n", func(v Values) int64 { return int64(v.FoundRows) }},
		{"SELECT FOUND_ROWS() + 2 * ROW_COUNT() LIMIT 1", func(v Values) int64 { return int64(v.FoundRows) + 2*v.RowCount }},
		{"SELECT found_rows() UNION ALL SELECT ROW_COUNT()", func(v Values) int64 { return int64(v.FoundRows) }},
		{"SELECT * FROM (SELECT FOUND_ROWS(), 1 + ROW_COUNT()) x", func(v Values) int64 { return int64(v.FoundRows) }},
	} {
		if onTiDB() && strings.Contains(tc.query, "+ 2 *") {
			continue // an error there, where the second one is negative
		}
		want, err := c.Execute(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []Values{{RowCountGone: true, FoundRowsGone: true},
			{RowCount: -1, RowCountGone: true, FoundRowsGone: true},
			{RowCount: 1 << 40, FoundRows: 1 << 41, RowCountGone: true, FoundRowsGone: true}} {
			v.Casts = s.Dialect == TiDB
			got, err := c.Execute(literal(r.Plan(tc.query, s), v))
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range got.Fields {
				w := want.Fields[i]
				if string(f.Name) != string(w.Name) || f.Type != w.Type || f.Flag != w.Flag || f.Decimal != w.Decimal ||
					f.Charset != w.Charset || f.ColumnLength != w.ColumnLength && s.Dialect != TiDB {
					t.Errorf("%s: column %+v, want %+v", tc.query, f, w)
				}
			}
			if n, err := got.GetInt(0, 0); err != nil || n != tc.value(v) {
				t.Errorf("%s: value %d (%v), want %d", tc.query, n, err, tc.value(v))
			}
		}
	}
}
