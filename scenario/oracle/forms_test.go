package oracle

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

func TestConditionsAreRewrittenToTheSame(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want []string // beside the statement itself
	}{
		{"SELECT a FROM t", nil},
		{"SELECT a FROM t WHERE a = 1 OR b IS NULL ORDER BY a LIMIT 1", []string{
			"SELECT a FROM t WHERE CASE WHEN (a = 1 OR b IS NULL) THEN TRUE ELSE FALSE END ORDER BY a LIMIT 1",
			"SELECT a FROM t WHERE NOT (NOT (a = 1 OR b IS NULL)) ORDER BY a LIMIT 1"}},
		{"UPDATE t SET a = (SELECT max(b) FROM u WHERE b < 9) WHERE a IN (SELECT b FROM u WHERE c = 1) AND a > 0 RETURNING a",
			[]string{
				"UPDATE t SET a = (SELECT max(b) FROM u WHERE CASE WHEN (b < 9) THEN TRUE ELSE FALSE END) WHERE CASE WHEN " +
					"(a IN (SELECT b FROM u WHERE c = 1) AND a > 0) THEN TRUE ELSE FALSE END RETURNING a",
				"UPDATE t SET a = (SELECT max(b) FROM u WHERE b < 9) WHERE EXISTS (SELECT 1 FROM (SELECT b AS isotap_c FROM u " +
					"WHERE c = 1) AS isotap_d WHERE isotap_d.isotap_c = (a)) AND a > 0 RETURNING a",
				"UPDATE t SET a = (SELECT max(b) FROM u WHERE NOT (NOT (b < 9))) WHERE NOT (NOT (a IN (SELECT b FROM u WHERE c = 1) " +
					"AND a > 0)) RETURNING a"}},
		{"DELETE FROM t WHERE a IN (SELECT max(b) AS m FROM u)", []string{
			"DELETE FROM t WHERE CASE WHEN (a IN (SELECT max(b) AS m FROM u)) THEN TRUE ELSE FALSE END",
			"DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT max(b) AS m FROM u) AS isotap_d WHERE isotap_d.m = (a))",
			"DELETE FROM t WHERE NOT (NOT (a IN (SELECT max(b) AS m FROM u)))"}},
		// Where NULL is not false, IN is not EXISTS.
		{"SELECT a FROM t WHERE a NOT IN (SELECT b FROM u)", []string{
			"SELECT a FROM t WHERE CASE WHEN (a NOT IN (SELECT b FROM u)) THEN TRUE ELSE FALSE END",
			"SELECT a FROM t WHERE NOT (NOT (a NOT IN (SELECT b FROM u)))"}},
		{"SELECT a FROM t WHERE (a IN (SELECT b FROM u)) IS NULL", []string{
			"SELECT a FROM t WHERE CASE WHEN ((a IN (SELECT b FROM u)) IS NULL) THEN TRUE ELSE FALSE END",
			"SELECT a FROM t WHERE NOT (NOT ((a IN (SELECT b FROM u)) IS NULL))"}},
		{"SELECT a FROM t WHERE a IN (SELECT b FROM u) = 0", []string{
			"SELECT a FROM t WHERE CASE WHEN (a IN (SELECT b FROM u) = 0) THEN TRUE ELSE FALSE END",
			"SELECT a FROM t WHERE NOT (NOT (a IN (SELECT b FROM u) = 0))"}},
		{"SELECT a FROM t WHERE a IN (SELECT b FROM u) AND a = 1 OR b = 2 FOR UPDATE", []string{
			"SELECT a FROM t WHERE CASE WHEN (a IN (SELECT b FROM u) AND a = 1 OR b = 2) THEN TRUE ELSE FALSE END FOR UPDATE",
			"SELECT a FROM t WHERE NOT (NOT (a IN (SELECT b FROM u) AND a = 1 OR b = 2)) FOR UPDATE"}},
		// Every condition that stands in no other one.
		{"SELECT count(*) FROM (SELECT a FROM t WHERE a > 1) AS d JOIN u ON d.a = LEFT(u.a, 1) LEFT JOIN v USING (a) GROUP BY b HAVING b > 0 " +
			"UNION SELECT a FROM w WHERE a IN (SELECT b FROM u WHERE c = 1) ORDER BY 1", []string{
			"SELECT count(*) FROM (SELECT a FROM t WHERE CASE WHEN (a > 1) THEN TRUE ELSE FALSE END) AS d JOIN u ON CASE WHEN " +
				"(d.a = LEFT(u.a, 1)) THEN TRUE ELSE FALSE END LEFT JOIN v USING (a) GROUP BY b HAVING CASE WHEN (b > 0) THEN TRUE ELSE " +
				"FALSE END UNION SELECT a FROM w WHERE CASE WHEN (a IN (SELECT b FROM u WHERE c = 1)) THEN TRUE ELSE FALSE END ORDER BY 1",
			"SELECT count(*) FROM (SELECT a FROM t WHERE a > 1) AS d JOIN u ON d.a = LEFT(u.a, 1) LEFT JOIN v USING (a) GROUP BY b HAVING b > 0 " +
				"UNION SELECT a FROM w WHERE EXISTS (SELECT 1 FROM (SELECT b AS isotap_c FROM u WHERE c = 1) AS isotap_d WHERE " +
				"isotap_d.isotap_c = (a)) ORDER BY 1",
			"SELECT count(*) FROM (SELECT a FROM t WHERE NOT (NOT (a > 1))) AS d JOIN u ON NOT (NOT (d.a = LEFT(u.a, 1))) LEFT JOIN v USING (a) " +
				"GROUP BY b HAVING NOT (NOT (b > 0)) UNION SELECT a FROM w WHERE NOT (NOT (a IN (SELECT b FROM u WHERE c = 1))) ORDER BY 1"}},
		{"SELECT DISTINCT ON (a) a, count(*) FILTER (WHERE b > 1) FROM t", []string{
			"SELECT DISTINCT ON (a) a, count(*) FILTER (WHERE CASE WHEN (b > 1) THEN TRUE ELSE FALSE END) FROM t",
			"SELECT DISTINCT ON (a) a, count(*) FILTER (WHERE NOT (NOT (b > 1))) FROM t"}},
		{"UPDATE t JOIN u ON t.a = u.a SET t.b = 1, u.b = 2", []string{
			"UPDATE t JOIN u ON CASE WHEN (t.a = u.a) THEN TRUE ELSE FALSE END SET t.b = 1, u.b = 2",
			"UPDATE t JOIN u ON NOT (NOT (t.a = u.a)) SET t.b = 1, u.b = 2"}},
	} {
		var got []string
		for _, form := range otherForms(read(dbms.MySQL.Family(), c.sql, nil), dbms.MySQL, false) {
			got = append(got, form.text)
		}
		if want := append([]string{c.sql}, c.want...); !slices.Equal(got, want) {
			t.Errorf("forms:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A bent server gives one row to each query and changes one by each write, but for a statement with a word in it.
type bent struct {
	word string
	lie  func(*replay.Result)
	sent []string
	// extra is what the next look at a table shows more.
	extra bool
}

func (b *bent) play(_ context.Context, s *scenario.Scenario, level history.Level) (replay.Trace, error) {
	t := replay.Trace{Scenario: s.Name, Level: level}
	for n, x := range s.Steps {
		b.sent = append(b.sent, x.SQL)
		r := replay.Result{N: n + 1, SQL: x.SQL, Status: replay.OK}
		switch firstWord(x.SQL) {
		case "SELECT":
			r.Rows = [][]replay.Value{{{Text: "1"}}}
			if b.extra && x.SQL == "SELECT * FROM t" {
				r.Rows, b.extra = append(r.Rows, []replay.Value{{Text: "2"}}), false
			}
		case "UPDATE", "DELETE":
			r.Affected = 1
		}
		if b.word != "" && strings.Contains(x.SQL, b.word) {
			b.lie(&r)
		}
		t.Results = append(t.Results, r)
	}
	return t, nil
}

func inOtherForms(t *testing.T, b *bent, statements ...string) *Verdict {
	t.Helper()
	v, err := Forms(t.Context(), b.play, history.Server{Engine: dbms.MariaDB}, scriptOf(statements...), history.RepeatableRead)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFormsAreRolledBackWhereTheStatementIsAboutToBe(t *testing.T) {
	b := &bent{}
	v := inOtherForms(t, b, "SELECT 0", "BEGIN", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 2 WHERE a = 1", "COMMIT")
	want := []string{"SELECT 0", "BEGIN", "INSERT INTO t VALUES (1)"}
	for _, form := range []string{"a = 1", "CASE WHEN (a = 1) THEN TRUE ELSE FALSE END", "NOT (NOT (a = 1))"} {
		want = append(want, "SAVEPOINT isotap_form", "UPDATE t SET a = 2 WHERE "+form, "SELECT * FROM t",
			"ROLLBACK TO SAVEPOINT isotap_form", "RELEASE SAVEPOINT isotap_form")
	}
	want = append(want, "UPDATE t SET a = 2 WHERE a = 1", "SELECT * FROM t", "COMMIT")
	if !slices.Equal(b.sent, want) {
		t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(b.sent, "\n"), strings.Join(want, "\n"))
	}
	if v.Wrong() || v.Transactions != 1 || v.Statements != 1 || len(v.Replies) != 5 {
		t.Errorf("%d transactions, %d statements, %d replies: %s", v.Transactions, v.Statements, len(v.Replies), v)
	}
}

// A query's rows are inserted in each form; the numbers that they get are others each time, so that no table is read.
func TestFormsOfInsertsChangeAsManyRows(t *testing.T) {
	b := &bent{}
	v := inOtherForms(t, b, "BEGIN", "INSERT INTO t SELECT a FROM u WHERE a = 1", "INSERT IGNORE INTO t SELECT a FROM u WHERE a = 1",
		"INSERT INTO t VALUES ((SELECT a FROM u WHERE a = 1))", "COMMIT")
	forms := 0
	for _, sql := range b.sent {
		if strings.Contains(sql, "CASE") {
			forms++
		}
	}
	if slices.Contains(b.sent, "SELECT * FROM t") || forms != 2 || v.Statements != 2 || v.Wrong() {
		t.Errorf("%d statements; sent:\n%s\n%s", v.Statements, strings.Join(b.sent, "\n"), v)
	}
}

func TestFormsThatDifferAreTold(t *testing.T) {
	none := func(r *replay.Result) { r.Rows, r.Affected = nil, 0 }
	for _, c := range []struct {
		name, sql string
		server    bent
		want      string
	}{
		{"rows", "SELECT a FROM t WHERE a = 1", bent{word: "CASE", lie: none}, "step 2, rows: the server said 1 row: (\"1\"); as " +
			"SELECT a FROM t WHERE CASE WHEN (a = 1) THEN TRUE ELSE FALSE END, rolled back, it is no rows: SELECT a FROM t WHERE a = 1"},
		{"rows changed", "DELETE FROM t WHERE a = 1", bent{word: "NOT", lie: none}, "step 2, rows changed: the server said 1; as " +
			"DELETE FROM t WHERE NOT (NOT (a = 1)), rolled back, it is 0: DELETE FROM t WHERE a = 1"},
		{"a table", "DELETE FROM t", bent{extra: true}, "step 2, table at the end: the server said 1 row: (\"1\"); as DELETE FROM t, " +
			"rolled back, it is 2 rows: (\"1\") (\"2\"): SELECT * FROM t"},
		{"a known bug", "DELETE FROM t WHERE a < ALL (SELECT 1)", bent{word: "NOT", lie: none}, "step 2, rows changed: the server " +
			"said 1; as DELETE FROM t WHERE NOT (NOT (a < ALL (SELECT 1))), rolled back, it is 0 (" + negatedTwice +
			"): DELETE FROM t WHERE a < ALL (SELECT 1)"},
		{"not what fails in one", "SELECT a FROM t WHERE 1 / a", bent{word: "CASE", lie: refuse}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := inOtherForms(t, &c.server, "BEGIN", c.sql, "COMMIT"); v.String() != c.want {
				t.Errorf("%s\nwant %s", v, c.want)
			}
		})
	}
	v := inOtherForms(t, &bent{word: "a = 1", lie: refuse}, "BEGIN", "SELECT a FROM t WHERE a = 1", "COMMIT")
	if v.Wrong() || v.Statements != 0 || v.NotJudged[reasonsNotJudged[failsInOneForm]] != 1 {
		t.Errorf("%d statements, not judged: %v", v.Statements, v.NotJudged)
	}
}

func TestFormsThatAreNotUndoneEndTheJudgement(t *testing.T) {
	b := &bent{word: "ROLLBACK TO", lie: refuse, extra: true}
	v := inOtherForms(t, b, "BEGIN", "CREATE TABLE u (a INT)", "DELETE FROM t", "DELETE FROM u", "COMMIT")
	if v.Wrong() || v.Statements != 0 || v.NotJudged[reasonsNotJudged[notUndone]] != 2 {
		t.Errorf("%d statements, not judged: %v: %s", v.Statements, v.NotJudged, v)
	}
}
