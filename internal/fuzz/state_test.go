package fuzz

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// saved writes a tally's hunt to a directory, with the scenarios that it names.
func saved(t *testing.T, dir string) *fuzzer {
	t.Helper()
	h := &fuzzer{Options: Options{Dir: dir, Seed: 7, Oracles: []Oracle{Graph, Serial}, Asked: map[string]string{"seed": "7"},
		Profile: random.Profile{Tables: 2, Weights: map[string]int{"delete": 0}}, Log: io.Discard,
		Levels: []workload.Isolation{readCommitted, serializable}}, tally: hunted(), next: 5, left: []job{{Round: 3, Oracle: 1}}}
	h.runner = &runner.Runner{Server: h.tally.Server}
	c, m := h.tally.Catches[0], h.tally.Mismatches[0]
	c.File, m.File = filepath.Join(dir, filepath.Base(c.File)), filepath.Join(dir, filepath.Base(m.File))
	m.Scenario.Name, m.Scenario.Sessions = "m", []scenario.Session{{Name: "T1"}}
	for _, file := range []string{c.File, m.File} {
		if err := write(file, m.Scenario); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.saveState(); err != nil {
		t.Fatal(err)
	}
	return h
}

// A hunt that is gone on with has all that it had, though its directory was moved.
func TestHuntsAreGoneOnWith(t *testing.T) {
	old, dir := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	was := saved(t, old)
	if err := os.Rename(old, dir); err != nil {
		t.Fatal(err)
	}
	s, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	is := &fuzzer{Options: was.Options, runner: was.runner}
	is.Dir = dir
	if err := is.resume(s); err != nil {
		t.Fatal(err)
	}
	is.tally.End = was.tally.End
	got, err := json.Marshal(is.tally.json())
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(was.tally.json())
	if err != nil {
		t.Fatal(err)
	}
	if moved := strings.NewReplacer(old+"/", dir+"/", "found/abnormal", dir+"/abnormal").Replace(string(want)); string(got) != moved {
		t.Errorf("got  %s\nwant %s", got, moved)
	}
	if s.Asked["seed"] != "7" || s.Profile.Tables != 2 || s.Begun() != 5 || is.tally.worked != was.tally.worked {
		t.Errorf("%+v", s)
	}
	// What was found is not told as new once more.
	m := was.tally.Mismatches[0]
	if err := is.mismatch(Serial, oracle.Script{Scenario: m.Scenario}, 12, m.Level, &oracle.Verdict{}, m.Difference); err != nil {
		t.Fatal(err)
	}
	if len(is.tally.Mismatches) != 1 || is.tally.Mismatches[0].Seen != 2 {
		t.Errorf("%d differences", len(is.tally.Mismatches))
	}
	if c := is.tally.Catches[0]; len(c.seen) != 1 || len(c.seen[0].whole.Steps) != 2 || is.tally.seen[c.Key] != c {
		t.Errorf("%+v", c)
	}
	is.runner = &runner.Runner{Server: history.Server{Engine: dbms.MariaDB, Version: "11.8"}}
	if err := is.resume(s); err == nil || !strings.Contains(err.Error(), "is on mariadb 10.11, and this server is mariadb 11.8") {
		t.Error(err)
	}
}

// What is no state of a hunt is told and left alone, also by a hunt that begins there.
func TestStatesThatCannotBeReadStay(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema": "isotap-fuzz-state/1"`:  "is damaged",
		`{"schema": "isotap-fuzz-state/2"}`: `its schema is "isotap-fuzz-state/2"`,
		`{"name": "a package"}`:             `its schema is ""`,
		`[]`:                                "is damaged",
		``:                                  "is damaged",
		`{"schema": "isotap-fuzz-state/1", "hunt": {"levels": ["MOON"]}}`:     `is damaged: isolation level "MOON"`,
		`{"schema": "isotap-fuzz-state/1", "next": 1, "left": [{"round":4}]}`: "there is no oracle 0 of round 4",
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, stateName)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadState(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", text, err)
		}
		h := &fuzzer{Options: Options{Dir: dir, Log: io.Discard}, tally: hunted()}
		if err := h.open(); err == nil {
			t.Errorf("%s: a hunt begins there", text)
		}
		if is, err := os.ReadFile(name); err != nil || string(is) != text {
			t.Errorf("%s became %s", text, is)
		}
	}
	if _, err := ReadState(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Whenever a hunt is killed, each oracle judges each round once: what is in the tally is not done again.
func TestKilledHuntsJudgeEachRoundOnce(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue { // each step waits for the disk
		if err := f.Value.Set("15"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		counted, rounds := make(map[string]int), rapid.IntRange(0, 9).Draw(t, "rounds")
		options := Options{Dir: dir, Seed: 3, Rounds: rounds, Oracles: []Oracle{Graph, Alone, Views}, Log: io.Discard,
			Levels: []workload.Isolation{serializable}}
		server := history.Server{Engine: dbms.MariaDB, Version: "10"}
		open := func() *fuzzer {
			h := &fuzzer{Options: options, runner: &runner.Runner{Server: server}, tally: newTally(server, options.Levels)}
			h.tally.Oracles = options.Oracles
			if err := h.open(); err != nil {
				t.Fatal(err)
			}
			return h
		}
		if err := os.RemoveAll(filepath.Join(dir, stateName)); err != nil {
			t.Fatal(err)
		}
		h := open()
		var lanes []job
		for range 500 {
			kind := rapid.IntRange(0, 9).Draw(t, "what")
			switch {
			case kind == 0: // killed
				s, err := ReadState(dir)
				if err != nil {
					t.Fatal(err)
				}
				options.From, lanes = s, nil
				h = open()
			case kind < 4 && len(lanes) < 3:
				if next, ok := h.begin(); ok {
					lanes = append(lanes, next)
				}
			case len(lanes) > 0:
				at := rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")
				j := &lanes[at]
				counted[fmt.Sprint(j.Round, options.Oracles[j.Oracle])]++
				if err := h.advance(options.Seed + uint64(j.Round)); err != nil {
					t.Fatal(err)
				}
				if j.Oracle++; j.Oracle == len(options.Oracles) {
					lanes = append(lanes[:at], lanes[at+1:]...)
				}
			}
			if len(counted) == rounds*len(options.Oracles) && !h.more() {
				break
			}
		}
		for key, n := range counted {
			if n != 1 {
				t.Errorf("%s: %d times", key, n)
			}
		}
		if len(counted) != rounds*len(options.Oracles) {
			t.Skip("too few steps")
		}
	})
}

// A file is replaced whole, or stays.
func TestReplaceLeavesNoHalves(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	for _, text := range []string{"first", "second"} {
		if err := replace(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("no")
	if err := replace(name, func(w io.Writer) error { _, _ = io.WriteString(w, "th"); return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); err != nil || !bytes.Equal(text, []byte("second")) {
		t.Errorf("%q, %v", text, err)
	}
}
