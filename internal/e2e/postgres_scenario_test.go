package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/fromrecording"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/serverlog"
)

// TestScenariosOfUnseenWritesArePlayed makes scenarios of findings whose write the server's log told, and plays them:
// the statement that did it does it again. What the recording does not have is asked for, or refused in words.
func TestScenariosOfUnseenWritesArePlayed(t *testing.T) {
	parents := []string{"CREATE TABLE kind (id int PRIMARY KEY)",
		"CREATE TABLE item (id int PRIMARY KEY, n int, kind int REFERENCES kind ON DELETE SET NULL)"}
	rows := []string{"INSERT INTO kind VALUES (1)", "INSERT INTO item VALUES (1, 10, 1)"}
	trigger := []string{"CREATE FUNCTION sold() RETURNS trigger AS 'BEGIN UPDATE item SET n = n - 1 WHERE id = 1; " +
		"RETURN NULL; END' LANGUAGE plpgsql",
		"CREATE TRIGGER selling AFTER INSERT ON kind FOR EACH ROW EXECUTE FUNCTION sold()"}
	for _, tt := range []struct {
		name, write string
		setup       []string
		block       bool
		past        bool
		refused     string // without rows of one's own
		plays       bool   // with them
	}{
		{name: "ON DELETE SET NULL", write: "DELETE FROM kind WHERE id = 1", block: true, plays: true},
		{name: "ON DELETE SET NULL outside of a block", write: "DELETE FROM kind WHERE id = 1", plays: true},
		{name: "a trigger", write: "INSERT INTO kind VALUES (2)", setup: trigger, block: true, refused: "(trigger)", plays: true},
		{name: "DO", write: "DO 'BEGIN UPDATE item SET n = n - 1; END'", refused: "DO block"},
		{name: "past isotap", write: "UPDATE item SET n = n - 1", past: true, refused: "past isotap"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &postgresBench{t: t, database: testdb.NewPostgreSQLDatabase(t), recording: t.TempDir() + "/rec"}
			testdb.Exec(t, testdb.OpenPostgreSQL(t, b.database), slices.Concat(parents, rows, tt.setup,
				[]string{"SET synchronous_commit = on; CREATE TABLE flushed ()"})...)
			b.start(func(o *proxyserver.Options) { o.ServerLog, o.Definitions = serverlog.Require, true })
			x := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
			y := b.connect(map[bool]string{false: b.through(), true: b.direct()}[tt.past], pgx.QueryExecModeSimpleProtocol)
			b.exec(x, "BEGIN", "SELECT n FROM item WHERE id = 1")
			if tt.block {
				b.exec(y, "BEGIN", tt.write, "COMMIT")
			} else {
				b.exec(y, tt.write)
			}
			b.exec(x, "UPDATE item SET n = 9 WHERE id = 1", "COMMIT")
			result := b.undisputed()
			if len(result.Findings) != 1 || countOf(t, result, analyzer.LostUpdate) != 1 {
				t.Fatalf("%d findings", len(result.Findings))
			}
			r, err := recorder.Open(b.recording)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := fromrecording.Scenario(t.Context(), r, result.Findings[0], nil); tt.refused != "" &&
				(err == nil || !strings.Contains(err.Error(), tt.refused)) || tt.refused == "" && err != nil {
				t.Errorf("without rows: %v", err)
			}
			made := slices.Concat(rows, tt.setup)
			s, err := fromrecording.Scenario(t.Context(), r, result.Findings[0], made)
			if (err == nil) != tt.plays {
				t.Fatalf("with rows: %v", err)
			}
			if tt.plays {
				playScenario(t, s, tt.write)
			}
		})
	}
}

// playScenario plays a scenario whose second session writes, and holds what it does against what it expects.
func playScenario(t *testing.T, s *scenario.Scenario, write string) {
	t.Helper()
	server := testdb.PostgreSQL(t)
	target, err := dsn.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at := replay.Server{Family: target.Family, Addr: server.Addr(), User: "postgres", Database: "postgres"}
	runner, err := replay.NewRunner(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	var steps []string
	for _, step := range s.Steps {
		steps = append(steps, step.SQL)
		if step.Incomplete || strings.Contains(step.SQL, "/*") {
			t.Errorf("step %q cannot be played", step.SQL)
		}
	}
	if !slices.Contains(steps, write) || slices.Index(steps, "BEGIN") != 0 {
		t.Errorf("the steps are %q", steps)
	}
	trace, err := runner.Run(t.Context(), at, s.At(), history.ReadCommitted, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range trace.Results {
		if r := &trace.Results[i]; r.State != "" {
			t.Errorf("step %d, %q: %s", i, r.SQL, r.State)
		}
	}
}
