package e2e

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
)

var (
	ddlSeed  = flag.Uint64("ddl.seed", 1, "seed of TestDefinitionsAmongStatementsAreAnsweredAsDirectly's first run")
	ddlCount = flag.Int("ddl.count", 120, "how many statements it tries in a run")
)

// A ddlWriter writes random definitions of a few tables and statements that use them.
type ddlWriter struct {
	*rand.Rand
	mark int // in each statement that uses tables, so that it is found in the recording
}

var ddlTables = []string{"a", "b", "c", "d"}

func (w *ddlWriter) oneOf(texts ...string) string { return texts[w.IntN(len(texts))] }

func (w *ddlWriter) table() string { return w.oneOf(ddlTables...) }

func (w *ddlWriter) definition() string {
	t, u := w.table(), w.table()
	switch w.IntN(17) {
	case 0, 1, 2, 3:
		return "CREATE TABLE " + w.oneOf("", "IF NOT EXISTS ") + t + " (id INT PRIMARY KEY, v INT" +
			w.oneOf("", ", s VARCHAR(10) DEFAULT 'x'") + ")"
	case 4:
		return "CREATE TABLE " + t + " (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES " + u + " (id) " +
			w.oneOf("ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE SET NULL", "") + ")"
	case 5:
		return "CREATE TABLE " + t + w.oneOf(" LIKE ", " AS SELECT * FROM ") + u
	case 6:
		return "DROP TABLE " + t
	case 7:
		return "DROP TABLE IF EXISTS " + t + ", " + u
	case 8:
		return "RENAME TABLE " + t + " TO " + u
	case 9, 10:
		return "RENAME TABLE a TO swapped, b TO a, swapped TO b"
	case 11:
		return "ALTER TABLE " + t + " RENAME " + u
	case 12:
		return "ALTER TABLE " + t + w.oneOf(" ADD COLUMN w INT DEFAULT 7 FIRST", " DROP COLUMN w", " MODIFY v BIGINT",
			" ADD KEY k (v)", " DROP KEY k", " ENGINE = InnoDB", " DROP FOREIGN KEY a_ibfk_1")
	case 13:
		return "CREATE TRIGGER " + w.oneOf("t1", "t2") + " BEFORE " + w.oneOf("INSERT", "UPDATE", "DELETE") + " ON " +
			t + " FOR EACH ROW SET @x = 1"
	case 14:
		return "DROP TRIGGER " + w.oneOf("t1", "t2")
	case 15:
		return w.oneOf("TRUNCATE TABLE "+t, "ALTER TABLE "+t+" PARTITION BY HASH (id) PARTITIONS 2",
			"/*!40000 ALTER TABLE "+t+" DISABLE KEYS */")
	}
	return w.oneOf("CREATE TEMPORARY TABLE "+t+" (id INT PRIMARY KEY, v INT)", "DROP TEMPORARY TABLE IF EXISTS "+t,
		"CREATE OR REPLACE VIEW "+t+" AS SELECT * FROM "+u, "DROP VIEW "+t)
}

// use writes a statement that uses tables.
func (w *ddlWriter) use() string {
	w.mark++
	t, id, mark := w.table(), w.IntN(8), 100_000+w.mark
	switch w.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, %d), (%d, %d)", t, id, mark, id+8, mark)
	case 2:
		return fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)", t, id, mark)
	case 3, 4:
		return fmt.Sprintf("UPDATE %s SET v = v + 1 WHERE id >= %d AND id <> %d", t, id, mark)
	case 5:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d AND id <> %d", t, id, mark)
	}
	return fmt.Sprintf("SELECT * FROM %s WHERE id <> %d", t, mark)
}

// A ddlUse is a statement that used tables through isotap, and the rows around it.
type ddlUse struct {
	rowWrite
	mark   string
	failed bool
}

// TestDefinitionsAmongStatementsAreAnsweredAsDirectly runs random definitions among other statements, in several
// sessions, directly and through isotap on databases of their own. Every answer is the same, and what is recorded of
// the rows is so.
func TestDefinitionsAmongStatementsAreAnsweredAsDirectly(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	testdb.Only(t, "it is the family's", "mariadb", "mariadb118", "mysql")
	for seed := *ddlSeed; seed < *ddlSeed+2; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := &ddlWriter{Rand: rand.New(rand.NewPCG(seed, 2))}
			m := newMirror(t, 0, nil)
			var sides [2][3]*sql.Conn
			for i := range sides[0] {
				sides[0][i], sides[1][i] = m.b.conn(testdb.Open(t, m.names[0])), m.b.conn(m.b.open(""))
			}
			past := testdb.Open(t, m.names[1])
			watcher := m.b.conn(past)
			m.b.exec(watcher, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
			direct := testdb.Open(t, m.names[0])
			var uses []ddlUse
			both := func(session int, text string) (failed bool) {
				direct := answer(t.Context(), sides[0][session], text)
				through := answer(t.Context(), sides[1][session], text)
				if direct = strings.ReplaceAll(direct, m.names[0], m.names[1]); direct != through {
					t.Fatalf("%s: directly\n%s\nthrough isotap\n%s", text, direct, through)
				}
				return strings.Contains(direct, "error:")
			}
			for range *ddlCount {
				session := w.IntN(3)
				switch w.IntN(12) {
				case 0, 1, 2:
					both(session, w.definition())
				case 3: // past isotap
					text := "ALTER TABLE " + w.table() + w.oneOf(" ADD COLUMN w INT DEFAULT 7",
						" DROP COLUMN w", " MODIFY v BIGINT")
					direct.Exec(text) // it may fail, and then fails on both sides
					past.Exec(text)
					// Until the next reading, plans are made for the table as it was.
					if err := m.b.srv.ReadSchema(t.Context()); err != nil {
						t.Fatal(err)
					}
				default:
					use := ddlUse{mark: fmt.Sprint(100_000 + w.mark + 1)}
					use.text = w.use()
					use.before = ddlRows(t, watcher, m.names[1])
					use.failed = both(session, use.text)
					use.after = ddlRows(t, watcher, m.names[1])
					uses = append(uses, use)
				}
			}
			holdUses(t, m.b.txns(), uses)
		})
	}
}

// ddlRows reads the rows of all base tables that have isotap's columns.
func ddlRows(t *testing.T, c *sql.Conn, database string) map[string]seenRow {
	t.Helper()
	columns := make(map[string]string)
	rows, err := c.QueryContext(t.Context(),
		"SELECT C.TABLE_NAME, GROUP_CONCAT('IFNULL(HEX(CAST(', C.COLUMN_NAME, ' AS BINARY)), ''-'')' ORDER BY C.ORDINAL_POSITION) "+
			"FROM information_schema.COLUMNS C JOIN information_schema.COLUMNS I USING (TABLE_SCHEMA, TABLE_NAME) "+
			"WHERE TABLE_SCHEMA = ? AND C.COLUMN_NAME NOT LIKE 'isotap%' AND I.COLUMN_NAME = 'isotap_rowid' "+
			"AND I.EXTRA LIKE '%INVISIBLE%' GROUP BY C.TABLE_NAME", database)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, of string
		if err := rows.Scan(&table, &of); err != nil {
			t.Fatal(err)
		}
		columns[table] = of
	}
	return rowsOf(t, c, columns)
}

// holdUses compares what the statements did with what is recorded of them.
func holdUses(t *testing.T, txns []*history.Txn, uses []ddlUse) {
	t.Helper()
	recorded := make(map[string]*history.Stmt)
	for _, txn := range txns {
		for i := range txn.Stmts {
			for _, mark := range txn.Stmts[i].Args {
				recorded[mark] = &txn.Stmts[i]
			}
		}
	}
	succeeded, exact, told, read := 0, 0, 0, 0
	reasons := make(map[string]int)
	for _, use := range uses {
		s := recorded[use.mark]
		if s == nil {
			t.Errorf("%s is not recorded", use.text)
			continue
		}
		if use.failed {
			continue
		}
		succeeded++
		if s.Observation != history.Exact {
			reasons[s.Reason.String()]++
		} else {
			exact++
		}
		if s.Kind == history.Select && s.Observation == history.Exact {
			read += holdRead(t, use, s)
		} else if s.Kind != history.Select {
			told += use.hold(t, s)
		}
	}
	t.Logf("%d of %d statements succeeded, %d are exact (the others: %v); %d rows read, %d written", succeeded,
		len(uses), exact, reasons, read, told)
	if told == 0 || read == 0 || exact < succeeded/2 {
		t.Error("these are too few")
	}
}

// holdRead compares the rows that a SELECT of a whole table is said to have read with those that are in the table. It
// returns how many there are.
func holdRead(t *testing.T, use ddlUse, s *history.Stmt) int {
	t.Helper()
	table := strings.Fields(use.text)[3]
	var got, want []string
	for _, a := range s.Accesses {
		if of := a.Row.Table[strings.LastIndexByte(a.Row.Table, '.')+1:]; of == table {
			got = append(got, a.Row.ID)
		} else {
			t.Errorf("%s: it is said to have read a row of %s", use.text, of)
		}
	}
	for key := range use.after {
		if of, id, _ := strings.Cut(key, " "); of == table {
			want = append(want, id)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s (%v %s): it is said to have read %q, there are %q", use.text, s.Observation, s.Reason, got, want)
	}
	return len(want)
}
