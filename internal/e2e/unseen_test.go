package e2e

import (
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/workload/random"
)

var (
	unseenSeed   = flag.Uint64("unseen.seed", 1, "seed of the first database of TestNoRowChangesUnderAVersion")
	unseenRounds = flag.Int("unseen.rounds", 3, "how many databases it makes")
)

// A seenRow is a row with the versions that it tells, and its values.
type seenRow struct{ list, values string }

// rowsOf reads the rows of tables, by table and row id, those that are not committed too.
func rowsOf(t *testing.T, c *sql.Conn, columns map[string]string) map[string]seenRow {
	t.Helper()
	all := make(map[string]seenRow)
	for table, of := range columns {
		rows, err := c.QueryContext(t.Context(),
			"SELECT isotap_rowid, isotap_wlist, CONCAT_WS('|', "+of+") FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, list, values string
			if err := rows.Scan(&id, &list, &values); err != nil {
				t.Fatal(err)
			}
			all[table+" "+id] = seenRow{list, values}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// columnsOf returns the visible columns of each table as text that tells all of their values apart.
func columnsOf(t *testing.T, b *bench) map[string]string {
	t.Helper()
	rows, err := b.direct.Query("SELECT TABLE_NAME, GROUP_CONCAT('IFNULL(HEX(CAST(', COLUMN_NAME, ' AS BINARY)), "+
		"''-'')' ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS "+
		"WHERE TABLE_SCHEMA = ? AND COLUMN_NAME NOT LIKE 'isotap%' AND TABLE_NAME LIKE 't_' GROUP BY TABLE_NAME",
		b.database)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns := make(map[string]string)
	for rows.Next() {
		var table, of string
		if err := rows.Scan(&table, &of); err != nil {
			t.Fatal(err)
		}
		columns[table] = of
	}
	return columns
}

// A rowWrite is a write with what it did to the rows of all tables.
type rowWrite struct {
	text          string
	before, after map[string]seenRow
}

// writeAlone has one session run the transactions of a generator, and looks at all rows before and behind each write.
func writeAlone(t *testing.T, b *bench, g *random.Generator) []rowWrite {
	t.Helper()
	columns := columnsOf(t, b)
	watcher, client := b.conn(b.direct), b.conn(b.through)
	defer watcher.Close()
	defer client.Close()
	b.exec(watcher, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	var all []rowWrite
	for n := range g.Transactions() {
		for _, text := range g.Transaction(n + 1) {
			verb, _, _ := strings.Cut(text, " ")
			if !slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE"}, verb) {
				client.ExecContext(t.Context(), text) // it may well fail
				continue
			}
			w := rowWrite{text: text, before: rowsOf(t, watcher, columns)}
			client.ExecContext(t.Context(), text)
			w.after = rowsOf(t, watcher, columns)
			all = append(all, w)
		}
	}
	return all
}

// recordedWrites returns the statements that are recorded as writes.
func recordedWrites(b *bench) []history.Stmt {
	var all []history.Stmt
	for _, x := range b.txns() {
		for _, s := range x.Stmts {
			if slices.Contains([]history.Kind{history.Insert, history.Update, history.Delete, history.Replace},
				s.Kind) {
				all = append(all, s)
			}
		}
	}
	return all
}

// hold compares what a write did to the rows of its table with what the recording says of it. It gives the number of
// rows that tell another version.
func (w *rowWrite) hold(t *testing.T, s *history.Stmt) (told int) {
	t.Helper()
	if s.Observation == history.Opaque || s.Reason == history.ReasonCascade {
		return 0
	}
	for id, row := range w.after {
		table, _, _ := strings.Cut(id, " ")
		before, there := w.before[id]
		switch other := row.list != before.list; {
		case !there || !slices.Contains(strings.Fields(w.text)[:3], table):
		case row.values != before.values && !other:
			t.Errorf("%s (%v %s): %s was %s and is %s, version %s still", w.text, s.Observation, s.Reason, id,
				before.values, row.values, row.list)
		case row.values == before.values && other && s.Observation == history.Exact:
			t.Errorf("%s: %s is %s as before, its versions were %s and are %s", w.text, id,
				row.values, before.list, row.list)
		case other:
			told++
		}
	}
	return told
}

// TestNoRowChangesUnderAVersion looks at the rows behind each write of random transactions: a row that has other values
// tells another version, unless the recording says that the statement was not observed. An exact statement gives no row
// another version that keeps its values.
func TestNoRowChangesUnderAVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "it is the family's", "mariadb", "mariadb118", "mysql")
	profile := random.Profile{Transactions: 60, Rows: 8, Weights: map[string]int{"select": 1, "locking": 1}}
	for i := range *unseenRounds {
		seed := *unseenSeed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			g := random.New(random.Engine{Name: dbms.Engine(strings.TrimSuffix(testdb.EngineName(), "118"))}, profile,
				seed)
			b := newBench(t, []func(*proxyserver.Options){nil, inModePredicates}[seed%2], g.Setup()...)
			written := writeAlone(t, b, g)
			recorded := recordedWrites(b)
			if len(recorded) != len(written) {
				t.Fatalf("%d writes, %d recorded", len(written), len(recorded))
			}
			told := 0
			for j := range written {
				told += written[j].hold(t, &recorded[j])
			}
			t.Logf("%d writes, %d rows with another version", len(written), told)
			if told == 0 {
				t.Error("no row tells another version")
			}
		})
	}
}
