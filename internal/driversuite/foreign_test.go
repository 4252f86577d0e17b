package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func results(outcomes map[string]outcome) map[string]string {
	r := make(map[string]string)
	for name, o := range outcomes {
		r[name] = o.result
	}
	return r
}

func TestPytestsReportNamesFilesAndClasses(t *testing.T) {
	const report = `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">
<testcase classname="tests.test_copy" name="test_in[text]" file="tests/test_copy.py" line="3" time="0.1"/>
<testcase classname="tests.test_copy.TestOut" name="test_rows" file="tests/test_copy.py"><failure message="assert 1 == 2">E assert</failure></testcase>
<testcase classname="tests.test_copy.TestOut" name="test_rows" file="tests/test_copy.py"><skipped message="late"/></testcase>
<testcase classname="tests.test_copy" name="test_binary" file="tests/test_copy.py"><skipped message="no server"/></testcase>
<testcase classname="tests.test_copy" name="test_setup" file="tests/test_copy.py"><error message="refused">E refused</error></testcase>
</testsuite></testsuites>`
	outcomes, err := parseJUnit([]byte(report))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"tests/test_copy.py::test_in[text]": passed, "tests/test_copy.py::TestOut::test_rows": failed,
		"tests/test_copy.py::test_binary": skipped, "tests/test_copy.py::test_setup": failed,
	}
	if got := results(outcomes); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if said := outcomes["tests/test_copy.py::TestOut::test_rows"].said; !strings.Contains(said, "assert 1 == 2") {
		t.Errorf("the failing test said %q", said)
	}
	if _, err := parseJUnit([]byte("Traceback")); err == nil {
		t.Error("a report that is none has been read")
	}
}

func TestMochasReportIsReadByFile(t *testing.T) {
	outcomes := make(map[string]outcome)
	report := `{"stats": {}, "passes": [{"fullTitle": "pool gets"}], "failures": [{"fullTitle": "pool ends", "err": {"message": "1053"}}], "pending": [{"fullTitle": "pool waits"}]}`
	if err := parseMocha([]byte(report), "test/pool.js", outcomes); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"test/pool.js::pool gets": passed, "test/pool.js::pool ends": failed,
		"test/pool.js::pool waits": skipped}
	if got := results(outcomes); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := parseMocha([]byte("{"), "test/pool.js", outcomes); err == nil {
		t.Error("a report that is none has been read")
	}
}

func TestFilesAreChosenByPatternAndTests(t *testing.T) {
	n := &nodeTests{source: t.TempDir(), tests: "test", suffix: "-tests.js"}
	for _, name := range []string{"test/a-tests.js", "test/deep/b-tests.js", "test/helper.js", "other/c-tests.js"} {
		path := filepath.Join(n.source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		chosen selection
		want   []string
	}{
		{"all", selection{}, []string{"test/a-tests.js", "test/deep/b-tests.js"}},
		{"pattern", selection{pattern: "deep"}, []string{"test/deep/b-tests.js"}},
		{"tests", selection{tests: []string{"test/a-tests.js::one", "test/a-tests.js::two"}},
			[]string{"test/a-tests.js"}},
	} {
		got, err := n.files(tt.chosen)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestASuiteWithoutPackageNamesItsRepository(t *testing.T) {
	err := psycopg.prepare(t.Context(), t.TempDir(), "")
	if err == nil || !strings.Contains(err.Error(),
		"-source is to name a checkout of github.com/psycopg/psycopg, tag 3.1.7") {
		t.Errorf("got %v", err)
	}
}

func TestPgRegressIsReadByTest(t *testing.T) {
	const out = `============== running regression test queries        ==============
test tablespace                   ... ok          300 ms
parallel group (2 tests):  join portals
     join                         ... FAILED    11261 ms
     portals                      ... ok          107 ms
     collate.icu.utf8             ... FAILED (test process exited with exit code 2)      107 ms
 2 of 3 tests failed.
`
	const diffs = `diff -U3 /s/expected/join.out /s/results/join.out
--- /s/expected/join.out
-1
+2
`
	const more = `diff -U3 /s/expected/collate.icu.utf8_1.out /s/results/collate.icu.utf8.out
-3
`
	outcomes := parseRegress(out)
	explainRegress(outcomes, diffs+more)
	want := map[string]string{"tablespace": passed, "join": failed, "portals": passed, "collate.icu.utf8": failed}
	if got := results(outcomes); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if outcomes["join"].said != diffs || outcomes["portals"].said != "" || outcomes["collate.icu.utf8"].said != more {
		t.Errorf("differences: %q", outcomes)
	}
}

func TestTheServerMayWriteRegressResults(t *testing.T) {
	r := &regressTests{source: filepath.Join(t.TempDir(), "regress")}
	if err := os.MkdirAll(filepath.Join(r.source, "sql"), 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := r.output()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(output, "regress/results"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the directory of results: %v, %v; want one that all may write", info, err)
	}
}

func TestASuiteThatFailsDirectlyIsNoWitness(t *testing.T) {
	if err := usable(map[string]outcome{"a": {failed, "no module async"}, "b": {failed, ""},
		"c": {passed, ""}}); err == nil ||
		!strings.Contains(err.Error(), "2 of 3 tests fail on the server itself; a says:\nno module async") {
		t.Errorf("got %v", err)
	}
	if err := usable(map[string]outcome{"a": {failed, ""}, "b": {passed, ""}, "c": {passed, ""}}); err != nil {
		t.Error(err)
	}
}
