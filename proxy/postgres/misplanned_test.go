package postgres

import (
	"fmt"
	"maps"
	"slices"
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
	refused := strings.Contains(t.Name(), "a_code_per_column/shuffled_false") // by the server, at the Bind
	n := r.proxy.Stats().Misplanned
	if !refused && n == 0 {
		t.Error("no result was counted as misplanned")
	}
	told := map[string]int{}
	for _, e := range r.logs.FilterMessageSnippet("a statement was planned wrong").All() {
		told[e.Message]++
		if told[e.Message] > 1 || strings.Contains(e.Message, "'x'") {
			t.Errorf("it is logged again, or with a value: %s", e.Message)
		}
	}
	if named := strings.Contains(strings.Join(slices.Collect(maps.Keys(told)), "\n"), "id, ?"); named == refused {
		t.Errorf("the log tells of %d shapes: %v", len(told), told)
	}
	r.recorded()
	if got := steady(converse(t, r.proxied, r.database, steps)); got != want {
		t.Fatalf("isotap's answer to another session differs:\n%s", difference(want, got))
	}
	if more := r.proxy.Stats().Misplanned - n; more > 0 && !refused {
		t.Errorf("the statements of another session were sent with isotap's columns again: %d results", more)
	}
	unobserved := 0
	for _, txn := range r.recorded() {
		for _, st := range txn.Stmts {
			if len(st.Accesses) > 0 {
				t.Errorf("another session's %s is observed", st.Shape)
			}
			if st.Observation == history.Opaque {
				unobserved++
			}
		}
	}
	if unobserved == 0 && !refused {
		t.Error("nothing of another session's is recorded as unobserved")
	}
}

// TestClientsNamesAreNotTakenForIsotaps has clients ask for columns that are named as isotap's are: in their texts,
// by their tables, through cursors and prepared statements.
func TestClientsNamesAreNotTakenForIsotaps(t *testing.T) {
	own := append(queries("CREATE TABLE own (id INT PRIMARY KEY, isotap_carried_1 INT, isotap_2 TEXT); "+
		"INSERT INTO own VALUES (1, 2, 'three'); "+
		"CREATE VIEW seen_by AS SELECT id AS isotap_1, s AS isotap_carried_1 FROM t; "+
		"CREATE FUNCTION named() RETURNS TABLE (isotap_1 int, isotap_carried_1 text) LANGUAGE sql AS $$SELECT 1, 'x'$$"),
		send(1, parse("s", "SELECT id FROM t WHERE id = 1"), syncs))
	for _, sql := range []string{"SELECT 1 AS isotap_carried_1", "SELECT id AS isotap_1 FROM t WHERE id = 1",
		"SELECT * FROM own", "SELECT t.id, own.* FROM t JOIN own ON own.id = t.id",
		"SELECT *, (SELECT s.c FROM (SELECT * FROM own) s(a, b, c)) FROM t JOIN own USING (id)",
		"SELECT d.* FROM (SELECT * FROM own) d, t WHERE t.id = 1", "WITH w AS (SELECT * FROM own) SELECT * FROM w",
		"UPDATE own SET isotap_carried_1 = 3 RETURNING *", "TABLE own",
		`SELECT id, 5 AS U&"isotap\005f1" FROM t WHERE id = 1`, `SELECT 5 AS U&"isotap\005f1", id FROM t WHERE id = 1`,
		`SELECT id, 6 AS U&"\+000069sotap_1" FROM t WHERE id = 1`,
		`SELECT id, 7 AS U&"isotap!005f1" UESCAPE '!' FROM t WHERE id = 1`, `SELECT id, 8 AS U&"\0061" FROM t WHERE id = 1`,
		"SELECT * FROM seen_by WHERE 1 = 1 ORDER BY 1", "SELECT t.id, n.* FROM t, named() n WHERE t.id = 1",
		"SELECT n.*, t.id FROM t JOIN LATERAL (SELECT * FROM named()) n ON t.id = 1",
		"UPDATE t SET n = n FROM named() f WHERE id = 2 RETURNING f.*, id"} {
		own = append(own, query(sql), send(1, parse("", sql), bind("", "", []int16{1}),
			describe(ofPortal, ""), execute("", 0), syncs))
	}
	own = append(own, queries("BEGIN", "DECLARE c CURSOR FOR SELECT id, 5 AS isotap_1 FROM t WHERE id = 1", "FETCH c",
		"DECLARE d CURSOR FOR SELECT * FROM own", "FETCH d", "COMMIT",
		"PREPARE q AS SELECT 1 AS isotap_1", "EXECUTE q", "PREPARE o AS SELECT * FROM own", "EXECUTE o", "EXECUTE o",
		"DROP TABLE own", "DROP VIEW seen_by", "DROP FUNCTION named", "DEALLOCATE q")...)
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

// A lyingPlanner has the plans of writes say something else of their results than what they are.
type lyingPlanner struct {
	*sqlpostgres.Cache
	mu   sync.Mutex
	lie  func(script *sqlpostgres.Script, plan *sqlpostgres.Plan)
	told map[*sqlpostgres.Script]*sqlpostgres.Script
}

func (l *lyingPlanner) Plan(text []byte, env sqlpostgres.Session) *sqlpostgres.Script {
	script := l.Cache.Plan(text, env)
	if script == nil || script.Pieces == nil {
		return script
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[script] == nil {
		made := *script
		made.Statements = nil
		for _, p := range script.Statements {
			plan := *p
			made.Statements = append(made.Statements, &plan)
		}
		for _, p := range made.Statements {
			l.lie(&made, p)
		}
		l.told[script] = &made
	}
	return l.told[script]
}

// lies are what wrong plans say of results.
var lies = map[string]func(script *sqlpostgres.Script, plan *sqlpostgres.Plan){
	"nothing was added": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) {
		p.Result = sqlpostgres.Result{Reply: rewrite.Unchanged}
	},
	"the client gets some columns": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) { p.Result.Reply = rewrite.Trimmed },
	"the client gets no columns":   func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) { p.Result.Reply = rewrite.Returning },
	"it is a SELECT of a column": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) {
		if p.Result.Reply == rewrite.Returning {
			p.Kind, p.Result.Reply, p.Result.HasColumn = history.Select, rewrite.Trimmed, true
		}
	},
	"it is another statement": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) {
		if p.Result.Tag = "MERGE "; p.Result.Reply == rewrite.Returning {
			p.Result.Reply = rewrite.Trimmed
		}
	},
	"a column less was added": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) { lose(p) },
	"a column less, and the client gets some": func(_ *sqlpostgres.Script, p *sqlpostgres.Plan) {
		lose(p)
		p.Result.Reply = rewrite.Trimmed
	},
	"the statements come in another order": func(script *sqlpostgres.Script, p *sqlpostgres.Plan) {
		if p == script.Statements[len(script.Statements)-1] { // the last to be called
			slices.Reverse(script.Statements)
		}
	},
	"there is a statement less": func(script *sqlpostgres.Script, p *sqlpostgres.Plan) {
		if len(script.Statements) > 1 && p == script.Statements[len(script.Statements)-1] {
			script.Statements = script.Statements[1:]
		}
	},
}

// lose takes a column away from what a plan knows of.
func lose(p *sqlpostgres.Plan) {
	for i := range p.Result.Sources {
		if of := p.Result.Sources[i].Physical; of != nil && len(of.Items) > 1 {
			fewer := *of
			fewer.Items = fewer.Items[:len(fewer.Items)-1]
			p.Result.Sources = slices.Clone(p.Result.Sources)
			p.Result.Sources[i].Physical = &fewer
			return
		}
	}
}

// lyingTexts write, and return rows or none.
var lyingTexts = []string{
	"INSERT INTO child VALUES (1)", "INSERT INTO child VALUES (1), (2) RETURNING t",
	"INSERT INTO child SELECT id FROM t WHERE id < 3",
	"INSERT INTO t VALUES (50, 'y', 2) ON CONFLICT (id) DO UPDATE SET s = excluded.s",
	"UPDATE t SET n = n + 1 WHERE id < 4", "UPDATE t SET n = n + 1 WHERE id = 4 RETURNING *",
	"UPDATE t SET n = o.n FROM t o WHERE o.id = t.id AND t.id = 5",
	"DELETE FROM t WHERE id = 50", "DELETE FROM child WHERE t = 2 RETURNING t", "DELETE FROM t WHERE id > 70 AND id < 0",
	"WITH w AS (UPDATE t SET n = 0 WHERE id = 6 RETURNING id) SELECT id FROM w",
	"WITH w AS (DELETE FROM t WHERE id = 71) UPDATE t SET n = 3 WHERE id = 7",
	"WITH w AS (INSERT INTO child VALUES (3)) DELETE FROM t WHERE id = 72",
	"SELECT id, n FROM t WHERE id < 4 ORDER BY id",
}

// mergingTexts are the like, of servers from 17 on.
var mergingTexts = []string{
	"MERGE INTO t USING (VALUES (1), (90)) v(id) ON v.id = t.id WHEN MATCHED THEN UPDATE SET n = 7 " +
		"WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'm', 1)",
	"MERGE INTO t USING (VALUES (90)) v(id) ON v.id = t.id WHEN MATCHED THEN DELETE RETURNING t.id, merge_action()",
}

// TestPlansOfWritesThatLieShowNoColumnOfIsotaps has what plans say of writes be wrong, in all ways that the proxy goes
// by. The client gets what it gets directly, be it rows or none.
func TestPlansOfWritesThatLieShowNoColumnOfIsotaps(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	texts := lyingTexts
	if testdb.PostgreSQL(t).Major() >= 17 {
		texts = append(slices.Clone(texts), mergingTexts...)
	}
	var steps []step
	for i, sql := range texts {
		described := fmt.Sprint("d", i)
		steps = append(steps, query("BEGIN"), query(sql), query("ROLLBACK"),
			send(1, parse("", sql), bind("", "", nil), execute("", 0), syncs),
			send(1, parse("", sql), bind("", "", []int16{1}), describe(ofPortal, ""), execute("", 0), syncs),
			send(1, parse(described, sql), describe(ofStatement, described), syncs),
			send(1, bind("", described, []int16{1}), execute("", 0), syncs), query("PREPARE "+fmt.Sprint("q", i)+" AS "+sql),
			query("EXECUTE "+fmt.Sprint("q", i)), query("EXECUTE "+fmt.Sprint("q", i)), query("EXECUTE "+described))
		steps = append(steps, query("SELECT 1; "+sql), query(sql+"; SELECT t.id, o.s FROM t JOIN t o USING (id) "+
			"WHERE id = 8; INSERT INTO seen VALUES ("+fmt.Sprint(i)+", 1)"))
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			l := &lyingPlanner{lie: lie, told: make(map[*sqlpostgres.Script]*sqlpostgres.Script)}
			r := newRig(t, func(c *Config) { c.Planners = func(string) Planner { return l } })
			l.Cache = r.planner
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
				heard[i] = steady(converse(t, address, r.database, steps))
			}
			if heard[0] != heard[1] {
				t.Errorf("isotap's answer differs:\n%s", difference(heard[0], heard[1]))
			}
			if r.proxy.Stats().Misplanned == 0 {
				t.Error("no result was counted as misplanned")
			}
		})
	}
}
