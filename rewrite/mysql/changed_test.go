package mysql

import (
	"fmt"
	"testing"
)

// TestChangedTablesAreNamedWhereTheyAreCertain gives, for each DDL statement, the tables to be read again;
// none means all.
func TestChangedTablesAreNamedWhereTheyAreCertain(t *testing.T) {
	r := New(nil, Options{})
	for sql, want := range map[string]string{
		"CREATE TABLE t (id INT)":                                     "[{d t}]",
		"create or replace table if not exists `T x` (a INT)":         "[{d T x}]",
		"CREATE TABLE e.t AS SELECT 1":                                "[{e t}]",
		"CREATE TABLE t LIKE u":                                       "[]",
		"ALTER TABLE `e`.`t` ADD c INT":                               "[{e t}]",
		"ALTER TABLE t RENAME TO u":                                   "[]",
		"ALTER TABLE t RENAME COLUMN a TO b":                          "[]",
		"ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u":             "[]",
		"DROP TABLE IF EXISTS t, e.u, `v`":                            "[{d t} {e u} {d v}]",
		"CREATE UNIQUE INDEX i ON t (a)":                              "[{d t}]",
		"DROP INDEX i ON e.t":                                         "[{e t}]",
		"CREATE VIEW v AS SELECT 1":                                   "[{d v}]",
		"DROP DATABASE d":                                             "[]",
		"RENAME TABLE t TO u":                                         "[]",
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1": "[]",
		"DROP TABLE t; DROP TABLE u":                                  "[]",
	} {
		p := r.Plan(sql, Session{Schema: "d", Charset: "utf8mb4"})
		if got := fmt.Sprint(p.Changed); !p.ChangesSchema || got != want {
			t.Errorf("%s: changes the schema: %t, of %s, want %s", sql, p.ChangesSchema, got, want)
		}
	}
	if p := r.Plan("DROP TABLE t", Session{Charset: "utf8mb4"}); p.Changed != nil {
		t.Errorf("without a default schema: %v", p.Changed)
	}
}
