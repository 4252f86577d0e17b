package mysql

import (
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// What a reading costs a client depends on the machine; how often isotap asks, and what, does not.
func TestTableThatChangedCostsOneShownDefinition(t *testing.T) {
	testdb.Only(t, "other servers are asked by information_schema", "mariadb", "mariadb118")
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	db.SetMaxOpenConns(1)
	run(t, db, "CREATE TABLE a (id INT PRIMARY KEY);\nCREATE TABLE fired (id INT);\n"+
		"CREATE TRIGGER g BEFORE UPDATE ON fired FOR EACH ROW SET @x = 1")
	to, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	turns := testdb.CountRoundTrips(t, to.Address)
	to.Address = turns.Addr
	conn, err := Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cache := load(t, conn)
	r := sqlmysql.New(cache, sqlmysql.Options{})
	cache.Changed(Change{Tables: []rewrite.TableName{{Schema: database, Table: "a"}}})
	cache.Table(database, "a") // opens the connection
	for _, of := range []struct {
		name       string
		statements []string
		used       []string
		turns      int
		asks       bool // information_schema
	}{
		{"definitions alone", []string{"ALTER TABLE a ADD v INT", "CREATE TABLE b (id INT)", "DROP TABLE b"}, nil, 0,
			false},
		{"a table that is new", []string{"CREATE TABLE c (id INT PRIMARY KEY)"}, []string{"c", "c"}, 1, false},
		{"a table that was altered", []string{"ALTER TABLE c ADD v INT", "CREATE INDEX i ON c (v)"}, []string{"c"}, 1,
			false},
		{"one with triggers that was altered", []string{"ALTER TABLE fired ADD v INT"}, []string{"fired"}, 1, false},
		{"a table of a dump", []string{"DROP TABLE IF EXISTS `c`", "CREATE TABLE `c` (id INT)", "LOCK TABLES `c` WRITE",
			"/*!40000 ALTER TABLE `c` DISABLE KEYS */"}, []string{"c"}, 1, false},
		{"its end", []string{"/*!40000 ALTER TABLE `c` ENABLE KEYS */", "UNLOCK TABLES"}, []string{"c"}, 0, false},
		{"a table that is altered while it is locked", []string{"LOCK TABLES c WRITE", "ALTER TABLE c ADD x INT",
			"ALTER TABLE c DISABLE KEYS"}, []string{"c"}, 2, true},
		{"a table with another trigger",
			[]string{"UNLOCK TABLES", "CREATE TRIGGER h BEFORE DELETE ON c FOR EACH ROW SET @x = 1"}, []string{"c"}, 1,
			true},
		{"a table that was renamed", []string{"RENAME TABLE fired TO moved"}, []string{"moved"}, 1, true},
	} {
		turns.Since()
		for _, s := range of.statements {
			plan := r.Plan(s, sqlmysql.Session{Schema: database, Charset: "utf8mb4"})
			run(t, db, s)
			if plan.Schema.Changes {
				cache.Changed(Change{Tables: plan.Schema.Changed, References: plan.Schema.References,
					Triggers: plan.Schema.Triggers})
			}
		}
		for _, name := range of.used {
			if cache.Table(database, name) == nil {
				t.Errorf("%s: %s is not known", of.name, name)
			}
		}
		n, said := turns.Since()
		if n != of.turns || strings.Contains(said, "information_schema") != of.asks {
			t.Errorf("%s: %d round trips: %q", of.name, n, said)
		}
	}
}

// TestTablesAreReadAsSoonAsMadeWhereTheyAreUsed has a client fill each table that it makes, as a restore does: he waits
// for the first alone. When he alters one instead, the next are not read before they are used.
func TestTablesAreReadAsSoonAsMadeWhereTheyAreUsed(t *testing.T) {
	testdb.Only(t, "other servers are asked by information_schema", "mariadb", "mariadb118")
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	to, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	turns := testdb.CountRoundTrips(t, to.Address)
	to.Address = turns.Addr
	conn, err := Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cache := load(t, conn)
	cache.Configure(CacheOptions{Ahead: true})
	r := sqlmysql.New(cache, sqlmysql.Options{})
	cache.Changed(Change{Tables: []rewrite.TableName{{Schema: database, Table: "none"}}})
	cache.Table(database, "none") // opens the connection
	for _, of := range []struct {
		statement, used string
		behind, turns   int // round trips behind the definition, and of the use with what is read behind it
	}{
		{"CREATE TABLE a (id INT)", "a", 0, 1},
		{"CREATE TABLE b (id INT)", "b", 1, 0},
		{"CREATE TABLE c (id INT)", "c", 1, 0},
		{"DROP TABLE c", "", 0, 0},
		{"CREATE TABLE c (v INT)", "c", 1, 0},
		{"CREATE TABLE d (id INT)", "", 1, 0},
		{"ALTER TABLE d ADD v INT", "", 0, 0}, // the reading was in vain
		{"CREATE INDEX i ON d (v)", "", 0, 0},
		{"CREATE TABLE e (id INT)", "e", 0, 2}, // and d behind it
	} {
		turns.Since()
		plan := r.Plan(of.statement, sqlmysql.Session{Schema: database, Charset: "utf8mb4"})
		run(t, db, of.statement)
		cache.Changed(Change{Tables: plan.Schema.Changed, Triggers: plan.Schema.Triggers})
		cache.ahead.Wait()
		if n, said := turns.Since(); n != of.behind {
			t.Errorf("%s: %d round trips behind it: %q", of.statement, n, said)
		}
		if of.used == "" {
			continue
		}
		known := cache.Table(database, of.used)
		if known == nil || len(known.Columns) != 1 {
			t.Errorf("%s: %s is known as %v", of.statement, of.used, known)
		}
		cache.ahead.Wait()
		if n, said := turns.Since(); n != of.turns {
			t.Errorf("%s: %d round trips to use it: %q", of.statement, n, said)
		}
	}
	if err := cache.Close(); err != nil {
		t.Error(err)
	}
}

// TestTablesMadeTogetherAreReadBehindTheFirst has a client make tables and ask for one of them: nobody waits for the
// others, and those that are gone are not asked for.
func TestTablesMadeTogetherAreReadBehindTheFirst(t *testing.T) {
	testdb.Only(t, "other servers are asked by information_schema", "mariadb", "mariadb118")
	database := testdb.NewDatabase(t)
	db := testdb.Open(t, database)
	to, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	turns := testdb.CountRoundTrips(t, to.Address)
	to.Address = turns.Addr
	conn, err := Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cache := load(t, conn)
	failed := 0
	cache.Configure(CacheOptions{Ahead: true, Failed: func(error) { failed++ }})
	r := sqlmysql.New(cache, sqlmysql.Options{})
	turns.Since()
	for _, s := range []string{"CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)", "CREATE TABLE c (id INT)",
		"CREATE TABLE d (id INT)", "CREATE INDEX i ON b (id)", "DROP TABLE c"} {
		plan := r.Plan(s, sqlmysql.Session{Schema: database, Charset: "utf8mb4"})
		run(t, db, s)
		cache.Changed(Change{Tables: plan.Schema.Changed, Triggers: plan.Schema.Triggers})
	}
	if cache.Table(database, "a") == nil {
		t.Fatal("the first is not known")
	}
	cache.ahead.Wait()
	_, said := turns.Since()
	for _, table := range []string{"b", "d"} {
		if cache.Table(database, table) == nil {
			t.Errorf("%s is not known", table)
		}
	}
	if n, later := turns.Since(); n > 0 || strings.Contains(said, "information_schema") || failed > 0 {
		t.Errorf("%d round trips after %q, %q; %d failed", n, said, later, failed)
	}
	if err := cache.Close(); err != nil {
		t.Error(err)
	}
	cache.Changed(Change{Tables: []rewrite.TableName{{Schema: database, Table: "d"}}, Triggers: rewrite.TriggersStay})
	cache.readAhead() // does nothing
}
