//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestFuzzTargetsRunAndAreCounted is the campaign fuzz, with one target for a second. The time that it is given is over
// before the targets are known.
func TestFuzzTargetsRunAndAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	corpus := t.TempDir()
	try(t, "-run", "fuzz", "-target", "^sqltoken/", "-duration", "1ms", "-times", "1", "-corpus", corpus)
	counts, err := os.ReadFile(filepath.Join(corpus, "fuzz.json"))
	if err != nil || len(counts) < len(`{"x": 1}`) {
		t.Errorf("how often targets ran: %s, %v", counts, err)
	}
}

// TestTheEndOfATargetsTimeIsNoFailure has outputs of go test -fuzz, the first of them from a loaded machine.
func TestTheEndOfATargetsTimeIsNoFailure(t *testing.T) {
	const begin = "fuzz: elapsed: 0s, gathering baseline coverage: 34/34 completed, now fuzzing with 2 workers\n" +
		"fuzz: elapsed: 2s, execs: 5187 (2539/sec), new interesting: 29 (total: 63)\n"
	for _, c := range []struct {
		name, out string
		want      bool
	}{
		{"time is up", begin + "--- FAIL: FuzzScan (2.06s)\n    context deadline exceeded\nFAIL\n", true},
		{"an input fails by a deadline", begin + "--- FAIL: FuzzScan (1.06s)\n    --- FAIL: FuzzScan (0.00s)\n" +
			"        scan_test.go:12: context deadline exceeded\n    \n" +
			"    Failing input written to testdata/fuzz/FuzzScan/582528ddfad69eb5\nFAIL\n", false},
		{"an input hangs", begin + "--- FAIL: FuzzScan (1.06s)\n    fuzzing process hung or terminated unexpectedly\n" +
			"    Failing input written to testdata/fuzz/FuzzScan/582528ddfad69eb5\nFAIL\n", false},
		{"no failure", begin + "PASS\n", false},
	} {
		if got := onlyTimeIsUp.MatchString(c.out); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestFuzzTargetsRunOnChangedInputs is the campaign mutate: each target that is asked for runs, and says how often.
// All of them take minutes to build: make campaign runs these.
func TestFuzzTargetsRunOnChangedInputs(t *testing.T) {
	corpus := t.TempDir()
	which := regexp.MustCompile("^sqltoken/|FuzzArray$")
	targets, err := fuzzTargets(t.Context(), which)
	if err != nil {
		t.Fatal(err)
	}
	try(t, "-run", "mutate", "-target", which.String(), "-times", strconv.Itoa(len(targets)), "-executions", "10", "-processes",
		"2", "-corpus", corpus)
	text, err := os.ReadFile(filepath.Join(corpus, "mutate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var counts map[string]int64
	if err := json.Unmarshal(text, &counts); err != nil || len(counts) != len(targets) {
		t.Errorf("%d targets ran of %d: %v, %v", len(counts), len(targets), counts, err)
	}
	for name, n := range counts {
		if n != 10 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
}
