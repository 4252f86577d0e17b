package levels

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

var update = flag.Bool("update", false, "write the golden files")

// table is one of a server on which each row is permitted up to a level, and prevented in one of three ways above it.
func table(t *testing.T, f engine.Facts, levels ...history.Level) *Table {
	t.Helper()
	rows, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	made := &Table{Server: f.Server, Rows: rows}
	for _, l := range levels {
		made.Columns = append(made.Columns, variants(&f, l)...)
	}
	ways := []runner.Showing{runner.Prevented, runner.Waited, runner.Refused}
	for i, r := range rows {
		made.cells = append(made.cells, make([]cell, len(made.Columns)))
		for j, c := range made.Columns {
			shows := ways[i%len(ways)]
			if c.Settings[snapshotIsolation] != "ON" && c.Settings[txnMode] != "optimistic" && int(c.Level) < 1+i/3 {
				shows = runner.Witnessed
			}
			for range r.Scenarios {
				made.cells[i][j] = append(made.cells[i][j], played{shows: shows})
			}
		}
	}
	return made
}

func TestTextIsATableAndWhatItMeans(t *testing.T) {
	for name, of := range map[string]*Table{
		"mariadb": table(t, engine.Facts{Server: history.Server{Engine: dbms.MariaDB, Version: "10.11.19-MariaDB"},
			Level: history.RepeatableRead, Conflicts: true},
			history.ReadUncommitted, history.ReadCommitted, history.RepeatableRead, history.Serializable),
		"tidb": table(t, engine.Facts{Server: history.Server{Engine: dbms.TiDB, Version: "8.0.11-TiDB-v8.5"},
			Level: history.RepeatableRead, Conflicts: true, Optimistic: true}, history.ReadCommitted, history.RepeatableRead),
		"postgresql": table(t, engine.Facts{Server: history.Server{Engine: dbms.PostgreSQL, Version: "15.18 (Debian)"},
			Level: history.ReadUncommitted}, history.ReadCommitted, history.RepeatableRead, history.Serializable),
	} {
		var b bytes.Buffer
		if err := of.Text(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", b.Bytes())
	}
}

func TestJSONHasTheTableAndWhatItMeans(t *testing.T) {
	var b bytes.Buffer
	if err := table(t, engine.Facts{Server: history.Server{Engine: dbms.MySQL, Version: "9.7.4"},
		Level: history.RepeatableRead}, history.RepeatableRead).JSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "mysql.json", b.Bytes())
	checkDocumented(t, b.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (-update writes it):\n%s\nwant\n%s", path, got, want)
	}
}

// checkDocumented looks for each field in docs/levels-json.md.
func checkDocumented(t *testing.T, document []byte) {
	t.Helper()
	text, err := os.ReadFile("../../docs/levels-json.md")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				at := strings.TrimPrefix(path+"."+name, ".")
				if _, list := inner.([]any); list {
					at += "[]"
				}
				if !strings.Contains(string(text), "`"+at+"`") {
					t.Errorf("docs/levels-json.md does not describe %s", at)
				}
				if name != "settings" { // whose names are the server's
					visit(at, inner)
				}
			}
		case []any:
			for _, inner := range v {
				visit(path, inner)
			}
		}
	}
	visit("", doc)
}

// A level is advised only where it helps with every setting that sessions there may have.
func TestALevelIsAdvisedThatHelpsWithAllItsSettings(t *testing.T) {
	of := table(t, engine.Facts{Server: history.Server{Engine: dbms.MariaDB}, Level: history.RepeatableRead,
		Conflicts: true}, history.ReadCommitted, history.RepeatableRead, history.Serializable)
	for i := range of.Rows {
		for j, c := range of.Columns {
			for k := range of.cells[i][j] {
				of.cells[i][j][k].shows = runner.Prevented
				if c.Level == history.ReadCommitted || c.Settings[snapshotIsolation] == "OFF" && c.Level == history.RepeatableRead {
					of.cells[i][j][k].shows = runner.Witnessed
				}
			}
		}
	}
	if says := of.says(0); !strings.Contains(says, "Updates are lost: use SELECT ... FOR UPDATE or SERIALIZABLE.") {
		t.Error(says)
	}
	if says := of.says(0); !of.hasAllLevels() && strings.Contains(says, "no level here") {
		t.Errorf("it speaks of levels that were not asked for: %s", says)
	}
}

// Scenarios of somebody else's are shown by their names, and nothing is said of the levels.
func TestOthersScenariosAreShownByName(t *testing.T) {
	of := &Table{Server: history.Server{Engine: dbms.MySQL, Version: "9.7"},
		Columns: []Column{{Level: history.ReadCommitted, title: []string{"READ", "COMMITTED"}}},
		Rows:    Each([]*scenario.Scenario{{Name: "mine"}, {Name: "another's"}}), cells: [][]cell{{{{shows: runner.Possible}}},
			{{{why: "set-up: CREATE TABLE t\n(id INT PRIMARY KEY, " + strings.Repeat("a", 200) + " INT)"}}}}}
	var b bytes.Buffer
	if err := of.Text(&b); err != nil {
		t.Fatal(err)
	}
	want := "mysql 9.7: can it happen?\n\n            READ\n            COMMITTED\nmine        yes\nanother's   not played\n\n" +
		"not played: another's: set-up: CREATE TABLE t (id INT PRIMARY KEY, " + strings.Repeat("a", 200-len("set-up: CREATE TABLE t (id INT PRIMARY KEY, ")-1) + "…\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTheOutcomeIsThatOfTheWorstScenario(t *testing.T) {
	for want, all := range map[Outcome][]runner.Showing{
		Permitted: {runner.Refused, runner.Possible, runner.Prevented}, Fails: {runner.Refused, runner.Waited},
		Waits: {runner.Prevented, runner.Waited}, Prevented: {runner.Prevented, ""}, NotPlayed: {""}} {
		var of cell
		for _, s := range all {
			of = append(of, played{shows: s})
		}
		if got := of.outcome(); got != want {
			t.Errorf("%v: %d, want %d", all, got, want)
		}
	}
}
