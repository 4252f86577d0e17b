package fuzz

import (
	"reflect"
	"testing"

	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/workload/random"
)

func TestStatementsHaveTheKindsOfTheGenerator(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT * FROM t", "select"},
		{"(SELECT 1) UNION (SELECT 2)", "select"},
		{"SELECT * FROM t WHERE a IN (SELECT b FROM u FOR UPDATE)", "select"},
		{"SELECT * FROM t FOR UPDATE", "locking"},
		{"SELECT * FROM t LOCK IN SHARE MODE", "locking"},
		{"select * from t for no key update", "locking"},
		{"SELECT * FROM t FOR KEY SHARE", "locking"},
		{"WITH w AS (SELECT 1) UPDATE t SET a = 1", "update"},
		{"INSERT INTO t VALUES (1)", "insert"},
		{"INSERT INTO t VALUES ((SELECT 1))", "insert"},
		{"INSERT INTO t SELECT * FROM u", "insert-select"},
		{"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", "upsert"},
		{`INSERT INTO "t" SELECT 1 ON CONFLICT DO NOTHING`, "upsert"},
		{"REPLACE INTO t VALUES (1)", "replace"},
		{"UPDATE `t` SET a = (SELECT 1 FROM u)", "update"},
		{"UPDATE t JOIN u ON t.id = u.id SET a = 1", "joined-update"},
		{"DELETE FROM t", "delete"},
		{"DELETE FROM t USING u", "joined-delete"},
		{"ROLLBACK TO SAVEPOINT s", "savepoint"},
	} {
		if kind, what := kindOfText(c.sql); kind != c.want || what != works {
			t.Errorf("%s: %q, want %q", c.sql, kind, c.want)
		}
	}
	for _, sql := range []string{"SET x = 1", "SELECT 'a", "CREATE TABLE t (a INT)", ""} {
		if kind, what := kindOfText(sql); what != other {
			t.Errorf("%s: %q", sql, kind)
		}
	}
}

func TestTemplatesAreTheTransactionsOfScenarios(t *testing.T) {
	s := &scenario.Scenario{Name: "lost update", Sessions: []scenario.Session{{Name: "T1"}, {Name: "T2"}}}
	for _, step := range [][2]string{{"T1", "BEGIN"}, {"T2", "SELECT * FROM t"}, {"T1", "SELECT * FROM t"}, {"T2", "START TRANSACTION"},
		{"T1", "UPDATE t SET a = 1"}, {"T1", "COMMIT"}, {"T2", "DELETE FROM t"}, {"T2", "SHOW TABLES"}} {
		s.Steps = append(s.Steps, scenario.Step{Session: step[0], SQL: step[1]})
	}
	got, ok := TemplateOf(s, "a.yaml")
	want := random.Template{Name: "a.yaml: lost update", Transactions: [][]string{{"delete"}, {"select"}, {"select", "update"}}}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := TemplateOf(&scenario.Scenario{Sessions: s.Sessions}, "b.yaml"); ok {
		t.Error("a scenario without steps is a template")
	}
}
