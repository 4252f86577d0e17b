package mysql

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func load(t *testing.T, c *Conn) *Cache {
	t.Helper()
	cache, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	return cache
}

func TestCacheKnowsWhatTablesLookLike(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, `
CREATE TABLE plain (id INT UNSIGNED, s VARCHAR(10), f FLOAT, e ENUM('a','b'),
  PRIMARY KEY (s, id), UNIQUE u (f), KEY part (s(3), f), KEY two (e, f));
CREATE TABLE hidden (a INT, b INT AS (a + 1) VIRTUAL, c INT AS (a + 2) STORED, d INT INVISIBLE,
  `+sqlmysql.RowIDDefinition+`, `+sqlmysql.WListDefinition(77)+`);
CREATE TABLE unbounded (a INT, `+sqlmysql.RowIDDefinition+`, `+sqlmysql.WListDefinition(0)+`);
CREATE TABLE unfinished (a INT, isotap_rowid VARBINARY(64) INVISIBLE, `+sqlmysql.WListDefinition(255)+`);
CREATE VIEW view_of_plain AS SELECT s FROM plain;
CREATE TABLE triggered (id INT);
CREATE TRIGGER i AFTER INSERT ON triggered FOR EACH ROW SET @x = 1;
CREATE TRIGGER d BEFORE DELETE ON triggered FOR EACH ROW SET @x = 1;
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE strict_parent (id INT PRIMARY KEY);
CREATE TABLE child (a INT, b INT, FOREIGN KEY (a) REFERENCES parent (id) ON DELETE SET NULL,
  FOREIGN KEY (b) REFERENCES strict_parent (id) ON UPDATE RESTRICT);
CREATE TABLE pair (a INT, b INT, c INT, UNIQUE KEY ba (b, a));
CREATE TABLE child_of_pair (x INT, y INT, FOREIGN KEY (x, y) REFERENCES pair (b, a) ON UPDATE CASCADE)
`)
	cache := load(t, connect(t))
	name := func(table string) string { return schema + "." + table }
	key := []rewrite.Index{{Name: "PRIMARY", Columns: []string{"id"}, Primary: true, Unique: true}}
	id := rewrite.Column{Name: "id", Type: "int", NotNull: true}
	hidden := columnsOf(rewrite.Column{Name: "a", Type: "int"}, rewrite.Column{Name: "b", Type: "int", Generated: true},
		rewrite.Column{Name: "c", Type: "int", Generated: true}, rewrite.Column{Name: "d", Type: "int"})
	hidden[3].Invisible = true
	for _, want := range []sqlmysql.Table{
		{Table: rewrite.Table{Name: name("plain")},
			Columns: columnsOf(id, rewrite.Column{Name: "s", Type: "varchar", NotNull: true},
				rewrite.Column{Name: "f", Type: "float"}, rewrite.Column{Name: "e", Type: "enum"}),
			Indexes: []rewrite.Index{
				{Name: "part", Columns: []string{"", "f"}},
				{Name: "PRIMARY", Columns: []string{"s", "id"}, Primary: true, Unique: true},
				{Name: "two", Columns: []string{"e", "f"}},
				{Name: "u", Columns: []string{"f"}, Unique: true},
			}},
		{Table: rewrite.Table{Name: name("hidden"), Instrumented: true, WListBytes: 77}, Columns: hidden},
		{Table: rewrite.Table{Name: name("unbounded"), Instrumented: true},
			Columns: columnsOf(rewrite.Column{Name: "a", Type: "int"})},
		{Table: rewrite.Table{Name: name("unfinished"), WListBytes: 255},
			Columns: columnsOf(rewrite.Column{Name: "a", Type: "int"})},
		{Table: rewrite.Table{Name: name("view_of_plain"), View: true},
			Columns: columnsOf(rewrite.Column{Name: "s", Type: "varchar", NotNull: true})},
		{Table: rewrite.Table{Name: name("triggered"), InsertTrigger: true, DeleteTrigger: true},
			Columns: columnsOf(rewrite.Column{Name: "id", Type: "int"})},
		{Table: rewrite.Table{Name: name("parent"), CascadesDelete: true}, Columns: columnsOf(id), Indexes: key},
		{Table: rewrite.Table{Name: name("pair"), CascadesUpdate: []string{"a", "b"}},
			Columns: columnsOf(rewrite.Column{Name: "a", Type: "int"}, rewrite.Column{Name: "b", Type: "int"},
				rewrite.Column{Name: "c", Type: "int"}),
			Indexes: []rewrite.Index{{Name: "ba", Columns: []string{"b", "a"}, Unique: true}}},
		{Table: rewrite.Table{Name: name("strict_parent")}, Columns: columnsOf(id), Indexes: key},
	} {
		got := withoutSpelling(cache.Table(schema, want.Name[len(schema)+1:]))
		if got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", want.Name, got, want)
		}
	}
	for _, absent := range [][2]string{{schema, "none"}, {schema, "PLAIN"}, {"", "plain"}, {"mysql", "user"},
		{"information_schema", "TABLES"}} {
		if got := cache.Table(absent[0], absent[1]); got != nil {
			t.Errorf("%v found: %+v", absent, got)
		}
	}
}

// TestReadingByNameSeesWhatReloadSees: reading by name and reload see the same changes.
func TestReadingByNameSeesWhatReloadSees(t *testing.T) {
	const before = `
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE Parent (id INT PRIMARY KEY);
CREATE TABLE child (a INT);
CREATE TABLE gone (a INT)
`
	changes := []struct{ statement, table string }{
		{"CREATE TABLE fresh (a INT)", "fresh"},
		{"DROP TABLE gone", "gone"},
		{"ALTER TABLE child ADD COLUMN b INT, ADD KEY (b)", "child"},
		{"ALTER TABLE child ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE", "child"},
		{"CREATE TRIGGER tr BEFORE UPDATE ON parent FOR EACH ROW SET @x = 1", "parent"},
		{"ALTER TABLE child DROP FOREIGN KEY fk", "child"},
		{"DROP TRIGGER tr", "parent"},
		{"CREATE OR REPLACE VIEW fresh_view AS SELECT a FROM child", "fresh_view"},
	}
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, before)
	c := connect(t)
	refreshed, reloaded := load(t, c), load(t, c)
	for _, change := range changes {
		old := refreshed.Epoch()
		run(t, db, change.statement)
		refreshed.Changed(Change{Tables: []rewrite.TableName{{Schema: schema, Table: change.table}},
			References: []rewrite.TableName{{Schema: schema, Table: "parent"}}})
		if err := reloaded.Reload(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if refreshed.Epoch() <= old {
			t.Errorf("%s: the epoch stays at %d", change.statement, old)
		}
		for _, table := range []string{"parent", "Parent", "child", "gone", "fresh", "fresh_view"} {
			a, b := refreshed.Table(schema, table), reloaded.Table(schema, table)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s: table %s\nrefreshed %+v\nreloaded  %+v", change.statement, table, a, b)
			}
		}
	}
	epoch := reloaded.Epoch()
	if err := reloaded.Reload(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if reloaded.Epoch() != epoch {
		t.Errorf("the epoch went from %d to %d although nothing changed", epoch, reloaded.Epoch())
	}
}

func TestLookupsDoNotWaitForChanges(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, "CREATE TABLE t (a INT)")
	c := connect(t)
	cache := load(t, c)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Microsecond): // leaves the server some of the machine
				}
				if table := cache.Table(schema, "t"); table == nil || table.Column("a") == nil {
					t.Error("the table is not found while another changes")
					return
				}
			}
		})
	}
	for i := range 10 {
		run(t, db, fmt.Sprintf("CREATE TABLE t%d (a INT)", i))
		cache.Changed(Change{Tables: []rewrite.TableName{{Schema: schema, Table: fmt.Sprintf("t%d", i)}}})
		if err := cache.Reload(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
	if n := testing.AllocsPerRun(100, func() { cache.Table(schema, "t") }); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

// withoutSpelling returns a table without the parts that are spelled differently from server to server.
func withoutSpelling(t *sqlmysql.Table) *sqlmysql.Table {
	if t == nil {
		return nil
	}
	plain := *t
	plain.Query = ""
	plain.Columns = slices.Clone(t.Columns)
	for i := range plain.Columns {
		plain.Columns[i].Full, plain.Columns[i].Collation, plain.Columns[i].Default = "", "", ""
	}
	return &plain
}

func TestCacheKnowsHowTypesAreSpelled(t *testing.T) {
	schema := testdb.NewDatabase(t)
	run(t, testdb.Open(t, schema), "CREATE TABLE t (d DECIMAL(10,2), v VARCHAR(7) COLLATE utf8mb4_bin, "+
		"e ENUM('A') COLLATE utf8mb4_bin)")
	cache := load(t, connect(t))
	want := columnsOf(rewrite.Column{Name: "d", Type: "decimal", Full: "decimal(10,2)"},
		rewrite.Column{Name: "v", Type: "varchar", Full: "varchar(7)", Collation: "utf8mb4_bin"},
		rewrite.Column{Name: "e", Type: "enum", Full: "enum('A')", Collation: "utf8mb4_bin"})
	got := slices.Clone(cache.Table(schema, "t").Columns)
	for i := range got {
		got[i].Default = ""
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCacheKnowsWhatTheServerFillsIn(t *testing.T) {
	schema := testdb.NewDatabase(t)
	run(t, testdb.Open(t, schema),
		`CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, number INT DEFAULT -7, text VARCHAR(20) DEFAULT 'a (b)',
		nothing INT DEFAULT NULL, needed INT NOT NULL,
		made DATETIME DEFAULT CURRENT_TIMESTAMP, written TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP,
		sum INT DEFAULT (1 + 1))`)
	var got []string
	presets := make(map[string]string)
	for _, c := range load(t, connect(t)).Table(schema, "t").Columns {
		if c.Default != "" {
			presets[c.Name] = c.Default
		}
		for _, what := range []struct {
			name string
			is   bool
		}{{"numbered", c.AutoIncrement}, {"filled", c.ComputedDefault}, {"refreshed", c.OnUpdate}, {"not null", c.NotNull}} {
			if what.is {
				got = append(got, c.Name+" "+what.name)
			}
		}
	}
	want := []string{"id numbered", "id not null", "needed not null", "made filled", "written refreshed", "sum filled"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	number := presets["number"]
	delete(presets, "number")
	if presetsWant := map[string]string{"text": "'a (b)'", "nothing": "NULL", "written": "NULL"}; !maps.Equal(presets, presetsWant) ||
		strings.Trim(number, "'") != "-7" {
		t.Errorf("without a value columns have %q and %s, want %q and -7", presets, number, presetsWant)
	}
}

// TestNobodyWaitsForATableOfOthers has a table changed while somebody holds it, so that it cannot be read: whoever asks
// for another table is answered at once, and whoever asks for it when it is free again.
func TestNobodyWaitsForATableOfOthers(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, "CREATE TABLE free (a INT);\nCREATE TABLE held (a INT);\nCREATE TABLE long_select (a INT);\n"+
		"INSERT INTO long_select VALUES (1);\n")
	cache := load(t, connect(t))
	failures := make(chan error, 10)
	cache.Configure(CacheOptions{Patience: 300 * time.Millisecond, Failed: func(err error) { failures <- err }})
	holding := make(chan error, 1)
	go func() { // exclusively, until it is filled
		_, err := db.Exec("DROP TABLE held")
		if err == nil {
			_, err = db.Exec("CREATE TABLE held AS SELECT SLEEP(1.5) AS b FROM long_select")
		}
		holding <- err
	}()
	time.Sleep(300 * time.Millisecond)
	for _, table := range []string{"free", "held"} {
		cache.Changed(Change{Tables: []rewrite.TableName{{Schema: schema, Table: table}}})
	}
	waited := make(chan *sqlmysql.Table, 1)
	go func() { waited <- cache.Table(schema, "held") }()
	began := time.Now()
	if cache.Table(schema, "free") == nil || time.Since(began) > 250*time.Millisecond {
		t.Errorf("another table is not found, or late: after %v", time.Since(began))
	}
	if table := <-waited; table != nil && table.Column("b") == nil {
		t.Errorf("the table is described as it was: %+v", table)
	}
	if err := <-holding; err != nil {
		t.Fatal(err)
	}
	cache.Changed(Change{Tables: []rewrite.TableName{{Schema: schema,
		Table: "held"}}}) // as the end of a definition is told
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if table := cache.Table(schema, "held"); table != nil && table.Column("b") != nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the table is not found: %+v", table)
		}
	}
	t.Logf("%d readings failed", len(failures))
}

// TestLateReadingsAreTaken: what takes longer to be read than anybody waits is known to those who ask later, and plans
// that were made without it are outdated.
func TestLateReadingsAreTaken(t *testing.T) {
	schema := testdb.NewDatabase(t)
	run(t, testdb.Open(t, schema), "CREATE TABLE late (a INT)")
	cache := load(t, connect(t))
	var outdated, failed atomic.Int32
	cache.Configure(CacheOptions{Patience: time.Microsecond, Invalidate: func() { outdated.Add(1) },
		Failed: func(error) { failed.Add(1) }})
	for _, change := range []Change{{Tables: []rewrite.TableName{{Schema: schema, Table: "late"}}}, {}} {
		cache.Changed(change)
		outdated.Store(0)
		failed.Store(0)
		if table := cache.Table(schema, "late"); table != nil || failed.Load() == 0 {
			t.Errorf("%+v: read in a microsecond: %+v; failures told: %d", change, table, failed.Load())
		}
		known := func() bool { return cache.Table(schema, "late") != nil && outdated.Load() > 0 } // in this order
		for deadline := time.Now().Add(20 * time.Second); !known(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%+v: the table is not known later, or plans without it stay: %d were outdated", change, outdated.Load())
			}
		}
	}
}

// TestUnknownChangeHasAllReadAgain: a change of nobody knows what has all read again.
func TestUnknownChangeHasAllReadAgain(t *testing.T) {
	schema := testdb.NewDatabase(t)
	db := testdb.Open(t, schema)
	run(t, db, "CREATE TABLE parent (id INT PRIMARY KEY)")
	cache := load(t, connect(t))
	outdated := 0
	cache.Configure(CacheOptions{Invalidate: func() { outdated++ }})
	run(t, db, "CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE)")
	if table := cache.Table(schema, "child"); table != nil {
		t.Fatalf("a table that passed by is known: %+v", table)
	}
	cache.Changed(Change{})
	if outdated != 1 {
		t.Errorf("plans were forgotten %d times", outdated)
	}
	if table := cache.Table(schema, "parent"); table == nil || !table.CascadesDelete {
		t.Errorf("parent is %+v", table)
	}
	if table := cache.Table(schema, "child"); table == nil {
		t.Error("child is not found")
	}
}
