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
			var h requestHistory
			for _, x := range c.steps {
				h.step(x)
			}
			for scope, want := range map[Scope]string{NoScope: "", TaggedScope: c.tagged, GuessedScope: c.guessed} {
				var all []string
				if want != "" {
					all = []string{want}
				}
				if got := found(t, h.txns, scope); !slices.Equal(got, all) {
					t.Errorf("scope %d: found %q, want %q", scope, got, all)
				}
			}
		})
	}
}
