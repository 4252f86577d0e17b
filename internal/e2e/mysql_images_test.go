package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// A table of most types, and rows and changes of it.
var (
	imageTable = "CREATE TABLE `Odd t` (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, `a b` VARCHAR(40), " +
		"l CHAR(5) CHARACTER SET latin1, c VARCHAR(20) COLLATE utf8mb4_bin, " +
		"n DECIMAL(8,2), f FLOAT, d DOUBLE, y YEAR, e ENUM('Sad', 'ok'), s SET('p', 'q'), b BIT(9), dt DATETIME(3), " +
		"da DATE, ts TIMESTAMP(2) NULL, ti TIME, bl BLOB, tx TEXT, j JSON, " +
		"z BIGINT UNSIGNED ZEROFILL, k INT NOT NULL DEFAULT 7, nw DATETIME DEFAULT CURRENT_TIMESTAMP, " +
		"up TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, g INT AS (k * 2) STORED)"
	imageWrites = []string{
		"INSERT INTO `Odd t` (`a b`, l, c, n, f, d, y, e, s, b, dt, da, ts, ti, bl, tx, j, z) VALUES " +
			"('it''s \"a\", (b)\\\\ c=;', 'Äö', 'x ', 1.555, 0.1, 0.1, 2026, 'ok', 'p,q', b'101', " +
			"'2026-11-21 12:00:00.1239', '2026-11-21', '2026-10-25 00:30:00', '-12:00:01', x'00ff', 'täxt', " +
			"'{\"k\": [1, null]}', 18446744073709551615)",
		"INSERT INTO `Odd t` VALUES (DEFAULT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, " +
			"NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, '2020-01-01', NULL, DEFAULT)",
		"INSERT INTO `Odd t` SET `a b` = '', l = '', c = 'X', n = -0.5, f = 1e20, d = -1e-300, e = 'Sad', s = '', " +
			"bl = '', tx = '', k = 1",
		"INSERT INTO `Odd t` (id, `a b`) VALUES (NULL, 'one'), (0, 'two'), (DEFAULT, 'THREE ')",
		"INSERT INTO `Odd t` (id, `a b`) VALUES (100, 'a hundred'), (NULL, 'and one')",
		"INSERT INTO `Odd t` (`a b`) VALUES ('after all')",
		"UPDATE `Odd t` SET `a b` = CONCAT(`a b`, ' more'), n = n + 1, d = d / 3, ts = '2026-06-01 12:00:00' WHERE id IN (1, 3)",
		"UPDATE `Odd t` x SET x.up = '2026-01-02 03:04:05', k = id WHERE id = 4",
		"INSERT INTO `Odd t` (id, `a b`) VALUES (5, 'else'), (200, 'new') ON DUPLICATE KEY UPDATE `a b` = 'met', k = 5",
		"REPLACE INTO `Odd t` (id, `a b`) VALUES (6, 'in its place')",
		"DELETE FROM `Odd t` WHERE id IN (100, 101)", // of which the second has a number that nobody told
	}
	imageConditions = []string{"", "id = 1", "x.id IN (1, 3, 101) -- and no more", "id BETWEEN 2 AND 6",
		"`a b` IS NULL", "`a b` = ''", "`a b` LIKE '%\\\"A\\\", (b)\\\\\\\\ c%'", "`a b` = 'three'", "l = 'äÖ'",
		"l = ''", "c = 'x'", "c = 'x '",
		"n = 2.56", "n < 1", "f = 0.1", "f > 0.1", "f = 1e20", "d < 0", "d = 0.1/3", "y = 2026", "e = 'ok'", "e = 1",
		"e > 'a'", "FIND_IN_SET('q', s)", "s = ''", "b = 5", "b IS NULL",
		"dt > '2026-11-21 12:00:00.1'", "YEAR(da) = 2026", "da = '2026-11-21'", "ts = '2026-10-25 00:30:00'",
		"ts = '2026-06-01 12:00:00'", "ts < '2026-06-01 12:00:01'", "ti < 0", "ti = '-12:00:01'", "bl = x'00ff'",
		"bl = ''",
		"tx LIKE 'TÄXT'", "JSON_EXTRACT(j, '$.k[0]') = 1", "z > 9223372036854775807", "k = 7", "k + id > 8",
		"NOT k = 7", "k = 7 AND id > 2", "(`x`.`K` = '5')", "id = 3 AND n > 0", "7 = k", "z = 5", "y = 2026 AND k = 7",
		"id > 2 OR /* no */ FALSE", "COALESCE(n, 0) = 0", "'a' = 'A' AND id < 3"}
)

// TestImagesMatchWhatTheirRowsDo has writes leave rows of most types, and holds conditions against the images that
// these have in the recording: the same rows match as in the table, but for images that lack the condition's column.
func TestImagesMatchWhatTheirRowsDo(t *testing.T) {
	for name, parameters := range map[string]string{"text": "", "prepared": "x"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, inModePredicates, imageTable)
			c := b.conn(b.through)
			b.exec(c, "SET time_zone = '+02:00'", "SET sql_mode = 'STRICT_ALL_TABLES'")
			for _, write := range imageWrites {
				if parameters == "" {
					b.exec(c, write)
					continue
				}
				s, err := c.PrepareContext(t.Context(), write)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.ExecContext(t.Context()); err != nil {
					t.Fatalf("%s: %v", write, err)
				}
			}
			rows := b.ask("SELECT isotap_rowid FROM `Odd t` ORDER BY 1")
			last, images := lastImages(b.txns()), make([]string, len(rows))
			for i, row := range rows {
				if images[i] = last[row]; images[i] == "" {
					t.Errorf("there is no image of %s", row)
				}
			}
			b.holdImages(imageConditions, images, rows)
		})
	}
}

// lastImages returns the image of the last version of each row.
func lastImages(txns []*history.Txn) map[string]string {
	last := make(map[string]string)
	for _, x := range txns {
		for _, s := range x.Stmts {
			for i, a := range s.Accesses {
				if a.Op != history.Read && s.Images != nil {
					last[a.Row.ID] = s.Images[i]
				}
			}
		}
	}
	return last
}

// ask returns the first column of what a query finds past isotap, under the settings of the tests' session.
func (b *bench) ask(query string) (values []string) {
	b.t.Helper()
	c := b.conn(b.direct)
	defer c.Close()
	b.exec(c, "SET time_zone = '+02:00'", "SET sql_mode = 'STRICT_ALL_TABLES'")
	rows, err := c.QueryContext(b.t.Context(), query)
	if err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			b.t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// matching returns what tests conditions over the bench's tables, on the server at a URL.
func (b *bench) matching(url string) *catalogmysql.Matching {
	b.t.Helper()
	target, err := dsn.Parse(url + b.database)
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := catalogmysql.Connect(b.t.Context(), target)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	schema, err := catalogmysql.Load(b.t.Context(), conn)
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := catalogmysql.NewMatching(b.t.Context(), target, schema)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { m.Close() })
	return m
}

// holdMatching sees that conditions match the same rows of the table and images, and returns the conditions and of how
// many rows is known by their numbers alone whether they match.
func (b *bench) holdMatching(m *catalogmysql.Matching, conditions, images, rows []string) (predicates []history.Predicate,
	decided int) {
	b.t.Helper()
	for _, where := range conditions {
		predicates = append(predicates, history.Predicate{Table: b.database + ".Odd t", Of: "`" + b.database +
			"`.`Odd t`", As: "`x`", Where: where,
			Settings: history.LiteralSettings{TimeZone: "+02:00", SQLMode: "STRICT_ALL_TABLES",
				Collation: "utf8mb4_general_ci"}})
	}
	matching, lacking, err := m.Test(b.t.Context(), "", predicates, images)
	if err != nil {
		b.t.Fatal(err)
	}
	for i, where := range conditions {
		if lacking[i] {
			b.t.Errorf("%s: an image is said to lack a column of it", where)
		}
		query := "SELECT isotap_rowid FROM `Odd t` AS x"
		if where != "" {
			query += " WHERE (" + where + "\n)"
		}
		var got []string
		for _, place := range matching[i] {
			got = append(got, rows[place])
		}
		if want := b.ask(query + " ORDER BY 1"); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			b.t.Errorf("%s: %q match, the table has %q", where, got, want)
		}
	}
	for i := range predicates {
		decided += holdNumbers(b.t, m, predicates[i], images, matching[i])
	}
	return predicates, decided
}

// holdImages does so with the images of [imageWrites].
func (b *bench) holdImages(conditions, images, rows []string) {
	b.t.Helper()
	m := b.matching(testdb.Current(b.t).URL())
	predicates, decided := b.holdMatching(m, conditions, images, rows)
	if want := 8*len(images) - 1; decided != want { // z of the first is no int64
		b.t.Errorf("%d numbers are known, want %d", decided, want)
	}
	for where, want := range map[string]int{"nw > '2000-01-01' OR TRUE": 5, "up IS NULL OR TRUE": 5} {
		predicates[0].Where = where
		if got, lacking, err := m.Test(b.t.Context(), "", predicates[:1], images); err != nil || len(got[0]) != want ||
			lacking[0] != (want < len(images)) {
			b.t.Errorf("%s: %v match (%v), want the %d that have the column", where, got, err, want)
		}
	}
	predicates[0].Where = "gone = 1"
	if _, _, err := m.Test(b.t.Context(), "", predicates[:2], images); err == nil {
		b.t.Error("a condition on a column that there is not was tested")
	}
}

// holdNumbers holds what is known of a predicate and rows without the server against what the server said, and returns
// of how many rows something is known.
func holdNumbers(t *testing.T, m *catalogmysql.Matching, p history.Predicate, images []string, matching []int) (decided int) {
	t.Helper()
	e, ok := m.Equality("", p)
	if !ok {
		return 0
	}
	for i, image := range images {
		n, null, known := m.Number(image, e.Column)
		if !known {
			continue
		}
		decided++
		matches, same := slices.Contains(matching, i), !null && n == e.Value
		if matches && !same || same && e.Alone && !matches {
			t.Errorf("%s: the server says %v of %s, which holds %d (null %v)", p.Where, matches, image, n, null)
		}
	}
	return decided
}

// TestReturningTellsWhatTheServerNumbered inserts as GORM does on MariaDB, with RETURNING, whose reply has no place for
// the first number: the images have the keys all the same, and the client sees its own columns.
func TestReturningTellsWhatTheServerNumbered(t *testing.T) {
	if testdb.EngineName() == "mysql" {
		t.Skip("no RETURNING")
	}
	b := newBench(t, inModePredicates, "CREATE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w INT NOT NULL DEFAULT 7)")
	for _, parameters := range []string{"", "interpolateParams=true"} {
		c := b.conn(b.open(parameters))
		for _, write := range []struct {
			query   string
			columns int
		}{
			{"INSERT INTO k (v) VALUES (?), (2) RETURNING v", 1},
			{"INSERT INTO k VALUES (NULL, ?, 1), (0, 4, DEFAULT), (DEFAULT, 5, 3) RETURNING *", 3},
			{"INSERT INTO k SET v = ? RETURNING id, v", 2},
			{"INSERT INTO k (id, v) VALUES (1, ?), (NULL, 6) ON DUPLICATE KEY UPDATE v = v + 1 RETURNING id", 1},
		} {
			rows, err := c.QueryContext(t.Context(), write.query, 40)
			if err != nil {
				t.Fatal(err)
			}
			if names, _ := rows.Columns(); len(names) != write.columns {
				t.Errorf("%s: the client sees %q", write.query, names)
			}
			for rows.Next() {
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := lastImages(b.txns())
	for _, row := range b.ask("SELECT CONCAT(isotap_rowid, '=', id, ',', IFNULL(v, 'NULL'), ',', w) FROM k") {
		id, values, _ := strings.Cut(row, "=")
		if want := "(`id`, `v`, `w`) VALUES (" + values + ")"; last[id] != want {
			t.Errorf("%s: image %q, want %q", id, last[id], want)
		}
	}
}
