package fromrecording

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// loseUpdate makes two tables and loses an update of one of them.
func loseUpdate(ctx context.Context, dsn string) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, sql := range []string{
		"CREATE TABLE maker (id INT PRIMARY KEY)", "CREATE TABLE beside (id INT PRIMARY KEY)",
		"CREATE TABLE stock (id INT PRIMARY KEY, n INT NOT NULL, maker INT REFERENCES maker (id))",
		"INSERT INTO maker (id) VALUES (7)", "INSERT INTO beside (id) VALUES (1)",
		"INSERT INTO stock (id, n, maker) VALUES (1, 10, 7), (2, 20, NULL), (3, 30, 7)",
		"UPDATE stock SET n = n + 1 WHERE id IN (1, 3)",
	} {
		if _, err := db.ExecContext(ctx, sql); err != nil {
			return err
		}
	}
	one, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer one.Close()
	for _, sql := range []string{"BEGIN", "SELECT n FROM stock WHERE id = 1", "",
		"UPDATE stock SET n = 10 WHERE id = 1", "COMMIT", "UPDATE stock SET n = 0 WHERE id = 2"} {
		c := one.ExecContext
		if sql == "" {
			c, sql = db.ExecContext, "UPDATE stock SET n = 5 WHERE id = 1"
		}
		if _, err := c(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// TestScenarioShowsTheRecordingsFinding: a finding of a recording is shown by its scenario.
func TestScenarioShowsTheRecordingsFinding(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, url := range map[string]func(*testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			target, err := dsn.Parse(url(t))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "rec")
			result, err := tempdb.Run(t.Context(), target, tempdb.Options{Database: "isotap_retrace", Recording: dir,
				Definitions: true}, loseUpdate)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Findings) != 1 {
				t.Fatalf("%d findings", len(result.Findings))
			}
			r, err := recorder.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s, err := Scenario(t.Context(), r, result.Findings[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			setup := strings.Join(s.Setup, "\n")
			if !strings.Contains(setup, "VALUES (1, 10, 7), (2, 20, NULL), (3, 30, 7)") ||
				!strings.Contains(setup, "IN (1, 3)") || strings.Contains(setup, "beside") ||
				strings.Contains(setup, "n = 0") {
				t.Errorf("the set-up is\n%s", setup)
			}
			on, err := runner.Open(t.Context(), target, runner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer on.Close()
			p, err := on.Play(t.Context(), s.At(), history.ReadCommitted)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.Anomalies(), []string{"lost update"}) {
				t.Errorf("its replay shows %v", p.Anomalies())
			}
			with, err := Scenario(t.Context(), r, result.Findings[0],
				[]string{"INSERT INTO stock (id, n) VALUES (1, 1)"})
			if err != nil || slices.ContainsFunc(with.Setup,
				func(sql string) bool { return strings.HasPrefix(sql, "UPDATE") }) {
				t.Errorf("%v, with rows of one's own: %v", err, with)
			}
		})
	}
}

func TestStatementsThatNameTheirSchemaAreNotPlayed(t *testing.T) {
	tables := &tables{schemas: []string{"shop"}}
	for sql, stays := range map[string]bool{
		"UPDATE shop.stock SET n = 1": false, "UPDATE `shop`.`stock` SET n = 1": false,
		`SELECT * FROM a,"shop".b`: false, "SELECT * FROM a-- \n,shop/* */.b": false,
		"UPDATE stock SET n = 1": true, "UPDATE stock AS workshop SET workshop.n = 1": true, "SELECT a.shop.b": true,
		"UPDATE stock SET n = 'a, shop.b'": true, "SELECT `a,shop.b` /* shop.b */": true,
		`UPDATE stock SET n = 'it''s \', shop.b'`: true,
	} {
		if err := tables.stays(sql); (err == nil) != stays {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestDefinitionsAreCutAtTheirSemicolons(t *testing.T) {
	for _, c := range []struct {
		family dbms.Family
		text   string
		want   []string
	}{
		{dbms.MySQLFamily, "CREATE TABLE t (a INT COMMENT 'x;\n\\';\n') /*!50100 PARTITION BY HASH (a) */;\n\n" +
			"CREATE TABLE `;\n` (b INT)\n",
			[]string{"CREATE TABLE t (a INT COMMENT 'x;\n\\';\n') /*!50100 PARTITION BY HASH (a) */", "CREATE TABLE `;\n` (b INT)"}},
		{dbms.PostgreSQLFamily, "CREATE TABLE t (a text DEFAULT '\\');\nCREATE FUNCTION f() AS $$ a;\nb $$;\n",
			[]string{`CREATE TABLE t (a text DEFAULT '\')`, "CREATE FUNCTION f() AS $$ a;\nb $$"}},
		{dbms.MySQLFamily, "CREATE TABLE `t (a INT);\n", []string{"CREATE TABLE `t (a INT);\n"}},
	} {
		if got := (&tables{family: c.family}).statements(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.family, got, c.want)
		}
	}
}
