package reduce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/sqltoken"
)

// big has three transactions in each of two sessions, of which the second of A and the first of B matter.
func big() *scenario.Scenario {
	s := &scenario.Scenario{Sessions: []scenario.Session{{Name: "A"}, {Name: "B"}, {Name: "C"}}, Setup: []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT UNIQUE)", "CREATE TABLE u (id INT)", "INSERT INTO t VALUES (1, 2)",
		"INSERT INTO u VALUES (1)"},
		Expect: scenario.Outcome{Anomalies: []string{"lost update"}}}
	for _, line := range []string{
		"A: BEGIN", "A: SELECT 1", "A: COMMIT", "B: BEGIN", "A: BEGIN", "C: SELECT 1",
		"A: SELECT id, v FROM t WHERE id = 1 AND v IN (1, 2, 3) ORDER BY v LIMIT 3",
		"B: UPDATE t SET v = COALESCE(v + 1, 2), id = id WHERE id = 1 OR EXISTS (SELECT 1 FROM u)",
		"B: COMMIT", "A: UPDATE t SET v = 3 WHERE id = 1", "B: SELECT 1", "A: COMMIT", "A: BEGIN", "A: ROLLBACK"} {
		session, sql, _ := strings.Cut(line, ": ")
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql, Reply: scenario.Reply{Waits: true}})
	}
	return s
}

// matters reports whether a scenario has, in this order, a read by A, a write by B and a write by A, and the table.
func matters(_ context.Context, s *scenario.Scenario) (bool, error) {
	want := []string{"A SELECT FROM t", "B UPDATE t SET v = 1 ", "A UPDATE t SET v = 1 "}
	for _, x := range s.Steps {
		words := strings.Fields(x.SQL)
		switch {
		case len(want) == 0:
		case words[0] == "SELECT" && strings.Contains(x.SQL, "FROM t") && want[0] == x.Session+" SELECT FROM t",
			words[0] == "UPDATE" && strings.Contains(x.SQL, "SET v =") &&
				strings.HasPrefix(want[0], x.Session+" UPDATE"):
			want = want[1:]
		}
	}
	return len(want) == 0 && slices.ContainsFunc(s.Setup,
		func(sql string) bool { return strings.HasPrefix(sql, "CREATE TABLE t (id INT") }), nil
}

func TestOnlyWhatMattersIsLeft(t *testing.T) {
	whole := big()
	s, tried, err := Reduce(t.Context(), dbms.MySQLFamily, whole, matters)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range s.Steps {
		got = append(got, x.Session+": "+x.SQL)
		if x.Waits {
			t.Errorf("%s: what was expected of the whole is expected of the part", x.SQL)
		}
	}
	const want = "A: SELECT * FROM t\nB: UPDATE t SET v = 1\nA: UPDATE t SET v = 3"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if strings.Join(s.Setup, "\n") != "CREATE TABLE t (id INT)" || len(s.Sessions) != 2 ||
		len(s.Expect.Anomalies) != 0 {
		t.Errorf("left: %q, %v, %v", s.Setup, s.Sessions, s.Expect)
	}
	if len(whole.Steps) != 14 || !whole.Steps[0].Waits {
		t.Error("the scenario itself has changed")
	}
	t.Logf("tried %d", tried)
}

// A step that only makes a row is one of the set-up, and is no transaction of the scenario.
func TestWhatMakesRowsBecomesSetup(t *testing.T) {
	whole := big()
	whole.Steps = append([]scenario.Step{{Session: "before", SQL: "INSERT INTO t VALUES (7, 7)"}}, whole.Steps...)
	shows := func(ctx context.Context, s *scenario.Scenario) (bool, error) {
		made := slices.Contains(s.Setup, "INSERT INTO t VALUES (7, 7)") ||
			s.Steps[0].SQL == "INSERT INTO t VALUES (7, 7)"
		ok, err := matters(ctx, s)
		return made && ok, err
	}
	s, _, err := Reduce(t.Context(), dbms.MySQLFamily, whole, shows)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Setup) != 2 || len(s.Sessions) != 2 {
		t.Errorf("left: %q, %v", s.Setup, s.Sessions)
	}
	if transactions, statements := Count(s); transactions != 3 || statements != 3 {
		t.Errorf("%d transactions, %d statements: %v", transactions, statements, s.Steps)
	}
}

func TestABeginEndsTheTransactionBeforeIt(t *testing.T) {
	s := &scenario.Scenario{Sessions: []scenario.Session{{Name: "A"}}}
	for _, sql := range []string{"BEGIN", "SELECT 1", "BEGIN", "SELECT 2", "COMMIT"} {
		s.Steps = append(s.Steps, scenario.Step{Session: "A", SQL: sql})
	}
	if transactions, statements := Count(s); transactions != 2 || statements != 2 {
		t.Errorf("%d transactions, %d statements", transactions, statements)
	}
}

// TestBeginAndCommitAreNoStatements: beginning and ending a transaction is no statement of it.
func TestBeginAndCommitAreNoStatements(t *testing.T) {
	if transactions, statements := Count(big()); transactions != 5 || statements != 6 {
		t.Errorf("%d transactions, %d statements", transactions, statements)
	}
}

func TestAnErrorEndsTheReduction(t *testing.T) {
	failed := errors.New("the server is gone")
	s, tried, err := Reduce(t.Context(), dbms.MySQLFamily, big(),
		func(context.Context, *scenario.Scenario) (bool, error) { return false, failed })
	if !errors.Is(err, failed) || tried != 1 || len(s.Steps) != 14 {
		t.Errorf("%v after %d, %d steps", err, tried, len(s.Steps))
	}
}

func TestStatementsAreMadeSimplerWithinTheirGrammar(t *testing.T) {
	for sql, want := range map[string][]string{
		"SELECT a FROM t WHERE x = 'it''s' AND y BETWEEN 1 AND 2": {"SELECT a FROM t",
			"SELECT a FROM t WHERE x = 'it''s'",
			"SELECT a FROM t WHERE y BETWEEN 1 AND 2"},
		"UPDATE t SET a = LOWER(b), c = 1":                        {"UPDATE t SET a = LOWER(b)", "UPDATE t SET c = 1"},
		"INSERT INTO t (a, b) VALUES (1, (SELECT MAX(a) FROM u))": {"INSERT INTO t (a, b) VALUES (1, 1)"},
	} {
		for _, family := range dbms.Families {
			got := simpler(family, sql)
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%s: %s: %q is not among %q", family, sql, w, got)
				}
			}
		}
	}
}

// TestStringsAndCommentsStayWhole: what a family has for a string is left as it is, or is left out with what it stands
// in; comments are not taken for SQL.
func TestStringsAndCommentsStayWhole(t *testing.T) {
	for _, c := range []struct {
		family    dbms.Family
		sql, want string
	}{
		{dbms.MySQLFamily, `SELECT 'a\' WHERE b' FROM t WHERE x = 1`, `SELECT 'a\' WHERE b' FROM t`},
		{dbms.MySQLFamily, "SELECT 5--3, 7 FROM t # AND it's", "SELECT 5--3 FROM t"},
		{dbms.MySQLFamily, "SELECT `a``,b`, 7 FROM t /* it's */ LIMIT 1", "SELECT `a``,b`, 7 FROM t"},
		{dbms.PostgreSQLFamily, "SELECT $q$it's, WHERE$q$, 7 FROM t", "SELECT $q$it's, WHERE$q$ FROM t"},
		{dbms.PostgreSQLFamily, `SELECT E'a\' WHERE b' FROM t WHERE x = 1`, `SELECT E'a\' WHERE b' FROM t`},
		{dbms.PostgreSQLFamily, "SELECT a /* /* ' */ it's */, 7 FROM t--'", "SELECT a FROM t"},
		{dbms.PostgreSQLFamily, `SELECT '\', U&"d""e" FROM t`, `SELECT U&"d""e" FROM t`},
	} {
		if got := simpler(c.family, c.sql); !slices.Contains(got, c.want) {
			t.Errorf("%s: %s: %q is not among %q", c.family, c.sql, c.want, got)
		}
	}
}

func FuzzSimpler(f *testing.F) {
	f.Add("SELECT a FROM t WHERE (x = 'y' OR NOT z) ORDER BY 1")
	f.Add("CASE ( ' ) , AND")
	mutate.Fuzz(f, func(t *testing.T, sql string) {
		for _, family := range dbms.Families {
			for _, s := range simpler(family, sql) {
				if len(s) >= len(sql) {
					t.Fatalf("%q became %q", sql, s)
				}
				if len(s) == 0 {
					t.Fatalf("%q became nothing", sql)
				}
			}
		}
	}, mutate.SQL...)
}

// TestSimplerStatementsKeepQuotedTextsWhole: each quoted text of a simpler statement is one of the statement's.
func TestSimplerStatementsKeepQuotedTextsWhole(t *testing.T) {
	pieces := map[dbms.Family][]string{
		dbms.MySQLFamily: {"'x'", "'x '' ('", `'x \' ,'`, `"a "" b"`, "`c ``,`", "/* ' */", "-- ' \n", "# ' \n", "--"},
		dbms.PostgreSQLFamily: {"'x'", "'x '' ('", `'x \'`, `E'x \' ,'`, `"a "" b"`, `U&"c"`, "$$ ' ( $$", "$q$ $$ ' $q$",
			"/* /* ' */ ' */", "--'\n"},
	}
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom(dbms.Families).Draw(t, "family")
		var words []string
		for range rapid.IntRange(1, 12).Draw(t, "pieces") {
			words = append(words, rapid.SampledFrom(append([]string{"SELECT", "FROM", "WHERE", "AND", "(", ")", ",", "a.b",
				"1", "=", "NOT"}, pieces[family]...)).Draw(t, "piece"))
		}
		sql := strings.Join(words, " ")
		quoted := make(map[string]bool)
		for _, s := range append([]string{sql}, simpler(family, sql)...) {
			tokens, err := sqltoken.Statement(family, s)
			if err != nil {
				t.Fatalf("%s: %s became %s: %v", family, sql, s, err)
			}
			for _, token := range tokens {
				if token.Kind != sqltoken.Quoted {
					continue
				}
				if s == sql {
					quoted[token.Text] = true
				} else if !quoted[token.Text] {
					t.Fatalf("%s: %s became %s, with another %s", family, sql, s, token.Text)
				}
			}
		}
	})
}
