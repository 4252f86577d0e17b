package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/workload"
)

// goods makes the tables that the requests are about.
var goods = []string{"DROP TABLE IF EXISTS goods, options", "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(20), stock INT)",
	"CREATE TABLE options (id INT PRIMARY KEY, user_id INT, name VARCHAR(20), value VARCHAR(20))",
	"INSERT INTO goods VALUES (1, 'pin', 5), (2, 'cap', 5)", "INSERT INTO options VALUES (1, 1, 'font', 'serif')"}

// A requestTurn is a statement of one of two clients, in autocommit.
type requestTurn struct {
	client int
	query  string
	args   []any
}

// TestWhatLiesBetweenRequestsIsTold has two clients send statements in turns, as two requests do that run at once.
func TestWhatLiesBetweenRequestsIsTold(t *testing.T) {
	const (
		loadGoods = "SELECT id, stock FROM goods WHERE id = ?"
		take      = "UPDATE goods SET stock = stock - ? WHERE id = ?"
		takeSafe  = "UPDATE goods SET stock = stock - ? WHERE id = ? AND stock >= ?"
		save      = "UPDATE goods SET name = ?, stock = ? WHERE id = ?"
		options   = "SELECT name, value FROM options WHERE user_id = ?"
		option    = "INSERT INTO options (id, user_id, name, value) VALUES (2, ?, ?, ?)"
		set       = "UPDATE options SET value = ? WHERE user_id = ? AND name = ?"
		taken     = "SELECT 1 FROM goods WHERE name = ? AND id <> ? LIMIT 1"
		rename    = "UPDATE goods SET name = ? WHERE id = ?"
	)
	for _, c := range []struct {
		name  string
		turns []requestTurn
		want  analyzer.Anomaly
	}{
		{"both take of what they saw", []requestTurn{{0, loadGoods, []any{1}}, {1, loadGoods, []any{1}}, {0, take, []any{3, 1}},
			{1, take, []any{4, 1}}}, analyzer.StaleDecision},
		{"both take what there is", []requestTurn{{0, loadGoods, []any{1}}, {1, loadGoods, []any{1}}, {0, takeSafe, []any{1, 1, 1}},
			{1, takeSafe, []any{1, 1, 1}}}, ""},
		{"a row that is saved whole", []requestTurn{{1, save, []any{"pen", 5, 1}}, {0, save, []any{"pencil", 5, 1}},
			{1, save, []any{"pen", 6, 1}}}, analyzer.SilentRevert},
		{"a change taken back", []requestTurn{{1, save, []any{"pen", 5, 1}}, {0, save, []any{"pencil", 5, 1}}, {1, save, []any{"pen", 5, 1}}}, ""},
		{"a row that is not there yet", []requestTurn{{0, options, []any{1}}, {1, option, []any{1, "theme", "dark"}},
			{0, set, []any{"light", 1, "theme"}}}, analyzer.StaleOverwrite},
		{"a row that is read when it is", []requestTurn{{0, options, []any{1}}, {1, option, []any{1, "theme", "dark"}}, {0, options, []any{1}},
			{0, set, []any{"light", 1, "theme"}}}, ""},
		{"one name for two rows", []requestTurn{{0, taken, []any{"ink", 1}}, {1, taken, []any{"ink", 2}}, {0, rename, []any{"ink", 1}},
			{1, rename, []any{"ink", 2}}}, analyzer.DoubleSet},
		{"one name after the other", []requestTurn{{0, taken, []any{"ink", 1}}, {0, rename, []any{"ink", 1}}, {1, taken, []any{"oil", 2}},
			{1, rename, []any{"oil", 2}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, target dsn.Target) {
				for _, inline := range []bool{false, true} {
					t.Run(fmt.Sprintf("inline %t", inline), func(t *testing.T) {
						recording, pause := playTurns(t, target, inline, c.turns)
						for tries := 1; pause > shortPause && tries < 10; tries++ { // the machine was busy
							recording, pause = playTurns(t, target, inline, c.turns)
						}
						toldUnprotected(t, recording, c.want)
					})
				}
			})
		})
	}
}

// shortPause is a pause that certainly parts no guessed request: one of 50 ms does.
const shortPause = 30 * time.Millisecond

// playTurns has clients take their turns, and returns the recording with the longest pause that one of them made
// between two of its own.
func playTurns(t *testing.T, target dsn.Target, inline bool, turns []requestTurn) (recording string, pause time.Duration) {
	t.Helper()
	srv, recording := provokes(t, target, nil, testsAll)
	clients := clientsOf(t, srv, target.Database, inline, 3)
	for _, statement := range goods {
		send(t, clients[2], statement)
	}
	ended := make(map[int]time.Time)
	for _, turn := range turns {
		if last, ok := ended[turn.client]; ok {
			pause = max(pause, time.Since(last))
		}
		send(t, clients[turn.client], turn.query, turn.args...)
		ended[turn.client] = time.Now()
	}
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
	return recording, pause
}

// testsAll has every condition tested, however long that takes: the mode auto leaves some out on a busy machine.
func testsAll(o *proxyserver.Options) { o.Predicates = true }

func send(t *testing.T, c *workload.Client, statement string, args ...any) {
	t.Helper()
	if err := c.Alone().Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// toldUnprotected wants one finding between requests, or none, and nothing else.
func toldUnprotected(t *testing.T, recording string, want analyzer.Anomaly) {
	t.Helper()
	result, err := analysis.Analyze(t.Context(), []string{recording}, analyzer.Options{Scope: analyzer.GuessedScope})
	if err != nil {
		t.Fatal(err)
	}
	var told []analyzer.Anomaly
	for _, f := range result.Findings {
		told = append(told, f.Anomaly)
		t.Log(f.Anomaly, f.Lost)
	}
	if want == "" && len(told) > 0 || want != "" && (len(told) != 1 || told[0] != want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestResetsOfSessionsAreRecorded has pools' clients reset their sessions between two transactions, or not.
func TestResetsOfSessionsAreRecorded(t *testing.T) {
	t.Run("MySQL's family", func(t *testing.T) {
		b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
		b.sayFarewell([]string{"@write", "@write", resetStep, "@write", "@write", changeUserStep, "@write"})
		wantFresh(t, b.txns(), false, false, true, false, true)
	})
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		t.Run("PostgreSQL, "+mode.String(), func(t *testing.T) {
			b := newPostgresBench(t)
			c := b.connect(b.through(), mode)
			const write = "UPDATE t SET v = v + 1"
			b.exec(c, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", write, "DISCARD ALL", write, "RESET search_path",
				write, "reset all", write, write)
			b.stop()
			wantFresh(t, recorded(t, b.recording), false, true, false, true, false)
		})
	}
}

// wantFresh looks which of the transactions that update came behind a reset of the session.
func wantFresh(t *testing.T, txns []*history.Txn, want ...bool) {
	t.Helper()
	var fresh []bool
	for _, x := range txns {
		if slices.ContainsFunc(x.Stmts, func(s history.Stmt) bool { return s.Kind == history.Update }) {
			fresh = append(fresh, x.Fresh)
		}
	}
	if !slices.Equal(fresh, want) {
		t.Errorf("behind a reset are %v, want %v", fresh, want)
	}
}
