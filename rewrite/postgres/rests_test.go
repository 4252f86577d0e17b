package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestDefinitionsDoNotRestOnTables(t *testing.T) {
	for text, rests := range map[string]bool{
		"CREATE TABLE fresh (id int PRIMARY KEY, name text)": false,
		"CREATE SCHEMA s":            false,
		"SET search_path TO s":       false,
		"ALTER TABLE t1 OWNER TO me": false,
		"ALTER TABLE t1 ADD COLUMN a int; CREATE INDEX ON t1 (a)":    false,
		"BEGIN; DROP TABLE t1; COMMIT":                               false,
		"SELECT 1":                                                   true,
		"SELECT f()":                                                 true,
		"INSERT INTO t1 VALUES (1)":                                  true,
		"CREATE TABLE copied AS SELECT * FROM t1":                    true,
		"CREATE TABLE fresh (id int); SELECT * FROM t1":              true,
		"DO 'BEGIN END'":                                             true,
		"EXPLAIN ANALYZE DELETE FROM t1":                             true,
		"TRUNCATE t1":                                                true,
		"PREPARE p AS SELECT 1":                                      true,
		"DECLARE c CURSOR FOR SELECT * FROM t1":                      true,
		"CREATE TABLE fresh (" + "isotap_rowid bigint, id int)":      true,
		"COPY t1 FROM STDIN":                                         true,
		"this is no SQL":                                             true,
		"CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM t1":      false,
		"CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'": false,
	} {
		if got := New(testSchema(), Options{}).Plan(text, Session{}).RestsOnTables(); got != rests {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestScriptsThatDoNotRestOnTablesAreTheSameWithoutThem goes through all texts of the plans' golden files.
func TestScriptsThatDoNotRestOnTablesAreTheSameWithoutThem(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*")
	if err != nil {
		t.Fatal(err)
	}
	free := 0
	for _, file := range files {
		all, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		datadriven.RunTestFromString(t, string(all), func(t *testing.T, d *datadriven.TestData) string {
			if d.HasArg("hex") {
				return d.Expected
			}
			with := New(testSchema(), Options{}).Plan(d.Input, session(t, d.CmdArgs))
			without := New(tables{}, Options{}).Plan(d.Input, session(t, d.CmdArgs))
			if !without.RestsOnTables() {
				free++
				if got, want := render(without), render(with); got != want {
					t.Errorf("%s: without tables\n%s\nwith them\n%s", strings.TrimSpace(d.Input), got, want)
				}
			}
			return d.Expected
		})
	}
	if free < 50 {
		t.Errorf("%d texts do not rest on tables", free)
	}
}
