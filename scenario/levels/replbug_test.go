package levels

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/library"
	"github.com/isotap/isotap/scenario/runner"
)

// replBugPage holds the table of ReplBug's bugs.
const replBugPage = "../../docs/replbug.md"

var writeBugs = flag.Bool("bugs", false, "write the column of the tests' server in docs/replbug.md")

// The page's columns of servers, by their engines and versions.
var replBugColumns = map[string]int{"mariadb 10.5": 4, "mariadb 10.11": 5, "mariadb 11.8": 6, "mysql 5.6": 7, "mysql 9": 8}

// Bugs that need a server of their own are not played here: their cells come from isotap levels --engine.
func TestReplBugShowsWhereThePageSaysSo(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), target, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at := 0
	for server, column := range replBugColumns {
		if strings.HasPrefix(r.Server.Engine.String()+" "+r.Server.Version, server) {
			at = column
		}
	}
	if at == 0 {
		t.Skipf("%s has no column of %s %s", replBugPage, r.Server.Engine, r.Server.Version)
	}
	text, err := os.ReadFile(replBugPage)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for file, got := range bugCells(t, r) {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| ["+reportOf(file)+"](") })
		if i < 0 {
			t.Errorf("%s is not in %s", reportOf(file), replBugPage)
			continue
		}
		cells := strings.Split(lines[i], "|")
		if want := strings.TrimSpace(cells[at]); got != want {
			t.Errorf("%s: %s, and %s has %s", reportOf(file), got, replBugPage, want)
		}
		cells[at] = " " + got + " "
		lines[i] = strings.Join(cells, "|")
	}
	if *writeBugs {
		if err := os.WriteFile(replBugPage, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var replBugFile = regexp.MustCompile(`^(mdev|mysql|tidb)-([0-9]+)\.yaml$`)

// reportOf is what the page calls the bug of a file.
func reportOf(file string) string {
	m := replBugFile.FindStringSubmatch(file)
	switch m[1] {
	case "mdev":
		return "MDEV-" + m[2]
	case "mysql":
		return "MySQL bug " + m[2]
	}
	return "TiDB issue " + m[2]
}

// bugCells are the cells of the server's column, by file, of the bugs that need no server of their own.
func bugCells(t *testing.T, r *runner.Runner) map[string]string {
	t.Helper()
	files, err := fs.Glob(library.Files, "replbug/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var bugs []*scenario.Scenario
	for _, f := range files {
		s, err := read(f)
		if err != nil {
			t.Fatal(err)
		}
		if !s.OwnServer() && s.RunsOn(r.Server) {
			bugs = append(bugs, s)
		}
	}
	columns, err := Columns(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Measure(t.Context(), r, columns, Each(bugs), nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := make(map[string]string)
	for i, s := range bugs {
		cells[path.Base(s.File)] = bugCell(table, i)
	}
	return cells
}

// short are the levels' names in the page; a star stands for MariaDB's innodb_snapshot_isolation and TiDB's optimistic
// transactions.
var short = map[history.Level]string{history.ReadUncommitted: "RU", history.ReadCommitted: "RC",
	history.RepeatableRead: "RR", history.Serializable: "SER"}

func bugCell(t *Table, row int) string {
	var yes []string
	played := false
	for j, c := range t.Columns {
		outcome := t.cells[row][j].outcome()
		played = played || outcome != NotPlayed
		if outcome != Permitted {
			continue
		}
		name := short[c.Level]
		if c.Settings[snapshotIsolation] == "ON" || c.Settings[txnMode] == "optimistic" {
			name += "*"
		}
		yes = append(yes, name)
	}
	switch {
	case !played:
		return "–"
	case len(yes) == 0:
		return "no"
	case len(yes) == len(t.Columns):
		return "all"
	}
	return strings.Join(yes, " ")
}

func TestReplBugsPageHasEveryBug(t *testing.T) {
	text, err := os.ReadFile(replBugPage)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(library.Files, "replbug/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s, err := read(f)
		if err != nil {
			t.Fatal(err)
		}
		report, about, _ := strings.Cut(s.Name, ": ")
		if report != reportOf(path.Base(f)) || !strings.Contains(string(text), fmt.Sprintf("| [%s](", report)) ||
			!strings.Contains(string(text), ") | "+about+" | ") {
			t.Errorf("%s: the page and the scenario say different things of %s", f, report)
		}
	}
	if rows := strings.Count(string(text), "\n| ["); rows != len(files) {
		t.Errorf("the page has %d rows of %d bugs", rows, len(files))
	}
}
