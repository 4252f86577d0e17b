package mysql

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

var (
	definitionsSeed = flag.Uint64("definitions.seed", 1,
		"seed of the first run of TestRandomDefinitionsLeaveNoStaleDescription")
	definitionsCount = flag.Int("definitions.count", 150, "how many definitions it tries in a run")
)

// A definer writes random definitions of a few tables in two schemas, the first of which is the session's.
type definer struct {
	*rand.Rand
	schemas [2]string
}

var definedNames = []string{"a", "b", "c", "d", "Odd Name", "v"}

func (d definer) name() string {
	n := "`" + definedNames[d.IntN(len(definedNames))] + "`"
	switch d.IntN(4) {
	case 0:
		return d.schemas[1] + "." + n
	case 1:
		return "`" + d.schemas[0] + "`." + n
	}
	return n
}

func (d definer) oneOf(texts ...string) string { return texts[d.IntN(len(texts))] }

func (d definer) statement() string {
	t, u := d.name(), d.name()
	switch d.IntN(26) {
	case 0, 1, 2:
		return "CREATE TABLE " + d.oneOf("", "IF NOT EXISTS ") + t + " (id INT PRIMARY KEY, x INT UNIQUE, y INT, " +
			sqlmysql.RowIDDefinition + ")" + d.oneOf("", " ENGINE = MyISAM")
	case 3, 4:
		return "CREATE TABLE " + t + " (id INT PRIMARY KEY, x INT UNIQUE, y INT, FOREIGN KEY (y) REFERENCES " + u +
			" (" + d.oneOf("id", "x") + ") " + d.action() + ")"
	case 5:
		return "ALTER TABLE " + t + " ADD CONSTRAINT " + d.oneOf("f", "g") + " FOREIGN KEY (y) REFERENCES " + u + " (" +
			d.oneOf("id", "x") + ") " + d.action()
	case 6:
		return "ALTER TABLE " + t + " DROP FOREIGN KEY " + d.oneOf("f", "g", "a_ibfk_1", "b_ibfk_1")
	case 7:
		return "CREATE TABLE " + t + d.oneOf(" LIKE ", " AS SELECT * FROM ") + u
	case 8, 9:
		return "DROP TABLE " + d.oneOf("", "IF EXISTS ") + t + d.oneOf("", ", "+u)
	case 10, 11:
		return "RENAME TABLE " + t + " TO " + u
	case 12:
		return "RENAME TABLE a TO swapped, b TO a, swapped TO b"
	case 13:
		return "ALTER TABLE " + t + " RENAME " + d.oneOf("TO ", "AS ", "", "= ") + u
	case 14:
		return "ALTER TABLE " + t + " RENAME COLUMN " + d.oneOf("x TO z", "z TO x", "id TO i", "i TO id")
	case 15:
		return "ALTER TABLE " + t + d.oneOf(" ADD COLUMN w INT DEFAULT 1", " DROP COLUMN w", " MODIFY y BIGINT",
			" ADD KEY k (x, y)", " DROP KEY k", " ENGINE = InnoDB", " CONVERT TO CHARACTER SET utf8mb4")
	case 16:
		return d.oneOf("CREATE INDEX i ON ", "CREATE UNIQUE INDEX i ON ",
			"DROP INDEX i ON ") + t + d.oneOf(" (x)", " (y)", "")
	case 17, 18:
		schema, _, qualified := strings.Cut(t, ".")
		trigger := d.oneOf("t1", "t2")
		if qualified {
			trigger = schema + "." + trigger
		}
		return d.oneOf("CREATE ", "CREATE DEFINER = CURRENT_USER() ") + "TRIGGER " +
			trigger + d.oneOf(" BEFORE ", " AFTER ") + d.oneOf("INSERT", "UPDATE", "DELETE") +
			" ON " + t + " FOR EACH ROW SET @x = 1"
	case 19:
		return "DROP TRIGGER " + d.oneOf("", d.schemas[0]+".", d.schemas[1]+".") + d.oneOf("t1", "t2")
	case 20:
		return "CREATE OR REPLACE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW " + t + " AS SELECT x FROM " + u
	case 21:
		return "DROP VIEW " + t
	case 22:
		return "/*!40000 ALTER TABLE " + t + d.oneOf(" ADD COLUMN w INT", " DROP COLUMN w", " DISABLE KEYS") + " */"
	case 23:
		return "TRUNCATE TABLE " + t
	case 24:
		return d.oneOf("DROP DATABASE IF EXISTS ", "CREATE DATABASE IF NOT EXISTS ") + d.schemas[1]
	}
	return "ALTER TABLE " + t + d.oneOf(" PARTITION BY HASH (id) PARTITIONS 2", " REMOVE PARTITIONING",
		" DROP PRIMARY KEY, ADD PRIMARY KEY (id)")
}

func (d definer) action() string {
	return d.oneOf("", "ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE SET NULL ON UPDATE CASCADE")
}

// TestRandomDefinitionsLeaveNoStaleDescription tells a Cache of random definitions what the rewriter says of them, and
// compares what it then says of each table with what a new Cache says.
func TestRandomDefinitionsLeaveNoStaleDescription(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for seed := *definitionsSeed; seed < *definitionsSeed+3; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := definer{Rand: rand.New(rand.NewPCG(seed, 1)),
				schemas: [2]string{testdb.NewDatabase(t), testdb.NewDatabase(t)}}
			db := testdb.Open(t, d.schemas[0])
			db.SetMaxOpenConns(1)
			run(t, db, "SET foreign_key_checks = 0")
			conn := connect(t)
			cache := load(t, conn)
			cache.Configure(CacheOptions{Ahead: true})
			r := sqlmysql.New(cache, sqlmysql.Options{})
			succeeded := 0
			for range *definitionsCount {
				text := d.statement()
				succeeded += d.define(t, db, cache, r, text)
				if d.IntN(8) == 0 {
					if err := cache.Reload(t.Context(), conn); err != nil {
						t.Fatal(err)
					}
				}
				for range d.IntN(4) {
					cache.Table(d.schemas[d.IntN(2)], definedNames[d.IntN(len(definedNames))])
				}
				if d.IntN(4) == 0 {
					d.compare(t, cache, load(t, conn), text)
				}
			}
			t.Logf("%d of %d definitions succeeded", succeeded, *definitionsCount)
			if succeeded < *definitionsCount/4 {
				t.Error("these are too few")
			}
		})
	}
}

// define runs a definition and tells the Cache of it. It returns how many succeeded.
func (d definer) define(t *testing.T, db *sql.DB, cache *Cache, r *sqlmysql.Rewriter, text string) int {
	t.Helper()
	plan := r.Plan(text, sqlmysql.Session{Schema: d.schemas[0], Charset: "utf8mb4"})
	_, err := db.Exec(text)
	if plan.Schema.Changes {
		if len(plan.Schema.Changed) == 0 {
			t.Errorf("%s: it is not known what it changes", text)
		}
		cache.Changed(Change{Tables: plan.Schema.Changed, References: plan.Schema.References,
			Triggers: plan.Schema.Triggers})
	}
	if err != nil {
		return 0
	}
	return 1
}

func (d definer) compare(t *testing.T, cache, fresh *Cache, text string) {
	t.Helper()
	for _, schema := range d.schemas {
		for _, table := range definedNames {
			got, want := withoutColumnsOfView(cache.Table(schema, table)),
				withoutColumnsOfView(fresh.Table(schema, table))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("behind %s, %s.%s is known as\n%+v\nand is\n%+v", text, schema, table, got, want)
			}
		}
	}
}

// withoutColumnsOfView returns a view without its columns and what foreign keys do: information_schema gives the
// columns of a view only while there are the tables that it reads, and the server lets nobody drop a table that keys
// refer to but where they are not checked.
func withoutColumnsOfView(t *sqlmysql.Table) *sqlmysql.Table {
	if t == nil || !t.View {
		return t
	}
	return &sqlmysql.Table{Table: rewrite.Table{Name: t.Name, View: true}}
}
