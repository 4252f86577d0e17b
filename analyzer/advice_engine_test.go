package analyzer

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// What a finding advises can be done on the server that it is about.
func TestAdviceKnowsTheEngine(t *testing.T) {
	for _, c := range []struct {
		engine      string
		history     string
		says, never string
	}{
		{"tidb", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "BEGIN OPTIMISTIC", "SERIALIZABLE"},
		{"tidb", "T1 committed RR | r x 0 | u y 0\nT2 committed RR | r y 0 | u x 0", "No isolation level", "SERIALIZABLE"},
		{"tidb", "T1 committed RC | r x 0 | r y T2.2\nT2 committed RC | u x 0 | u y 0", "REPEATABLE READ", "SERIALIZABLE"},
		{"mysql", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "SERIALIZABLE", "innodb_snapshot_isolation"},
		{"mysql", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "SERIALIZABLE", "OPTIMISTIC"},
		{"mariadb", "T1 committed RR | r x 0 | u x T2.1\nT2 committed RR | u x 0", "innodb_snapshot_isolation", "OPTIMISTIC"},
	} {
		info := scriptInfo()
		info.Server = history.Server{Engine: c.engine}
		r := analyze(t, info, script(t, c.history))
		if len(r.Findings) != 1 {
			t.Errorf("%s: findings %q, want one", c.engine, names(r))
			continue
		}
		if advice := strings.Join(r.Findings[0].Advice, "\n"); !strings.Contains(advice, c.says) || strings.Contains(advice, c.never) {
			t.Errorf("%s: the advice lacks %q or has %q:\n%s", c.engine, c.says, c.never, advice)
		}
	}
}
