package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
)

// script makes a case out of lines "SESSION: statement", numbered from 1.
func script(lines ...string) Case {
	c := Case{ID: "script", Isolation: RR, Setup: []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT)",
		"INSERT INTO t VALUES (1, 10), (2, 20)",
	}}
	for i, line := range lines {
		session, sql, _ := strings.Cut(line, ": ")
		c.Steps = append(c.Steps, Step{N: i + 1, Session: session, SQL: sql})
	}
	return c
}

// outline gives what the scheduling of a trace was, one word or two a step.
func outline(t Trace) string {
	words := make([]string, len(t.Results))
	for i, r := range t.Results {
		words[i] = string(r.Status)
		if r.Blocked {
			words[i] += "+blocked"
		}
		if r.Queued {
			words[i] += "+queued"
		}
		if r.DoneAfter != 0 {
			words[i] += fmt.Sprintf("@%d", r.DoneAfter)
		}
	}
	return strings.Join(words, " ")
}

func TestStepsWaitQueueAndResume(t *testing.T) {
	r, server := newRunner(t)
	tests := []struct {
		name string
		c    Case
		want string
	}{
		{
			"nobody waits",
			script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 21 WHERE id = 2", "A: COMMIT"),
			"ok ok ok ok",
		},
		{
			"a slow statement does not wait",
			script("A: SELECT SLEEP(0.3)", "B: SELECT 1"),
			"ok ok",
		},
		{
			"a row lock, with queued steps",
			script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: BEGIN", "B: UPDATE t SET v = v + 1 WHERE id = 1",
				"B: SELECT v FROM t WHERE id = 1", "A: SELECT 1", "A: COMMIT", "B: COMMIT"),
			"ok ok ok ok+blocked@7 ok+queued@7 ok ok ok",
		},
		{
			"a queue that blocks again and frees a third session",
			script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: BEGIN", "B: UPDATE t SET v = 21 WHERE id = 2",
				"B: UPDATE t SET v = 12 WHERE id = 1", "B: COMMIT", "C: UPDATE t SET v = 22 WHERE id = 2", "A: COMMIT"),
			"ok ok ok ok ok+blocked@8 ok+queued@8 ok+blocked@8 ok",
		},
		{
			"a deadlock ends the waiting victim",
			script("A: BEGIN", "B: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "A: INSERT INTO t VALUES (3, 0), (4, 0), (5, 0)",
				"B: UPDATE t SET v = 21 WHERE id = 2", "B: UPDATE t SET v = 12 WHERE id = 1", "A: UPDATE t SET v = 22 WHERE id = 2"),
			"ok ok ok ok ok error+blocked@7 ok",
		},
		{
			"a metadata lock",
			script("A: BEGIN", "A: SELECT * FROM t", "B: ALTER TABLE t ADD COLUMN w INT", "A: COMMIT", "T9: SELECT * FROM t"),
			"ok ok ok+blocked@4 ok ok",
		},
		{
			"a lock that only the end releases",
			script("A: BEGIN", "A: UPDATE t SET v = 11 WHERE id = 1", "B: UPDATE t SET v = 12 WHERE id = 1", "B: SELECT 1"),
			"ok ok ok+blocked@-1 ok+queued@-1",
		},
		{
			"a lock that nothing releases",
			script("A: DO GET_LOCK(CONCAT('isotap ', DATABASE()), 0)", "B: DO GET_LOCK(CONCAT('isotap ', DATABASE()), 60)", "B: SELECT 1"),
			"ok blocked+blocked not_run+queued",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trace, err := r.Run(context.Background(), server, tt.c, RR, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(trace); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFinalSessionSeesWhatOthersCommitted(t *testing.T) {
	r, server := newRunner(t)
	c := script("A: UPDATE t SET v = 11 WHERE id = 1", "T9: SELECT v FROM t ORDER BY id")
	for _, prepared := range []bool{false, true} {
		trace, err := r.Run(t.Context(), server, c, RR, Options{Prepared: prepared})
		if err != nil {
			t.Fatal(err)
		}
		last := trace.Results[1]
		if got := comparableRows(last.SQL, last.Rows); got != `[("11") ("20")]` {
			t.Errorf("rows %s", got)
		}
		if len(last.Columns) != 1 || last.Columns[0].Name != "v" || last.Columns[0].Schema != "@db" {
			t.Errorf("columns %+v", last.Columns)
		}
	}
}

func TestValuesComeAsTheServerWritesThem(t *testing.T) {
	r, server := newRunner(t)
	c := script("A: SELECT NULL, '', 'a,b', CAST(1.50 AS DECIMAL(5,2)), 18446744073709551615, -1, DATE'2020-02-03', LPAD(7, 3, '0')")
	const want = `[(NULL,"","a,b","1.50","18446744073709551615","-1","2020-02-03","007")]`
	for _, prepared := range []bool{false, true} {
		trace, err := r.Run(t.Context(), server, c, RR, Options{Prepared: prepared})
		if err != nil {
			t.Fatal(err)
		}
		if got := comparableRows(c.Steps[0].SQL, trace.Results[0].Rows); got != want {
			t.Errorf("prepared %t: %s", prepared, got)
		}
	}
}

func TestReadyComesBetweenSetUpAndSessions(t *testing.T) {
	r, server := newRunner(t)
	db := testdb.Open(t, "")
	c := script("A: SELECT v FROM t WHERE id = 1")
	trace, err := r.Run(t.Context(), server, c, RR, Options{SetUpDirect: true, Ready: func(ctx context.Context, database string) error {
		_, err := db.ExecContext(ctx, "UPDATE "+database+".t SET v = 99")
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := trace.Results[0].Rows[0][0].Text; got != "99" {
		t.Errorf("v = %s", got)
	}
}

func TestFailuresEndTheRunAndLeaveNothing(t *testing.T) {
	r, server := newRunner(t)
	broken := script("A: SELECT 1")
	broken.Setup = []string{"CREATE TABLE"}
	refused := errors.New("not ready")
	tests := []struct {
		name, want string
		c          Case
		level      Level
		target     Server
		options    Options
	}{
		{"a set-up statement fails", "set-up", broken, RR, server, Options{}},
		{"the set-up is refused", "not ready", script("A: SELECT 1"), RR, server, Options{Ready: func(context.Context, string) error { return refused }}},
		{"a session statement fails", "SET nonsense", script("A: SELECT 1"), RR, server, Options{Session: []string{"SET nonsense"}}},
		{"no such level", "no such level", script("A: SELECT 1"), "XX", server, Options{}},
		{"nobody listens", "connecting to 127.0.0.1:1", script("A: SELECT 1"), RR, Server{Addr: "127.0.0.1:1", User: "root"}, Options{}},
		{"the context ends", "deadline", script("A: BEGIN", "A: UPDATE t SET v = 1", "A: SELECT SLEEP(100)"), RR, server, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := r.Run(ctx, tt.target, tt.c, tt.level, tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
	plan := Plan([]Case{script("A: SELECT 1"), broken, script("A: SELECT 1")})
	if _, err := r.RunAll(t.Context(), server, plan, 1, Options{}); err == nil || !strings.Contains(err.Error(), "set-up") {
		t.Errorf("RunAll: %v", err)
	}
	var left int
	if err := testdb.Open(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'isotap\\_case%'").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("%d databases are left", left)
	}
}
