package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/rewrite/postgres"
)

// TestSubqueriesAreObservedAsDocumented plans each example of subqueries.md for every server, version and level that
// the tables there tell of, and holds what becomes of it against the table.
func TestSubqueriesAreObservedAsDocumented(t *testing.T) {
	forms := formsOf(t, "subqueries.md")
	if len(forms) < 40 {
		t.Fatalf("only %d forms are read", len(forms))
	}
	for _, f := range forms {
		for _, of := range servers {
			cell, ok := f.cells[of.column]
			if !ok {
				t.Fatalf("%s: there is no column %s", f.name, of.column)
			}
			if cell == "" {
				continue // it is no statement there
			}
			for _, example := range f.examples {
				if got, want := of.observed(example), said(t, cell, of); !slices.Equal(got, want) {
					t.Errorf("%s: `%s` on %s %s is %s; the document says %q", f.name, example, of.column, of.version,
						spelled(got), cell)
				}
			}
		}
	}
}

// A form is a row of a table: what subqueries of a form show on each server.
type form struct {
	name     string
	examples []string
	cells    map[string]string
}

var exampleText = regexp.MustCompile("`[^`]+`")

// formsOf reads the tables whose second column has examples.
func formsOf(t *testing.T, path string) (forms []form) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var header []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			header = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == nil:
			header = cells
			continue
		case strings.HasPrefix(cells[0], "---"), header[1] != "example":
			continue
		case len(cells) != len(header):
			t.Errorf("%s: %d cells, not %d", line, len(cells), len(header))
			continue
		}
		f := form{name: cells[0], cells: make(map[string]string)}
		for _, span := range exampleText.FindAllString(cells[1], -1) {
			f.examples = append(f.examples, strings.Trim(span, "`"))
		}
		for i, column := range header {
			f.cells[column] = cells[i]
		}
		if len(f.examples) == 0 {
			t.Errorf("%s: there is no example", f.name)
			continue
		}
		forms = append(forms, f)
	}
	return forms
}

// levels are those of the tables, in the order in which [said] and observed give what holds at each.
var levels = []string{"RC", "RR", "SER"}

// said returns what a cell says of each level, on a server: "exact, SER doubtful" is "exact" but at SERIALIZABLE. The
// last words that hold for a level and a version count.
func said(t *testing.T, cell string, of server) []string {
	t.Helper()
	all := make([]string, len(levels))
	for item := range strings.SplitSeq(cell, ", ") {
		word, at := item, []string(nil)
		for {
			first, rest, ok := strings.Cut(word, " ")
			if !ok || !slices.Contains(levels, first) && strings.Trim(first, "0123456789.") != "" {
				break
			}
			at, word = append(at, first), rest
		}
		if !slices.Contains([]string{"exact", "doubtful", "companion", "not seen"}, word) {
			t.Fatalf("%q is no word of the tables", item)
		}
		if slices.ContainsFunc(at, func(a string) bool { return !slices.Contains(levels, a) && a != of.version }) {
			continue
		}
		anyLevel := !slices.ContainsFunc(at, func(a string) bool { return slices.Contains(levels, a) })
		for i, level := range levels {
			if anyLevel || slices.Contains(at, level) {
				all[i] = word
			}
		}
	}
	return all
}

// spelled is the shortest cell that says so.
func spelled(all []string) string {
	if all[0] == all[1] && all[1] == all[2] {
		return all[0]
	}
	if all[0] == all[1] {
		return all[0] + ", SER " + all[2]
	}
	if all[1] == all[2] {
		return all[1] + ", RC " + all[0]
	}
	return fmt.Sprintf("RC %s, RR %s, SER %s", all[0], all[1], all[2])
}

// A server is a column of the tables, in one version.
type server struct {
	column, version string
	number          int
}

var servers = []server{{"PostgreSQL", "15", 15}, {"PostgreSQL", "18", 18}, {"MariaDB", "10.11", 101119},
	{"MariaDB", "11.8", 110806}, {"MySQL", "9.7", 90704}, {"TiDB", "8.5", 80500}}

// observed returns how a statement is observed at each level, in a transaction.
func (of server) observed(text string) (all []string) {
	for _, level := range levels {
		if of.column == "PostgreSQL" {
			all = append(all, of.onPostgreSQL(text, level))
		} else {
			all = append(all, of.onMySQL(text, level))
		}
	}
	return all
}

func (of server) onPostgreSQL(text, level string) string {
	s := postgres.Session{Version: of.number, Path: rewrite.ListOf("public"), Serializable: level == "SER"}
	p := postgres.New(postgresTables, postgres.Options{}).Plan(text, s).Statements[0]
	return word(p.Observation)
}

func (of server) onMySQL(text, level string) string {
	s := mysql.Session{Schema: "shop", Charset: "utf8mb4", MaxPacket: 16 << 20, Strict: true, Version: uint32(of.number)}
	s.Dialect = map[string]mysql.Dialect{"MariaDB": mysql.MariaDB, "MySQL": mysql.MySQL, "TiDB": mysql.TiDB}[of.column]
	s.Repeats, s.Lasts, s.WriteReads = level != "SER", level == "RR", mysql.ReadLocked
	if level == "RC" {
		s.WriteReads = mysql.ReadSnapshot
	}
	p := mysql.New(mysqlTables, mysql.Options{}).Plan(text, s)
	up := &p.Upstream
	switch {
	case p.Companion != nil && p.Companion.Observation == history.Exact && level == "RR":
		return "companion"
	case up.MayHideLocks && level == "SER":
		return "not seen"
	case up.Shows && !up.MayShow(s.WriteReads):
		return "doubtful"
	}
	return word(p.Observation)
}

// word returns the tables' word.
func word(o history.Observation) string {
	switch o {
	case history.Exact:
		return "exact"
	case history.Inexact:
		return "doubtful"
	}
	return "not seen"
}
