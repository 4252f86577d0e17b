package e2e

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

const setOperationTables = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), price INT, KEY (price)); " +
	"CREATE TABLE note (id INT PRIMARY KEY, body TEXT, day DATE); " +
	"INSERT INTO item VALUES (1, 'a', 10), (2, 'b', 10), (3, 'a', 20), (4, NULL, 20); " +
	"INSERT INTO note VALUES (1, 'a', '2026-01-01'), (2, 'c', NULL)"

// seen returns how well statements of a shape were observed, and how many rows each read.
func seen(txns []*history.Txn, shape string) string {
	var out []string
	for _, s := range stmts(txns, shape) {
		rows := make(map[history.Row]bool)
		for _, a := range s.Accesses {
			rows[a.Row] = true
		}
		out = append(out, strings.TrimSpace(s.Observation.String()+" "+s.Reason.String())+" "+
			strings.Repeat("r", len(rows)))
	}
	return strings.TrimSpace(strings.Join(out, ","))
}

// TestSetOperationsCannotBeTold asks for everything that a client can see of a statement, directly and
// through isotap, in a transaction and outside of one.
func TestSetOperationsCannotBeTold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	setup := strings.Split(setOperationTables, "; ")
	b := newBench(t, nil, setup...)
	twin := testdb.NewDatabase(t)
	b.exec(testdb.Open(t, twin), setup...)
	statements := []struct {
		sql  string
		args []any
	}{
		{"SELECT DISTINCT name FROM item ORDER BY name", nil},
		{"SELECT DISTINCT name FROM item WHERE id BETWEEN ? AND ? ORDER BY name", []any{1, 3}},
		{"SELECT DISTINCT name FROM item ORDER BY name LIMIT 1, 1", nil},
		{"SELECT DISTINCT price, name AS n FROM item HAVING n IS NOT NULL ORDER BY 1, 2", nil},
		{"SELECT DISTINCT i.name FROM item i LEFT JOIN note n ON n.id = i.id ORDER BY i.name", nil},
		{"SELECT DISTINCT name FROM item WHERE id = 99", nil},
		{"SELECT DISTINCT CAST(CONCAT(name, 'x') AS SIGNED) FROM item WHERE id < ? ORDER BY 1", []any{3}},
		{"SELECT DISTINCT name FROM item FOR UPDATE", nil},
		{"SELECT DISTINCT nothing FROM item", nil},
		{"SELECT name FROM item UNION SELECT body FROM note ORDER BY 1", nil},
		{"SELECT name FROM item UNION SELECT body FROM note ORDER BY 1 LIMIT 2", nil},
		{"SELECT name, price FROM item WHERE id < ? UNION ALL SELECT body, day FROM note WHERE id > ? ORDER BY 1, 2",
			[]any{3, 0}},
		{"SELECT name FROM item UNION SELECT body FROM note ORDER BY 1 LIMIT ?", []any{9}},
		{"SELECT name FROM item UNION SELECT body FROM note LIMIT 2", nil},
		{"SELECT name FROM item UNION SELECT body FROM note", nil},
		{"SELECT name, day FROM item JOIN note ON note.id < item.id UNION SELECT body, 3 FROM note WHERE id < ? UNION ALL SELECT 7, NULL",
			[]any{2}},
		{"SELECT name FROM item i WHERE EXISTS (SELECT 1 FROM note n WHERE n.id = i.id AND n.id < ?) UNION SELECT body FROM note ORDER BY 1", []any{9}},
		{"SELECT name FROM item WHERE price > (SELECT MAX(n.id) FROM note n) UNION SELECT body FROM note", nil},
		{"SELECT CAST(CONCAT(name, 'x') AS SIGNED) FROM item UNION SELECT CAST(body AS SIGNED) FROM note", nil},
		{"SELECT name FROM item UNION ALL SELECT body FROM note", nil},
		{"(SELECT id, name FROM item ORDER BY id DESC LIMIT 2) UNION ALL (SELECT id, body FROM note ORDER BY id LIMIT 1)", nil},
		{"SELECT id FROM item UNION ALL SELECT 7 UNION ALL SELECT id FROM note ORDER BY id LIMIT 3", nil},
		{"SELECT name FROM item INTERSECT SELECT body FROM note", nil},
		{"SELECT name FROM item EXCEPT SELECT body FROM note ORDER BY 1", nil},
		{"SELECT id, name FROM item UNION ALL SELECT id FROM note", nil},
		{"SELECT name FROM item UNION ALL SELECT body FROM note ORDER BY 2", nil},
		{"SELECT name FROM item UNION ALL SELECT body FROM note ORDER BY missing", nil},
	}
	after := []string{"SHOW WARNINGS", "SELECT @@warning_count", "SELECT FOUND_ROWS()", "SELECT ROW_COUNT()",
		"SELECT LAST_INSERT_ID()", "SHOW WARNINGS"}
	for _, parameters := range []string{"", "interpolateParams=true"} {
		directPool, err := sql.Open("mysql", testdb.Current(t).DSN(twin)+"&"+parameters)
		if err != nil || directPool.Ping() != nil {
			if directPool, err = sql.Open("mysql", testdb.Current(t).DSN(twin)+"?"+parameters); err != nil {
				t.Fatal(err)
			}
		}
		defer directPool.Close()
		direct, through := b.conn(directPool), b.conn(b.open(parameters))
		for _, begin := range []string{"DO 1", "BEGIN", "SET autocommit = 0"} {
			b.exec(direct, "ROLLBACK", begin)
			b.exec(through, "ROLLBACK", begin)
			for _, s := range statements {
				for i := range after {
					for _, step := range []struct {
						sql  string
						args []any
					}{{s.sql, s.args}, {after[i], nil}} {
						want, got := answer(t.Context(), direct, step.sql, step.args...),
							answer(t.Context(), through, step.sql, step.args...)
						if got = strings.ReplaceAll(got, b.database, twin); got != want {
							t.Errorf("[%s] %s: %s behind %s\nthrough isotap:\n%s\ndirectly:\n%s", parameters, begin,
								step.sql, s.sql, got, want)
						}
					}
				}
			}
			b.exec(direct, "ROLLBACK")
			b.exec(through, "ROLLBACK")
		}
	}
}

func TestCompanionsShowWhatSetOperationsRead(t *testing.T) {
	b := newBench(t, nil, strings.Split(setOperationTables, "; ")...)
	const (
		distinct  = "SELECT DISTINCT name FROM item WHERE id BETWEEN ? AND ? ORDER BY name"
		union     = "SELECT name FROM item UNION SELECT body FROM note WHERE id = ?"
		ordered   = "SELECT name FROM item UNION SELECT body FROM note WHERE id = ? ORDER BY name LIMIT ?"
		unionAll  = "SELECT name FROM item UNION ALL SELECT body FROM note WHERE id = ?"
		except    = "SELECT name FROM item EXCEPT SELECT body FROM note WHERE id = ?"
		locking   = "SELECT DISTINCT name FROM item WHERE id < ? FOR UPDATE"
		limited   = "SELECT DISTINCT name FROM item WHERE id < ? ORDER BY name LIMIT 2"
		limitedBy = "SELECT DISTINCT name FROM item WHERE id < ? ORDER BY name LIMIT ?"
	)
	run := func(c *sql.Conn) {
		for _, s := range []struct {
			sql  string
			args []any
		}{{distinct, []any{1, 3}}, {union, []any{1}}, {unionAll, []any{2}},
			{ordered, []any{1, 9}}, {ordered, []any{1, 2}}, {except, []any{1}}, {locking, []any{3}},
			{limited, []any{4}}} {
			if out := answer(t.Context(), c, s.sql, s.args...); strings.Contains(out, "error") {
				t.Fatalf("%s: %s", s.sql, out)
			}
		}
	}
	for _, parameters := range []string{"", "interpolateParams=true"} {
		c := b.conn(b.open(parameters))
		for _, begin := range []string{"DO 1", "BEGIN", "SET autocommit = 0",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
			"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"} {
			b.exec(c, begin)
			run(c)
			b.exec(c, "ROLLBACK")
		}
		c.Close()
	}
	txns := b.txns()
	for _, c := range []struct{ shape, inSnapshot, outside string }{
		{union, "exact rrrrr", "exact rrrrr"},
		{ordered, "exact rrrrr,inexact LIMIT rrrrr", "exact rrrrr,inexact LIMIT rrrrr"},
		{unionAll, "exact rrrrr", "exact rrrrr"},
		{except, "exact rrrrr", "opaque union "},
		{locking, "opaque distinct ", "opaque distinct "},
		{limitedBy, "inexact LIMIT rr", "opaque distinct "},
	} {
		one := strings.Join([]string{c.outside, c.inSnapshot, c.inSnapshot, c.outside, c.outside}, ",")
		want := strings.TrimSpace(one + "," + one)
		if got := seen(txns, c.shape); got != want {
			t.Errorf("%s:\nseen %s\nwant %s", c.shape, got, want)
		}
	}
	// Prepared it has a companion alone. A text shows its rows itself where there is no snapshot that lasts, unless
	// reads lock.
	const want = "opaque distinct ,exact rrr,exact rrr,opaque distinct ,opaque distinct ," +
		"exact rrr,exact rrr,exact rrr,exact rrr,opaque distinct"
	if got := seen(txns, distinct); got != want {
		t.Errorf("%s:\nseen %s\nwant %s", distinct, got, want)
	}
}

func TestCompanionReadsTheStatementsOwnSnapshot(t *testing.T) {
	b := newBench(t, nil, strings.Split(setOperationTables, "; ")...)
	one, two := b.conn(b.through), b.conn(b.open(""))
	const distinct = "SELECT DISTINCT name FROM item WHERE id = ?"
	b.updatesCurrentRows(one)
	b.exec(one, "BEGIN", "SELECT id FROM note WHERE id = 1")
	b.exec(two, "UPDATE item SET name = 'new' WHERE id = 1")
	for range 2 {
		if out := answer(t.Context(), one, distinct, 1); !strings.Contains(out, `"a" false`) {
			t.Fatalf("read %s", out)
		}
	}
	b.exec(one, "UPDATE item SET name = 'own' WHERE id = 1")
	answer(t.Context(), one, distinct, 1)
	b.exec(one, "COMMIT")
	one.Close()
	two.Close()
	var versions []string
	for _, s := range stmts(b.txns(), distinct) {
		for _, a := range s.Accesses {
			versions = append(versions, map[bool]string{true: "initial", false: "written"}[a.Version.Initial()])
		}
	}
	if got := strings.Join(versions, " "); got != "initial initial written" {
		t.Errorf("versions %s", got)
	}
}

// TestCompanionThatIsRefusedStaysUnseen runs as a user who may not read isotap's columns.
func TestCompanionThatIsRefusedStaysUnseen(t *testing.T) {
	b := newBench(t, nil, strings.Split(setOperationTables, "; ")...)
	admin := testdb.Open(t, "")
	b.exec(admin, "CREATE USER slim@localhost IDENTIFIED BY 'pw'", "CREATE USER slim@'127.0.0.1' IDENTIFIED BY 'pw'")
	t.Cleanup(func() { admin.Exec("DROP USER slim@localhost, slim@'127.0.0.1'") })
	for _, host := range []string{"localhost", "127.0.0.1"} {
		b.exec(admin, "GRANT SELECT (id, name) ON "+b.database+".item TO slim@'"+host+"'")
	}
	for _, parameters := range []string{"", "?interpolateParams=true"} {
		db, err := sql.Open("mysql", "slim:pw@tcp("+b.srv.Addr().String()+")/"+b.database+parameters)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c := b.conn(db)
		b.exec(c, "BEGIN")
		for range 2 {
			if out := answer(t.Context(), c, "SELECT DISTINCT name FROM item WHERE id = ?", 1); !strings.HasSuffix(out,
				"\"a\" false | \n") {
				t.Fatalf("read %s", out)
			}
			for _, probe := range []struct{ sql, want string }{{"SHOW WARNINGS", ""}, {"SELECT FOUND_ROWS()", `"1"`},
				{"SELECT ROW_COUNT()", `"-1"`}} {
				if out := answer(t.Context(), c, probe.sql); !strings.Contains(out, probe.want) || probe.want == "" &&
					strings.Contains(out, "|") {
					t.Errorf("%s: %s", probe.sql, out)
				}
				if out := answer(t.Context(), c, "SELECT DISTINCT name FROM item WHERE id = ?",
					1); strings.Contains(out, "error") {
					t.Fatal(out)
				}
			}
		}
		b.exec(c, "COMMIT")
		c.Close()
	}
	for _, s := range stmts(b.txns(), "SELECT DISTINCT name FROM item WHERE id = ?") {
		if s.Observation != history.Opaque || s.Reason != history.ParseReason("companion failed with error 1143") &&
			s.Reason != history.ReasonDistinct {
			t.Errorf("recorded as %v %s", s.Observation, s.Reason)
		}
	}
}

func TestCompanionOfManyRowsIsInexact(t *testing.T) {
	b := newBench(t, nil, "CREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
		"INSERT INTO many (v) VALUES (1)"+strings.Repeat(", (2)", 10_000))
	c := b.conn(b.through)
	b.exec(c, "BEGIN", "SELECT DISTINCT v FROM many", "SELECT DISTINCT v FROM many WHERE id > 1", "COMMIT")
	c.Close()
	var got []string
	for _, txn := range b.txns() {
		for _, s := range txn.Stmts {
			if s.Kind == history.Select {
				got = append(got, strings.TrimSpace(s.Observation.String()+" "+s.Reason.String()))
			}
		}
	}
	if strings.Join(got, ",") != "inexact too many rows,exact" {
		t.Errorf("observed %v", got)
	}
}

func TestCompanionKnowsTheLimitOfTheSession(t *testing.T) {
	b := newBench(t, nil, strings.Split(setOperationTables, "; ")...)
	c := b.conn(b.through)
	b.exec(c, "SET sql_select_limit = 1", "BEGIN", "SELECT DISTINCT name FROM item WHERE id > 0",
		"SET sql_select_limit = DEFAULT",
		"SELECT DISTINCT name FROM item WHERE id > 0", "COMMIT")
	c.Close()
	if got := seen(b.txns(), "SELECT DISTINCT name FROM item WHERE id > ?"); got != "opaque distinct ,exact rrrr" {
		t.Errorf("seen %s", got)
	}
}
