package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

// traces are what clients say who ask the server about what runs in their sessions, by what isotap could leave there.
var traces = map[string][]step{
	"a temporary schema": queries("SET search_path TO pg_temp", "BEGIN", "SELECT current_schema() ~ 'pg_temp'",
		"PREPARE TRANSACTION 'x'", "ROLLBACK",
		"SELECT id FROM public.t WHERE id = 1", "CREATE TABLE made (a int)", "SELECT * FROM made",
		"INSERT INTO made VALUES (1)", "SELECT * FROM made", "SET search_path TO public, pg_temp",
		"SELECT id FROM t WHERE id = 1"),
	"no temporary schema": queries("SET search_path TO nowhere, pg_temp, public", "SELECT pg_my_temp_schema()",
		"SELECT id FROM t WHERE id = 2", "BEGIN", "UPDATE t SET n = 1 WHERE id = 1",
		"PREPARE TRANSACTION 'y'", "ROLLBACK PREPARED 'y'", `SET search_path TO "$user", 'Odd "one', pg_temp`,
		"SELECT pg_my_temp_schema()", "SELECT pg_my_temp_schema()", "SET search_path TO public, pg_temp",
		"SELECT id FROM t WHERE id = 2", "SELECT pg_my_temp_schema()"),
	"the statement's own text": append(queries("CREATE TABLE said (id serial PRIMARY KEY, q varchar(100))",
		"INSERT INTO said (q) VALUES (current_query())", "INSERT INTO said (q) VALUES (current_query()) RETURNING q",
		"UPDATE said SET q = current_query() WHERE id = 1", "SELECT current_query(), id FROM t WHERE id = 1",
		"SELECT id, query FROM t, pg_stat_activity WHERE pid = pg_backend_pid() AND id = 1",
		"WITH w AS (INSERT INTO said (q) VALUES (current_query()) RETURNING id) SELECT q FROM said",
		"SELECT q FROM said ORDER BY id"),
		send(1, parse("", "INSERT INTO said (q) VALUES (current_query()) RETURNING q"), bind("", "", nil),
			execute("", 0), syncs)),
	"the text in a trigger": queries("INSERT INTO audited VALUES (1, 1)", "UPDATE audited SET v = 2 WHERE id = 1",
		"DELETE FROM audited", "SELECT q FROM trail", "INSERT INTO audited VALUES (2, 1) RETURNING id"),
	"the text in a default": queries("INSERT INTO defaulted (id) VALUES (1)",
		"INSERT INTO defaulted VALUES (2, 'x')", "SELECT * FROM defaulted"),
	"the text in a function": queries("SELECT id, asked() FROM t WHERE id = 1", "SELECT * FROM asking WHERE id = 1"),
	"what SQL has prepared": append(queries("PREPARE q AS SELECT s FROM t WHERE id = 1", "EXECUTE q", "EXECUTE q"),
		queries("SELECT name, statement FROM pg_prepared_statements", "EXECUTE q", "PREPARE r AS SELECT n FROM t",
			"EXECUTE r", "SELECT name, statement FROM pg_prepared_statements ORDER BY 1", "DEALLOCATE ALL")...),
	"a cursor in a function": queries("BEGIN", "DECLARE c CURSOR FOR SELECT id, s FROM t WHERE id < 4 ORDER BY id",
		"FETCH c", "SELECT fetches('c')", "FETCH c", "COMMIT"),
	"a cursor once it is seen": queries("SELECT cursor_to_xml('c', 2, false, true, '')", "BEGIN",
		"DECLARE c CURSOR FOR SELECT id, s FROM t WHERE id < 4 ORDER BY id",
		"SELECT cursor_to_xml('c', 2, false, true, '')", "SELECT statement FROM pg_cursors", "FETCH c", "COMMIT"),
	"a table of what the protocol prepared": append([]step{send(1, parse("q", "SELECT s FROM t WHERE id = $1"), syncs)},
		queries("CREATE TABLE said AS EXECUTE q(1)", "SELECT * FROM said",
			"CREATE TABLE trail AS EXECUTE q(2) WITH NO DATA", "SELECT * FROM trail",
			"CREATE TABLE said AS EXECUTE q(1)", "CREATE TABLE nothing AS EXECUTE q",
			"EXPLAIN (VERBOSE, COSTS OFF) EXECUTE q(1)", "EXECUTE q(1)")...),
	"a cursor before it is seen": slices.Concat(queries("BEGIN ISOLATION LEVEL REPEATABLE READ",
		`DECLARE "C" CURSOR FOR SELECT id, s FROM t WHERE id < 4 ORDER BY id; -- three`,
		"DECLARE d CURSOR FOR SELECT n FROM t", "DECLARE e CURSOR FOR SELECT * FROM t",
		`FETCH "C"`, "FETCH 2 FROM d", "FETCH ALL e", reading("C"), "FETCH d", "FETCH e", "FETCH BACKWARD e",
		reading("d"), "UPDATE t SET n = 7 WHERE CURRENT OF d", "COMMIT")),
	"a cursor that locks before it is seen": queries("BEGIN ISOLATION LEVEL SERIALIZABLE",
		"DECLARE c CURSOR FOR SELECT id, s FROM t ORDER BY id FOR UPDATE", "FETCH FORWARD 2 FROM c", "MOVE c",
		reading("c"), "DELETE FROM t WHERE CURRENT OF c", "FETCH c", "COMMIT"),
	"a cursor at READ COMMITTED before it is seen": append(queries("BEGIN",
		"DECLARE c CURSOR FOR SELECT id, s FROM t ORDER BY id", "FETCH c", "SELECT s FROM t WHERE id = 2"),
		send(1, parse("", "SELECT cursor_to_xml($1, 2, false, true, '')"), bind("", "", nil, "c"), execute("", 0),
			syncs), query("FETCH c"), query("COMMIT")),
}

// reading is a text that has the server itself read a cursor.
func reading(cursor string) string {
	return "DO $$DECLARE r record; c refcursor := '" + cursor +
		"'; BEGIN FETCH c INTO r; RAISE NOTICE '% %', row_to_json(r), r; END$$"
}

// tracing makes what the traces look at.
const tracing = `CREATE TABLE audited (id int PRIMARY KEY, v int); CREATE TABLE trail (q text);
	CREATE FUNCTION noting() RETURNS trigger LANGUAGE plpgsql
		AS 'BEGIN INSERT INTO trail VALUES (current_query()); RETURN coalesce(NEW, OLD); END';
	CREATE TRIGGER noting AFTER INSERT OR UPDATE OR DELETE ON audited FOR EACH ROW EXECUTE FUNCTION noting();
	CREATE TABLE defaulted (id int PRIMARY KEY, q text DEFAULT current_query());
	CREATE FUNCTION asked() RETURNS text LANGUAGE sql AS 'SELECT current_query()';
	CREATE VIEW asking AS SELECT id, current_query() AS q FROM t`

// fetching makes a function that reads a cursor.
const fetching = `CREATE FUNCTION fetches(c refcursor) RETURNS text LANGUAGE plpgsql
	AS 'DECLARE r record; BEGIN FETCH c INTO r; RETURN row_to_json(r)::text || r::text; END'`

// TestIsotapLeavesNoTraceThatItsClientsSee has clients ask about their own sessions, directly and through isotap.
func TestIsotapLeavesNoTraceThatItsClientsSee(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for name, steps := range traces {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			db := testdb.OpenPostgreSQL(t, r.database)
			var heard [2]string
			for i, address := range []string{r.direct, r.proxied} {
				made := []string{reset, "DROP TABLE IF EXISTS said, audited, trail, defaulted CASCADE; " +
					"DROP FUNCTION IF EXISTS noting, asked, fetches CASCADE"}
				if !strings.HasSuffix(name,
					"before it is seen") { // one whose function asks for what runs has no cursors observed
					made = append(made, tracing)
				}
				if name == "a cursor in a function" {
					made = append(made, fetching)
				}
				for _, sql := range made {
					if _, err := db.Exec(sql); err != nil {
						t.Fatal(err)
					}
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
		})
	}
}

// TestCursorsAreObservedWhereNobodyElseReadsThem has a client declare a cursor before and after another one has had the
// server read one.
func TestCursorsAreObservedWhereNobodyElseReadsThem(t *testing.T) {
	r := newRig(t, nil)
	db := testdb.OpenPostgreSQL(t, r.database)
	if _, err := db.Exec(reset); err != nil {
		t.Fatal(err)
	}
	if err := r.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.planner.Invalidate()
	reads := queries("BEGIN", "DECLARE c CURSOR FOR SELECT s FROM t WHERE id = 1", "FETCH c", "COMMIT")
	observed := func() bool {
		converse(t, r.proxied, r.database, reads)
		return slices.ContainsFunc(r.recorded(), func(txn *history.Txn) bool {
			return slices.ContainsFunc(txn.Stmts, func(st history.Stmt) bool { return len(st.Accesses) > 0 })
		})
	}
	if !observed() {
		t.Error("a cursor that nobody else reads is not observed")
	}
	converse(t, r.proxied, r.database, queries("SELECT cursor_to_xml('c', 1, false, true, '')"))
	if r.recorded(); observed() {
		t.Error("a cursor is observed though the server has read one")
	}
}

// TestCursorStaysWhereANewOneWouldDiffer has somebody else write between the DECLARE and the first text that has
// the server read the cursor, and the client itself: FETCH gives the rows that the DECLARE saw.
func TestCursorStaysWhereANewOneWouldDiffer(t *testing.T) {
	for name, between := range map[string]struct{ other, own string }{
		"another transaction": {other: "UPDATE t SET s = 'other' WHERE id = 2"},
		"its own":             {own: "UPDATE t SET s = 'own' WHERE id = 2"},
		"a savepoint":         {own: "SAVEPOINT x"},
		"a setting":           {own: "SET search_path TO nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, reset)
			db := testdb.OpenPostgreSQL(t, r.database)
			client := connectRaw(t, r.proxied, r.database)
			say := func(texts ...string) {
				for _, s := range queries(texts...) {
					client.run(s)
				}
			}
			say("BEGIN", "DECLARE c CURSOR FOR SELECT s FROM t ORDER BY id", "FETCH c")
			if between.other != "" {
				if _, err := db.Exec(between.other); err != nil {
					t.Fatal(err)
				}
			} else {
				say(between.own)
			}
			say("SELECT xpath_exists('/', cursor_to_xml('c', 0, false, true, ''))")
			if name == "a savepoint" {
				say("ROLLBACK TO x")
			}
			from := client.heard.Len()
			say("FETCH c", "ROLLBACK")
			if heard := readable(client.heard.Bytes()[from:]); !strings.Contains(heard, "row 2") {
				t.Errorf("the cursor gives another row than it saw:\n%s", heard)
			}
		})
	}
}
