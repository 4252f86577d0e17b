// Package counterexample writes the execution that shows that programs are not robust as a scenario, which a real server can
// play: the tables, the rows that the execution uses, a session for each of its transactions, and their statements in its order.
//
// Variables that name tuples have the values that the execution has for them; all others are 1, and so are the other columns, so
// that conditions by =, >= and <= hold. What a program receives by RETURNING … INTO is not asked for: nothing in the scenario
// depends on it, and old.column is refused before PostgreSQL 18. Conditions of predicates are not solved: whether a statement
// with one finds its rows is seen when it is played.
//
// counterexample.go makes the scenario, rows.go the rows that it begins with, bind.go statements without variables. All
// functions are pure.
package counterexample

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/sqltoken"
	"github.com/isotap/isotap/scenario"
)

// Tables are those that the programs use.
type Tables struct {
	family     footprint.Family
	statements []string // that define them
	schema     *footprint.Schema
}

// NewTables reads definitions: those that programs were compiled with. What of them is not read is an error.
func NewTables(family footprint.Family, definitions string) (*Tables, error) {
	schema, remarks, err := footprint.ReadSchema(family, definitions)
	if err != nil {
		return nil, err
	}
	if len(remarks) > 0 {
		return nil, fmt.Errorf("reading definitions: %s", remarks[0])
	}
	tokens, err := sqltoken.Scan(definitions, family == footprint.MySQL)
	if err != nil {
		return nil, fmt.Errorf("reading definitions: %w", err)
	}
	t := &Tables{family: family, schema: schema}
	for _, s := range sqltoken.Statements(tokens) {
		t.statements = append(t.statements, definitions[s[0].Start:s[len(s)-1].End])
	}
	return t, nil
}

// Scenario writes an execution of a workload's programs as a scenario of that name.
func Scenario(name string, w *robust.Workload, tables *Tables, s *robust.Schedule) (*scenario.Scenario, error) {
	b := &writer{tables: tables, schedule: s, values: make([]map[string]string, len(s.Runs)), began: make([]bool, len(s.Runs)), sent: make([]int, len(s.Runs))}
	sc := &scenario.Scenario{Name: name, From: "isotap robust: " + w.Name, Engines: []string{"postgresql"}}
	if tables.family == footprint.MySQL {
		sc.Engines = []string{"mariadb", "mysql"}
	}
	for i, run := range s.Runs {
		b.values[i] = valuesOf(&run)
		sc.Sessions = append(sc.Sessions, scenario.Session{Name: session(i), Level: sqlLevel(run.Level)})
	}
	inserts, err := rows(w.Schema, tables, s)
	if err != nil {
		return nil, err
	}
	sc.Setup = append(slices.Clone(tables.statements), inserts...)
	for _, step := range s.Order {
		if err := b.step(step); err != nil {
			return nil, fmt.Errorf("%s, statement %d of %s: %w", name, step.At+1, session(step.Run), err)
		}
	}
	sc.Steps = b.steps
	return sc, nil
}

// session names a run as reports do.
func session(run int) string { return fmt.Sprintf("T%d", run+1) }

// sqlLevel is the level as SQL has it: PostgreSQL's REPEATABLE READ is snapshot isolation.
func sqlLevel(l robust.Level) string {
	if l == robust.SnapshotIsolation {
		return "REPEATABLE READ"
	}
	return l.String()
}

// valuesOf gives the values of a run's variables, as far as they name tuples, by their names in the program.
func valuesOf(run *robust.Run) map[string]string {
	values := make(map[string]string)
	for at := range run.Program.Statements {
		receive(values, run, at)
	}
	return values
}

// receive gives the variables that a statement names its tuple by their values there.
func receive(values map[string]string, run *robust.Run, at int) {
	key := run.Program.Statements[at].Key
	if len(key) == 0 || len(run.Tuples[at]) != 1 {
		return
	}
	for i, part := range strings.Split(run.Tuples[at][0].Key, ",") {
		if i < len(key) && strings.HasPrefix(key[i], ":") {
			variable, _, _ := strings.Cut(key[i], "#") // #2 stands for its second value
			values[variable] = part
		}
	}
}

// A writer writes the steps.
type writer struct {
	tables   *Tables
	schedule *robust.Schedule
	values   []map[string]string // by run
	began    []bool              // by run
	sent     []int               // by run: the place behind the statements that were sent
	steps    []scenario.Step
}

// step writes a step of the schedule. Several statements of a program that stand for one of SQL are sent at the first of them.
func (b *writer) step(step robust.Step) error {
	run := &b.schedule.Runs[step.Run]
	send := func(sql string) {
		b.steps = append(b.steps, scenario.Step{Session: session(step.Run), SQL: sql})
	}
	if !b.began[step.Run] {
		b.began[step.Run] = true
		send("BEGIN")
	}
	if step.At == len(run.Program.Statements) {
		send("COMMIT")
		return nil
	}
	if step.At < b.sent[step.Run] {
		return nil
	}
	b.sent[step.Run] = together(run.Program, step.At)
	for at := step.At; at < b.sent[step.Run]; at++ {
		receive(b.values[step.Run], run, at)
	}
	q := run.Program.Statements[step.At]
	if !strings.Contains(q.SQL, " ") {
		return fmt.Errorf("%s has no SQL", q)
	}
	sql, err := b.tables.Bind(q.SQL, b.values[step.Run])
	if err != nil {
		return err
	}
	send(sql)
	return nil
}

// together gives the place behind the statements from one on that are parts of the same one of SQL.
func together(p *robust.LTP, at int) int {
	first := p.Statements[at]
	end := at + 1
	for end < len(p.Statements) {
		q := p.Statements[end]
		again := slices.ContainsFunc(p.Statements[at:end], func(o robust.Occurrence) bool { return o.Statement == q.Statement })
		if again || q.SQL != first.SQL || q.Origin != first.Origin || q.Origin == "" {
			break
		}
		end++
	}
	return end
}
