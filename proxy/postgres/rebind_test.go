package postgres

import (
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
)

// grouped is read one by one from an index that has all of the client's columns, and all at once where other columns
// are asked for.
const grouped = "SELECT id, count(*) FROM many GROUP BY id ORDER BY id"

// tablesLocked shows which whole tables SERIALIZABLE has locked for the transaction.
var tablesLocked = query("SELECT relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' " +
	"AND locktype = 'relation' AND pid = pg_backend_pid() ORDER BY 1")

// TestGroupsInPiecesTakeTheSamePredicateLocks has a client fetch some of the groups: the server must not read the
// others, nor see what came behind the Bind.
func TestGroupsInPiecesTakeTheSamePredicateLocks(t *testing.T) {
	r := newRig(t, nil, "CREATE TABLE many (id INT PRIMARY KEY, n TEXT)",
		"INSERT INTO many SELECT g * 7919 % 5003, repeat('x', 200) FROM generate_series(1, 5000) g")
	allVisible(t, r.database)
	begin, end := query("BEGIN ISOLATION LEVEL SERIALIZABLE"), query("ROLLBACK")
	for name, steps := range map[string][]step{
		"one after the other": {send(1, bind("p", "g", []int16{1, 0}), describe(ofPortal, "p"), execute("p", 2),
			describe(ofPortal, "p"), syncs), tablesLocked, send(1, execute("p", 1), syncs), tablesLocked},
		"all": {send(1, bind("p", "g", nil), execute("p", 0), execute("p", 1), syncs)},
		"behind a Query": {send(1, bind("p", "g", nil), syncs), query("INSERT INTO many VALUES (-1)"),
			send(1, execute("p", 1), syncs), tablesLocked},
		"behind an error": {send(1, bind("p", "g", nil), syncs), query("SELECT 1/0"), send(1, execute("p", 1), syncs)},
		"behind another": {send(1, bind("p", "g", nil), bind("", "other", nil), execute("", 0), execute("p", 1),
			syncs), tablesLocked},
		"of a statement that was replaced": {send(1, parse("", grouped), bind("p", "", nil), parse("", "SELECT 2"),
			execute("p", 2), bind("", "", nil), execute("", 0), execute("p", 2), syncs),
			tablesLocked},
		"of a statement that was closed": {send(1, parse("c", grouped), bind("p", "c", nil), closes(ofStatement, "c"),
			execute("p", 2), syncs), tablesLocked},
		"by SQL": {send(1, bind("p", "g", nil), syncs), query("FETCH 2 FROM p"), tablesLocked},
	} {
		t.Run(name, func(t *testing.T) {
			steps = append([]step{send(1, parse("g", grouped),
				parse("other", "DELETE FROM many WHERE id = 3"), syncs), begin}, steps...)
			steps = append(steps, query("SELECT name FROM pg_prepared_statements "+
				"WHERE name !~ 'isotap_[0-9a-f]+_[12]$' ORDER BY 1"), end)
			want, got := steady(converse(t, r.direct, r.database, steps)),
				steady(converse(t, r.proxied, r.database, steps))
			if got != want {
				t.Errorf("isotap's answer differs:\n%s", difference(want, got))
			}
		})
	}
}

// allVisible has an index of the table alone answer for it.
func allVisible(t *testing.T, database string) {
	t.Helper()
	db := testdb.OpenPostgreSQL(t, database)
	for end := time.Now().Add(testdb.Patience); ; {
		if _, err := db.Exec("VACUUM ANALYZE many"); err != nil {
			t.Fatal(err)
		}
		var visible bool
		if err := db.QueryRow("SELECT relallvisible = relpages FROM pg_class WHERE relname = 'many'").Scan(&visible); err != nil {
			t.Fatal(err)
		}
		if visible {
			return
		}
		if time.Now().After(end) {
			t.Fatal("an old transaction keeps rows from being visible to all")
		}
	}
}
