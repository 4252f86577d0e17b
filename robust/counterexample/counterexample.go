// Package counterexample writes the execution that shows that programs are not robust as a scenario, which a real
// server can play: the tables, the rows that the execution uses, a session for each of its transactions, their
// statements in its order, and what is found at which level.
//
// Values are made up so that conditions of statements hold of the rows that the execution has them find: comparisons of
// columns with parameters, constants and columns of other tables, BETWEEN, IN, LIKE, CHECK constraints
// (footprint.Values). Of two values that nothing ties to each other it is taken that they differ. What programs ask for
// by OR, functions or subqueries is not solved: whether such a statement finds its rows is seen when it is played. What
// a program receives by RETURNING old.column is not asked for: nothing in the scenario depends on it, and PostgreSQL
// refuses it before 18.
//
// counterexample.go makes the scenario, solution.go ties values to each other as the execution wants them, rows.go
// makes the rows that it begins with, solve.go finds values, literal.go writes them, bind.go writes statements with
// them, expect.go says what is found. All functions are pure.
package counterexample

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/scenario"
)

// Scenario writes an execution of a workload's programs as a scenario of that name.
func Scenario(name string, w *robust.Workload, tables *Tables, witness *robust.Witness) (*scenario.Scenario, error) {
	s := witness.Schedule
	sc := &scenario.Scenario{Name: name, From: "isotap robust: " + w.Name, Engines: []string{dbms.PostgreSQL.String()}}
	if tables.family == dbms.MySQLFamily {
		sc.Engines = []string{dbms.MariaDB.String(), dbms.MySQL.String(), dbms.TiDB.String()}
	}
	for i, run := range s.Runs {
		sc.Sessions = append(sc.Sessions, scenario.Session{Name: session(i), Level: sqlLevel(run.Level)})
	}
	solved, err := solve(tables, witness)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sc.Setup = append(solved.definitions(), solved.inserts()...)
	b := &writer{solution: solved, began: make([]bool, len(s.Runs)), sent: make([]int, len(s.Runs))}
	for _, step := range s.Order {
		if err := b.step(step); err != nil {
			return nil, fmt.Errorf("%s, statement %d of %s: %w", name, step.At+1, session(step.Run), err)
		}
	}
	sc.Steps = b.steps
	solved.expect(sc, witness)
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

// A writer writes the steps.
type writer struct {
	*solution
	began []bool // by run
	sent  []int  // by run: the place behind the statements that were sent
	steps []scenario.Step
}

// step writes a step of the schedule. Several statements of a program that stand for one of SQL are sent at the first
// of them.
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
	sql, err := b.statement(step)
	if err == nil {
		send(sql)
	}
	return err
}

// together returns the place behind the statements from one on that are parts of the same one of SQL.
func together(p *robust.LTP, at int) int {
	first := p.Statements[at]
	end := at + 1
	for end < len(p.Statements) {
		q := p.Statements[end]
		again := slices.ContainsFunc(p.Statements[at:end],
			func(o robust.Occurrence) bool { return o.Statement == q.Statement })
		if again || q.SQL != first.SQL || q.Origin != first.Origin || q.Origin == "" {
			break
		}
		end++
	}
	return end
}
