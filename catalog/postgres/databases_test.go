package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
)

func databases(t *testing.T, to dsn.Target) *Databases {
	d := NewDatabases(to)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestEachDatabaseHasACacheOfItsOwn(t *testing.T) {
	one, _ := newDatabase(t, "CREATE TABLE in_one (a int)")
	two, _ := newDatabase(t, "CREATE TABLE in_two (a int)")
	d := databases(t, target(t))
	caches := make([]*Cache, 8)
	var sessions sync.WaitGroup
	for i := range caches {
		sessions.Go(func() {
			var err error
			if caches[i], err = d.Open(t.Context(), []string{one, two}[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	sessions.Wait()
	for i, c := range caches {
		if c == nil || c != caches[i%2] {
			t.Fatalf("session %d has a cache of its own", i)
		}
	}
	if caches[0].Table("public", "in_one") == nil || caches[0].Table("public", "in_two") != nil ||
		caches[1].Table("public", "in_two") == nil {
		t.Error("the caches are mixed up")
	}
	if got, want := d.Caches(), map[string]*Cache{one: caches[0], two: caches[1]}; !maps.Equal(got, want) {
		t.Errorf("opened: %v; want %v", got, want)
	}
}

// TestUnreadableDatabaseIsSaidToBeSo: a database that isotap may not read is said to be so.
func TestUnreadableDatabaseIsSaidToBeSo(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	run(t, db, "REVOKE CONNECT ON DATABASE "+database+" FROM PUBLIC")
	to := target(t)
	to.User = role(t, database, "LOGIN")
	d := databases(t, to)
	for range 2 {
		if c, err := d.Open(t.Context(), database); c != nil || err == nil ||
			!strings.Contains(err.Error(), "permission denied for database") {
			t.Errorf("%v, %v", c, err)
		}
	}
	if _, err := d.Open(t.Context(), "there_is_none"); !IsGone(err) {
		t.Errorf("%v", err)
	}
	if err := d.Reload(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestADatabaseMadeAgainIsReadAgain(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE before (a int)")
	d := databases(t, target(t))
	if _, err := d.Open(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	admin := testdb.OpenPostgreSQL(t, "")
	run(t, admin, "DROP DATABASE "+database)
	if err := d.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	if known := d.Caches(); len(known) != 0 {
		t.Errorf("still known: %v", known)
	}
	run(t, admin, "CREATE DATABASE "+database)
	run(t, testdb.OpenPostgreSQL(t, database), "CREATE TABLE after (a int)")
	c, err := d.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	arrive(t, c)
	if c.Table("public", "after") == nil || c.Table("public", "before") != nil {
		t.Error("the cache is that of the old database")
	}
}

func TestWhoGivesUpLeavesTheDatabaseToOthers(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE plain (a int)")
	d := databases(t, target(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Open(ctx, database); err == nil {
		t.Error("opened for nobody")
	}
	if _, err := d.Open(t.Context(), database); err != nil {
		t.Error(err)
	}
}

func TestConnectionStaysAsLongAsClientsAreThere(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	admin := testdb.OpenPostgreSQL(t, "")
	connections := func() (pids []int) {
		t.Helper()
		rows, err := admin.Query("SELECT pid FROM pg_stat_activity WHERE datname = $1 ORDER BY pid", database)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var pid int
			if err := rows.Scan(&pid); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	d := databases(t, target(t))
	for range 2 {
		d.Enter(database)
	}
	if _, err := d.Open(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	first := connections()
	time.Sleep(2 * linger)
	d.Leave(database)
	time.Sleep(2 * linger)
	if later := connections(); len(first) != 1 || !slices.Equal(first, later) {
		t.Errorf("%v, and later %v", first, later)
	}
	d.Leave(database)
	// At once, for it was not used for long: the server would wait some seconds for it.
	began := time.Now()
	for len(connections()) > 0 {
		if time.Since(began) > 3*time.Second {
			t.Fatal("it stays when all have left")
		}
	}
	run(t, admin, "DROP DATABASE "+database)
}

func TestWhoArrivesWaitsForWhatPassedByIsotap(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	d := databases(t, target(t))
	d.Enter(database)
	for i := range 3 {
		c, err := d.Open(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		awaitStale(c)
		run(t, db, fmt.Sprintf("ALTER TABLE plain ADD COLUMN b%d int", i))
		if c, err = d.Open(t.Context(), database); err != nil {
			t.Fatal(err)
		}
		arrive(t, c)
		if got := len(c.Table("public", "plain").Columns); got != i+2 {
			t.Fatalf("%d columns, of %d", got, i+2)
		}
	}
}

// arrive waits as a session that begins does.
func arrive(t *testing.T, c *Cache) {
	t.Helper()
	if wait := c.Arrive(); wait != nil {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
}

// awaitStale waits until whoever arrives has the catalog read again.
func awaitStale(c *Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.isFresh() {
		time.Sleep(time.Millisecond)
	}
}

// lockCatalog keeps everybody from reading a table of the catalog until the function that it returns is called.
func lockCatalog(t *testing.T, db *sql.DB, table string) (unlock func()) {
	t.Helper()
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec("LOCK TABLE pg_catalog." + table + " IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := lock.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDefinitionsDuringAReadingAreNotedByWhatItFinds: a table that came past isotap inherits from one that is altered
// while isotap reads of the first.
func TestDefinitionsDuringAReadingAreNotedByWhatItFinds(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE parent (a int)")
	d := databases(t, target(t))
	d.Enter(database)
	c, err := d.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	awaitStale(c)
	run(t, db, "CREATE TABLE child () INHERITS (parent)")
	unlock := lockCatalog(t, db, "pg_attribute")
	arrived := make(chan struct{})
	go func() { defer close(arrived); arrive(t, c) }()
	for looking := false; !looking; {
		time.Sleep(time.Millisecond)
		c.marks.Lock()
		looking = c.looking
		c.marks.Unlock()
	}
	c.Touch([]rewrite.SchemaChange{{Named: []rewrite.TableName{{Schema: "public", Table: "parent"}}}})
	unlock()
	<-arrived
	run(t, db, "ALTER TABLE parent ADD COLUMN b int")
	for _, table := range []string{"child", "parent"} {
		if got := len(c.Table("public", table).Columns); got != 2 {
			t.Errorf("%s has %d columns", table, got)
		}
	}
}

// TestWhoArrivesAtAnUnreadableCatalogKnowsNothingOfIt: and others go on with what they know.
func TestWhoArrivesAtAnUnreadableCatalogKnowsNothingOfIt(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	d := databases(t, target(t))
	d.Enter(database)
	c, err := d.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	awaitStale(c)
	unlock := lockCatalog(t, db, "pg_attribute")
	wait := c.Arrive()
	for range 2 { // the second does not wait for another reading
		if err := wait(); err == nil {
			t.Error("it was read under a lock")
		}
	}
	if known := c.Table("public", "plain"); known == nil || known.Unread {
		t.Errorf("those who came before have %v", known)
	}
	unlock()
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Errorf("after somebody else's reading: %v", err)
	}
}

// TestWhoArrivedAtAnUnreadableCatalogHasItLater: nobody else reads it meanwhile.
func TestWhoArrivedAtAnUnreadableCatalogHasItLater(t *testing.T) {
	database, db := newDatabase(t, "CREATE TABLE plain (a int)")
	d := databases(t, target(t))
	d.Enter(database)
	c, err := d.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	awaitStale(c)
	unlock := lockCatalog(t, db, "pg_attribute")
	wait := c.Arrive()
	if wait() == nil {
		t.Fatal("it was read under a lock")
	}
	unlock()
	time.Sleep(settleAgain)
	if err := wait(); err != nil {
		t.Errorf("the session still knows no table: %v", err)
	}
}

// TestEndedReadingIsDoneAgain: somebody ends a reading over a connection that is new, as who ends all that runs, and
// the next one.
func TestEndedReadingIsDoneAgain(t *testing.T) {
	for _, end := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		t.Run(end, func(t *testing.T) {
			database, db := newDatabase(t, "CREATE TABLE plain (a int)")
			admin := testdb.OpenPostgreSQL(t, "")
			c := load(t, database)
			if err := c.conn.Close(); err != nil {
				t.Fatal(err)
			}
			unlock := lockCatalog(t, db, "pg_rewrite") // who connects needs none of it
			read := make(chan error, 1)
			go func() { read <- c.Reload(t.Context()) }()
			for range endedAgain {
				endWaiting(t, admin, database, end)
			}
			unlock()
			if err := <-read; err != nil {
				t.Error(err)
			}
		})
	}
}

// endWaiting ends the reading that waits for a lock, by a function of the server's, once there is one.
func endWaiting(t *testing.T, admin *sql.DB, database, end string) {
	t.Helper()
	for ended := int64(0); ended == 0 && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		done, err := admin.Exec("SELECT "+end+"(pid) FROM pg_stat_activity WHERE datname = $1 AND "+
			"application_name = 'isotap' AND wait_event_type = 'Lock'", database)
		if err != nil {
			t.Fatal(err)
		}
		if ended, err = done.RowsAffected(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTestedConditionsKeepNobodyFromTheCatalog: a condition may take its time to be tested; a statement that needs a
// table waits for its own reading only.
func TestTestedConditionsKeepNobodyFromTheCatalog(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE plain (a int)")
	admin := testdb.OpenPostgreSQL(t, "")
	d := databases(t, target(t))
	c, err := d.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tested := make(chan error, 1)
	go func() {
		_, _, err := d.Test(ctx, database, []history.Predicate{{Table: "public.plain", Of: "public.plain", As: "plain",
			Where: "pg_sleep(25) IS NULL"}}, []string{"(1)"})
		tested <- err
	}()
	for running := false; !running; {
		if err := admin.QueryRow("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'PgSleep')",
			database).Scan(&running); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Refresh([]rewrite.TableName{{Schema: "public", Table: "plain"}}); err != nil {
		t.Errorf("while a condition is tested: %v", err)
	}
	select {
	case err := <-tested:
		t.Errorf("the reading came after the condition: %v", err)
	default:
	}
	cancel()
}

// TestWhyATestFailed has the server refuse a condition, somebody end the session, and no such database be there.
func TestWhyATestFailed(t *testing.T) {
	database, _ := newDatabase(t, "CREATE TABLE plain (a int)")
	admin := testdb.OpenPostgreSQL(t, "")
	d := databases(t, target(t))
	test := func(database, where string) error {
		_, _, err := d.Test(t.Context(), database, []history.Predicate{{Table: "public.plain", Of: "public.plain",
			As: "plain", Where: where}}, []string{"(1)"})
		return err
	}
	hold := func(how string, err error, refused, reached bool) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: there is no error", how)
		} else if r, there := d.Why(err); r != refused || there != reached {
			t.Errorf("%s: refused %v, reached %v: %v", how, r, there, err)
		}
	}
	hold("no such function", test(database, "nofunc(a)"), true, true)
	hold("no such database", test("nowhere", "a = 1"), false, false)
	ended := make(chan error, 1)
	go func() { ended <- test(database, "pg_sleep(25) IS NULL") }()
	var err error
	for tested := false; !tested; {
		if _, err := admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
			"WHERE datname = $1 AND wait_event = 'PgSleep'", database); err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-ended:
			tested = true
		case <-time.After(time.Millisecond):
		}
	}
	hold("ended", err, false, true)
	if err := test(database, "a = 1"); err != nil {
		t.Errorf("over a new connection: %v", err)
	}
}
