package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A wrongPlanner has statements show columns of isotap's that their plans do not know of.
type wrongPlanner struct {
	*sqlpostgres.Cache
	mu    sync.Mutex
	wrong map[*sqlpostgres.Script]*sqlpostgres.Script
	// shuffled says that a query's columns stand in another order than its plan has it.
	shuffled bool
}

// wrongColumns stands in the place of 'x' in the texts that are planned wrong: a column of isotap's.
const wrongColumns = "t.ctid AS isotap_carried_1, 'x'"

func (w *wrongPlanner) Plan(text []byte, env sqlpostgres.Session) *sqlpostgres.Script {
	script := w.Cache.Plan(text, env)
	if script == nil || script.Pieces == nil || !strings.Contains(string(text), "'x'") {
		return script
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong[script] == nil {
		sent := string(script.Append(nil))
		made := *script
		made.Pieces = []string{strings.Replace(sent, "'x'", wrongColumns, 1)}
		if from := strings.Index(sent, "SELECT id"); w.shuffled && from >= 0 {
			made.Pieces = []string{sent[:from] +
				"SELECT isotap_1, isotap_2, isotap_3, isotap_4, id, x, n FROM (" + sent[from:] + ") q"}
		}
		w.wrong[script] = &made
	}
	return w.wrong[script]
}

// misplannedRows are statements over the table t of reset, which wrongPlanner plans wrong.
var misplannedRows = "SELECT id, 'x' AS x, n FROM t WHERE id < 5 ORDER BY id"

// misplannedScripts are what clients say, by how they ask for the rows.
var misplannedScripts = map[string][]step{
	"a Query":            queries(misplannedRows, misplannedRows),
	"several in a Query": queries("SELECT 1; "+misplannedRows, "SELECT 1; "+misplannedRows),
	"described portals": {send(1, parse("", misplannedRows), bind("", "", []int16{1}), describe(ofPortal, ""),
		execute("", 0), syncs), send(1, parse("", misplannedRows), bind("", "", nil), describe(ofPortal, ""),
		execute("", 0), syncs)},
	"nothing described": {send(1, parse("", misplannedRows), bind("", "", []int16{1}), execute("", 0), syncs),
		send(1, parse("", misplannedRows), bind("", "", nil), execute("", 0), syncs)},
	"a cached statement": {send(1, parse("s", misplannedRows), describe(ofStatement, "s"), syncs),
		send(1, bind("", "s", []int16{1, 0, 1}), execute("", 0), syncs), send(1, bind("", "s", []int16{0, 0, 1}),
			describe(ofPortal, ""), execute("", 0), syncs), send(1, describe(ofStatement, "s"), syncs)},
	"one not described": {send(1, parse("s", misplannedRows), syncs),
		send(1, bind("", "s", []int16{1}), execute("", 0), syncs), send(1, bind("", "s", nil), execute("", 0), syncs)},
	"a code per column": {send(1, parse("s", misplannedRows), syncs), send(1, bind("", "s", []int16{1, 0, 1}),
		execute("", 0), syncs), send(1, bind("", "s", []int16{0, 0, 0}), execute("", 0), syncs)},
	"in pieces": {send(1, parse("", misplannedRows), bind("p", "", nil), execute("p", 1), execute("p", 2),
		execute("p", 0), syncs)},
	"pieces in a block": {query("BEGIN"), send(1, parse("s", misplannedRows), bind("p", "s", nil), execute("p", 1),
		syncs), send(1, execute("p", 2), syncs), send(1, execute("p", 0), syncs), query("COMMIT")},
	"a cursor": queries("BEGIN", "DECLARE c CURSOR FOR "+misplannedRows, "FETCH c", "MOVE c",
		"FETCH ALL FROM c", "COMMIT"),
	"a described cursor": {query("BEGIN"), query("DECLARE c CURSOR FOR " + misplannedRows),
		send(1, parse("f", "FETCH c"), describe(ofStatement, "f"), syncs),
		send(1, bind("", "f", []int16{1}), execute("", 0), syncs), send(1, describe(ofPortal, "c"), execute("c", 1),
			syncs), send(1, execute("c", 0), syncs), query("COMMIT")},
	"a write's RETURNING": queries("UPDATE t SET n = n WHERE id < 3 RETURNING id, 'x'",
		"UPDATE t SET n = n WHERE id < 3 RETURNING id, 'x'"),
	"SQL's EXECUTE":      {query("PREPARE q AS " + misplannedRows), query("EXECUTE q"), query("EXECUTE q")},
	"EXECUTE of a Parse": {send(1, parse("s", misplannedRows), syncs), query("EXECUTE s"), query("EXECUTE s")},
}

// TestAWrongPlanShowsNoColumnOfIsotaps has statements sent upstream with columns that their plans do not know of. The
// client sees what it would see directly, and the statements' shape goes unobserved from then on.
func TestAWrongPlanShowsNoColumnOfIsotaps(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, shuffled := range []bool{false, true} {
		for name, steps := range misplannedScripts {
			t.Run(fmt.Sprintf("%s/shuffled %v", name, shuffled),
				func(t *testing.T) { misplan(t, &wrongPlanner{shuffled: shuffled}, steps) })
		}
	}
}

func misplan(t *testing.T, w *wrongPlanner, steps []step) {
	r := newRig(t, func(c *Config) { c.Planners = func(string) Planner { return w } })
	w.Cache, w.wrong = r.planner, make(map[*sqlpostgres.Script]*sqlpostgres.Script)
	db := testdb.OpenPostgreSQL(t, r.database)
	if _, err := db.Exec(reset); err != nil {
		t.Fatal(err)
	}
	if err := r.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.planner.Invalidate()
	want, got := steady(converse(t, r.direct, r.database, steps)), steady(converse(t, r.proxied, r.database, steps))
	if got != want {
		t.Fatalf("isotap's answer differs:\n%s", difference(want, got))
	}
	if refused := strings.Contains(t.Name(), "a_code_per_column/shuffled_false"); !refused &&
		r.proxy.Stats().Misplanned == 0 { // the server refuses the Bind
		t.Error("no result was counted as misplanned")
	}
	r.recorded()
	converse(t, r.proxied, r.database, queries("SELECT id, 'x' AS x, n FROM t WHERE id < 7 ORDER BY id"))
	known := r.planner.IsMisplanned(r.planner.Plan([]byte(misplannedRows), w.wrongEnv()).Statements[0].Shape)
	for _, txn := range r.recorded() {
		for _, st := range txn.Stmts {
			if known && (st.Observation != history.Opaque || st.Reason != history.ReasonMisplanned) {
				t.Errorf("another session's is %v (%s)", st.Observation, st.Reason)
			}
		}
	}
}

// wrongEnv is what texts of the tests' sessions are read under.
func (w *wrongPlanner) wrongEnv() sqlpostgres.Session {
	return sqlpostgres.Session{Version: 15, Role: "postgres", Path: rewrite.ListOf("pg_catalog", "public")}
}

// TestClientsNamesAreNotTakenForIsotaps has clients ask for columns that are named as isotap's are: in their texts,
// by their tables, through cursors and prepared statements.
func TestClientsNamesAreNotTakenForIsotaps(t *testing.T) {
	own := append(queries("CREATE TABLE own (id INT PRIMARY KEY, isotap_carried_1 INT, isotap_2 TEXT); INSERT INTO own VALUES (1, 2, 'three')"),
		send(1, parse("s", "SELECT id FROM t WHERE id = 1"), syncs))
	for _, sql := range []string{"SELECT 1 AS isotap_carried_1", "SELECT id AS isotap_1 FROM t WHERE id = 1",
		"SELECT * FROM own", "SELECT t.id, own.* FROM t JOIN own ON own.id = t.id",
		"SELECT *, (SELECT s.c FROM (SELECT * FROM own) s(a, b, c)) FROM t JOIN own USING (id)",
		"SELECT d.* FROM (SELECT * FROM own) d, t WHERE t.id = 1", "WITH w AS (SELECT * FROM own) SELECT * FROM w",
		"UPDATE own SET isotap_carried_1 = 3 RETURNING *", "TABLE own"} {
		own = append(own, query(sql), send(1, parse("", sql), bind("", "", []int16{1}),
			describe(ofPortal, ""), execute("", 0), syncs))
	}
	own = append(own, queries("BEGIN", "DECLARE c CURSOR FOR SELECT id, 5 AS isotap_1 FROM t WHERE id = 1", "FETCH c",
		"DECLARE d CURSOR FOR SELECT * FROM own", "FETCH d", "COMMIT",
		"PREPARE q AS SELECT 1 AS isotap_1", "EXECUTE q", "PREPARE o AS SELECT * FROM own", "EXECUTE o", "EXECUTE o",
		"DROP TABLE own", "DEALLOCATE q")...)
	r := newRig(t, nil)
	db := testdb.OpenPostgreSQL(t, r.database)
	var heard [2]string
	for i, address := range []string{r.direct, r.proxied} {
		if _, err := db.Exec(reset); err != nil {
			t.Fatal(err)
		}
		if err := r.catalog.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.planner.Invalidate()
		heard[i] = steady(converse(t, address, r.database, own))
	}
	if heard[0] != heard[1] {
		t.Errorf("isotap's answer differs:\n%s", difference(heard[0], heard[1]))
	}
	if n := r.proxy.Stats().Misplanned; n > 0 {
		t.Errorf("%d results were taken for misplanned", n)
	}
}
