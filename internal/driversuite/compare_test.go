package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDifferencesAreListedByTestAndWay(t *testing.T) {
	const said = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"output","Test":"TestB","Output":"no such row\n"}
{"Action":"%s","Test":"TestB"}
{"Action":"run","Test":"TestHangs"}
`
	c := comparison{driver: drivers[0], engine: "mysql", version: "9"}
	for _, w := range allWays {
		result := "pass"
		if w == items {
			result = "fail"
		}
		outcomes, err := parseTest2json([]byte(strings.Replace(said, "%s", result, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if w == off {
			delete(outcomes, "TestA")
		}
		c.add(w, outcomes, time.Second)
	}
	var out strings.Builder
	n, err := c.print(&out, true)
	if err != nil || n != 2 {
		t.Errorf("%d differences, %v; want 2", n, err)
	}
	for _, line := range []string{
		"  off       1 passed, 1 failed, 0 skipped, 1 did not run (1.0 s)\n",
		"  fails on every way: TestHangs\n",
		"  DIFFERS: TestA: direct pass off absent items pass columns pass auto pass\n",
		"  DIFFERS: TestB: direct pass off pass items fail columns pass auto pass\n    items said:\nno such row\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
}

func TestFileThatEndsAtLastHasItsTestsCompared(t *testing.T) {
	pass, fail, none := outcome{result: passed}, outcome{result: failed}, outcome{result: absent}
	c := comparison{results: map[string][]outcome{
		"a.js": {none, fail}, "a.js::reads": {pass, none}, "a.js::writes": {pass, none},
		"b.js": {none, fail}, "b.js::reads": {pass, none}, "c.js::reads": {pass, fail},
	}}
	c.settle(c.differing(), map[string][]outcome{
		"a.js::reads": {pass, pass}, "a.js::writes": {pass, fail},
		"b.js": {none, fail}, "b.js::reads": {pass, none}, "c.js::reads": {pass, pass},
	})
	want := []string{"a.js::writes", "b.js", "b.js::reads"}
	if got := c.differing(); !slices.Equal(got, want) {
		t.Errorf("%q differ, want %q", got, want)
	}
	if want := []string{"a.js", "a.js::reads", "c.js::reads"}; !slices.Equal(c.unsteady, want) {
		t.Errorf("%q differed once, want %q", c.unsteady, want)
	}
}

func TestTestsAreTriedAgainByPackage(t *testing.T) {
	got := patternsOf([]string{"pgconn.TestB/one.two", "pgconn.TestA", "pgconn.TestB", "TestC/x"})
	want := map[string]string{"pgconn": "^(TestA|TestB)$", "": "^(TestC)$"}
	if !maps.Equal(got, want) {
		t.Errorf("selected %v, want %v", got, want)
	}
}

func TestTheServerChoosesTheDriver(t *testing.T) {
	for _, tt := range []struct{ name, server, want string }{
		{"", "", "mysql"},
		{"", "mysql://root@127.0.0.1/", "mysql"},
		{"", "postgres://postgres@127.0.0.1/", "pgx"},
		{"pq", "postgres://postgres@127.0.0.1/", "pq"},
	} {
		d, err := chooseDriver(tt.name, tt.server)
		if err != nil || d.name != tt.want {
			t.Errorf("-driver %q -server %q: %+v, %v; want %s", tt.name, tt.server, d, err, tt.want)
		}
	}
	if _, err := chooseDriver("odbc", ""); err == nil || !strings.Contains(err.Error(), "mysql, pgx, pq, ") {
		t.Errorf("an unknown driver: %v", err)
	}
}

func TestNamesOfTestsDoNotHoldTheirDirectories(t *testing.T) {
	p := pkg{title: "pgconn"}
	for _, tt := range []struct{ test, want string }{
		{"TestMode/file='/tmp/TestMode141431209/001/service.conf'_x=1",
			"pgconn.TestMode/file='/tmp/TestMode/001/service.conf'_x=1"},
		{"TestIssue1567/case2", "pgconn.TestIssue1567/case2"},
	} {
		if got := p.name(tt.test); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
