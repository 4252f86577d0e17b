package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isotap/isotap/internal/testdb"
)

// TestColumnsOfIsotapsAreNotShown runs what gives all columns of a table in ways that the rewriter cannot read, or only
// in part, with the columns at the end and among the client's.
func TestColumnsOfIsotapsAreNotShown(t *testing.T) {
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	// Isotap's columns come to stand before one of the client's, whose number is then the same on both sides.
	testdb.Exec(t, testdb.OpenPostgreSQL(t, m.names[0]), "ALTER TABLE t3 ADD one int, ADD two int",
		"ALTER TABLE t3 DROP one, DROP two")
	for _, name := range m.names {
		testdb.Exec(t, testdb.OpenPostgreSQL(t, name), "ALTER TABLE t3 ADD late int")
	}
	r, err := m.reflect()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for _, s := range []string{
		"BEGIN", "ALTER TABLE t1 ADD more int DEFAULT 5", "SELECT * FROM t1 ORDER BY id",
		"INSERT INTO t1 (id, a) VALUES (70, 700) RETURNING *", "ROLLBACK", "SELECT * FROM t1 ORDER BY id",
		"BEGIN; CREATE TABLE within (a int, b text); INSERT INTO within VALUES (1, 'x'); SELECT * FROM within; COMMIT",
		"TABLE within", "DROP TABLE within",
		"CREATE FUNCTION all_of() RETURNS SETOF t1 LANGUAGE sql AS 'SELECT * FROM t1 ORDER BY id'",
		"SELECT * FROM all_of()", "SELECT f.*, 1 FROM all_of() AS f", "DROP FUNCTION all_of()",
		"SELECT * FROM t3 ORDER BY x, y, e", "INSERT INTO t3 VALUES (5, 5, 'ok', 5)", "INSERT INTO t3 VALUES (5)",
		"INSERT INTO t3 VALUES (5, 5, 'ok', 5, 5)", "INSERT INTO t3 SELECT * FROM t3 WHERE x = 5 RETURNING *",
		"SELECT * FROM t3 AS x (p, q) ORDER BY p, q, late", "SELECT count(*) FROM t1 NATURAL JOIN t2",
		"SELECT * FROM t1 NATURAL JOIN tr", "SELECT * FROM base NATURAL LEFT JOIN derived ORDER BY id",
		"SELECT * FROM base FULL JOIN tr USING (id) ORDER BY id", "CREATE VIEW shown AS SELECT * FROM t3",
		"SELECT * FROM shown ORDER BY x, y, e", "SELECT pg_get_viewdef('shown'::regclass)", "DROP VIEW shown",
		"PREPARE p AS SELECT * FROM t1 ORDER BY id", "EXECUTE p",
		"BEGIN; DECLARE c CURSOR FOR SELECT * FROM t1 ORDER BY id; FETCH 2 FROM c; COMMIT",
		"CREATE TEMP TABLE copied AS SELECT * FROM t1", "SELECT * FROM copied ORDER BY id",
		"SELECT * FROM (t1 LEFT JOIN t2 ON k1 = id) AS j ORDER BY id, k2", "EXPLAIN (COSTS OFF) SELECT * FROM t3",
		"COPY t3 TO STDOUT",
		"BEGIN", "DO $$BEGIN UPDATE t1 SET c = 3 WHERE id = 3; END$$", "COPY t3 TO STDOUT",
		"COPY (SELECT * FROM t3) TO STDOUT", "DROP TABLE IF EXISTS trlog", "COPY t3 TO STDOUT", "ROLLBACK",
		"UPDATE tr SET v = 7 FROM base WHERE base.id = tr.id RETURNING *",
	} {
		if diff := r.run(postgresStep{name: s, messages: texts(s)}); diff != "" {
			t.Error(diff)
		}
		if strings.ContainsAny(s, ";") || strings.HasPrefix(s, "COPY") {
			continue
		}
		for _, formats := range [][]int16{nil, {1}} {
			step := postgresStep{name: "extended: " + s,
				messages: []pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'S', Name: "a"},
					&pgproto3.Parse{Name: "a", Query: s},
					&pgproto3.Describe{ObjectType: 'S', Name: "a"},
					&pgproto3.Bind{PreparedStatement: "a", ResultFormatCodes: formats}, &pgproto3.Execute{},
					&pgproto3.Sync{}}}
			if diff := r.run(step); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestWaitingWriterSharesNoVersion has an UPDATE wait for one that is rolled back: the tag that isotap's columns get
// was made before it waited, at the same place of a log that a table without one leaves as it is.
func TestWaitingWriterSharesNoVersion(t *testing.T) {
	for _, kind := range []string{"", "UNLOGGED"} {
		t.Run(cmp.Or(kind, "LOGGED"), func(t *testing.T) {
			b := startPostgresBench(t, tapMode{columns: true}, "CREATE "+kind+" TABLE kv (id int PRIMARY KEY, v int)",
				"INSERT INTO kv VALUES (1, 0)")
			// Recordings go by sessions: the write that stays comes first there, and is not found by being the last.
			second := b.connect(b.through(), pgx.QueryExecModeCacheStatement)
			first := b.connect(b.through(), pgx.QueryExecModeCacheStatement)
			for range 3 {
				b.exec(first, "BEGIN", "SAVEPOINT a", "UPDATE kv SET v = v + 1 WHERE id = 1")
				waits := make(chan error, 1)
				go func() {
					_, err := second.Exec(b.t.Context(), "UPDATE kv SET v = v + 1 WHERE id = 1")
					waits <- err
				}()
				b.awaitLock()
				b.exec(first, "ROLLBACK")
				if err := <-waits; err != nil {
					t.Fatal(err)
				}
				b.exec(first, "BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM kv WHERE id = 1",
					"UPDATE kv SET v = v + 1 WHERE id = 1", "COMMIT")
			}
			r := b.analyze()
			for _, f := range r.Findings {
				t.Errorf("%s %s x%d: %v%s", f.Class, f.Anomaly, f.Count, f.Explanation, transactionsOf(f))
			}
			if r.Coverage.Exact == 0 {
				t.Error("nothing was observed")
			}
		})
	}
}

// TestFormatCodesFitTheClientsColumns binds statements whose rows isotap's columns are taken out of, in the
// transaction that may have changed a table, with the wrong and the right number of format codes.
func TestFormatCodesFitTheClientsColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	m.evolves = true
	for _, change := range []string{"DROP TABLE IF EXISTS nothing",
		"DO $$BEGIN UPDATE t1 SET c = 3 WHERE id = 3; END$$", "ALTER TABLE t1 ADD more int"} {
		r, err := m.reflect()
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		for codes := range 12 {
			for _, s := range []string{"SELECT * FROM t1 ORDER BY id",
				"SELECT 1, t1.*, t2.* FROM t1, t2 ORDER BY 1, 2, k1, k2", "INSERT INTO t1 (id) VALUES (77) RETURNING *",
				"DELETE FROM t1 WHERE id = 2", "SELECT nothing FROM t1"} {
				bind := &pgproto3.Bind{ResultFormatCodes: slices.Repeat([]int16{1}, codes)}
				for _, step := range []postgresStep{
					{name: "BEGIN", messages: texts("BEGIN")},
					{name: fmt.Sprint(change, "; ", s, " with ", codes, " codes"),
						messages: []pgproto3.FrontendMessage{&pgproto3.Parse{Query: change}, &pgproto3.Bind{},
							&pgproto3.Execute{},
							&pgproto3.Parse{Query: s}, bind, &pgproto3.Execute{}, bind,
							&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Sync{}}},
					{name: "ROLLBACK", messages: texts("ROLLBACK")},
				} {
					if diff := r.run(step); diff != "" {
						t.Error(diff)
					}
				}
			}
		}
	}
}

// TestFormatCodesFitWhatIsSentAgain binds a star with the wrong number of format codes, with what may have changed the
// tables sent behind it: the server runs none of that, and the client's own text, sent once more, shows its columns
// alone. The text goes once more before the client's Sync has come, too: nothing has ended the change by then. Every
// session is a new one, which has not learned yet what the server refuses.
func TestFormatCodesFitWhatIsSentAgain(t *testing.T) {
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	m.evolves = true
	change := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "DO $$BEGIN UPDATE t1 SET c = 3 WHERE id = 3; END$$"},
		&pgproto3.Bind{}, &pgproto3.Execute{}}
	unknown := []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "nowhere"}, &pgproto3.Execute{}}
	sync := []pgproto3.FrontendMessage{&pgproto3.Sync{}}
	for codes := range 6 {
		for _, s := range []string{"TABLE t3 UNION ALL TABLE t3", "SELECT * FROM t3", "SELECT * FROM t1, t3"} {
			star := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: s},
				&pgproto3.Bind{DestinationPortal: "p", ResultFormatCodes: slices.Repeat([]int16{1}, codes)},
				&pgproto3.Execute{Portal: "p"}}
			name := fmt.Sprint(s, " with ", codes, " codes, behind it ")
			for _, step := range []postgresStep{
				{name: name + "what nobody prepared", messages: slices.Concat(star, unknown, sync)},
				{name: name + "a change", messages: slices.Concat(star, change, sync)},
				{name: name + "a change, and no Sync yet", messages: slices.Concat(star, change, unknown), inTwo: true},
			} {
				r, err := m.open()
				if err != nil {
					t.Fatal(err)
				}
				if diff := r.run(step); diff != "" {
					t.Error(diff)
				}
				r.close()
			}
		}
	}
}

// TestPreparedStarsAreRefusedOverChangedColumns has statements prepared, and their tables changed before they
// run: in the same transaction, or in one before.
func TestPreparedStarsAreRefusedOverChangedColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	m.evolves = true
	prepared := []string{"SELECT * FROM fresh", "SELECT * FROM fresh, t2 WHERE k1 = v",
		"SELECT 1, * FROM fresh ORDER BY 2", "SELECT id FROM fresh",
		"SELECT DISTINCT ON (f.id) f.* FROM fresh f WHERE id > 0",
		"SELECT * FROM (VALUES (7)) AS d (n) JOIN fresh ON fresh.id = d.n", "SELECT * FROM t3"}
	for _, change := range []string{"SELECT 1", "ALTER TABLE fresh ADD w int", "ALTER TABLE fresh DROP v",
		"ALTER TABLE fresh RENAME v TO w", "ALTER TABLE fresh ADD CHECK (v > 0)", "ALTER TABLE fresh ALTER v TYPE text",
		"DROP TABLE IF EXISTS nothing", "DO $$BEGIN UPDATE fresh SET v = 3; END$$",
		"CREATE TEMP TABLE fresh (id int, v int)", "SELECT 1 AS n INTO TEMP some; CREATE TEMP TABLE fresh (id int, other int)",
		"CREATE TEMPORARY TABLE fresh (id int, v int, w int)", "CREATE TEMP TABLE fresh (id int, v text)",
		"SAVEPOINT a; CREATE TEMP TABLE fresh (id int); ROLLBACK TO a; CREATE TEMP TABLE fresh (id int, v int)",
		"CREATE TEMP TABLE fresh (id int, v int); SAVEPOINT a; ALTER TABLE fresh ADD w int; ROLLBACK TO a"} {
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			t.Run(change+"; "+end, func(t *testing.T) {
				r, err := m.reflect()
				if err != nil {
					t.Fatal(err)
				}
				defer r.close()
				run := func(name string, messages ...pgproto3.FrontendMessage) {
					t.Helper()
					if diff := r.run(postgresStep{name: name, messages: messages}); diff != "" {
						t.Error(diff)
					}
				}
				for i, s := range prepared {
					name := fmt.Sprint("s", i)
					run("prepare "+s, &pgproto3.Parse{Name: name, Query: s},
						&pgproto3.Describe{ObjectType: 'S', Name: name}, &pgproto3.Sync{})
				}
				execute := func(when string) {
					for i, s := range prepared {
						for _, codes := range [][]int16{nil, {1, 1}} {
							run(when+" "+s, &pgproto3.Bind{PreparedStatement: fmt.Sprint("s", i),
								ResultFormatCodes: codes}, &pgproto3.Execute{}, &pgproto3.Sync{})
						}
					}
				}
				for i, s := range prepared {
					run("BEGIN", texts("BEGIN")...)
					run(change, texts(change)...)
					for range 2 {
						run("within "+s, &pgproto3.Bind{PreparedStatement: fmt.Sprint("s", i),
							ResultFormatCodes: []int16{1, 1}}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{},
							&pgproto3.Sync{})
					}
					run("ROLLBACK", texts("ROLLBACK")...)
				}
				run("BEGIN", texts("BEGIN")...)
				run(change, texts(change)...)
				run(end, texts(end)...)
				execute("afterwards")
			})
		}
	}
}

// TestTablesOfTheOpenTransactionHideIsotapsColumns has transactions create tables and fill them at once.
func TestTablesOfTheOpenTransactionHideIsotapsColumns(t *testing.T) {
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	m.evolves = true
	r, err := m.reflect()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for i, s := range []string{
		"BEGIN", "CREATE TABLE made (a int PRIMARY KEY, b text DEFAULT 'd', CHECK (a > 0))", "COPY made FROM STDIN",
		"SELECT * FROM made", "INSERT INTO made VALUES (7, 'seven', 8)", "ROLLBACK",
		"BEGIN; CREATE TABLE made (a int, b text); COPY made FROM STDIN; TABLE made UNION ALL SELECT 3, 'c'; " +
			"COPY made TO STDOUT; ROLLBACK",
		"BEGIN", "CREATE TABLE public.made (b text)", "COPY made TO STDOUT", "SELECT * FROM made NATURAL JOIN t1",
		"ALTER TABLE made ADD more int", "SELECT * FROM made", "ROLLBACK",
		"BEGIN", "CREATE TABLE made (a int, b int)", "SAVEPOINT a", "DROP TABLE made", "CREATE TABLE made (c int)",
		"ROLLBACK TO a", "SELECT * FROM made", "ROLLBACK",
		"BEGIN", "CREATE TABLE made (a int, b int GENERATED ALWAYS AS (a + 1) STORED)", "INSERT INTO made VALUES (1)",
		"SELECT * FROM made", "ROLLBACK",
	} {
		messages := texts(s)
		if strings.Contains(s, "FROM STDIN") {
			messages = append(messages, &pgproto3.CopyData{Data: []byte("1\tone\n2\t\\N\n")}, &pgproto3.CopyDone{})
		}
		if diff := r.run(postgresStep{name: fmt.Sprint(i, ": ", s), messages: messages}); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTemporaryTablesHideTablesWhileTheyExist has sessions put temporary tables before tables that carry isotap's
// columns, and take them away again. As many format codes as columns tell whether a star is expanded: the server counts
// them.
func TestTemporaryTablesHideTablesWhileTheyExist(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	const temporary = "CREATE TEMP TABLE t1 (id int, temporary text)"
	for name, before := range map[string][]string{
		"there":                   {temporary},
		"of several":              {"CREATE TEMP TABLE t3 (x int); " + temporary, "DROP TABLE pg_temp.t3"},
		"rolled back":             {"BEGIN", temporary, "ROLLBACK"},
		"its text failed":         {temporary + "; SELECT 1 / 0"},
		"dropped":                 {temporary, "DROP TABLE t1"},
		"dropped, and back":       {temporary, "BEGIN", "DROP TABLE IF EXISTS pg_temp.t1", "ROLLBACK"},
		"dropped since, and back": {temporary, "BEGIN", "SAVEPOINT a", "DROP TABLE t1", "ROLLBACK TO a", "COMMIT"},
		"discarded":               {temporary, "DISCARD TEMP"},
		"discarded all":           {temporary, "DISCARD ALL"},
		"discarded, and back":     {temporary, "BEGIN", "DISCARD TEMP", "ROLLBACK"},
		"a view":                  {"CREATE TEMP VIEW t1 AS SELECT 1 AS id", "DROP VIEW t1"},
		"the other one dropped":   {temporary, "BEGIN; DROP TABLE public.base CASCADE; ROLLBACK"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := m.reflect()
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			for _, s := range before {
				if diff := r.run(postgresStep{name: s, messages: texts(s)}); diff != "" {
					t.Fatal(diff)
				}
			}
			for _, s := range []string{"SELECT * FROM t1 JOIN t2 ON t2.k1 = t1.id", "SELECT * FROM t1", "TABLE t1",
				"SELECT * FROM t1, t3"} {
				for codes := range 12 {
					step := postgresStep{name: fmt.Sprint(s, " with ", codes),
						messages: []pgproto3.FrontendMessage{&pgproto3.Parse{Query: s},
							&pgproto3.Bind{ResultFormatCodes: slices.Repeat([]int16{0}, codes)}, &pgproto3.Execute{},
							&pgproto3.Sync{}}}
					if diff := r.run(step); diff != "" {
						t.Error(diff)
					}
				}
			}
			for _, s := range []string{"COPY (SELECT * FROM t1 ORDER BY id) TO STDOUT", "COPY t1 TO STDOUT",
				"INSERT INTO t1 SELECT * FROM t1 WHERE id < 0"} {
				if diff := r.run(postgresStep{name: s, messages: texts(s)}); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestNamesAreKnownBeforeTheTemporarySchemaIsThere has sessions look for tables in their temporary schema first, which
// is not there yet. A NATURAL JOIN tells whether isotap knows which tables are meant: it joins by all equal names.
func TestNamesAreKnownBeforeTheTemporarySchemaIsThere(t *testing.T) {
	const natural = "SELECT * FROM base NATURAL JOIN t1 ORDER BY id"
	m := newPostgreSQLMirror(t, tapMode{columns: true})
	for name, statements := range map[string][]string{
		"first":            {"SET search_path = pg_temp, public", natural},
		"behind others":    {`SET search_path = nowhere, "$user", "PG_TEMP", pg_temp, nowhere, "public"`, natural},
		"the catalog last": {"SET search_path = pg_temp, public, pg_catalog", natural},
		"in no schema":     {"SET search_path = pg_temp", natural},
		"names in quotes": {`CREATE SCHEMA "a, "" b"`, `SET search_path = "x, pg_temp", pg_temp, "a, "" b", public`, natural,
			"SELECT * FROM base JOIN t1 USING (id) ORDER BY id"},
		"a table made there": {"SET search_path = pg_temp, public", natural, "BEGIN",
			"CREATE TABLE t1 (id int, temporary text)", "INSERT INTO t1 VALUES (1, 'x')", natural, "COMMIT", natural,
			"DROP TABLE t1", natural},
		"a table made there by a text": {"SET search_path = pg_temp, public",
			"CREATE TABLE t1 (id int, temporary text); INSERT INTO t1 VALUES (1, 'x'); " + natural, natural},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := m.reflect()
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			for _, s := range append(statements, "SELECT pg_my_temp_schema() = 0") {
				if diff := r.run(postgresStep{name: s, messages: texts(s)}); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
