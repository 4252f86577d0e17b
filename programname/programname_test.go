package programname

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
)

func TestProgramsAreNamedByWhatTheyWriteFirst(t *testing.T) {
	for _, c := range []struct {
		family dbms.Family
		shapes []string
		want   string
	}{
		{dbms.MySQLFamily, []string{"SELECT qty FROM stock WHERE id = ?", "UPDATE shop.`stock` SET qty = ?"}, "UPDATE stock"},
		{dbms.PostgreSQLFamily, []string{`INSERT INTO "public"."Order Line" VALUES (?)`, "UPDATE a SET b = ?"},
			"INSERT Order Line"},
		{dbms.PostgreSQLFamily, []string{"SELECT a FROM t WHERE id = ? FOR UPDATE", "DELETE FROM ONLY t WHERE id = ?"},
			"DELETE t"},
		{dbms.PostgreSQLFamily, []string{"SELECT a FROM t FOR UPDATE OF t", "SELECT b FROM u"}, "SELECT t"},
		{dbms.PostgreSQLFamily, []string{"SELECT a FROM t FOR NO KEY UPDATE SKIP LOCKED"}, "SELECT t"},
		{dbms.PostgreSQLFamily, []string{"WITH d AS (DELETE FROM queue RETURNING id) SELECT * FROM d"}, "DELETE queue"},
		{dbms.PostgreSQLFamily, []string{"WITH w AS (SELECT id FROM a) UPDATE b SET c = ? FROM w"}, "UPDATE b"},
		{dbms.PostgreSQLFamily, []string{"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = ?"}, "MERGE t"},
		{dbms.MySQLFamily, []string{"INSERT IGNORE INTO t VALUES (?)"}, "INSERT t"},
		{dbms.MySQLFamily, []string{"REPLACE INTO t VALUES (?)"}, "REPLACE t"},
		{dbms.MySQLFamily, []string{"UPDATE LOW_PRIORITY t SET a = ?"}, "UPDATE t"},
		{dbms.MySQLFamily, []string{"SELECT ?", "CALL pay(?)"}, "CALL pay"},
		{dbms.MySQLFamily, []string{"INSERT INTO t SELECT * FROM s ON DUPLICATE KEY UPDATE a = ?"}, "INSERT t"},
		{dbms.PostgreSQLFamily, []string{"SELECT ?"}, "transaction"},
		{dbms.MySQLFamily, nil, "transaction"},
	} {
		if got := Of(c.family, c.shapes); got != c.want {
			t.Errorf("%q is named %q, want %q", c.shapes, got, c.want)
		}
	}
}

func TestProgramsOfOneNameAreNumbered(t *testing.T) {
	var n Namer
	for _, want := range []string{"UPDATE t", "UPDATE t (2)", "UPDATE t (3)"} {
		if got := n.Program(dbms.MySQLFamily, Actions{}, []string{"UPDATE t SET a = ?"}); got != want {
			t.Errorf("named %q, want %q", got, want)
		}
	}
}

func TestProgramsAreNamedByTheOnlyActionThatTheyAreSeenIn(t *testing.T) {
	shapes := []string{"UPDATE t SET a = ?"}
	for want, seen := range map[string][]string{
		"UPDATE t":      {"", ""},
		"orders#create": {"orders#create", "", "orders#create"},
		"/pay/:id":      {"", "/pay/:id"},
		"UPDATE t (2)":  {"orders#create", "orders#cancel", "orders#create"},
	} {
		var n Namer
		if strings.HasSuffix(want, "(2)") {
			n.Program(dbms.MySQLFamily, Actions{}, shapes)
		}
		var all Actions
		for _, action := range seen {
			all.Add(action)
		}
		if got := n.Program(dbms.MySQLFamily, all, shapes); got != want {
			t.Errorf("seen in %q it is named %q, want %q", seen, got, want)
		}
	}
}
