// Package mutants takes rules out of a package's code, one at a time, and wants its tests to fail each time.
package mutants

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Mutant is a rule with the text that takes it out of the code: what the code says there, the file in the directory
// of the test, the text as it is there once, and what comes in its place.
type Mutant [4]string

// Test checks that each mutant's text is in its file. With run, it also runs the tests of the package in the directory
// with each mutant in turn, with the arguments given to go test behind the package, and fails where none of them does.
// A call of it must be among the tests that the arguments skip.
func Test(t *testing.T, run bool, all []Mutant, arguments ...string) {
	for _, m := range all {
		rule, file, text, without := m[0], m[1], []byte(m[2]), []byte(m[3])
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, text); n != 1 {
			t.Errorf("%s: its text is in %s %d times, want once", rule, file, n)
			continue
		}
		if run {
			t.Run(rule, func(t *testing.T) { test(t, file, bytes.Replace(source, text, without, 1), arguments) })
		}
	}
}

// test runs the tests with another text in place of a file and wants them to fail.
func test(t *testing.T, file string, text []byte, arguments []string) {
	dir := t.TempDir()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	mutated, overlay := filepath.Join(dir, file), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{mutated: text, overlay: replace} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := append([]string{"test", "-overlay", overlay, "-vet=off", "-failfast", "-short"}, arguments...)
	out, err := exec.CommandContext(t.Context(), "go", command...).CombinedOutput()
	switch {
	case err == nil:
		t.Error("no test fails without it")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic"):
		t.Errorf("the mutant is no program: %s", out)
	}
}
