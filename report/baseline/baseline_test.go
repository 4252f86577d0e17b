package baseline

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// found is a finding with a witness of one rw.
func found(id, table string) *analyzer.Finding {
	t := &history.Txn{ID: history.MakeTxnID(36*36*36*36*36, 7), Level: history.ReadCommitted,
		Stmts: []history.Stmt{{Shape: "SELECT a < ? FROM t1"}, {Shape: "UPDATE t1 SET a = ?"}}}
	return &analyzer.Finding{ID: id, Class: analyzer.Hazard, Anomaly: analyzer.LostUpdate, Tables: []string{table},
		Patterns: 1, Count: 3,
		Witness: []analyzer.Edge{{From: t, To: t, Kind: analyzer.RW, Row: history.Row{Table: table + "@4", ID: "9"},
			FromStmt: &t.Stmts[0], ToStmt: &t.Stmts[1]}}}
}

func result(findings ...*analyzer.Finding) *analyzer.Result {
	return &analyzer.Result{Findings: findings}
}

func known(r *analyzer.Result) []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Known {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// use opens and finishes a baseline.
func use(t *testing.T, path string, update Update, r *analyzer.Result) string {
	t.Helper()
	u, err := Open(path, update)
	if err != nil {
		t.Fatal(err)
	}
	said, err := u.Finish(r)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func TestBaselineKnowsWhatItWasMadeOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	first := result(found("b", "shop.t1"), found("a", "shop.t1"))
	if said := use(t, path, Add, first); !strings.HasSuffix(said, "2 added, 0 removed, 2 in all") {
		t.Errorf("it says %q", said)
	}
	if got := known(first); len(got) != 2 {
		t.Errorf("after the update it knows %v", got)
	}
	later := result(found("a", "shop.t2"), found("c", "shop.t1"))
	if said := use(t, path, Keep, later); said != "" {
		t.Errorf("it says %q", said)
	}
	if got := known(later); !slices.Equal(got, []string{"a"}) {
		t.Errorf("it knows %v", got)
	}
	if len(later.Gone) != 1 || later.Gone[0].ID != "b" || later.Baseline != path {
		t.Errorf("gone from %s: %v", later.Baseline, later.Gone)
	}
}

// TestUpdateKeepsUnseenFindingsAndNotes: update keeps what was not seen and notes unless it replaces.
func TestUpdateKeepsUnseenFindingsAndNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	f := &File{Findings: []Entry{{ID: "n", Class: analyzer.Hazard, Anomaly: analyzer.G1a, Tables: []string{},
		Note: "known"}, newEntry(found("a", "t"))}}
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	r := result(found("a", "t"), found("c", "t"))
	use(t, path, Add, r)
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 3 || got.Findings[0].Note != "known" || len(r.Gone) != 1 {
		t.Errorf("the file has %+v, gone are %v", got.Findings, r.Gone)
	}
	use(t, path, Replace, r)
	if got, err = ReadFile(path); err != nil || len(got.Findings) != 2 || len(r.Gone) != 0 {
		t.Errorf("replaced, the file has %+v (%v), gone are %v", got, err, r.Gone)
	}
}

func TestFileIsSortedAndReadsBack(t *testing.T) {
	dir := t.TempDir()
	many := found("m", "shop.t1")
	many.Patterns = 9
	violation := found("z", "shop.t1")
	violation.Class = analyzer.Violation
	var texts []string
	for i, r := range []*analyzer.Result{result(found("b", "shop.t1"), found("a", "shop.t7"), many, violation),
		result(violation, many, found("a", "shop.t2"), found("b", "shop.t1"))} {
		path := filepath.Join(dir, string(rune('a'+i)))
		use(t, path, Add, r)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
		f, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want := []Entry{newEntry(violation), newEntry(found("a", "shop.t1")),
			newEntry(found("b", "shop.t1")), newEntry(many)}
		if !reflect.DeepEqual(f.Findings, want) {
			t.Errorf("got %+v, want %+v", f.Findings, want)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("another order of findings and other tables of the same design give another file:\n%s\n%s", texts[0],
			texts[1])
	}
	if want := `"rw shop.t#: SELECT a < ? FROM t# (READ COMMITTED) -> UPDATE t# SET a = ? (READ COMMITTED)"`; !strings.Contains(texts[0], want) {
		t.Errorf("%s\nlacks %s", texts[0], want)
	}
}

func TestEntryOfManyStatementsKnowsEachOfThem(t *testing.T) {
	many := found("m", "shop.t1")
	many.Patterns, many.Tables = 9, []string{"shop.t#", "shop.u"}
	f := &File{Findings: []Entry{newEntry(many)}}
	other := found("o", "shop.t1")
	other.Anomaly = analyzer.WriteSkew
	r := result(found("x", "shop.t3"), found("y", "shop.v"), other)
	f.Compare("b", r)
	if got := known(r); !slices.Equal(got, []string{"x"}) {
		t.Errorf("it knows %v", got)
	}
	if n := f.Add(r); n != 2 {
		t.Errorf("%d were added", n)
	}
}

func TestBadBaselinesAreRefusedWithTheReason(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	for text, want := range map[string]string{
		"":                         "line 1: it is empty",
		"{\n\"schema\": 3}":        "line 2: ",
		"{\n\n,}":                  "line 3: ",
		`{"schema": "other"}`:      `its schema is "other"`,
		`{"findings": [], "x": 1}`: `unknown field "x"`,
		`{"schema": "isotap-baseline/1", "findings": [{"id": ""}]}`:                                                             "finding 1 has no id",
		`{"schema": "isotap-baseline/1", "findings": [{"id": "a", "class": "hazard"}, {"id": "a", "class": "hazard"}]}`:         "finding a is there twice",
		`{"schema": "isotap-baseline/1", "findings": [{"id": "a", "class": "Hazard"}]}`:                                         `class "Hazard" is neither`,
		"{\"schema\": \"isotap-baseline/1\", \"findings\": []}\n{}":                                                             "line 2: something follows",
		`{"schema": "isotap-baseline/1", "findings": [{"id": "a", "class": "hazard", "anomaly": "lost update", "tabels": []}]}`: `unknown field "tabels"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Add); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Open(path+"-not", Keep); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open(path, "often"); err == nil {
		t.Error("an unknown update is accepted")
	}
}

// More sets of statements than are told apart are known where each of them is.
func TestBaselineKnowsFindingByItsSetsOfStatements(t *testing.T) {
	f := &File{}
	f.Add(result(found("a", "shop.t1"), found("b", "shop.t1")))
	many := found("m", "shop.t1")
	many.Patterns, many.Parts = 2, []string{"a", "b"}
	r := result(many)
	f.Compare("b", r)
	if !many.Known || len(r.Gone) > 0 || f.Prune(r) > 0 || f.Add(r) > 0 {
		t.Errorf("known %v, gone %v, the file has %+v", many.Known, r.Gone, f.Findings)
	}
	many.Parts = append(many.Parts, "c")
	f.Compare("b", r)
	if many.Known || len(r.Gone) > 0 {
		t.Errorf("with a new set: known %v, gone %v", many.Known, r.Gone)
	}
	if n := f.Add(r); n != 1 {
		t.Errorf("%d were added", n)
	}
}
