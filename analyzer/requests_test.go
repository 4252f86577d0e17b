package analyzer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

// A requestHistory is made of autocommitted statements, each a transaction of its own.
type requestHistory struct {
	txns   []*history.Txn
	latest history.Tag // of the row that they are about
}

// longText is as much of a text as is recorded.
var longText = "'" + strings.Repeat("x", 63)

var accountRow = history.Row{Table: "shop.account", ID: "7"}

// add adds a statement that runs for a millisecond from a time, in milliseconds.
func (h *requestHistory) add(session, at int, request string, s history.Stmt) history.Tag {
	const ms = int64(1e6)
	s.Num, s.Start, s.End, s.Observation, s.Sender.Request = 1, int64(at)*ms, int64(at+1)*ms, history.Exact, request
	x := &history.Txn{ID: history.MakeTxnID(scriptRun, uint32(len(h.txns)+1)), Session: history.SessionID(session), Implicit: true,
		Level: history.ReadCommitted, Status: history.Committed, Start: s.Start, End: s.End, Stmts: []history.Stmt{s}}
	h.txns = append(h.txns, x)
	return history.Tag{Txn: x.ID, Stmt: 1}
}

// A requestStep is one statement: r reads the row, w sets its balance to a value, and others are as they say.
type requestStep struct {
	session, at int
	request     string
	op, value   string
}

func (h *requestHistory) step(x requestStep) {
	read := history.Access{Row: accountRow, Op: history.Read, Version: h.latest}
	update := history.Access{Row: accountRow, Op: history.UpdateRow, Version: h.latest}
	switch x.op {
	case "r":
		h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Select, Shape: "SELECT id, balance FROM account WHERE id = ?",
			Args: []string{"7"}, Accesses: []history.Access{read}})
	case "name": // reads another column
		h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Select, Shape: "SELECT id, owner FROM account WHERE id = ?",
			Args: []string{"7"}, Accesses: []history.Access{read}})
	case "w":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ? WHERE id = ?", Args: []string{x.value, "7"}, Accesses: []history.Access{update}})
	case "add":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = balance + ? WHERE id = ?", Args: []string{x.value, "7"}, Accesses: []history.Access{update}})
	case "save": // sets the balance and the owner
		balance, owner, _ := strings.Cut(x.value, " ")
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ?, owner = ?, updated_at = ? WHERE id = ?",
			Args:  []string{balance, owner, fmt.Sprint(x.at), "7"}, Accesses: []history.Access{update}})
	case "open": // an account
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Insert, Affected: 1,
			Shape: "INSERT INTO account (id, balance, owner) VALUES (?, ?, ?)", Args: []string{"7", x.value, "'Al'"},
			Accesses: []history.Access{{Row: accountRow, Op: history.InsertRow}}})
	case "take":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = balance - ? WHERE id = ?", Args: []string{x.value, "7"}, Accesses: []history.Access{update}})
	case "take if enough":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = balance - ? WHERE id = ? AND balance >= ?", Args: []string{x.value, "7", x.value},
			Accesses: []history.Access{update}})
	case "count down":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET login_count = login_count - ? WHERE id = ?", Args: []string{x.value, "7"},
			Accesses: []history.Access{update}})
	case "all":
		h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Select, Shape: "SELECT * FROM account WHERE id = ?",
			Args: []string{"7"}, Accesses: []history.Access{read}})
	case "unsure": // an inexact read
		read.Inexact = true
		h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Select, Shape: "SELECT id, balance FROM account WHERE id = ?",
			Args: []string{"7"}, Accesses: []history.Access{read}})
	case "seen":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET updated_at = ? WHERE id = ?", Args: []string{x.value, "7"}, Accesses: []history.Access{update}})
	case "named": // sets the balance, and another column
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ?, owner = ? WHERE id = ?", Args: []string{x.value, "'Bo'", "7"},
			Accesses: []history.Access{update}})
	case "counted": // a version, which it checks
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ?, version = ? WHERE id = ? AND version = ?", Args: []string{x.value, "4", "7", "3"},
			Accesses: []history.Access{update}})
	case "checked":
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ? WHERE id = ? AND balance <> ?", Args: []string{x.value, "7", "0"},
			Accesses: []history.Access{update}})
	case "far": // by a condition that is too long for a sentence
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ? WHERE id = ? AND branch IN (?) AND " + strings.Repeat("open AND ", 20) + "open",
			Args:  []string{x.value, "7", "1"}, Accesses: []history.Access{update}})
	case "unrecorded": // without its values
		h.latest = h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Update, Affected: 1,
			Shape: "UPDATE account SET balance = ? WHERE id = ?", Accesses: []history.Access{update}})
	case "other":
		h.add(x.session, x.at, x.request, history.Stmt{Kind: history.Select, Shape: "SELECT ?", Args: []string{"1"}})
	}
}

// foundAtScopes looks whether steps have one finding, or none: where requests are tagged, and where they are guessed,
// too.
func foundAtScopes(t *testing.T, steps []requestStep, tagged, guessed string) {
	t.Helper()
	var h requestHistory
	for _, x := range steps {
		h.step(x)
	}
	for scope, want := range map[Scope]string{NoScope: "", TaggedScope: tagged, GuessedScope: guessed} {
		var all []string
		if want != "" {
			all = []string{want}
		}
		if got := found(t, h.txns, scope); !slices.Equal(got, all) {
			t.Errorf("%v: found %q, want %q", scope, got, all)
		}
	}
}

// TestARequestTakesAwayByWhatItHasRead has requests that look at an amount, and let the server take some of it away in
// a later transaction.
func TestARequestTakesAwayByWhatItHasRead(t *testing.T) {
	both := func(first, amount, second, another string) []requestStep {
		return []requestStep{{1, 0, "a", "r", ""}, {2, 1, "b", "r", ""}, {1, 3, "a", first, amount}, {2, 5, "b", second, another}}
	}
	for _, c := range []struct {
		name  string
		steps []requestStep
		told  bool
	}{
		{"both take away", both("take", "10", "take", "'20'"), true},
		{"both add less than nothing", both("add", "-10", "add", "'-20'"), true},
		{"the first adds", both("add", "10", "take", "20"), false},
		{"the second adds", both("take", "10", "add", "20"), false},
		{"nothing is taken", both("take", "10", "take", "0"), false},
		{"the second checks what is left", both("take", "10", "take if enough", "20"), false},
		{"the first checks what is left", both("take if enough", "10", "take", "20"), true},
		{"over an amount that another set", both("w", "150", "take", "20"), true},
		{"over a text that another set", both("w", "'none'", "take", "20"), false},
		{"over more than there was", append([]requestStep{{3, -300, "c", "w", "100"}}, both("w", "150", "take", "20")...), false},
		{"over less than there was", append([]requestStep{{3, -300, "c", "w", "200"}}, both("w", "150", "take", "20")...), true},
		{"a counter", []requestStep{{1, 0, "a", "all", ""}, {2, 1, "b", "all", ""}, {1, 3, "a", "count down", "1"},
			{2, 5, "b", "count down", "1"}}, false},
		{"of another column", []requestStep{{1, 0, "a", "name", ""}, {2, 1, "b", "name", ""}, {1, 3, "a", "take", "10"},
			{2, 5, "b", "take", "20"}}, false},
		{"read again before", []requestStep{{1, 0, "a", "r", ""}, {2, 1, "b", "take", "10"}, {1, 3, "a", "r", ""}, {1, 5, "a", "take", "20"}}, false},
		{"amounts that were not recorded", both("take", "", "take", ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h requestHistory
			for _, x := range c.steps {
				h.step(x)
			}
			var want []string
			if c.told {
				want = []string{"stale decision x1"}
			}
			if got := found(t, h.txns, TaggedScope); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// TestAChangeIsSetBack has requests that set whole rows, of which no read is seen.
func TestAChangeIsSetBack(t *testing.T) {
	const both = "silent revert x1"
	first := requestStep{3, 0, "", "save", "140 'Al'"}
	connected := requestStep{2, 1, "", "other", ""} // a connection that was there before
	for _, c := range []struct {
		name            string
		steps           []requestStep
		tagged, guessed string
	}{
		{"beside another change", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"}, {2, 300, "", "save", "140 'Bo'"}}, "", both},
		{"that an INSERT had set", []requestStep{{3, 0, "", "open", "140"}, connected, {1, 200, "", "save", "150 'Al'"},
			{2, 300, "", "save", "'140' 'Bo'"}}, "", both},
		{"alone", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"}, {2, 300, "", "save", "140 'Al'"}}, "", ""},
		{"by one who changes what the other has changed", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"},
			{2, 300, "", "save", "160 'Bo'"}}, "", ""},
		{"on the same connection", []requestStep{first, {1, 200, "", "save", "150 'Al'"}, {1, 300, "", "save", "140 'Bo'"}}, "", ""},
		{"on a connection of later", []requestStep{first, {1, 200, "", "save", "150 'Al'"}, {2, 300, "", "save", "140 'Bo'"}}, "", ""},
		{"much later", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"}, {2, 11_000, "", "save", "140 'Bo'"}}, "", ""},
		{"read between, by somebody", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"}, {4, 250, "", "name", ""},
			{2, 300, "", "save", "140 'Bo'"}}, "", ""},
		{"by who changes one column", []requestStep{first, connected, {1, 200, "", "save", "150 'Al'"}, {2, 300, "", "w", "140"}}, "", ""},
		{"values of which nothing is known before", []requestStep{connected, {1, 200, "", "save", "150 'Al'"}, {2, 300, "", "save", "140 'Bo'"}},
			"", ""},
		{"texts that may differ behind what is recorded", []requestStep{{3, 0, "", "save", longText + " 'Al'"}, connected,
			{1, 200, "", "save", "150 'Al'"}, {2, 300, "", "save", longText + " 'Bo'"}}, "", ""},
		{"computed by the server", []requestStep{first, connected, {1, 200, "", "add", "10"}, {2, 300, "", "save", "140 'Bo'"}}, "", ""},
		{"by requests at once", []requestStep{first, {2, 190, "b", "other", ""}, {1, 200, "a", "save", "150 'Al'"}, {2, 300, "b", "save", "140 'Bo'"}},
			both, both},
		{"by requests at once, read by a third", []requestStep{first, {2, 190, "b", "other", ""}, {1, 200, "a", "save", "150 'Al'"},
			{5, 250, "c", "name", ""}, {2, 300, "b", "save", "140 'Bo'"}}, both, both},
		{"by requests at once, read by the second", []requestStep{first, {2, 190, "b", "other", ""}, {1, 200, "a", "save", "150 'Al'"},
			{5, 250, "b", "name", ""}, {2, 300, "b", "save", "140 'Bo'"}}, "", ""},
		{"by a request behind the other", []requestStep{first, {1, 200, "a", "save", "150 'Al'"}, {2, 300, "b", "save", "140 'Bo'"}}, "", ""},
		{"by who had read it", []requestStep{first, {2, 190, "b", "all", ""}, {1, 200, "a", "save", "150 'Al'"}, {2, 300, "b", "save", "140 'Bo'"}},
			"stale overwrite x1", "stale overwrite x1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			foundAtScopes(t, c.steps, c.tagged, c.guessed)
		})
	}
}

// found returns the findings of requests, as "anomaly xN".
func found(t *testing.T, txns []*history.Txn, scope Scope) []string {
	t.Helper()
	a := New(Options{Scope: scope})
	info := scriptInfo()
	info.Mode = "predicates"
	if err := a.Add(info); err != nil {
		t.Fatal(err)
	}
	inSessions(txns)
	for _, x := range txns {
		if err := a.AddTxn(x); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range r.Findings {
		if f.Class == Unprotected {
			all = append(all, fmt.Sprintf("%s x%d", f.Anomaly, f.Count))
			t.Log(f.Rule, f.Summary, f.Lost, f.Explanation, f.Advice)
		}
	}
	return all
}

func TestWhatARequestReadIsOverwrittenInALaterTransaction(t *testing.T) {
	const overwrite = "stale overwrite x1"
	for _, c := range []struct {
		name            string
		steps           []requestStep
		tagged, guessed string
	}{
		{"two sessions", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "r", ""}, {1, 3, "", "w", "150"}, {2, 5, "", "w", "160"}}, "", overwrite},
		{"tags", []requestStep{{1, 0, "a", "r", ""}, {2, 100, "b", "r", ""}, {3, 300, "a", "w", "150"}, {4, 500, "b", "w", "160"}}, overwrite,
			overwrite},
		{"tags of one request", []requestStep{{1, 0, "a", "r", ""}, {2, 1, "a", "w", "150"}, {1, 3, "a", "w", "160"}}, "", ""},
		{"both the same amount", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "r", ""}, {1, 3, "", "w", "150"}, {2, 5, "", "w", "150"}}, "",
			overwrite},
		{"both the same", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "r", ""}, {1, 3, "", "w", "'paid'"}, {2, 5, "", "w", "'paid'"}}, "", ""},
		{"computed by the server", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "r", ""}, {1, 3, "", "add", "10"}, {2, 5, "", "add", "20"}}, "",
			""},
		{"over what the server computed", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "add", "10"}, {1, 3, "", "w", "150"}}, "", overwrite},
		{"read again before", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "other", ""}, {1, 5, "", "name", ""},
			{1, 7, "", "w", "160"}}, "", ""},
		{"of another column", []requestStep{{1, 0, "", "name", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "w", "160"}}, "", ""},
		{"the time of the change alone", []requestStep{{1, 0, "", "all", ""}, {2, 1, "", "seen", "'now'"}, {1, 3, "", "seen", "'later'"}}, "",
			""},
		{"a version that is checked", []requestStep{{1, 0, "", "all", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "counted", "160"}}, "", ""},
		{"a condition on what is set", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "checked", "160"}}, "", ""},
		{"what the other left as it was", []requestStep{{3, 0, "", "w", "140"}, {1, 200, "", "r", ""}, {2, 201, "", "named", "140"},
			{1, 203, "", "w", "160"}}, "", ""},
		{"what the other changed", []requestStep{{3, 0, "", "w", "140"}, {1, 200, "", "r", ""}, {2, 201, "", "named", "141"},
			{1, 203, "", "w", "160"}}, "", overwrite},
		{"a long condition", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "far", "160"}}, "", overwrite},
		{"values that were not recorded", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "unrecorded", ""}, {1, 3, "", "unrecorded", ""}}, "",
			overwrite},
		{"long texts that begin alike", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "w", longText}, {1, 3, "", "w", longText}}, "", overwrite},
		{"read again, not exactly", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "w", "150"}, {1, 3, "", "unsure", ""}, {1, 5, "", "w", "160"}},
			"", ""},
		{"tags on one connection", []requestStep{{1, 0, "a", "r", ""}, {1, 2, "b", "w", "150"}, {1, 4, "a", "w", "160"}}, overwrite, overwrite},
		{"tags that come again much later", []requestStep{{1, 0, "a", "r", ""}, {2, 10, "b", "w", "150"}, {3, 90_000, "a", "w", "160"}}, "", ""},
		{"one after the other", []requestStep{{1, 0, "", "r", ""}, {1, 2, "", "w", "150"}, {2, 4, "", "r", ""}, {2, 6, "", "w", "160"}}, "", ""},
		{"a while later", []requestStep{{1, 0, "", "r", ""}, {2, 30, "", "w", "150"}, {1, 60, "", "w", "160"}}, "", ""},
		{"a connection that the next request takes at once", []requestStep{{1, 0, "", "other", ""}, {1, 2, "", "r", ""},
			{1, 4, "", "other", ""}, {2, 6, "", "w", "150"}, {1, 8, "", "w", "160"}}, "", ""},
		{"its own write between", []requestStep{{1, 0, "", "r", ""}, {1, 2, "", "w", "150"}, {1, 4, "", "w", "160"}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			foundAtScopes(t, c.steps, c.tagged, c.guessed)
		})
	}
}

// TestAPoolsResetsBoundItsRequests has a connection go to another request whenever it is reset, whatever the pauses.
func TestAPoolsResetsBoundItsRequests(t *testing.T) {
	slow := []requestStep{{1, 0, "", "other", ""}, {2, 0, "", "other", ""}, {1, 1000, "", "r", ""}, {2, 1001, "", "r", ""},
		{1, 2000, "", "w", "150"}, {2, 3000, "", "w", "160"}}
	for _, c := range []struct {
		name   string
		steps  []requestStep
		resets []int // the steps behind which the session was reset
		told   bool
	}{
		{"slow requests", slow, []int{0, 1, 2, 3}, true},
		{"one reset", slow, []int{2, 3}, false},
		{"without resets", slow, nil, false},
		{"reset between read and write", slow, []int{0, 1, 2, 3, 4, 5}, false},
		{"at once, reset between", []requestStep{{1, 0, "", "r", ""}, {2, 1, "", "r", ""}, {1, 3, "", "w", "150"}, {2, 5, "", "w", "160"}},
			[]int{2, 3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h requestHistory
			for _, x := range c.steps {
				h.step(x)
			}
			for _, i := range c.resets {
				h.txns[i].Fresh = true
			}
			got := found(t, h.txns, GuessedScope)
			if told := len(got) == 1 && got[0] == "stale overwrite x1"; told != c.told || !told && len(got) > 0 {
				t.Errorf("found %q", got)
			}
		})
	}
}
