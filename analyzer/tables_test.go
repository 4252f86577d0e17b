package analyzer

import "testing"

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
		if got := FoldTables(shape); got != want {
			t.Errorf("%s\ngives %s\nwant  %s", shape, got, want)
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
