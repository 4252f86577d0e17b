package analyzer

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// What a finding advises can be done on the server that it is about.
func TestAdviceKnowsTheEngine(t *testing.T) {
	for _, c := range []struct {
		engine      dbms.Engine
		history     string
		says, never string
	}{
		{"tidb", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "BEGIN OPTIMISTIC", "SERIALIZABLE"},
		{"tidb", "T1 committed RR | r x 0 | u y 0\nT2 committed RR | r y 0 | u x 0", "No isolation level",
			"SERIALIZABLE"},
		{"tidb", "T1 committed RC | r x 0 | r y T2.2\nT2 committed RC | u x 0 | u y 0", "REPEATABLE READ",
			"SERIALIZABLE"},
		{"mysql", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "SERIALIZABLE",
			"innodb_snapshot_isolation"},
		{"mysql", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "SERIALIZABLE", "OPTIMISTIC"},
		{"mariadb", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "innodb_snapshot_isolation",
			"OPTIMISTIC"},
		{"mariadb", "T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0", "FOR UPDATE`.", "40001"},
		{"postgresql", "T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0",
			"at REPEATABLE READ, and repeat those that the server then refuses with SQLSTATE 40001", "innodb"},
		{"postgresql", "T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0", "FOR NO KEY UPDATE",
			"SERIALIZABLE"},
		{"postgresql", "T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0", "SET v = v + ?",
			"LOCK IN SHARE MODE"},
		{"postgresql", "T1 committed RC | r x 0 | r y T2.2\nT2 committed RC | u x 0 | u y 0", "at REPEATABLE READ.",
			"40001"},
		{"postgresql", "T1 committed RR | r x 0 | u y 0\nT2 committed RR | r y 0 | u x 0",
			"at SERIALIZABLE, all of them", "OPTIMISTIC"},
		{"postgresql", "T1 committed SR | r x 0 | u y 0\nT2 committed RC | r y 0 | u x 0",
			"at SERIALIZABLE, all of them", "engine's fault"},
	} {
		info := scriptInfo()
		info.Server = history.Server{Engine: c.engine}
		h := script(t, c.history)
		writeNumbers(h)
		r := analyze(t, info, h)
		if len(r.Findings) != 1 {
			t.Errorf("%s: findings %q, want one", c.engine, names(r))
			continue
		}
		if advice := strings.Join(r.Findings[0].Advice, "\n"); !strings.Contains(advice, c.says) ||
			strings.Contains(advice, c.never) {
			t.Errorf("%s: the advice lacks %q or has %q:\n%s", c.engine, c.says, c.never, advice)
		}
	}
}

// Another engine's words are in no finding about PostgreSQL.
func TestFindingsOnPostgreSQLAreInItsWords(t *testing.T) {
	for _, text := range []string{
		"T1 committed RC | r x 0 | u x T2.1\nT2 committed RC | u x 0",
		"T1 committed RR | r x 0 | u y 0\nT2 committed RR | r y 0 | u x 0",
		"T1 committed RC | r x 0 | r x T2.1\nT2 committed RC | u x 0",
		"T1 committed RU | u x 0 | u y T2.2\nT2 committed RU | u x T1.1 | u y 0",
		"T1 committed RC | u x 0 | e y T2.1\nT2 committed RC | u y 0 | r x T1.1",
	} {
		info := scriptInfo()
		info.Server = history.Server{Engine: "postgresql", Version: "15.18"}
		for _, f := range analyze(t, info, script(t, text)).Findings {
			told := strings.Join(append(append([]string{f.Rule, f.Summary}, f.Advice...), f.Explanation...), "\n")
			for _, word := range []string{"nnodb", "nnoDB", "MySQL", "MariaDB", "TiDB", "LOCK IN", "same values"} {
				if strings.Contains(told, word) {
					t.Errorf("%s says %q:\n%s", f.Anomaly, word, told)
				}
			}
		}
	}
}
