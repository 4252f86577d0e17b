package runner

import (
	"bytes"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// open returns a runner on a server of each family.
func open(t *testing.T) map[dbms.Engine]*Runner {
	t.Helper()
	stages := make(map[dbms.Engine]*Runner)
	for _, url := range []string{testdb.MariaDB(t).URL(), testdb.PostgreSQL(t).URL()} {
		target, err := dsn.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), target, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		stages[s.Server.Engine] = s
	}
	return stages
}

const lostUpdate = `format: isotap-scenario/1
name: lost update
setup: ["CREATE TABLE stock (id INT PRIMARY KEY, n INT)", "INSERT INTO stock VALUES (1, 10)"]
sessions: [{name: T1}, {name: T2}]
steps:
  - {session: T1, sql: BEGIN}
  - {session: T2, sql: BEGIN}
  - {session: T1, sql: SELECT n FROM stock WHERE id = 1, values: [["10"]]}
  - {session: T2, sql: SELECT n FROM stock WHERE id = 1, rows: 1}
  - {session: T1, sql: UPDATE stock SET n = 9 WHERE id = 1, affected: 1}
  - {session: T2, sql: UPDATE stock SET n = 8 WHERE id = 1, waits: true, affected: 1}
  - {session: T1, sql: COMMIT}
  - {session: T2, sql: COMMIT}
expect: {anomalies: [lost update]}
outcomes:
  - engines: [postgresql]
    levels: [REPEATABLE READ, SERIALIZABLE]
    steps: {6: {waits: true, error: "40001"}}
  - engines: [mariadb]
    levels: [SERIALIZABLE]
    steps: {5: {waits: true, affected: 1}, 6: {error: "40001"}}
`

func read(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScenariosComeAsTheyAreExpected(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for engine, s := range open(t) {
		for _, level := range s.Levels() {
			p, err := s.Play(t.Context(), read(t, lostUpdate), level)
			if err != nil {
				t.Fatalf("%s at %s: %v", engine, level, err)
			}
			for _, text := range p.Unexpected() {
				t.Errorf("%s at %s: %s", engine, level, text)
			}
		}
	}
}

func TestWhatIsNotAsExpectedIsSaid(t *testing.T) {
	text := strings.NewReplacer(`[["10"]]`, `[[null]]`, "rows: 1", "rows: 2", "affected: 1", "affected: 2",
		"waits: true", "waits: false", "[lost update]", "[write skew]").Replace(lostUpdate)
	p, err := open(t)["mariadb"].Play(t.Context(), read(t, text), history.ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(p.Unexpected(), "\n")
	const want = `step 3 (SELECT n FROM stock WHERE id = 1): [[10]], expected [[NULL]]
step 4 (SELECT n FROM stock WHERE id = 1): 1 rows, expected 2 rows
step 5 (UPDATE stock SET n = 9 WHERE id = 1): 1 affected, expected 2 affected
step 6 (UPDATE stock SET n = 8 WHERE id = 1): it waited, expected it did not wait
step 6 (UPDATE stock SET n = 8 WHERE id = 1): 1 affected, expected 2 affected
found lost update, expected write skew`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The same scenario gives the same text each time.
func TestTextSaysWhatHappened(t *testing.T) {
	s := open(t)["mariadb"]
	for range 3 {
		p, err := s.Play(t.Context(), read(t, lostUpdate), history.RepeatableRead)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.Text(&b); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(b.String(), "\n")
		const want = `   1  T1  BEGIN                                ok
   2  T2  BEGIN                                ok
   3  T1  SELECT n FROM stock WHERE id = 1     (10)
   4  T2  SELECT n FROM stock WHERE id = 1     (10)
   5  T1  UPDATE stock SET n = 9 WHERE id = 1  1 affected
   6  T2  UPDATE stock SET n = 8 WHERE id = 1  waits for T1 until 7: 1 affected
   7  T1  COMMIT                               ok
   8  T2  COMMIT                               ok
found lost update (hazard): `
		if !strings.HasPrefix(got, want) || strings.Contains(got, "isotap_replay") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// PostgreSQL shows a row that another has deleted since the snapshot beside one that the transaction has made under the
// same key since. That is the engine's word kept.
func TestARowMadeAgainIsNoViolation(t *testing.T) {
	s := open(t)["postgresql"]
	p, err := s.Play(t.Context(), read(t, `format: isotap-scenario/1
name: made again
setup: ["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10)"]
sessions: [{name: T1}, {name: T2}]
steps:
  - {session: T1, sql: BEGIN}
  - {session: T1, sql: SELECT 1 FROM t WHERE id = 2}
  - {session: T2, sql: DELETE FROM t WHERE id = 1}
  - {session: T1, sql: "INSERT INTO t VALUES (1, 20)", affected: 1}
  - {session: T1, sql: UPDATE t SET n = 21 WHERE n = 20, affected: 1}
  - {session: T1, sql: SELECT n FROM t WHERE id = 1 ORDER BY n, values: [["10"], ["21"]]}
  - {session: T1, sql: COMMIT}
expect: {anomalies: [lost update]}
`), history.RepeatableRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range p.Unexpected() {
		t.Error(text)
	}
	for _, f := range p.Result.Findings {
		if f.Class == analyzer.Violation {
			t.Errorf("violation: %s", f.Summary)
		}
	}
}
