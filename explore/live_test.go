package explore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/workload"
)

// liveRaces are what is told live of programs, by their names, where that is not what is told on a copy; nil: nothing.
// There each transaction is played once, at first beside itself, and what a test rolled back is not.
var liveRaces = map[string][]toldRace{
	"a number that is counted up by what it was is no version": nil,
	"the same before it": nil,
	"two spend by what all have spent, behind some that spend the same": nil,
	"a test is rolled back, and what it tests is in savepoints":         nil,
	"two set other columns of a row that both read":                     {{LostUpdate, "account", "version", false}},
}

// drawsKeys are programs that go by the keys which the server makes: twins draw some.
var drawsKeys = []string{"tests are rolled back, one by one and together",
	"two orders are paid at once, of which the second is made behind the first"}

// shortLive is how many programs are run with -short.
const shortLive = 10

// values are what the tables hold, but for keys that count.
var values = []string{"account", "email FROM users", "email, n FROM member", "person", "code, total FROM cart", "profile",
	"visit", "settings", "ticket", "n FROM audit", "n FROM mail", "name FROM project", "name FROM teams", "note FROM labels"}

// TestTwinsPlayedLiveTellWhatIsToldOnACopy runs each program once without twins and once beside them. The client gets
// the same, and leaves the same.
func TestTwinsPlayedLiveTellWhatIsToldOnACopy(t *testing.T) {
	for _, f := range families {
		for i, p := range programs {
			t.Run(f.name+"/"+p.name, func(t *testing.T) {
				if testing.Short() && i >= shortLive {
					t.Skip("slow: make check runs it")
				}
				if slices.Contains(drawsKeys, p.name) {
					t.Skip("a test that asks for a key that counts notices twins")
				}
				_, plain := runLive(t, f.family, f.counts, p.statements, false)
				result, beside := runLive(t, f.family, f.counts, p.statements, true)
				if plain != beside {
					t.Errorf("without twins:\n%s\nbeside them:\n%s", plain, beside)
				}
				want, other := liveRaces[p.name]
				if !other {
					want = p.races
				}
				var told []toldRace
				for _, r := range result.Races {
					told = append(told, toldRace{r.Kind, r.Table, strings.TrimSuffix(r.Column, "(*)"), !r.Proved})
				}
				if !slices.Equal(told, want) || result.Diverged > 0 {
					t.Errorf("told is %+v, want %v; %+v", result.Races, want, result)
				}
			})
		}
	}
}

// runLive has one client run statements through isotap, and returns what was told of twins beside it, and what the
// client was answered and has left.
func runLive(t *testing.T, family dbms.Family, counts string, statements []string, twins bool) (*Result, string) {
	t.Helper()
	skipWhatIsNotThere(t, family, statements)
	text, target := newTarget(t, family, tablesOf(counts))
	var b strings.Builder
	result := beside(t, text, target, twins, func(client *sql.Conn, database string) {
		for _, statement := range inSQL(family, counts, database, statements) {
			fmt.Fprintf(&b, "%s: %s\n", statement, answerTo(t, client, statement))
		}
	})
	client := open(t, text)
	for _, columns := range values {
		if !strings.Contains(columns, " FROM ") {
			columns = "* FROM " + columns
		}
		fmt.Fprintf(&b, "%s: %s\n", columns, answerTo(t, client, "SELECT "+columns+" ORDER BY 1"))
	}
	return result, b.String()
}

// beside has a client run through isotap, with twins or without them.
func beside(t *testing.T, text string, target dsn.Target, twins bool, run func(client *sql.Conn, database string)) *Result {
	t.Helper()
	if !twins {
		recordClient(t, text, target, nil, run)
		return nil
	}
	live := NewLive(t.Context(), target)
	r, of := recordClient(t, text, target, live, run)
	result, err := live.Result(t.Context(), r, of)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
	return result
}

// answerTo is what a client is answered, as text.
func answerTo(t *testing.T, client *sql.Conn, statement string) string {
	t.Helper()
	rows, err := client.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(columns)
	for rows.Next() {
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprint(row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return text
}

// lostUpdate is a program that a twin shows to race.
var lostUpdate = []string{"BEGIN", "SELECT balance FROM account WHERE id = 1", "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}

// TestBoundValuesAreReadInEitherForm: drivers send and get values in binary form.
func TestBoundValuesAreReadInEitherForm(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			mark := func(n int) string { return fmt.Sprintf("$%d", n) }
			types := "a smallint, b bigint, c double precision, d numeric(9,3), e boolean, f date, g timestamp, h varchar(9), i real"
			if f.family == dbms.MySQLFamily {
				mark = func(int) string { return "?" }
				types = "a smallint unsigned, b bigint, c double precision, d numeric(9,3), e boolean, f date, g datetime, h varchar(9), i float"
			}
			setup := append(tablesOf(f.counts), "CREATE TABLE kinds (id int PRIMARY KEY, "+types+")",
				"INSERT INTO kinds VALUES (1, 40000 - 10000, -5000000000, 0.1, -12.340, true, '2026-01-02', '2026-01-02 03:04:05', 'it''s', 0.5), "+
					"(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
			text, target := newTarget(t, f.family, setup)
			result := beside(t, text, target, true, func(client *sql.Conn, _ string) {
				for range 2 { // drivers know the statement then
					tx, err := client.BeginTx(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range []struct {
						text string
						args []any
					}{
						{"SELECT * FROM kinds WHERE id < " + mark(1) + " ORDER BY id", []any{9}},
						{"SELECT balance FROM account WHERE id = " + mark(1), []any{1}},
						{"UPDATE account SET balance = " + mark(1) + " WHERE id = " + mark(2), []any{90, 1}},
						{"UPDATE account SET balance = " + mark(1) + " WHERE id = " + mark(2), []any{100, 2}},
					} {
						if _, err := tx.ExecContext(t.Context(), s.text, s.args...); err != nil {
							t.Fatalf("%s: %v", s.text, err)
						}
					}
					if err := tx.Commit(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if len(result.Races) != 1 || result.Races[0].Column != "balance" || !result.Races[0].Proved || result.Plays == 0 {
				t.Errorf("told is %+v; %+v", result.Races, result)
			}
		})
	}
}

// TestAClientWaitsForTheLockOfOneThatIsPlayed: who waits for a transaction's rows gets them once its twins are done.
func TestAClientWaitsForTheLockOfOneThatIsPlayed(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			text, target := newTarget(t, f.family, tablesOf(f.counts))
			direct := open(t, text)
			waited := make(chan error, 1)
			result := beside(t, text, target, true, func(client *sql.Conn, _ string) {
				for _, s := range lostUpdate[:3] {
					answerTo(t, client, s)
				}
				go func() {
					_, err := direct.ExecContext(t.Context(), "UPDATE account SET version = 1 WHERE id = 1")
					waited <- err
				}()
				time.Sleep(200 * time.Millisecond)
				began := time.Now()
				answerTo(t, client, "COMMIT")
				if took := time.Since(began); took > LiveTime+time.Second {
					t.Errorf("the COMMIT took %v", took)
				}
				if err := <-waited; err != nil {
					t.Error(err)
				}
			})
			got := answerTo(t, direct, "SELECT balance, version FROM account WHERE id = 1")
			if got != "[balance version][{90 true} {1 true}]" || result.Transactions != 1 || result.Diverged > 0 {
				t.Errorf("left is %s; %+v", got, result)
			}
		})
	}
}

// TestNoClientHearsOfATwinThatFails: twins' sessions are ended while they play, and the client's transactions go on.
func TestNoClientHearsOfATwinThatFails(t *testing.T) {
	others := map[dbms.Family]string{
		dbms.PostgreSQLFamily: `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
			AND pid <> pg_backend_pid() AND query LIKE '%%' AND pid NOT IN (%s)`,
		dbms.MySQLFamily: `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id NOT IN (CONNECTION_ID(), %s)`,
	}
	self := map[dbms.Family]string{dbms.PostgreSQLFamily: "SELECT pg_backend_pid()", dbms.MySQLFamily: "SELECT CONNECTION_ID()"}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			text, target := newTarget(t, f.family, tablesOf(f.counts))
			direct := open(t, text)
			ending, stop := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			result := beside(t, text, target, true, func(client *sql.Conn, _ string) {
				var id string
				if err := client.QueryRowContext(t.Context(), self[f.family]).Scan(&id); err != nil {
					t.Fatal(err)
				}
				ended.Go(func() { endOthers(ending, direct, f.family, fmt.Sprintf(others[f.family], id)) })
				for n := range 30 { // of programs that differ, so that each is played
					balance := fmt.Sprint(n)
					for _, s := range []string{"BEGIN", "SELECT balance" + strings.Repeat(", id", n) + " FROM account WHERE id = 1",
						"UPDATE account SET balance = " + balance + " WHERE id = 1", "COMMIT"} {
						answerTo(t, client, s)
					}
					if got := answerTo(t, client, "SELECT balance FROM account WHERE id = 1"); got != "[balance][{"+balance+" true}]" {
						t.Fatalf("after %d: %s", n, got)
					}
				}
				stop()
				ended.Wait()
			})
			if result.NotPlayed[TwinFailed] == 0 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// endOthers ends connections that a query tells, again and again.
func endOthers(ctx context.Context, direct *sql.Conn, family dbms.Family, others string) {
	for ctx.Err() == nil {
		rows, err := direct.QueryContext(ctx, others)
		if err != nil {
			continue
		}
		var ids []string
		for rows.Next() {
			var id string
			_ = rows.Scan(&id)
			ids = append(ids, id)
		}
		rows.Close()
		if family == dbms.MySQLFamily {
			for _, id := range ids {
				_, _ = direct.ExecContext(ctx, "KILL "+id) // it may have ended
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestClientsThatRunAtOnceGoOn has several clients work on the same rows, with twins beside them when one is alone.
func TestClientsThatRunAtOnceGoOn(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			text, target := newTarget(t, f.family, tablesOf(f.counts))
			live := NewLive(t.Context(), target)
			address := startProxy(t, text, target, live)
			var clients sync.WaitGroup
			for n := range 4 {
				clients.Go(func() {
					client := open(t, address)
					for i := range 20 {
						for _, s := range []string{"BEGIN", "SELECT balance" + strings.Repeat(", id", i) + " FROM account WHERE id = 1 FOR UPDATE",
							"UPDATE account SET balance = balance + 1 WHERE id = 1", "COMMIT"} {
							if _, err := client.ExecContext(t.Context(), s); err != nil {
								t.Errorf("client %d: %s: %v", n, s, err)
								return
							}
						}
					}
				})
			}
			clients.Wait()
			if got := answerTo(t, open(t, text), "SELECT balance FROM account WHERE id = 1"); got != "[balance][{180 true}]" {
				t.Errorf("left is %s", got)
			}
			if err := live.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTwinsHaveTheSessionsSettings: what a client has set holds for its twins, and goes with its end.
func TestTwinsHaveTheSessionsSettings(t *testing.T) {
	for _, c := range []struct {
		name     string
		family   dbms.Family
		before   []string
		program  []string
		why      Reason
		judgment int
	}{
		{"the search path", dbms.PostgreSQLFamily, []string{"CREATE SCHEMA other", "CREATE TABLE other.own (id int PRIMARY KEY, n int)",
			"INSERT INTO other.own VALUES (1, 0)", "SET search_path = other"},
			[]string{"BEGIN", "SELECT n FROM own WHERE id = 1", "UPDATE own SET n = 1 WHERE id = 1", "COMMIT"}, "", 1},
		{"the role", dbms.PostgreSQLFamily, []string{"SET ROLE pg_monitor", "RESET ROLE"}, lostUpdate, "", 1},
		{"within the block", dbms.PostgreSQLFamily, nil, slices.Insert(slices.Clone(lostUpdate), 1, "SET LOCAL search_path = public"), Unread, 0},
		{"by a function", dbms.PostgreSQLFamily, []string{"CREATE TEMPORARY TABLE scratch (id int)", "INSERT INTO scratch VALUES (1)"},
			slices.Insert(slices.Clone(lostUpdate), 1, "SELECT id FROM scratch"), TwinFailed, 0},
		{"for all", dbms.MySQLFamily, []string{"SET GLOBAL max_connect_errors = 101"}, lostUpdate, Unread, 0},
		{"a setting that is not one of the session's", dbms.MySQLFamily, []string{"SET @before = 1", "SET NAMES latin1"}, lostUpdate, "", 1},
		{"a database that it chose", dbms.MySQLFamily, []string{"CREATE DATABASE {db}_2", "USE {db}_2", "CREATE TABLE own (id int PRIMARY KEY, n int)",
			"INSERT INTO own VALUES (1, 0)"}, []string{"BEGIN", "SELECT n FROM own WHERE id = 1", "UPDATE own SET n = 1 WHERE id = 1", "COMMIT",
			"DROP DATABASE {db}_2"}, "", 1},
		{"quotes", dbms.MySQLFamily, []string{"SET SESSION sql_mode = 'ANSI_QUOTES'"},
			[]string{"BEGIN", `SELECT "balance" FROM "account" WHERE id = 1`, "UPDATE account SET balance = 90 WHERE id = 1", "COMMIT"}, "", 1},
		{"a temporary table", dbms.MySQLFamily, []string{"CREATE TEMPORARY TABLE scratch (id int)", "INSERT INTO scratch VALUES (1)"},
			slices.Insert(slices.Clone(lostUpdate), 1, "SELECT id FROM scratch"), TwinFailed, 0},
		{"a lock by name", dbms.MySQLFamily, nil, slices.Insert(slices.Clone(lostUpdate), 1, "SELECT GET_LOCK('a', 1)"), NamedLock, 0},
		{"an advisory lock", dbms.PostgreSQLFamily, nil, slices.Insert(slices.Clone(lostUpdate), 1, "SELECT pg_advisory_xact_lock(1)"), NamedLock, 0},
		{"a notification", dbms.PostgreSQLFamily, nil, slices.Insert(slices.Clone(lostUpdate), 1, "NOTIFY changed"), LeavesTraces, 0},
		{"a trigger that notifies", dbms.PostgreSQLFamily, []string{
			"CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''changed'', ''''); RETURN NEW; END'",
			"CREATE TRIGGER tells BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION tell()"}, lostUpdate, LeavesTraces, 0},
		{"no row is changed in autocommit", dbms.PostgreSQLFamily, nil, []string{"SELECT balance FROM account WHERE id = 1",
			"UPDATE account SET balance = 90 WHERE id = 1 AND version = 9"}, NothingChanged, 0},
		{"nor on MariaDB", dbms.MySQLFamily, nil, []string{"SELECT balance FROM account WHERE id = 1",
			"DELETE FROM account WHERE id = 1 AND version = 9"}, NothingChanged, 0},
		{"serializable", dbms.PostgreSQLFamily, nil, slices.Replace(slices.Clone(lostUpdate), 0, 1, "BEGIN ISOLATION LEVEL SERIALIZABLE"), Serializable, 0},
		{"a level of its own", dbms.PostgreSQLFamily, nil, slices.Replace(slices.Clone(lostUpdate), 0, 1, "BEGIN ISOLATION LEVEL REPEATABLE READ"), "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := families[0].counts
			if c.family == dbms.MySQLFamily {
				counts = families[1].counts
			}
			text, target := newTarget(t, c.family, tablesOf(counts))
			result := beside(t, text, target, true, func(client *sql.Conn, database string) {
				for _, s := range slices.Concat(c.before, c.program) {
					answerTo(t, client, strings.ReplaceAll(s, "{db}", database))
				}
			})
			if result.Judged != c.judgment || c.why != "" && result.NotPlayed[c.why] == 0 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// open opens a connection to a database.
func open(t *testing.T, address string) *sql.Conn {
	t.Helper()
	db, err := workload.DialectOf(address).Open(address, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	client, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// startProxy starts isotap with twins, and returns the address for clients.
func startProxy(t *testing.T, text string, target dsn.Target, twins twin.Player) string {
	t.Helper()
	srv, err := proxyserver.Start(t.Context(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Args: true, Texts: true,
		Recording: filepath.Join(t.TempDir(), "rec"), Twins: twins, Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	})
	return strings.Replace(text, target.Address, srv.Addr().String(), 1)
}

// TestADatabaseIsDroppedThatTwinsWerePlayedIn: nothing of isotap's stays connected to it, though another client stays.
func TestADatabaseIsDroppedThatTwinsWerePlayedIn(t *testing.T) {
	text, target := newTarget(t, dbms.PostgreSQLFamily, tablesOf("serial"))
	live := NewLive(t.Context(), target)
	address := startProxy(t, text, target, live)
	stays := open(t, strings.Replace(address, "/"+target.Database, "/postgres", 1))
	answerTo(t, stays, "SELECT oid FROM pg_class WHERE relname = 'pg_class'")
	db, err := workload.DialectOf(address).Open(address, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range lostUpdate {
		client, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil { // to the pool of one
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := stays.ExecContext(t.Context(), "DROP DATABASE "+target.Database); err != nil {
		t.Error(err)
	}
	if len(live.played) != 1 {
		t.Errorf("played is %v, and not %v", live.played, live.why)
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
}

// TestAClientGetsItsReplyThoughATwinWaits: somebody who goes past isotap has the rows next, and keeps them.
func TestAClientGetsItsReplyThoughATwinWaits(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			text, target := newTarget(t, f.family, tablesOf(f.counts))
			direct := open(t, text)
			got := make(chan error, 1)
			result := beside(t, text, target, true, func(client *sql.Conn, _ string) {
				for _, s := range lostUpdate[:3] {
					answerTo(t, client, s)
				}
				go func() {
					_, begins := direct.ExecContext(t.Context(), "BEGIN")
					_, writes := direct.ExecContext(t.Context(), "UPDATE account SET version = 1 WHERE id = 1")
					got <- errors.Join(begins, writes)
				}()
				time.Sleep(200 * time.Millisecond)
				began := time.Now()
				answerTo(t, client, "COMMIT")
				if took := time.Since(began); took > LiveTime+time.Second {
					t.Errorf("the COMMIT took %v", took)
				}
				if err := <-got; err != nil {
					t.Error(err)
				}
				if left := answerTo(t, client, "SELECT balance FROM account WHERE id = 1"); left != "[balance][{90 true}]" {
					t.Errorf("left is %s", left)
				}
			})
			answerTo(t, direct, "COMMIT")
			if result.NotPlayed[TooLate] != 1 || result.Judged != 0 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// TestTwinsHaveWhatASessionBeganWith: a client asks for settings as it connects, of which one is a list.
func TestTwinsHaveWhatASessionBeganWith(t *testing.T) {
	for parameters, judged := range map[string]int{`search_path=other,"$user",public&TimeZone=Asia/Tokyo`: 1,
		"options=-c search_path=other -cwork_mem=8MB": 1, "options=--search_path=other": 0} {
		text, target := newTarget(t, dbms.PostgreSQLFamily, append(tablesOf("serial"), "CREATE SCHEMA other",
			"CREATE TABLE other.own (id int PRIMARY KEY, n int)", "INSERT INTO other.own VALUES (1, 0)"))
		live := NewLive(t.Context(), target)
		address := startProxy(t, text, target, live)
		with, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		query := with.Query()
		for _, p := range strings.Split(parameters, "&") {
			name, value, _ := strings.Cut(p, "=")
			query.Set(name, value)
		}
		with.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
		client := open(t, with.String())
		for _, s := range []string{"BEGIN", "SELECT n FROM own WHERE id = 1", "UPDATE own SET n = 1 WHERE id = 1", "COMMIT"} {
			answerTo(t, client, s)
		}
		live.mu.Lock()
		if len(live.played) != judged {
			t.Errorf("%s: played is %v, and not %v: %v", parameters, live.played, live.why, live.failure)
		}
		live.mu.Unlock()
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	}
}
