package postgres

import (
	"slices"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func newNames() *names { return &names{speculative: newNamespace(), confirmed: newNamespace()} }

// cursorPlan is the plan of a statement about the cursor c.
func cursorPlan(verb sqlpostgres.CursorVerb, hold bool) *sqlpostgres.Plan {
	return &sqlpostgres.Plan{Statement: rewrite.Statement{Kind: history.Select, Observation: history.Exact},
		Session: sqlpostgres.SessionEffect{Cursor: &sqlpostgres.Cursor{Name: "c", Verb: verb, Hold: hold}}}
}

// declaredIn returns names with a cursor that a transaction has declared as its first statement.
func declaredIn(t *history.Txn, hold bool) (*names, *portal) {
	n, plan := newNames(), cursorPlan(sqlpostgres.DeclareCursor, hold)
	c := n.confirmed.follow(&form{}, plan, plan)
	c.cursor.txn, c.cursor.begun = t, 1
	return n, c
}

// What an error left out never came to be: names mean again what the server has confirmed.
func TestNamesMeanWhatWasConfirmedAfterAnError(t *testing.T) {
	n := newNames()
	first, second := &statement{}, &statement{}
	n.speculative.statements["s"], n.confirmed.statements["s"] = first, first
	n.speculative.statements["s"] = second
	n.agree()
	if n.speculative.statements["s"] != second {
		t.Error("a name that was sent is gone without an error")
	}
	n.unsure = true
	n.agree()
	if n.speculative.statements["s"] != first || n.unsure {
		t.Error("the name means what the server never took")
	}
	delete(n.speculative.statements, "s")
	if n.confirmed.statements["s"] != first {
		t.Error("what is sent changes what is confirmed")
	}
}

func TestDeallocateTakesVariantsAlong(t *testing.T) {
	for _, c := range []struct {
		tag, shape string
		left       []string
		orphans    []string
	}{
		{"DEALLOCATE", "DEALLOCATE s", []string{"S"}, []string{"isotap_1"}},
		{"DEALLOCATE", `DEALLOCATE PREPARE "S"`, []string{"s"}, nil},
		{"DEALLOCATE ALL", "DEALLOCATE ALL", nil, nil},
		{"SELECT 1", "SELECT ?", []string{"S", "s"}, nil},
	} {
		n := newNames()
		n.confirmed.statements["s"] = &statement{variants: []variant{{name: "isotap_1"}}}
		n.confirmed.statements["S"] = &statement{}
		n.deallocated(c.tag, c.shape)
		var left []string
		for name := range n.confirmed.statements {
			left = append(left, name)
		}
		slices.Sort(left)
		if !slices.Equal(left, c.left) || !slices.Equal(n.orphans, c.orphans) || n.unsure != (len(left) < 2) {
			t.Errorf("%s: left are %v, to be closed %v, unsure %v", c.shape, left, n.orphans, n.unsure)
		}
	}
}

func TestNamesBeyondTheBoundAreNotRemembered(t *testing.T) {
	n := newNames()
	if n.mustCount(maxNames) || !n.admit(maxNames) {
		t.Fatal("the first name is one too many")
	}
	if !n.mustCount(1) {
		t.Fatal("nothing was counted yet")
	}
	n.speculative.portals["p"] = &portal{bytes: maxNames}
	n.count(0, 0)
	if n.admit(1) || n.forgotten != 1 {
		t.Error("a name beyond the bound is remembered")
	}
	delete(n.speculative.portals, "p")
	n.count(0, 0)
	if !n.admit(1) || n.bytes != 1 {
		t.Errorf("%d bytes are remembered where all is closed", n.bytes)
	}
}

func TestCursorEndsWithItsTransactionUnlessHeld(t *testing.T) {
	for _, c := range []struct {
		hold   bool
		status history.Status
		stays  bool
	}{
		{false, history.Committed, false},
		{false, history.Aborted, false},
		{true, history.Committed, true},
		{true, history.Aborted, false},
	} {
		txn := &history.Txn{Stmts: make([]history.Stmt, 1)}
		txn.Stmts[0].Observation = history.Exact
		n, cursor := declaredIn(txn, c.hold)
		n.holdCursors(txn, c.status)
		n.endCursors(c.status)
		if _, stays := n.confirmed.portals["c"]; stays != c.stays || !n.unsure {
			t.Errorf("hold %v, %v: stays %v", c.hold, c.status, stays)
		}
		if c.stays && (cursor.cursor.txn != nil || txn.Stmts[0].Reason != history.ReasonHeldCursor) {
			t.Errorf("the rest of its rows is read later, but the DECLARE is %+v", txn.Stmts[0])
		}
		n.endCursors(history.Aborted) // of a later transaction
		if _, stays := n.confirmed.portals["c"]; stays != c.stays {
			t.Errorf("hold %v, %v: a later transaction took it along", c.hold, c.status)
		}
	}
}

func TestRollbackToASavepointTakesLaterCursors(t *testing.T) {
	txn := &history.Txn{}
	n, _ := declaredIn(txn, false)
	n.rollBackCursors(txn, 1)
	if n.confirmed.portals["c"] == nil {
		t.Error("a cursor from before the savepoint is gone")
	}
	n.rollBackCursors(&history.Txn{}, 0)
	if n.confirmed.portals["c"] == nil {
		t.Error("another transaction took the cursor along")
	}
	n.rollBackCursors(txn, 0)
	if n.confirmed.portals["c"] != nil {
		t.Error("a cursor from behind the savepoint is there")
	}
}

func TestFetchReadsTheCursorOfItsName(t *testing.T) {
	n, c := declaredIn(&history.Txn{}, false)
	if n.confirmed.read(cursorPlan(sqlpostgres.FetchCursor, false)) != c {
		t.Error("FETCH does not read the cursor")
	}
	if n.confirmed.read(cursorPlan(sqlpostgres.CloseCursor, false)) != nil {
		t.Error("CLOSE reads the cursor")
	}
	n.confirmed.follow(nil, nil, cursorPlan(sqlpostgres.CloseCursor, false))
	if n.confirmed.read(cursorPlan(sqlpostgres.FetchCursor, false)) != nil {
		t.Error("the cursor is open behind its CLOSE")
	}
}

// TestNamesInSQLAreThoseOfTheProtocol: an EXECUTE and a DEALLOCATE name what a Parse named, with quotes or without.
func TestNamesInSQLAreThoseOfTheProtocol(t *testing.T) {
	for spelled, name := range map[string]string{"S1": "s1", `"S1"`: "S1", `"a ""b"" (c"`: `a "b" (c`, `" "`: " ", "é$1": "é$1"} {
		n := newNames()
		st := &statement{}
		n.confirmed.statements[name] = st
		for _, behind := range []string{"", "(?)", " (?, ?)"} {
			plan := &sqlpostgres.Plan{}
			plan.Reason, plan.Shape = history.ReasonExecute, "EXECUTE "+spelled+behind
			if n.confirmed.executed(plan) != &st.form {
				t.Errorf("%s does not run %q", plan.Shape, name)
			}
		}
		if n.deallocated("DEALLOCATE", "DEALLOCATE PREPARE "+spelled); n.confirmed.statements[name] != nil {
			t.Errorf("DEALLOCATE %s leaves %q", spelled, name)
		}
	}
	n := newNames()
	n.confirmed.statements[""] = &statement{}
	if n.deallocated("DEALLOCATE", ""); n.confirmed.statements[""] == nil || !n.unsure {
		t.Error("a DEALLOCATE that names nothing takes the statement without a name away")
	}
}
