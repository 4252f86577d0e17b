package e2e

import (
	"fmt"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// TestBranchesRolledBackAreAborted has branches (XA) end in each way there is in their own session: what the server
// said became of them is recorded. Newer MySQL takes a branch from its session when it is prepared.
func TestBranchesRolledBackAreAborted(t *testing.T) {
	for _, tt := range []struct {
		steps []string
		want  history.Status
	}{
		{[]string{"XA END '%s'", "XA ROLLBACK '%[1]s'"}, history.Aborted},
		{[]string{"XA END '%s'", "XA PREPARE '%[1]s'", "XA ROLLBACK '%[1]s'"}, history.Aborted},
		{[]string{"XA END '%s'", "XA PREPARE '%[1]s'", "XA COMMIT '%[1]s'"}, history.Committed},
		{[]string{"XA END '%s'", "XA COMMIT '%[1]s' ONE PHASE"}, history.Committed},
	} {
		b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
		c := b.conn(b.through)
		b.exec(c, fmt.Sprintf("XA START '%s'", b.database), "UPDATE t SET v = v + 1")
		for _, s := range tt.steps {
			b.exec(c, fmt.Sprintf(s, b.database))
		}
		b.exec(c, "SELECT * FROM t")
		c.Close()
		want := tt.want
		if len(tt.steps) == 3 && testdb.EngineName() == testdb.MySQL.Name {
			want = history.Indeterminate
		}
		if got := b.txns()[0].Status; got != want {
			t.Errorf("%q: %s, want %s", tt.steps, got, want)
		}
	}
}
