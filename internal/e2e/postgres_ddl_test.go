package e2e

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
)

var (
	postgresDDLSeed = flag.Uint64("postgresddl.seed", 1,
		"seed of TestPostgreSQLDefinitionsAmongStatementsAreAnsweredAsDirectly's first run")
	postgresDDLCount = flag.Int("postgresddl.count", 250, "how many statements it tries in a run")
)

// A postgresDDLWriter writes random definitions of a few tables, and statements whose rows tell which rows they saw.
type postgresDDLWriter struct {
	*rand.Rand
	mark int // in each statement that uses tables, so that it is found in the recording
}

var temporarySchema = regexp.MustCompile(`pg_temp_\d+`)

func (w *postgresDDLWriter) oneOf(texts ...string) string { return texts[w.IntN(len(texts))] }

func (w *postgresDDLWriter) table() string {
	return w.oneOf("a", "b", "c", "d", "a", "b", "public.a", "aside.a", "aside.b")
}

func (w *postgresDDLWriter) definition() string {
	t, u, plain := w.table(), w.table(), w.oneOf("a", "b", "c", "d")
	switch w.IntN(20) {
	case 0, 1, 2, 3:
		return "CREATE TABLE " + w.oneOf("", "IF NOT EXISTS ") + t + " (id int PRIMARY KEY, v int" +
			w.oneOf("", ", s text DEFAULT 'x'") + ")"
	case 4:
		return "CREATE TABLE " + t + " (id int PRIMARY KEY, v int, r int REFERENCES " +
			u + w.oneOf(" ON DELETE CASCADE)", ")")
	case 5:
		return "CREATE TABLE " + t + w.oneOf(" (LIKE "+u+" INCLUDING ALL)",
			" AS SELECT * FROM "+u, " () INHERITS ("+u+")")
	case 6, 7:
		return "DROP TABLE " + w.oneOf("", "IF EXISTS ") + t + w.oneOf("", " CASCADE", ", "+u)
	case 8, 9:
		return "ALTER TABLE " + t + " RENAME TO " + plain
	case 10:
		return "ALTER TABLE " + t + " SET SCHEMA " + w.oneOf("public", "aside")
	case 11, 12:
		return "ALTER TABLE " + t + w.oneOf(" ADD COLUMN w int DEFAULT 7", " DROP COLUMN w", " ALTER v TYPE bigint",
			" ALTER id TYPE bigint", " ALTER id TYPE text", " RENAME id TO i", " RENAME i TO id",
			" ADD PRIMARY KEY (id)",
			" DROP CONSTRAINT a_pkey CASCADE", " DROP CONSTRAINT b_pkey CASCADE", " ALTER v SET NOT NULL",
			" ENABLE ROW LEVEL SECURITY")
	case 13:
		return "CREATE TRIGGER g BEFORE " + w.oneOf("INSERT", "UPDATE", "DELETE") + " ON " + t +
			" FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
	case 14:
		return w.oneOf("DROP TRIGGER g ON "+t, "DROP RULE r ON "+t,
			"CREATE RULE r AS ON DELETE TO "+t+" DO INSTEAD NOTHING")
	case 15:
		return "TRUNCATE " + t + w.oneOf("", " CASCADE")
	case 16:
		return w.oneOf("CREATE VIEW "+t+" AS SELECT id, v FROM "+u, "CREATE OR REPLACE VIEW "+t+
			" AS SELECT id, v FROM "+u, "DROP VIEW "+t)
	case 17:
		return w.oneOf("CREATE TEMPORARY TABLE "+plain+" (id int PRIMARY KEY, v int)", "DISCARD TEMP",
			"SET search_path TO aside, public", "RESET search_path", "SET search_path TO public, aside")
	case 18:
		return w.oneOf("CREATE INDEX "+plain+"_v ON "+t+" (v)", "DROP INDEX "+plain+"_v", "DROP SCHEMA aside CASCADE",
			"CREATE SCHEMA aside", "CREATE SCHEMA aside", "DO $$ BEGIN ALTER TABLE "+plain+
				" ADD COLUMN w int; EXCEPTION WHEN others THEN NULL; END $$")
	}
	return w.oneOf("ALTER TABLE "+t+" INHERIT "+u, "ALTER TABLE "+t+" NO INHERIT "+u, "GRANT SELECT ON "+t+" TO PUBLIC",
		"REVOKE ALL ON "+t+" FROM PUBLIC", "CLUSTER "+t+" USING "+plain+"_pkey")
}

func (w *postgresDDLWriter) use() string {
	w.mark++
	t, id, mark := w.table(), w.IntN(8), 100_000+w.mark
	const met = " RETURNING tableoid::regclass, id"
	switch w.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, %d), (%d, %d)%s", t, id, mark, id+8, mark, met)
	case 2:
		return fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)%s", t, id, mark, met)
	case 3, 4:
		return fmt.Sprintf("UPDATE %s SET v = v + 1 WHERE id >= %d AND id <> %d%s", t, id, mark, met)
	case 5:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d AND id <> %d%s", t, id, mark, met)
	case 6:
		return fmt.Sprintf("SELECT * FROM %s WHERE id <> %d", t, mark)
	}
	return fmt.Sprintf("SELECT tableoid::regclass, id FROM %s WHERE id <> %d", t, mark)
}

// TestPostgreSQLDefinitionsAmongStatementsAreAnsweredAsDirectly runs random definitions among other statements, in
// several sessions and their transactions, directly and through isotap on equal databases. Every message is the same,
// and what is recorded of the rows is what the rows told.
func TestPostgreSQLDefinitionsAmongStatementsAreAnsweredAsDirectly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for seed := *postgresDDLSeed; seed < *postgresDDLSeed+2; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			names := [2]string{testdb.NewPostgreSQLDatabase(t), testdb.NewPostgreSQLDatabase(t)}
			dir := filepath.Join(t.TempDir(), "rec")
			srv := startPostgreSQLProxy(t, func(o *proxyserver.Options) { o.Recording, o.Args = dir, true })
			var sides [2][3]frontend
			for i, addr := range []string{testdb.PostgreSQL(t).Addr(), srv.Addr().String()} {
				for j := range sides[i] {
					var err error
					if sides[i][j], err = newFrontend(addr, names[i], "lock_timeout", "300ms", "client_min_messages",
						"error"); err != nil {
						t.Fatal(err)
					}
					defer sides[i][j].Close()
				}
			}
			w := &postgresDDLWriter{Rand: rand.New(rand.NewPCG(seed, 51))}
			var told []string
			both := func(session int, text string) []string {
				var replies [2][]string
				for i := range sides {
					var err error
					if replies[i], err = sides[i][session].ask(texts(text)...); err != nil {
						t.Fatal(err)
					}
				}
				told = append(told, fmt.Sprintf("%d: %s", session, text))
				answered := func(side int) string { // temporary schemas are numbered on the server
					return temporarySchema.ReplaceAllString(strings.ReplaceAll(strings.Join(replies[side], "\n"),
						names[1], names[0]), "pg_temp")
				}
				if answered(0) != answered(1) {
					t.Fatalf("directly\n%q\nthrough isotap\n%q\nafter\n%s", replies[0],
						replies[1], strings.Join(told, "\n"))
				}
				return replies[1]
			}
			both(0, "CREATE SCHEMA aside")
			met := make(map[string][]string)
			for range *postgresDDLCount {
				session := w.IntN(3)
				switch w.IntN(12) {
				case 0, 1, 2:
					both(session, w.definition())
				case 3, 4:
					both(session, w.oneOf("BEGIN", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK",
						"SAVEPOINT s", "ROLLBACK TO s"))
				default:
					text := w.use()
					replies := both(session, text)
					if strings.Contains(text, "regclass") &&
						!slices.ContainsFunc(replies, func(r string) bool { return r[0] == 'E' }) {
						met[fmt.Sprint(100_000+w.mark)] = metRows(replies)
					}
				}
			}
			if err := srv.Stop(); err != nil {
				t.Fatal(err)
			}
			holdMet(t, dir, met, strings.Join(told, "\n"))
		})
	}
}

// metRows returns the table and id of each row.
func metRows(replies []string) []string {
	rows := []string{}
	for _, r := range replies {
		if r[0] != 'D' {
			continue
		}
		var values []string
		for at := 3; at < len(r); {
			n := int(int32(binary.BigEndian.Uint32([]byte(r[at:]))))
			values = append(values, r[at+4:at+4+max(n, 0)])
			at += 4 + max(n, 0)
		}
		rows = append(rows, values[0][strings.LastIndexByte(values[0], '.')+1:]+" "+values[1])
	}
	slices.Sort(rows)
	return rows
}

// holdMet compares the rows that statements met with those that are recorded of them.
func holdMet(t *testing.T, dir string, met map[string][]string, told string) {
	t.Helper()
	exact, rows := 0, 0
	reasons := make(map[string]int)
	for _, txn := range txnsRecorded(t, dir) {
		for i := range txn.Stmts {
			st := &txn.Stmts[i]
			at := slices.IndexFunc(st.Args, func(arg string) bool { return met[arg] != nil })
			switch {
			case at < 0:
			case st.Observation != history.Exact:
				reasons[st.Reason.String()]++
			default:
				exact++
				rows += holdAccesses(t, st, met[st.Args[at]], told)
			}
		}
	}
	t.Logf("%d statements are exact (the others: %v), with %d rows", exact, reasons, rows)
	if exact == 0 || rows == 0 {
		t.Error("these are too few")
	}
}

// holdAccesses returns how many rows there were.
func holdAccesses(t *testing.T, st *history.Stmt, want []string, told string) int {
	t.Helper()
	var got []string
	keyed := true
	for i := range st.Accesses {
		row := st.Accesses[i].Row
		keyed = keyed && row.ID != ""
		got = append(got, row.Table[strings.LastIndexByte(row.Table, '.')+1:]+" "+row.ID)
	}
	met := slices.Clone(want)
	if !keyed { // the tables alone can be compared
		for _, rows := range [][]string{got, met} {
			for i, row := range rows {
				rows[i], _, _ = strings.Cut(row, " ")
			}
		}
	}
	slices.Sort(got)
	if got, met = slices.Compact(got), slices.Compact(met); !slices.Equal(got, met) {
		t.Errorf("%s %v: recorded are %q, met were %q, after\n%s", st.Shape, st.Args, got, want, told)
	}
	return len(want)
}
