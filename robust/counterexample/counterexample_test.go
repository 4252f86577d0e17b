package counterexample_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/counterexample"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/program"
	"github.com/isotap/isotap/scenario"
)

// compiled returns programs with their tables.
func compiled(t *testing.T, family dbms.Family, definitions,
	programs string) (*robust.Workload, *counterexample.Tables) {
	t.Helper()
	tables, err := counterexample.NewTables(family, definitions)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, err := footprint.ReadSchema(family, definitions)
	if err != nil {
		t.Fatal(err)
	}
	w, err := program.Compile("test", family, schema, program.Source{Name: "test.sql", Text: programs})
	if err != nil {
		t.Fatal(err)
	}
	return w, tables
}

// written returns the scenario of the first set of programs that is not robust.
func written(t *testing.T, w *robust.Workload, tables *counterexample.Tables) *scenario.Scenario {
	t.Helper()
	a := robust.Analyze(w.Programs, robust.Setting{ForeignKeys: true})
	sets := a.Subsets(robust.TypeII, 0).Minimal
	if len(sets) == 0 {
		t.Fatal("all programs are robust")
	}
	witness := a.Witness(robust.TypeII, sets[0]...)
	if witness.Schedule == nil {
		t.Fatal("no execution was found")
	}
	s, err := counterexample.Scenario("test", w, tables, witness)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each condition holds of the row that the statement with it is to find, or does not find yet.
func TestValuesAreSuchThatStatementsFindTheirRows(t *testing.T) {
	const keyed = "CREATE TABLE t (id INT PRIMARY KEY, a %s, n INT NOT NULL);"
	for _, c := range []struct {
		family     dbms.Family
		typ, where string
		row, step  string // parts of what inserts the row, and of a statement
	}{
		{dbms.PostgreSQLFamily, "INT", "a = :v", "(1, 3, ", "a = 3"},
		{dbms.PostgreSQLFamily, "INT", "a > 5 AND a < 7", "(1, 6, ", "a > 5"},
		{dbms.PostgreSQLFamily, "INT", "a BETWEEN 10 AND 20", "(1, 10, ", "BETWEEN 10"},
		{dbms.PostgreSQLFamily, "INT", "a >= :v AND a < :w", "(1, 6, ", "a >= 6 AND a < 9"},
		{dbms.PostgreSQLFamily, "INT", "a >= :v - 20 AND a < :v", "(1, 4, ", "a >= 7 - 20 AND a < 7"},
		{dbms.PostgreSQLFamily, "INT", "a IN (4, 5)", "(1, 4, ", "IN (4, 5)"},
		{dbms.PostgreSQLFamily, "INT", "a = ANY (:v)", "(1, 3, ", "ANY ('{3}')"},
		{dbms.PostgreSQLFamily, "INT", "a <> 2", "(1, 3, ", "a <> 2"},
		{dbms.PostgreSQLFamily, "INT", "a IS NULL", "(id, n) VALUES (1, ", "a IS NULL"},
		{dbms.PostgreSQLFamily, "TEXT", "a LIKE 'ab%'", "(1, 'ab', ", "LIKE 'ab%'"},
		{dbms.PostgreSQLFamily, "DATE", "a >= '2024-02-28' AND a < :v", "(1, '2024-02-28', ", "a < '2024-02-29'"},
		{dbms.PostgreSQLFamily, "TIMESTAMP", "a = :v", "(1, '2000-01-04 00:00:00', ", "a = '2000-01-04 00:00:00'"},
		{dbms.PostgreSQLFamily, "UUID", "a = :v", "'00000000-0000-0000-0000-000000000003'",
			"a = '00000000-0000-0000-0000-000000000003'"},
		{dbms.PostgreSQLFamily, "BOOLEAN", "a = :v", "(1, true, ", "a = true"},
		{dbms.PostgreSQLFamily, "NUMERIC(4,4)", "a = :v", "(1, 0.0003, ", "a = 0.0003"},
		{dbms.PostgreSQLFamily, "INT CHECK (a >= 100)", "a < :v", "(1, 100, ", "a < 101"},
		{dbms.MySQLFamily, "ENUM('x', 'y')", "a = :v", "(1, 'x', ", "a = 'x'"},
		{dbms.MySQLFamily, "DATETIME", "a BETWEEN '2024-02-28 00:00:00' AND :v", "(1, '2024-02-28 00:00:00', ",
			"AND '2024-02-28 00:00:00'"},
		{dbms.MySQLFamily, "CHAR(1)", "a = :v", "(1, '3', ", "a = '3'"},
	} {
		t.Run(c.family.String()+" "+c.typ+" "+c.where, func(t *testing.T) {
			w, tables := compiled(t, c.family, strings.Replace(keyed, "%s", c.typ, 1),
				"Add (:id, :v, :w): SELECT n INTO :n FROM t WHERE "+c.where+
					"; UPDATE t SET n = :m WHERE "+c.where+"; COMMIT;")
			s := written(t, w, tables)
			if text := strings.Join(s.Setup, "\n"); !strings.Contains(text, c.row) {
				t.Errorf("%q is not in %s", c.row, text)
			}
			if !slices.ContainsFunc(s.Steps,
				func(step scenario.Step) bool { return strings.Contains(step.SQL, c.step) }) {
				t.Errorf("%q is in none of %v", c.step, s.Steps)
			}
		})
	}
}

func TestRowsReferToRowsThatAreThere(t *testing.T) {
	w, tables := compiled(t, dbms.PostgreSQLFamily,
		`CREATE TABLE child (id INT PRIMARY KEY, parent INT NOT NULL REFERENCES "Parent" (id), other INT REFERENCES child (id), n INT);
		CREATE TABLE "Parent" (id INT PRIMARY KEY, since DATE NOT NULL); CREATE TABLE beside (id INT);`,
		"Add (:id): SELECT n INTO :n FROM child WHERE id = :id; UPDATE child SET n = :n WHERE id = :id; COMMIT;")
	s := written(t, w, tables)
	want := []string{`INSERT INTO "Parent" (id, since) VALUES (5, '2000-01-07')`,
		"INSERT INTO child (id, parent, n) VALUES (1, 5, 3)"}
	if have := s.Setup[len(s.Setup)-2:]; !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
	if strings.Contains(strings.Join(s.Setup, "\n"), "beside") {
		t.Errorf("it makes a table that nobody uses: %q", s.Setup)
	}
}

func TestTablesOfOtherSchemasAreLeftAlone(t *testing.T) {
	w, tables := compiled(t, dbms.PostgreSQLFamily, "CREATE TABLE shop.stock (id INT PRIMARY KEY, n INT);",
		"Take (:id): SELECT n INTO :n FROM shop.stock WHERE id = :id; UPDATE shop.stock SET n = :n WHERE id = :id; COMMIT;")
	a := robust.Analyze(w.Programs, robust.Setting{ForeignKeys: true})
	_, err := counterexample.Scenario("test", w, tables, a.Witness(robust.TypeII, 0))
	if err == nil || !strings.Contains(err.Error(), "stock is a table of schema shop") {
		t.Error(err)
	}
}

func TestBindPutsValuesIntoStatements(t *testing.T) {
	for _, c := range []struct {
		family    dbms.Family
		sql, want string
	}{
		{dbms.PostgreSQLFamily, "SELECT n INTO :n FROM t WHERE id = :id AND name = :name",
			"SELECT n FROM t WHERE id = 7 AND name = 'it''s'"},
		{dbms.PostgreSQLFamily, "UPDATE t SET n = :n, day = :day WHERE id = :id RETURNING old.n INTO :m",
			"UPDATE t SET n = 1, day = '2000-01-02' WHERE id = 7"},
		{dbms.PostgreSQLFamily, "UPDATE t SET n = n + :id RETURNING n INTO :m", "UPDATE t SET n = n + 7 RETURNING n"},
		{dbms.PostgreSQLFamily, "SELECT '$1' || :name, $q$:id$q$ FROM t WHERE id = :id AND id = :id",
			"SELECT '$1' || 'it''s', $q$:id$q$ FROM t WHERE id = 7 AND id = 7"},
		{dbms.MySQLFamily, "SELECT n INTO :n FROM t WHERE id = :id AND name = :name AND id <> :id",
			"SELECT n FROM t WHERE id = 7 AND name = 'it''s' AND id <> 7"},
		{dbms.MySQLFamily, "INSERT INTO t VALUES (:id, '?', :n, :day)",
			"INSERT INTO t VALUES (7, '?', 1, '2000-01-02')"},
	} {
		w, tables := compiled(t, c.family, "CREATE TABLE t (id INT PRIMARY KEY, name TEXT, n INT, day DATE);",
			"P (:id): "+c.sql+"; COMMIT;")
		have, err := tables.Bind(w.Programs[0].Statements()[0], map[string]string{":id": "7", ":name": "it's"})
		if err != nil || have != c.want {
			t.Errorf("%s: %s, %v, want %s", c.sql, have, err, c.want)
		}
	}
}

// What is expected at a level is what the model of the level says of the execution: WriteCheck's is refused at
// PostgreSQL's REPEATABLE READ, and what comes of another order is left open.
func TestScenariosExpectAllowedAnomalies(t *testing.T) {
	w, tables, _ := benchmark(t, "smallbank")
	s := written(t, w, tables)
	for level, want := range map[string]string{"READ COMMITTED": "shown", "REPEATABLE READ": "anything",
		"SERIALIZABLE": "nothing"} {
		i := slices.IndexFunc(s.Outcomes, func(o scenario.Outcome) bool {
			return len(o.Levels) == 0 ||
				slices.Contains(o.Levels, level)
		})
		have := "nothing"
		if o := s.Outcomes[i]; o.Open {
			have = "anything"
		} else if o.Shown {
			have = "shown"
		}
		if have != want {
			t.Errorf("%s at %s: %s is expected, want %s", s.Name, level, have, want)
		}
	}
}
