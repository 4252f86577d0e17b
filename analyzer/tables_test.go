package analyzer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
)

// TestStatementsOnNumberedTablesAreOne: statements on numbered copies of a table are one.
func TestStatementsOnNumberedTablesAreOne(t *testing.T) {
	for shape, want := range map[string]string{
		"SELECT c FROM sbtest7 WHERE id=?":                                   "SELECT c FROM sbtest# WHERE id=?",
		"SELECT c FROM `sb`.`sbtest12` WHERE id = ?":                         "SELECT c FROM `sb`.`sbtest#` WHERE id = ?",
		"select * from shard1.t2, shard1.t3 x1 join t4 on t4.c1 = x1.c2":     "select * from shard1.t#, shard1.t# x1 join t# on t#.c1 = x1.c2",
		"UPDATE sbtest1 SET k=k+? WHERE id=?":                                "UPDATE sbtest# SET k=k+? WHERE id=?",
		"UPDATE LOW_PRIORITY t1 SET c1=? WHERE c2=?":                         "UPDATE LOW_PRIORITY t# SET c1=? WHERE c2=?",
		"INSERT INTO t1 (c1, c2) VALUES (?, ?) ON DUPLICATE KEY UPDATE c1=?": "INSERT INTO t# (c1, c2) VALUES (?, ?) ON DUPLICATE KEY UPDATE c1=?",
		"REPLACE t1 SELECT REPLACE(c1, ?, ?) FROM t2 FOR UPDATE":             "REPLACE t# SELECT REPLACE(c1, ?, ?) FROM t# FOR UPDATE",
		"DELETE FROM t1 /* from t2 */ WHERE s = 'from t3'":                   "DELETE FROM t# /* from t2 */ WHERE s = 'from t3'",
		"SELECT (SELECT max(x) FROM t1), c2 FROM t":                          "SELECT (SELECT max(x) FROM t#), c2 FROM t",
		"SELECT a1 FROM accounts WHERE b2 = ?":                               "SELECT a1 FROM accounts WHERE b2 = ?",
		"SELECT ? FROM `unfinished":                                          "SELECT ? FROM `unfinished",
		`SELECT "c" FROM "sb"."sbtest12" WHERE "c1" = ?`:                     `SELECT "c" FROM "sb"."sbtest#" WHERE "c1" = ?`,
		"SELECT v FROM `2024` WHERE id = ?":                                  "SELECT v FROM `2024` WHERE id = ?",
	} {
		for _, family := range dbms.Families {
			if family == dbms.PostgreSQLFamily && strings.Contains(shape, "`") {
				continue
			}
			if got := FoldTables(family, shape); got != want {
				t.Errorf("%s: %s\ngives %s\nwant  %s", family, shape, got, want)
			}
		}
	}
	for table, want := range map[string]string{
		"sb.sbtest1": "sb.sbtest#", "sb.sbtest10@3": "sb.sbtest#", "shop.orders": "shop.orders",
		"shop.orders@2": "shop.orders", "db1.2024": "db1.2024",
	} {
		if got := FoldTable(table); got != want {
			t.Errorf("%s gives %s, want %s", table, got, want)
		}
	}
}

// TestTablesAreFoldedByTheirFamilysQuotes: what a name, a comment and an operator are hangs on whose SQL it is.
func TestTablesAreFoldedByTheirFamilysQuotes(t *testing.T) {
	for _, c := range []struct {
		family      dbms.Family
		shape, want string
	}{
		{dbms.MySQLFamily, "SELECT * FROM `a``1` WHERE `t2` = ?", "SELECT * FROM `a``#` WHERE `t2` = ?"},
		{dbms.MySQLFamily, "SELECT @t1 FROM t1 # FROM t2", "SELECT @t1 FROM t# # FROM t2"},
		{dbms.MySQLFamily, "SELECT 'it''s FROM t1', '\\' FROM t2' FROM t3", "SELECT 'it''s FROM t1', '\\' FROM t2' FROM t#"},
		{dbms.PostgreSQLFamily, `SELECT * FROM U&"t1", "a"",1" WHERE x ` + "` ? ` y2",
			`SELECT * FROM U&"t#", "a"",#" WHERE x ` + "` ? ` y2"},
		{dbms.PostgreSQLFamily, "SELECT d #>> ? FROM t1 /* /* */ FROM t2 */", "SELECT d #>> ? FROM t# /* /* */ FROM t2 */"},
		{dbms.PostgreSQLFamily, "SELECT E'\\' FROM t1', $$ FROM t2 $$ FROM t3", "SELECT E'\\' FROM t1', $$ FROM t2 $$ FROM t#"},
	} {
		if got := FoldTables(c.family, c.shape); got != c.want {
			t.Errorf("%s: %s\ngives %s\nwant  %s", c.family, c.shape, got, c.want)
		}
	}
}

// TestWordsOutsideQuotesAndCommentsAreFound: among quotes and comments of a family, just the names outside of strings
// and comments are words.
func TestWordsOutsideQuotesAndCommentsAreFound(t *testing.T) {
	noise := map[dbms.Family][]string{
		dbms.MySQLFamily: {"'x'", "'x '' x'", `'x \' x'`, "/* x */", "-- x\n", "# x ' \n", "?", "@x", "(", ",", "@`x`", "--?"},
		dbms.PostgreSQLFamily: {"'x'", "'x '' x'", `'x \'`, `E'x \' x'`, "$$ x ' $$", "$q$ x $$ x $q$", "/* x /* ' */ x */",
			"-- x ' \n", "--x\n", "?", "$1", "#>>", "`", "? |", "::"},
	}
	names := map[dbms.Family][]string{
		dbms.MySQLFamily:      {"a1", "`b 1`", "`c``1`", `"d""1"`, "é1", "_e", "$f"},
		dbms.PostgreSQLFamily: {"a1", `"b 1"`, `"c""1"`, `U&"d1"`, `u&"e"" "`, "é1", "f$1"},
	}
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom(dbms.Families).Draw(t, "family")
		shape, want := "", []string(nil)
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			shape += rapid.SampledFrom(noise[family]).Draw(t, "noise") + " "
			name := rapid.SampledFrom(names[family]).Draw(t, "name")
			shape += name + " "
			want = append(want, strings.TrimPrefix(strings.TrimPrefix(name, "U&"), "u&"))
			if c := want[len(want)-1]; c[0] == '`' || c[0] == '"' {
				want[len(want)-1] = c[1 : len(c)-1]
			}
		}
		var got []string
		for _, w := range wordsOf(family, shape) {
			if w.name {
				got = append(got, w.text)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %s\nhas %q, want %q", family, shape, got, want)
		}
	})
}
