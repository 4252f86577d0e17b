package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
)

// TestAdviceOnPostgreSQLRunsAndIsEnough has two transactions lose an update. Each text that is advised is prepared on
// the server, and where one reads the row again behind the read to be locked, locking that is enough.
func TestAdviceOnPostgreSQLRunsAndIsEnough(t *testing.T) {
	for _, tt := range []struct {
		name        string
		reads       []string
		write       string
		says, never string
	}{
		{"the row is read again", []string{"SELECT n FROM t WHERE id = 1", "SELECT id, n, m FROM t WHERE id IN (1)"},
			"UPDATE t SET n = 5 WHERE id = 1", "FOR UPDATE` (FOR NO KEY UPDATE is enough where no key changes). " +
				"With this the cycle could not have formed.",
			"changes). It is not enough"},
		{"outer join", []string{"SELECT a.n, o.v FROM t AS a LEFT JOIN other o ON o.id = a.id WHERE a.id = 1"},
			"UPDATE t SET n = 5 WHERE id = 1", "FOR UPDATE OF a`", "not enough"},
		{"outer join by its name", []string{`SELECT "t".n FROM public."t" LEFT OUTER JOIN other o ON o.id = "t".id`},
			"UPDATE t SET n = 5 WHERE id = 1", `FOR UPDATE OF "t"`, "not enough"},
		{"aggregate", []string{"SELECT sum(n) FROM t"}, "UPDATE t SET n = 5 WHERE id = 1",
			"Lock the rows of public.t", "FOR UPDATE`"},
		{"column not selected", []string{"SELECT id FROM t WHERE n = 0"}, "UPDATE t SET n = 0 WHERE id = 1",
			"version column", "n + ?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newPostgresBench(t, adviceTables...)
			one := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			two := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			b.exec(one, append([]string{"BEGIN"}, tt.reads...)...)
			b.exec(two, append(append([]string{"BEGIN"}, tt.reads...), tt.write, "COMMIT")...)
			b.exec(one, tt.write, "COMMIT")
			direct := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			found := false
			for _, f := range b.analyze().Findings {
				advice := strings.Join(f.Advice, "\n")
				found = found || f.Anomaly == analyzer.LostUpdate && strings.Contains(advice, tt.says)
				if strings.Contains(advice, tt.never) {
					t.Errorf("%s: the advice has %q: %s", f.Anomaly, tt.never, advice)
				}
				for i, text := range f.Suggested {
					for n := 1; strings.Contains(text, "?"); n++ {
						text = strings.Replace(text, "?", fmt.Sprintf("$%d", n), 1)
					}
					if _, err := direct.Prepare(t.Context(), fmt.Sprint("p", i), text); err != nil {
						t.Errorf("the advice %q does not run: %v", text, err)
					}
				}
				t.Log(advice)
			}
			if !found {
				t.Errorf("no lost update is found whose advice says %q", tt.says)
			}
			if _, lock, ok := strings.Cut(tt.says, "FOR UPDATE"); ok {
				lock, _, _ = strings.Cut(lock, "`")
				playLocked(t, append([]string{tt.reads[0] + " FOR UPDATE" + lock}, tt.reads[1:]...), tt.write)
			}
		})
	}
}

// playLocked has two transactions do the same at once, of which the second waits for the first one's lock: nothing is
// lost.
func playLocked(t *testing.T, reads []string, write string) {
	b := newPostgresBench(t, adviceTables...)
	one := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	two := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.exec(one, append([]string{"BEGIN"}, reads...)...)
	done := make(chan error, 1)
	go func() {
		for _, s := range append(append([]string{"BEGIN"}, reads...), write, "COMMIT") {
			if _, err := two.Exec(t.Context(), s); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	b.awaitLock()
	b.exec(one, write, "COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	noFindings(t, b.analyze(), " with the lock that was advised")
}

var adviceTables = []string{"CREATE TABLE t (id int PRIMARY KEY, n int, m int)",
	"CREATE TABLE other (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0, 0)", "INSERT INTO other VALUES (1, 0)"}
