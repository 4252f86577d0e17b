package analyzer

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// TestRollbackToAnEarlySavepointBeginsAgain: InnoDB had no part in the transaction when the savepoint was set.
func TestRollbackToAnEarlySavepointBeginsAgain(t *testing.T) {
	begin := history.Stmt{Num: 1, Kind: history.Begin}
	savepoint := history.Stmt{Kind: history.Savepoint}
	read := history.Stmt{Kind: history.Select, Observation: history.Exact}
	back := history.Stmt{Kind: history.Rollback}
	for _, tt := range []struct {
		stmts  []history.Stmt
		family dbms.Family
		want   uint32
	}{
		{[]history.Stmt{begin, savepoint, read, back, read}, dbms.MySQLFamily, 4},
		{[]history.Stmt{begin, savepoint, read, back, read}, dbms.PostgreSQLFamily, 0},
		{[]history.Stmt{begin, read, savepoint, read, back, read}, dbms.MySQLFamily, 0},
		{[]history.Stmt{begin, savepoint, read, back}, dbms.MySQLFamily, 0},
	} {
		for i := range tt.stmts {
			tt.stmts[i].Num = uint32(i + 1)
		}
		if got := beganAgain(&history.Txn{Stmts: tt.stmts}, tt.family); got != tt.want {
			t.Errorf("%s: began again at %d, want %d", tt.family, got, tt.want)
		}
	}
}

// givenBack is a write skew in which T1 read before a savepoint's ROLLBACK TO.
func givenBack(t *testing.T, level string) []*history.Txn {
	h := script(t, strings.ReplaceAll("T1 committed LEVEL | r x 0 | u y 0\nT2 committed LEVEL | r y 0 | u x 0", "LEVEL", level))
	read, write := h[0].Stmts[0], h[0].Stmts[1]
	h[0].Stmts = []history.Stmt{{Kind: history.Savepoint, Shape: "SAVEPOINT a"}, read,
		{Kind: history.Rollback, Shape: "ROLLBACK TO a"}, write}
	for i := range h[0].Stmts {
		h[0].Stmts[i].Num = uint32(i + 1)
	}
	for j := range h[0].Stmts[3].Accesses {
		h[0].Stmts[3].Accesses[j].Version.Stmt = 4
	}
	return h
}

// TestLockThatIsGivenBackIsNotEnough: at REPEATABLE READ the advice to lock holds for what is kept only.
func TestLockThatIsGivenBackIsNotEnough(t *testing.T) {
	f := analyze(t, scriptInfo(), givenBack(t, "RR")).Findings[0]
	if len(f.Advice) < 2 || !strings.HasPrefix(f.Advice[0], "Set the savepoint behind") ||
		!strings.Contains(f.Advice[1], "It is not enough here") {
		t.Errorf("advice %q", f.Advice)
	}
}

// TestWhatASavepointGaveBackIsAHazard: the application may still go by what it read, the server owes nothing for it.
func TestWhatASavepointGaveBackIsAHazard(t *testing.T) {
	h := givenBack(t, "SR")
	r := analyze(t, scriptInfo(), h)
	if len(r.Findings) != 1 || r.Findings[0].Class != Hazard || !strings.Contains(r.Findings[0].Rule, "T1 gave back the locks") {
		t.Fatalf("findings %q: %+v", names(r), r.Findings)
	}
	f := r.Findings[0]
	if !slices.ContainsFunc(f.Witness, func(e Edge) bool { return e.BegunAgain && e.Kind == RW && e.From.ID == h[0].ID }) {
		t.Errorf("no edge of %v says that its transaction began again", f.Explanation)
	}
	if len(f.Advice) != 1 || !strings.HasPrefix(f.Advice[0], "Set the savepoint behind") {
		t.Errorf("advice %q: a lock is given back, too", f.Advice)
	}
}
