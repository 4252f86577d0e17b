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

// TestFuzzTargetsRunOnChangedInputs is the campaign mutate: each target that is asked for runs, and says how often.
// All of them take minutes to build.
func TestFuzzTargetsRunOnChangedInputs(t *testing.T) {
	corpus := t.TempDir()
	which := regexp.MustCompile("^sqltoken/|FuzzArray$")
	if !testing.Short() {
		which = regexp.MustCompile("^(sqltoken|recorder|serverlog)/|^history[.]|FuzzArray$")
	}
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
