package fuzz

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// endless is a round that nothing but its server's end brings to one.
var endless = random.Profile{Sessions: 4, Transactions: 1_000_000}

// during has a round go on until do, which is called when its sessions are at work, and returns what the run says of
// it.
func during(t *testing.T, url string, admin *sql.DB, o Options,
	do func(t *testing.T, connections []string)) (*Tally, string) {
	t.Helper()
	o.Levels, o.Rounds, o.Seed = []workload.Isolation{readCommitted}, 1, 1
	s := openStage(t, url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if connections := atWork(t, admin); connections != nil {
			do(t, connections)
		}
	}()
	tally, err := Run(t.Context(), s, o)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := tally.Text(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if !tally.Failed() {
		t.Fatal("the run did not fail")
	}
	return tally, text.String()
}

// trxAge is how long nobody must have read INNODB_TRX before InnoDB fills it anew (100 ms), and some: who looks more
// often sees for ever what the first look saw.
const trxAge = 150 * time.Millisecond

// atWork waits until sessions are in transactions of a run's, and returns the numbers of their connections. They are
// more than two: a run's set-up and isotap have a connection each in transactions, before the sessions are connected.
func atWork(t *testing.T, admin *sql.DB) []string {
	const sessions = "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX " +
		"JOIN information_schema.PROCESSLIST ON id = trx_mysql_thread_id WHERE db LIKE 'isotap\\_fuzz\\_%'"
	for end := time.Now().Add(testdb.Patience); time.Now().Before(end); time.Sleep(trxAge) {
		var all []string
		rows, err := admin.Query(sessions)
		for err == nil && rows.Next() {
			var id string
			err = rows.Scan(&id)
			all = append(all, id)
		}
		if err != nil {
			t.Error(err)
			return nil
		}
		rows.Close()
		if len(all) > 2 {
			return all
		}
	}
	t.Error("the sessions do not come to work")
	return nil
}

// throwAway starts a MariaDB of the test's own.
func throwAway(t *testing.T) (*testdb.Server, *sql.DB) {
	t.Helper()
	testdb.Only(t, "it starts MariaDB", "mariadb")
	server, err := testdb.Start(t.Context(), testdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return server, admin
}

func TestAfterACrashFuzzingGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	first, admin := throwAway(t)
	before := runtime.NumGoroutine()
	var crashes sync.WaitGroup
	crash := func(server *testdb.Server, admin *sql.DB) {
		crashes.Go(func() {
			if atWork(t, admin) != nil {
				server.Signal(syscall.SIGKILL)
			}
		})
	}
	crash(first, admin)
	o := Options{Levels: []workload.Isolation{readCommitted}, Rounds: 2, Seed: 1, Dir: t.TempDir(),
		Profile: endless, ServerLog: first.Log}
	o.Restart = func(context.Context) (*runner.Runner, error) {
		server, admin := throwAway(t)
		crash(server, admin)
		return openStage(t, server.URL()), nil
	}
	tally, err := Run(t.Context(), openStage(t, first.URL()), o)
	crashes.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if tally.Crashes != 2 || tally.Rounds != 2 {
		t.Errorf("%d crashes in %d rounds", tally.Crashes, tally.Rounds)
	}
	if a := tally.Abnormal[0]; a.Code != gone || a.Seen != 2 || !tally.Failed() {
		t.Errorf("%+v", a)
	}
	scheduleSaved(t, o.Dir)
	for _, name := range []string{"abnormal-1.log", "recording-1", "abnormal-2.yaml", "recording-2"} {
		if _, err := os.Stat(filepath.Join(o.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	const another = 2 // of the server that was started
	noneStays(t, before+another)
}

// noneStays waits until the round's goroutines have ended: a few are the runner's and the test's own.
func noneStays(t *testing.T, before int) {
	t.Helper()
	const own = 4
	for end := time.Now().Add(testdb.Patience); runtime.NumGoroutine() > before+own; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestHungServersScheduleIsSaved: a hung server is noticed and its schedule saved.
func TestHungServersScheduleIsSaved(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // it waits: its server is its own
	server, admin := throwAway(t)
	dir := t.TempDir()
	tally, text := during(t, server.URL(), admin, Options{Dir: dir, Profile: endless, Patience: 10 * time.Second},
		func(*testing.T, []string) { server.Signal(syscall.SIGSTOP) })
	server.Signal(syscall.SIGCONT)
	if first := tally.Abnormal[0]; first.Code != gone ||
		!strings.Contains(text, "ABNORMAL  hung: no answer within 10s; ") {
		t.Errorf("%+v", first)
	}
	scheduleSaved(t, dir)
}

// The other sessions go on, and the run with them.
func TestLostConnectionsScheduleIsSaved(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "it is the family's", "mariadb")
	admin, dir := testdb.Open(t, ""), t.TempDir()
	lasting := random.Profile{Sessions: 4, Transactions: 1000}
	_, text := during(t, testdb.MariaDB(t).URL(), admin, Options{Dir: dir, Profile: lasting},
		func(t *testing.T, connections []string) {
			if _, err := admin.Exec("KILL CONNECTION " + connections[0]); err != nil {
				t.Error(err)
			}
		})
	if !strings.Contains(text, "ABNORMAL  the connection was lost: ") || strings.Contains(text, "the server is gone") {
		t.Errorf("%s", text)
	}
	scheduleSaved(t, dir)
	var left int
	if err := admin.QueryRow("SELECT COUNT(*) FROM information_schema.SCHEMATA " +
		"WHERE SCHEMA_NAME LIKE 'isotap%'").Scan(&left); err != nil || left > 0 {
		t.Errorf("%d databases are left (%v)", left, err)
	}
}

// scheduleSaved reports whether the schedule of seed 1 is there.
func scheduleSaved(t *testing.T, dir string) {
	t.Helper()
	s := readSaved(t, filepath.Join(dir, "abnormal-1.yaml"))
	if len(s.Setup) == 0 || len(s.Steps) < len(s.Sessions) {
		t.Errorf("%d statements of set-up, %d steps of %d sessions", len(s.Setup), len(s.Steps), len(s.Sessions))
	}
}

func TestOddAnswersOfOneKindAreToldOnce(t *testing.T) {
	h := &fuzzer{Options: Options{Log: io.Discard}, tally: newTally(openStage(t, testdb.Current(t).URL()).Server,
		[]workload.Isolation{serializable})}
	for i, column := range []int{7, 11} {
		odd := random.Odd{SQL: "SELECT 1", Code: "1105",
			Message: fmt.Sprintf("Can't find column Column#%d in schema", column)}
		if err := h.strange(&round{level: serializable, seed: uint64(i + 3)}, []random.Odd{odd}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := h.tally.Text(&b); err != nil {
		t.Fatal(err)
	}
	const want = "ABNORMAL  error 1105: Can't find column Column#7 in schema; " +
		"2 times, first with seed 3 at SERIALIZABLE\n          by S1: SELECT 1\n"
	if !h.tally.Failed() || !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s", b.String())
	}
}

// What is made small may end the server, as a hunt may: another is started, and what was under way twice when one ended
// is passed over.
func TestAfterACrashWhatWasFoundIsMadeSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // it waits: its servers are its own
	first, _ := throwAway(t)
	found := func() *Mismatch {
		return &Mismatch{Oracle: Alone, Key: "alone", Level: readCommitted, Seed: 7, Scenario: &scenario.Scenario{Name: "alone",
			Sessions: []scenario.Session{{Name: "T1"}}, Setup: []string{"CREATE TABLE t (id INT PRIMARY KEY)"},
			Steps: []scenario.Step{{Session: "T1", SQL: "BEGIN"}, {Session: "T1", SQL: "SELECT * FROM t"},
				{Session: "T1", SQL: "COMMIT"}}}}
	}
	for _, c := range []struct {
		name  string
		lives int // the server that does not end at once
		want  Reduction
	}{{"the second server lives", 2, NotShown}, {"the third does", 3, NotPlayed}} {
		t.Run(c.name, func(t *testing.T) {
			open := func(server *testdb.Server, ends bool) *runner.Runner {
				target, err := dsn.Parse(server.URL())
				if err != nil {
					t.Fatal(err)
				}
				s, err := runner.Open(t.Context(), target, runner.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() }) // the server is gone
				if ends {
					server.Signal(syscall.SIGKILL)
					<-server.Done()
				}
				return s
			}
			dir, starts := t.TempDir(), 1
			server := first
			if c.lives > 2 {
				server, _ = throwAway(t)
			}
			s := open(server, true)
			h := &fuzzer{runner: s, tally: newTally(s.Server, nil), Options: Options{Reduce: 1, Dir: dir, Log: io.Discard,
				Patience: 10 * time.Second, ServerLog: func() string { return "it logged" }}}
			h.Restart = func(context.Context) (*runner.Runner, error) {
				server, _ := throwAway(t)
				starts++
				return open(server, starts < c.lives), nil
			}
			m := found()
			h.tally.Mismatches = []*Mismatch{m}
			if err := h.reduceAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m.Reduction != c.want || starts != c.lives || h.tally.Crashes != c.lives-1 || !h.tally.Failed() {
				t.Errorf("%s with %d servers, %d of which crashed", m.Reduction, starts, h.tally.Crashes)
			}
			if log, err := os.ReadFile(filepath.Join(dir, "abnormal-small-7.log")); err != nil || string(log) != "it logged\n" {
				t.Errorf("%q, %v", log, err)
			}
		})
	}
}
