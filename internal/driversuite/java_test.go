package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConsolesReportNamesClasses(t *testing.T) {
	const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Vintage" tests="3" failures="1">
<properties><property name="java.version" value="17"/></properties>
<testcase name="reads[binary = FORCE]" classname="org.postgresql.test.ArrayTest" time="0.1"><system-out>x</system-out></testcase>
<testcase name="ends" classname="org.postgresql.test.ArrayTest"><failure message="1 is not 2" type="AssertionError">at</failure></testcase>
<testcase name="waits" classname="org.postgresql.test.ArrayTest"><skipped>no server</skipped></testcase>
</testsuite>`
	path := filepath.Join(t.TempDir(), "TEST-junit-vintage.xml")
	if err := os.WriteFile(path, []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	outcomes := make(map[string]outcome)
	if err := addJUnit(path, outcomes); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"org.postgresql.test.ArrayTest::reads[binary = FORCE]": passed,
		"org.postgresql.test.ArrayTest::ends":                  failed,
		"org.postgresql.test.ArrayTest::waits":                 skipped,
	}
	if got := results(outcomes); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClassesOfTestsAreChosen(t *testing.T) {
	j := &javaTests{classes: t.TempDir(), tests: []string{"org.suite"}}
	for _, name := range []string{"org/suite/b/OneTest", "org/suite/ATest", "org/suite/b/OneTest$InnerTest",
		"org/suite/Helper", "org/driver/OwnTest", "org/suites/OtherTest"} {
		path := filepath.Join(j.classes, name+".class")
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
		{"all", selection{}, []string{"org.suite.ATest", "org.suite.b.OneTest"}},
		{"pattern", selection{pattern: "One"}, []string{"org.suite.b.OneTest"}},
		{"tests", selection{tests: []string{"org.suite.ATest::reads", "org.suite.ATest::ends"}},
			[]string{"org.suite.ATest"}},
		{"one that did not end", selection{tests: []string{"org.suite.b.OneTest"}}, []string{"org.suite.b.OneTest"}},
	} {
		got, err := j.testClasses(tt.chosen)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestSourcesThatLackLibrariesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a/ATest.java": "version = \"@VERSION@\";",
		"LeakTest.java": "import se.jiderhamn.Leak;", "notes.txt": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j := &javaTests{lacking: []string{"se.jiderhamn"}, tokens: strings.NewReplacer("@VERSION@", "8.0")}
	files, err := j.sourcesBelow(dir)
	if want := []string{filepath.Join(dir, "a/ATest.java")}; err != nil || !slices.Equal(files, want) {
		t.Fatalf("%q, %v; want %q", files, err, want)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || string(text) != `version = "8.0";` {
		t.Errorf("%q, %v", text, err)
	}
}
