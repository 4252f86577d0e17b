package oracle_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/library"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

func open(t *testing.T, url string) *runner.Runner {
	t.Helper()
	target, err := dsn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), target, runner.Options{Columns: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func serialOf(r *runner.Runner, seed uint64) *oracle.Serial {
	return &oracle.Serial{Play: r.Direct, Record: r.Record, Server: r.Server, Random: rand.New(rand.NewPCG(seed, 0))}
}

func scenarioOf(t *testing.T, file string) *scenario.Scenario {
	t.Helper()
	f, err := library.Files.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := scenario.ReadFile(f, file)
	if err != nil {
		t.Fatal(err)
	}
	return all[0].At()
}

// Figure 1 of the paper is MDEV-29565: the UPDATE changes two rows, in an order of the statements one.
func TestFigure1IsToldAsAKnownBug(t *testing.T) {
	s := scenarioOf(t, "bugs/mdev-29565.yaml")
	for name, c := range map[string]struct {
		url   string
		wrong bool
	}{"mariadb": {testdb.MariaDB(t).URL(), true}, "postgresql": {testdb.PostgreSQL(t).URL(), false}} {
		t.Run(name, func(t *testing.T) {
			v, err := serialOf(open(t, c.url), 1).Judge(t.Context(), oracle.Script{Scenario: s}, history.RepeatableRead)
			if err != nil {
				t.Fatal(err)
			}
			if v.Wrong() != c.wrong || v.Transactions != 2 || v.Statements != 5 || len(v.NotJudged) > 0 {
				t.Errorf("%d transactions, %d statements, not judged %v:\n%s", v.Transactions, v.Statements, v.NotJudged, v)
			}
			if o := v.Orders; o.There == 0 || o.More || o.Played != min(3, o.There) || !v.Graph.TransactionsHaveOrder() {
				t.Errorf("orders %+v, of the transactions %v", o, v.Graph.TransactionsHaveOrder())
			}
			if !v.Wrong() {
				return
			}
			d := v.Differences[0]
			if d.SQL[:6] != "UPDATE" || d.Aspect != oracle.Affected || d.Got != "2" || d.Want != "1" ||
				!strings.Contains(d.Known, "MDEV-29565") {
				t.Errorf("%s", d)
			}
		})
	}
}

// What cannot be judged is left out, and the rest is judged.
func TestWhatIsNotJudgedIsSaid(t *testing.T) {
	r := open(t, testdb.MariaDB(t).URL())
	for _, c := range []struct {
		name       string
		steps      []string // "session: SQL"
		level      history.Level
		statements int
		notJudged  string
	}{
		{"lost update", []string{"a: BEGIN", "a: SELECT v FROM t WHERE id = 1", "b: UPDATE t SET v = 5 WHERE id = 1",
			"a: UPDATE t SET v = 6 WHERE id = 1", "a: COMMIT"}, history.ReadCommitted, 3, ""},
		{"writes that do not see each other", []string{"a: BEGIN", "b: BEGIN", "a: UPDATE t SET v = 5 WHERE id = 1",
			"b: UPDATE t SET v = 5 WHERE id = 2", "a: COMMIT", "b: COMMIT"}, history.ReadCommitted, 1, "they depend on each other"},
		{"write of what the snapshot lacks", []string{"a: BEGIN", "a: SELECT * FROM t", "b: UPDATE t SET v = 5 WHERE id = 1",
			"a: UPDATE t SET v = 6 WHERE v = 5", "a: COMMIT"}, history.RepeatableRead, 2, "by the engine's design"},
		{"update that leaves out what is not committed", []string{"a: BEGIN", "a: INSERT INTO t VALUES (8, 14)",
			"b: UPDATE t SET v = 5 WHERE v >= 10", "a: COMMIT"}, history.ReadUncommitted, 1, "committed versions"},
		{"dirty read", []string{"a: BEGIN", "a: UPDATE t SET v = 5 WHERE id = 1", "b: SELECT * FROM t", "a: ROLLBACK"},
			history.ReadUncommitted, 0, "what was undone"},
		{"dirty read of what was not seen", []string{"a: BEGIN", "a: UPDATE t SET v = (SELECT 9 FROM t x WHERE x.id = 1)",
			"b: SELECT * FROM t"}, history.ReadUncommitted, 1, "was not seen"},
		{"deadlock", []string{"a: BEGIN", "b: BEGIN", "a: UPDATE t SET v = 5 WHERE id = 1", "b: UPDATE t SET v = 5 WHERE id = 2",
			"a: UPDATE t SET v = 6 WHERE id = 2", "b: UPDATE t SET v = 6 WHERE id = 1", "a: COMMIT", "b: COMMIT"},
			history.ReadCommitted, 2, "ended their transactions"},
		{"waits", []string{"a: BEGIN", "a: UPDATE t SET v = 5 WHERE id = 1", "b: UPDATE t SET v = 6 WHERE id = 1", "a: COMMIT"},
			history.ReadCommitted, 2, ""},
		{"savepoint", []string{"a: BEGIN", "a: SAVEPOINT s", "a: UPDATE t SET v = 5", "a: COMMIT", "b: SELECT * FROM t"},
			history.ReadCommitted, 1, "savepoints"},
		{"reads lock", []string{"a: BEGIN", "a: SELECT v FROM t WHERE id = 1", "b: UPDATE t SET v = 5 WHERE id = 2",
			"a: UPDATE t SET v = 6 WHERE id = 1", "b: SELECT v FROM t WHERE id = 2", "a: COMMIT"}, history.Serializable, 4, ""},
		{"no table of the set-up", []string{"a: SELECT * FROM mysql.user", "b: SELECT * FROM t"},
			history.ReadCommitted, 1, "it cannot be told"},
		{"rows that are locked", []string{"a: SELECT * FROM t FOR UPDATE SKIP LOCKED", "b: SELECT * FROM t"},
			history.ReadCommitted, 1, "one thing or another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scenario.Scenario{Name: c.name, Setup: []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)",
				"INSERT INTO t VALUES (1, 1), (2, 2)"}, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}}}
			for _, x := range c.steps {
				session, sql, _ := strings.Cut(x, ": ")
				s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
			}
			v, err := serialOf(r, 1).Judge(t.Context(), oracle.Script{Scenario: s}, c.level)
			if err != nil {
				t.Fatal(err)
			}
			said := len(v.NotJudged) == 0
			for why := range v.NotJudged {
				said = strings.Contains(why, c.notJudged) && c.notJudged != ""
			}
			if v.Wrong() || v.Statements != c.statements || !said || len(v.NotJudged) == 0 != (c.notJudged == "") {
				t.Errorf("%d statements judged, not judged %v:\n%s", v.Statements, v.NotJudged, v)
			}
		})
	}
}

// What is another thing each time it is played, by design, is told by no oracle: neither in answers nor in the tables.
func TestClockChanceAndDefinitionsAreNotAccused(t *testing.T) {
	for name, c := range map[string]struct {
		url    string
		moving []string
	}{
		"mysql": {testdb.Current(t).URL(), []string{"SELECT NOW(6), id FROM t", "UPDATE t SET v = 1000000 * RAND() WHERE id = 1",
			"INSERT INTO t VALUES (UUID_SHORT() % 1000000 + 10, 1)", "INSERT INTO d (id) VALUES (2)",
			"CREATE TABLE u (a INT)", "ALTER TABLE t ADD COLUMN w INT"}},
		"postgresql": {testdb.PostgreSQL(t).URL(), []string{"SELECT clock_timestamp(), id FROM t",
			"UPDATE t SET v = 1000000 * random() WHERE id = 1", "INSERT INTO d (id) VALUES (2)", "SELECT xmin FROM t",
			"CREATE TABLE u (a INT)", "ALTER TABLE t ADD COLUMN w INT"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scenario.Scenario{Name: name, Sessions: []scenario.Session{{Name: "a"}, {Name: "b"}}, Setup: []string{
				"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)",
				"CREATE TABLE d (id INT PRIMARY KEY, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))"}}
			for _, sql := range append(append([]string{"BEGIN", "SELECT v FROM t WHERE id = 2"}, c.moving...), "SELECT * FROM t",
				"UPDATE t SET v = v + 1", "COMMIT") {
				s.Steps = append(s.Steps, scenario.Step{Session: "a", SQL: sql})
			}
			for _, sql := range []string{"START TRANSACTION READ ONLY", "SELECT id FROM t", "UPDATE t SET v = 0", "ROLLBACK"} {
				s.Steps = append(s.Steps, scenario.Step{Session: "b", SQL: sql})
			}
			r := open(t, c.url)
			script, level := oracle.Script{Scenario: s}, history.ReadCommitted
			for by, judge := range map[string]func() (*oracle.Verdict, error){
				"alone":  func() (*oracle.Verdict, error) { return oracle.Alone(t.Context(), r.Direct, r.Server, script, level) },
				"forms":  func() (*oracle.Verdict, error) { return oracle.Forms(t.Context(), r.Direct, r.Server, script, level) },
				"serial": func() (*oracle.Verdict, error) { return serialOf(r, 1).Judge(t.Context(), script, level) },
				"views": func() (*oracle.Verdict, error) {
					return oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, script, level)
				},
			} {
				v, err := judge()
				if err != nil {
					t.Fatal(err)
				}
				if v.Wrong() || v.Statements == 0 || len(v.NotJudged) == 0 {
					t.Errorf("%s: %d statements, not judged %v:\n%s", by, v.Statements, v.NotJudged, v)
				}
			}
		})
	}
}

// Of the bugs that Troc found in TiDB one lives where an UPDATE writes what is there already. The error of 28092 comes
// in autocommit, too; and what 33315 shows is what the manual says of a snapshot that a DELETE does not go by.
func TestTiDBsBugsAreToldByViews(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, as TiDB's start is: make check runs it")
	}
	server := testdb.TiDB(t)
	if server == nil {
		t.Skip(testdb.NoTiDB)
	}
	r := open(t, server.URL())
	for file, known := range map[string]string{"bugs/tidb-28212.yaml": "MDEV-26642", "bugs/tidb-28092.yaml": "",
		"bugs/tidb-33315.yaml": ""} {
		for _, mode := range []string{"pessimistic", "optimistic"} {
			s := scenarioOf(t, file)
			for i := range s.Sessions {
				s.Sessions[i].Settings = scenario.Settings{"tidb_txn_mode": mode}
			}
			v, err := oracle.Views(t.Context(), r.Direct, r.Scratch, r.Server, oracle.Script{Scenario: s}, history.RepeatableRead)
			if err != nil {
				t.Fatal(err)
			}
			wrong := known != "" && mode == "pessimistic"
			if v.Wrong() != wrong || v.Statements == 0 || wrong && !strings.Contains(v.Differences[0].Known, known) {
				t.Errorf("%s, %s: %d statements, not judged %v:\n%s", file, mode, v.Statements, v.NotJudged, v)
			}
		}
	}
}
