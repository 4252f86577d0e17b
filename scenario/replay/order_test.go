package replay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

// tester plays a specification of isolationtester and returns what isolationtester would write.
func tester(t *testing.T, spec string) string {
	t.Helper()
	r, server := newRunner(t, dbms.PostgreSQLFamily)
	all, err := scenario.ReadSpec(strings.NewReader(spec), "spec")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, s := range all {
		trace, err := r.Run(t.Context(), server, s, history.ReadCommitted, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.IsolationTester(&b, s); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func compareText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The wanted texts of the tests below are those of PostgreSQL 15's own isolationtester.

// TestSetUpsAndTearDownsRunAroundSteps: set ups and tear downs run around the steps.
func TestSetUpsAndTearDownsRunAroundSteps(t *testing.T) {
	compareText(t, tester(t, `
setup { CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one'); SELECT v FROM t; }
setup { VACUUM t; }
teardown { SELECT v, id FROM t; DROP TABLE t; SELECT 5 AS n; }
session a
setup { BEGIN; SELECT 1.5 AS x, NULL AS y; }
step u { UPDATE t SET v = 'two' WHERE id = 1; SELECT v, id FROM t; SELECT 'a' AS "A"; }
step e { SELECT 1 AS n; SELECT 1/0; }
teardown { ROLLBACK; }
session idle
setup { SELECT 'here' AS i; }
step none { }
permutation u e
`), `
starting permutation: u e
v  
---
one
(1 row)

  x|y
---+-
1.5| 
(1 row)

i   
----
here
(1 row)

step u: UPDATE t SET v = 'two' WHERE id = 1; SELECT v, id FROM t; SELECT 'a' AS "A";
v  |id
---+--
two| 1
(1 row)

A
-
a
(1 row)

step e: SELECT 1 AS n; SELECT 1/0;
n
-
1
(1 row)

ERROR:  division by zero
n
-
5
(1 row)

`)
}

const locks = `
setup { CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); }
session a
setup { BEGIN; }
step lock { SELECT 1 AS a FROM t WHERE id = 1 FOR UPDATE; }
step commit { COMMIT; }
session b
step wait { SELECT 2 AS b FROM t WHERE id = 1 FOR UPDATE; }
step timed { SET lock_timeout = '300ms'; SELECT 3 AS b FROM t WHERE id = 1 FOR UPDATE; }
step after { SELECT 4 AS b; }
session c
step also { SELECT 5 AS c FROM t WHERE id = 1 FOR UPDATE; }
step quick { SELECT 6 AS c; }
step none { }
`

func TestStepsEndInTheOrderThatMarkersGive(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for permutation, want := range map[string]string{
		"lock wait commit after": `lock wait... commit wait after`,
		// A step that waits is waited for before its session's next step, and at the end.
		"lock timed after commit": `lock timed... timed after commit`,
		"lock timed":              `lock timed... timed`,
		// One that counts as waiting is looked at after the next step.
		"quick(*) none lock": `quick... quick none lock`,
		"quick(*) lock none": `quick... lock quick none`,
		"quick(*)":           `quick... quick`,
		// One that has ended counts as waiting for another.
		"lock wait quick(wait) commit":       `lock wait... quick... commit wait quick`,
		"lock wait(also) also commit":        `lock wait... also... commit also wait`,
		"lock quick(*, commit) commit after": `lock quick... commit quick after`,
	} {
		t.Run(permutation, func(t *testing.T) {
			var words []string
			for line := range strings.Lines(tester(t, locks+"permutation "+permutation)) {
				if rest, ok := strings.CutPrefix(line, "step "); ok {
					name, _, _ := strings.Cut(rest, ":")
					if strings.Contains(rest, "<waiting ...>") {
						name += "..."
					}
					words = append(words, name)
				}
			}
			compareText(t, strings.Join(words, " "), want)
		})
	}
}

func TestNoticesAndNotificationsComeWhereTheyWereSeen(t *testing.T) {
	const notification = "b: NOTIFY \"spec_test\" with payload \"sent\" from a\n"
	got := tester(t, `
setup { CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); }
setup { CREATE FUNCTION say(what text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	RAISE NOTICE '%', what USING DETAIL = 'so'; RETURN 1; END $$; }
setup { CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	PERFORM say('before'); PERFORM 1 FROM t FOR UPDATE; PERFORM say('behind'); RETURN 2; END $$; }
session a
setup { BEGIN; }
step lock { SELECT id FROM t FOR UPDATE; }
step end { NOTIFY spec_test, 'sent'; COMMIT; }
session b
setup { LISTEN spec_test; }
step slow { SELECT slow(); }
step read { SELECT 7 AS n FROM pg_sleep(0.1); }
session c
step held { SELECT 8 AS n; }
permutation lock held(slow notices 2) slow end read
`)
	// When the server sends a notification is its own affair.
	if strings.Count(got, notification) != 1 {
		t.Errorf("there is not one notification in\n%s", got)
	}
	compareText(t, strings.Replace(got, notification, "", 1), `
starting permutation: lock held slow end read
step lock: SELECT id FROM t FOR UPDATE;
id
--
 1
(1 row)

step held: SELECT 8 AS n; <waiting ...>
b: NOTICE:  before
DETAIL:  so
step slow: SELECT slow(); <waiting ...>
step end: NOTIFY spec_test, 'sent'; COMMIT;
b: NOTICE:  behind
DETAIL:  so
step slow: <... completed>
slow
----
   2
(1 row)

step held: <... completed>
n
-
8
(1 row)

step read: SELECT 7 AS n FROM pg_sleep(0.1);
n
-
7
(1 row)

`)
}
