package mysql

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/rewrite"
)

// TestChangedTablesAreNamedWhereTheyAreCertain names, for each definition, the tables to be read again, a schema alone
// for all of its tables, nothing for all tables of the server, and "unchanged" where none looks different; behind ->
// those that foreign keys refer to.
func TestChangedTablesAreNamedWhereTheyAreCertain(t *testing.T) {
	r := New(nil, Options{})
	for sql, want := range map[string]string{
		"CREATE TABLE t (id INT)":                             "[{d t}]",
		"create or replace table if not exists `T x` (a INT)": "[{d T x}]",
		"CREATE TABLE e.t AS SELECT 1":                        "[{e t}]",
		"CREATE TABLE t LIKE u":                               "[{d t}]",
		"CREATE TABLE t (LIKE u)":                             "[{d t}]",
		"CREATE TABLE t (a INT REFERENCES u (id), FOREIGN KEY (b) REFERENCES `e`.u (id))":               "[{d t}] -> [{d u} {d u} {e u}]",
		"ALTER TABLE e.t ADD FOREIGN KEY (b) REFERENCES u (id)":                                         "[{e t}] -> [{d u} {e u}]",
		"CREATE TABLE t (a INT REFERENCES (id))":                                                        "[]",
		"ALTER TABLE `e`.`t` ADD c INT":                                                                 "[{e t}]",
		"ALTER ONLINE IGNORE TABLE IF EXISTS t ADD c INT":                                               "[{d t}]",
		"ALTER TABLE t RENAME TO u":                                                                     "[{d t} {d u}]",
		"ALTER TABLE t ADD a INT, RENAME = e.u, ADD b INT":                                              "[{d t} {e u}]",
		"ALTER TABLE t RENAME u":                                                                        "[{d t} {d u}]",
		"ALTER TABLE t RENAME COLUMN a TO b":                                                            "[{d t}]",
		"ALTER TABLE t RENAME INDEX a TO b, RENAME AS u":                                                "[{d t} {d u}]",
		"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u":                                               "[{d t} {d u}]",
		"ALTER TABLE t CONVERT PARTITION p TO TABLE u":                                                  "[{d t} {d u}]",
		"ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (1)":                             "[{d t} {d u}]",
		"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4":                                                "[{d t}]",
		"DROP TABLE IF EXISTS t, e.u, `v`":                                                              "[{d t} {e u} {d v}]",
		"DROP TABLE t, u RESTRICT":                                                                      "[{d t} {d u}]",
		"CREATE UNIQUE INDEX i ON t (a)":                                                                "[{d t}]",
		"DROP INDEX i ON e.t":                                                                           "[{e t}]",
		"CREATE VIEW v AS SELECT 1":                                                                     "[{d v}]",
		"CREATE OR REPLACE ALGORITHM = MERGE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW e.v AS SELECT 1": "[{e v}]",
		"ALTER DEFINER = CURRENT_USER() VIEW v AS SELECT 1":                                             "[{d v}]",
		"DROP VIEW IF EXISTS v, w":                                                                      "[{d v} {d w}]",
		"CREATE SEQUENCE s":                                                                             "[{d s}]",
		"CREATE DATABASE IF NOT EXISTS e DEFAULT CHARACTER SET utf8mb4":                                 "unchanged",
		"CREATE OR REPLACE DATABASE e":                                                                  "[{e }]",
		"DROP DATABASE `d`":                                                                             "[{d }]",
		"ALTER DATABASE e CHARACTER SET utf8mb4":                                                        "unchanged",
		"RENAME TABLE t TO u":                                                                           "[{d t} {d u}]",
		"RENAME TABLE IF EXISTS t WAIT 5 TO e.u, u TO t":                                                "[{d t} {e u} {d u} {d t}]",
		"RENAME TABLE": "[]",
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1":                          "[{d t} {d t}]",
		"CREATE DEFINER=root@localhost TRIGGER e.g BEFORE INSERT ON t FOR EACH ROW SET @a = 1": "[{d t} {e t}]",
		"DROP TRIGGER IF EXISTS g":                      "[{d }]",
		"CREATE DEFINER=`a`@`b` PROCEDURE p() SELECT 1": "unchanged",
		"CREATE TABLESPACE x":                           "[]",
		"TRUNCATE TABLE t":                              "unchanged",
		"DROP TABLE t; DROP TABLE u":                    "[{d t} {d u}]",
		"SELECT 1; DROP TABLE u":                        "[{d u}]",
		"USE e; DROP TABLE t":                           "[]",
		"DROP TABLE t; FLASHBACK TABLE u":               "[]",
		"/*!40101 SET @a = 1 */":                        "unchanged",
		"/*!40000 ALTER TABLE `t` DISABLE KEYS */;":     "unchanged",
		"/*!40000 ALTER TABLE `t` FORCE */;":            "[{d t}]",
		"ALTER TABLE e.t ENABLE KEYS":                   "unchanged",
		"ALTER TABLE t ENABLE KEYS, ADD COLUMN c INT":   "[{d t}]",
		"/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`%`*/ /*!50003 TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = '*' */": "[{d t} {d t}]",
		"/*!40101 SET @a = 1 */; DROP TABLE u": "[{d u}]",
		"/*!99999 DROP TABLE t */":             "[]",
		"/*M! DROP TABLE t */":                 "[]",
		"/*!40000 DROP TABLE `*/` */":          "[]",
		"/*!40000 DROP TABLE t -- */":          "[]",
		"/*!40000 DROP TABLE t /* , u */":      "[]",
	} {
		p := r.Plan(sql, Session{Schema: "d", Charset: "utf8mb4"})
		got := fmt.Sprint(p.Schema.Changed)
		if len(p.Schema.References) > 0 {
			got += " -> " + fmt.Sprint(p.Schema.References)
		}
		if !p.Schema.Changes {
			got = "unchanged"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	if p := r.Plan("DROP TABLE t", Session{Charset: "utf8mb4"}); !p.Schema.Changes || p.Schema.Changed != nil {
		t.Errorf("without a default schema: %v", p.Schema.Changed)
	}
}

func TestFateOfTriggersIsThatOfTheirTables(t *testing.T) {
	r := New(nil, Options{})
	for sql, want := range map[string]rewrite.TriggerFate{
		"CREATE TABLE t (id INT)":                                                rewrite.TriggersStay,
		"CREATE TABLE IF NOT EXISTS t LIKE u":                                    rewrite.TriggersStay,
		"CREATE OR REPLACE TABLE t (id INT)":                                     rewrite.TriggersGo,
		"ALTER TABLE t ADD COLUMN c INT":                                         rewrite.TriggersStay,
		"ALTER TABLE t RENAME COLUMN a TO b":                                     rewrite.TriggersStay,
		"ALTER TABLE t ADD COLUMN c INT, RENAME u":                               rewrite.TriggersDiffer,
		"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u":                        rewrite.TriggersDiffer,
		"RENAME TABLE t TO u":                                                    rewrite.TriggersDiffer,
		"CREATE UNIQUE INDEX i ON t (a)":                                         rewrite.TriggersStay,
		"DROP INDEX i ON t":                                                      rewrite.TriggersStay,
		"DROP TABLE IF EXISTS t, u":                                              rewrite.TriggersGo,
		"DROP VIEW v":                                                            rewrite.TriggersGo,
		"DROP DATABASE e":                                                        rewrite.TriggersDiffer,
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1":            rewrite.TriggersDiffer,
		"CREATE OR REPLACE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1": rewrite.TriggersDiffer,
		"DROP TRIGGER g":                                                         rewrite.TriggersDiffer,
		"CREATE TABLE t (id INT); CREATE TABLE u (id INT)":                       rewrite.TriggersStay,
		"SELECT 1; CREATE TABLE u (id INT)":                                      rewrite.TriggersStay,
		"CREATE TABLE t (id INT); DROP TABLE u":                                  rewrite.TriggersDiffer,
		"/*!50003 CREATE TABLE t (id INT) */":                                    rewrite.TriggersStay,
		"/*!50003 CREATE*/ /*!50003 TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1 */": rewrite.TriggersDiffer,
	} {
		if got := r.Plan(sql, Session{Schema: "d", Charset: "utf8mb4"}).Schema.Triggers; got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}
