package analyzer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

const (
	scriptRun  history.Run = 36*36*36*36*36 + 7
	foreignRun history.Run = 36*36*36*36*36 + 9
)

func scriptInfo() history.Info {
	start := time.Unix(1, 0)
	return history.Info{Run: scriptRun, Started: start, Ended: start.Add(time.Minute), Mode: "items",
		Server: history.Server{Engine: "mariadb", Version: "10.11.19"}}
}

// script reads a history, one transaction a line: its name (T1, T2, ... in order), status
// (committed, aborted, indeterminate), level (RU, RC, RR, SR, ??), where they count its session (s1) and its start and
// end (5-10), and after a | each a statement:
//
//	r x 0        SELECT that sees version 0 of row x of table t
//	R x T1.2     the same with FOR UPDATE, sees what statement 2 of T1 wrote
//	r x 0,T1.2   the list was seen too
//	e x 0        UPDATE that found the row at version 0 with the new values already
//	s x 0        UPDATE whose subquery saw version 0 of row x
//	u x 0        UPDATE that replaced version 0;  d: DELETE;  i x: INSERT;  i x T1.2: INSERT in succession
//	r x 0 & r y 0   one statement that sees both
//	m x 0        SELECT by a condition that did not find row x, of which it saw version 0 or an earlier one
//	g x T1.2     the same, where it saw that version or a later one
//	o            an UPDATE of which nothing was observed
//	r x 0 @2-3   the same statement, sent at 2 and answered at 3
//
// F.2 is a tag of a foreign run, X.1 one of the script's run that no transaction has. A ~ after the
// operation makes the access inexact, a ! the statement void. Rows a, b, ... are of table "t";
// a name with a dot has its own table.
func script(t testing.TB, text string) []*history.Txn {
	t.Helper()
	var txns []*history.Txn
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		parts := strings.Split(line, "|")
		head := strings.Fields(parts[0])
		id := len(txns) + 1
		if len(head) < 3 || head[0] != fmt.Sprintf("T%d", id) {
			t.Fatalf("script line %q: want T%d, a status and a level", line, id)
		}
		txn := &history.Txn{ID: history.MakeTxnID(scriptRun, uint32(id)),
			Session: history.SessionID(id), End: int64(id) * 10}
		txn.Status = history.Status(slices.Index([]string{"indeterminate", "committed", "aborted"}, head[1]))
		txn.Level = history.Level(slices.Index([]string{"??", "RU", "RC", "RR", "SR"}, head[2]))
		for _, word := range head[3:] {
			scriptPlace(t, txn, word)
		}
		for _, p := range parts[1:] {
			txn.Stmts = append(txn.Stmts, scriptStmt(t, p, uint32(len(txn.Stmts)+1)))
		}
		txns = append(txns, txn)
	}
	return txns
}

// scriptPlace reads a transaction's session (s1) or its start and end (5-10).
func scriptPlace(t testing.TB, txn *history.Txn, word string) {
	_, err := fmt.Sscanf(word, "s%d", &txn.Session)
	if strings.Contains(word, "-") {
		_, err = fmt.Sscanf(word, "%d-%d", &txn.Start, &txn.End)
	}
	if err != nil {
		t.Fatalf("script word %q: %v", word, err)
	}
}

func scriptStmt(t testing.TB, text string, num uint32) history.Stmt {
	s := history.Stmt{Num: num, Observation: history.Exact}
	text, times, timed := strings.Cut(text, " @")
	if _, err := fmt.Sscanf(times, "%d-%d", &s.Start, &s.End); timed && err != nil {
		t.Fatalf("script statement %q: %v", text, err)
	}
	for part := range strings.SplitSeq(text, "&") {
		words := strings.Fields(part)
		op := strings.TrimRight(words[0], "~!")
		s.Void = strings.Contains(words[0], "!")
		if op == "o" {
			s.Kind, s.Shape, s.Observation = history.Update, "UPDATE v SET v = ?", history.Opaque
			continue
		}
		a := history.Access{Row: scriptRow(words[1]), Inexact: strings.Contains(words[0], "~")}
		table := a.Row.Table
		switch op {
		case "r":
			s.Kind, s.Shape = history.Select, "SELECT v FROM "+table+" WHERE id = ?"
		case "m", "g":
			s.Kind, s.Shape, a.Absent, a.Gone = history.Select,
				"SELECT v FROM "+table+" WHERE v = ?", op == "m", op == "g"
		case "R":
			s.Kind, s.Shape, s.Locking = history.Select,
				"SELECT v FROM "+table+" WHERE id = ? FOR UPDATE", history.LockUpdate
		case "e":
			s.Kind, s.Shape = history.Update, "UPDATE "+table+" SET v = ? WHERE id = ?"
		case "s":
			s.Kind, s.Shape, a.Subquery = history.Update, "UPDATE u SET v = (SELECT v FROM "+table+" WHERE id = ?)", true
		case "u":
			s.Kind, s.Shape, a.Op = history.Update, "UPDATE "+table+" SET v = ? WHERE id = ?", history.UpdateRow
		case "d":
			s.Kind, s.Shape, a.Op = history.Delete, "DELETE FROM "+table+" WHERE id = ?", history.DeleteRow
		case "i":
			s.Kind, s.Shape, a.Op = history.Insert, "INSERT INTO "+table+" VALUES (?, ?)", history.InsertRow
		default:
			t.Fatalf("script statement %q: unknown operation", text)
		}
		if len(words) > 2 {
			tags := strings.Split(words[2], ",")
			for _, tag := range tags[:len(tags)-1] {
				a.Prior = append(a.Prior, scriptTag(t, tag))
			}
			a.Version = scriptTag(t, tags[len(tags)-1])
		}
		s.Accesses = append(s.Accesses, a)
	}
	return s
}

func scriptRow(name string) history.Row {
	if table, id, ok := strings.Cut(name, "."); ok {
		return history.Row{Table: table, ID: id}
	}
	return history.Row{Table: "t", ID: name}
}

func scriptTag(t testing.TB, text string) history.Tag {
	if text == "0" {
		return history.Tag{}
	}
	txn, stmt, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(stmt)
	if err != nil {
		t.Fatalf("tag %q: %v", text, err)
	}
	switch txn {
	case "F":
		return history.Tag{Txn: history.MakeTxnID(foreignRun, 5), Stmt: uint32(n)}
	case "X":
		return history.Tag{Txn: history.MakeTxnID(scriptRun, 999), Stmt: uint32(n)}
	}
	seq, err := strconv.Atoi(txn[1:])
	if err != nil {
		t.Fatalf("tag %q: %v", text, err)
	}
	return history.Tag{Txn: history.MakeTxnID(scriptRun, uint32(seq)), Stmt: uint32(n)}
}

// expect analyzes a script and compares the findings, as "class anomaly xcount".
func expect(t *testing.T, info history.Info, text string, want ...string) *Result {
	t.Helper()
	r, err := Analyze([]history.Info{info}, script(t, text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s %s", f.Class, f.Anomaly)
		if f.Count > 1 {
			line += fmt.Sprintf(" x%d", f.Count)
		}
		got = append(got, line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	return r
}
