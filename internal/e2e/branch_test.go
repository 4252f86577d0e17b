package e2e

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// TestBranchesRolledBackAreAborted has branches (XA) end in each way there is, in their own session and in another.
// What the server said became of them is recorded. Newer MySQL takes a branch from its session when it is prepared, and
// every server when the session ends then.
func TestBranchesRolledBackAreAborted(t *testing.T) {
	const leaves, elsewhere = "another session goes on", "XA COMMIT '@x', 'another'"
	for _, tt := range []struct {
		steps []string
		want  history.Status
	}{
		{[]string{"XA END '@x'", "XA ROLLBACK '@x'"}, history.Aborted},
		{[]string{"XA END '@x'", "XA PREPARE '@x'", "XA ROLLBACK '@x'"}, history.Aborted},
		{[]string{"XA END '@x'", "XA PREPARE '@x'", "XA COMMIT '@x'"}, history.Committed},
		{[]string{"XA END '@x'", "XA COMMIT '@x' ONE PHASE"}, history.Committed},
		{[]string{"XA END '@x'", "XA PREPARE '@x'", leaves, "XA ROLLBACK X'@hex', '', 1"}, history.Aborted},
		{[]string{"XA END '@x'", "XA PREPARE '@x'", leaves, "XA COMMIT '@x'"}, history.Committed},
		{[]string{"XA END '@x'", "XA PREPARE '@x'", leaves, elsewhere}, history.Indeterminate},
	} {
		b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
		past, c := b.conn(b.direct), b.conn(b.through)
		b.exec(c, fmt.Sprintf("XA START '%s'", b.database), "UPDATE t SET v = v + 1")
		named := strings.NewReplacer("@x", b.database, "@hex", hex.EncodeToString([]byte(b.database)))
		for _, s := range tt.steps {
			if s == leaves {
				c.Raw(func(any) error { return driver.ErrBadConn })
				for b.srv.Stats().Open > 0 {
					time.Sleep(time.Millisecond)
				}
				c = b.conn(b.through)
				continue
			}
			if s == elsewhere {
				if _, err := c.ExecContext(t.Context(), named.Replace(s)); err == nil {
					t.Fatalf("%s: there is no such branch", s)
				}
				continue
			}
			endBranch(t, c, named.Replace(s))
		}
		if tt.want == history.Indeterminate {
			endBranch(t, past, named.Replace("XA ROLLBACK '@x'"))
		}
		b.exec(c, "SELECT * FROM t")
		c.Close()
		if got := b.txns()[0].Status; got != tt.want {
			t.Errorf("%q: %s, want %s", tt.steps, got, tt.want)
		}
	}
}

// endBranch runs a step of a branch's, as soon as the server has noticed that the session is gone which had it.
func endBranch(t *testing.T, c *sql.Conn, step string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := c.ExecContext(t.Context(), step)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", step, err)
		}
	}
}
