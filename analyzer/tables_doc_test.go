package analyzer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// documentation is where the tables stand for people.
const documentation = "../docs/levels.md"

// TestEveryCellOfEngineTableHasSource: every cell of the engine table has its source.
func TestEveryCellOfEngineTableHasSource(t *testing.T) {
	used := make(map[*Ground]bool)
	for i := range Promises {
		p := &Promises[i]
		for _, c := range p.cells() {
			g := p.GroundOf(c)
			if g == nil || g.Page == "" || !strings.HasPrefix(g.URL, "https://") || g.Says == "" {
				t.Errorf("%s %s, %s: no source", p.Engine, p.Level, c)
			}
			used[g] = true
		}
	}
	for i := range Grounds {
		if !used[&Grounds[i]] {
			t.Errorf("nothing rests on what is said of %s, %s", Grounds[i].Engine, Grounds[i].Cell)
		}
	}
}

// The documentation's tables are those of the code (go test ./analyzer -run Documented -update rewrites them).
func TestTablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{"theory": theoryTable(), "engines": engineTable(),
		"sources": sourceTable()} {
		begin, end := fmt.Sprintf("<!-- table: %s -->\n", name), "<!-- end -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no place for the table of %s", documentation, name)
		}
		want = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(documentation, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s does not have the tables of the code", documentation)
	}
}

func theoryTable() string {
	out := "| level | other names | forbids | weaker levels | source |\n| --- | --- | --- | --- | --- |\n"
	for i := range TheoryLevels {
		l := &TheoryLevels[i]
		var forbids, implied []string
		for _, a := range l.Forbids {
			forbids = append(forbids, string(a))
		}
		for j := range TheoryLevels {
			direct := !anyLevel(func(k int) bool { return k != i && k != j && stronger[i][k] && stronger[k][j] })
			if i != j && stronger[i][j] && direct {
				implied = append(implied, TheoryLevels[j].Name)
			}
		}
		out += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", l.Name, strings.Join(l.Aliases, ", "),
			strings.Join(forbids, ", "), strings.Join(implied, ", "), l.Source)
	}
	return out
}

func engineTable() string {
	all := []Cell{CellSnapshot, CellStatement, CellFresh, CellFixedByRead, CellFirstWins, CellTogether, CellRowLocks}
	out := "| engine | level | forbids |"
	for _, c := range all {
		out += fmt.Sprintf(" %s |", c)
	}
	out += "\n|" + strings.Repeat(" --- |", 3+len(all)) + "\n"
	for i := range Promises {
		p := &Promises[i]
		engine := p.Engine
		switch {
		case p.SnapshotIsolation:
			engine += " with innodb_snapshot_isolation"
		case p.Optimistic:
			engine += ", optimistic"
		}
		forbids := "(refused)"
		if !p.Refused {
			forbids = ""
			for _, a := range p.Forbids {
				forbids += string(a) + " "
			}
		}
		out += fmt.Sprintf("| %s | %s | %s |", engine, p.Level, strings.TrimSpace(forbids))
		for _, c := range all {
			mark := ""
			if slices.Contains(p.cells(), c) {
				mark = "yes"
			}
			out += fmt.Sprintf(" %s |", mark)
		}
		out += "\n"
	}
	return out
}

func sourceTable() string {
	out := "| engine | cell | level | what the page says | page |\n| --- | --- | --- | --- | --- |\n"
	for _, g := range Grounds {
		level := g.Level.String()
		if g.Level == 0 {
			level = "all that have it"
		}
		out += fmt.Sprintf("| %s | %s | %s | %s | [%s](%s) |\n", g.Engine, g.Cell, level, g.Says, g.Page, g.URL)
	}
	return out
}
