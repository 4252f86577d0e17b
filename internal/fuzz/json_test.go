package fuzz

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

var update = flag.Bool("update", false, "write the golden files")

// hunted is a tally in which no list is empty.
func hunted() *Tally {
	level := workload.Isolation{Level: history.ReadCommitted}
	t := newTally(history.Server{Engine: dbms.MariaDB, Version: "10.11", SnapshotIsolation: true},
		[]workload.Isolation{level, serializable})
	t.Isotap, t.Seed, t.Oracles, t.End = "v1", 7, []Oracle{Graph, Serial}, Interrupted
	t.Began, t.Hunted, t.Reducing = time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC), time.Minute, time.Second
	t.Rounds, t.worked, t.Crashes = 2, 30*time.Second, 1
	t.Random = random.Outcome{Transactions: 200, Committed: 150, Refused: 30, Statements: 900, Failed: 4,
		Mistakes: map[string]*random.Mistake{"1062": {Code: "1062", Message: "Duplicate entry", SQL: "INSERT INTO t VALUES (1)", Count: 4}}}
	t.Kinds[history.Select] = analyzer.Observed{Exact: 500, Inexact: 3, Opaque: 2}
	t.Kinds[history.Update] = analyzer.Observed{Exact: 390}
	t.Reasons["view"] = 5
	at := t.Levels[level]
	at.Rounds, at.Transactions = 2, 200
	at.Violations["G1a"], at.Hazards["lost update"] = &Found{Times: 1, Unique: 1}, &Found{Times: 9, Unique: 2}
	t.Aggregated, t.Aborted = Found{Times: 3, Unique: 1}, Found{Times: 1, Unique: 1}
	*at.judged(Serial) = JudgedTally{Rounds: 3, Transactions: 12, Statements: 40, Differences: 2, Known: 1, ByDesign: 1,
		NotJudged: map[string]int{"they depend on each other": 4}}
	of := at.ofTemplate("found/02-write-skew.yaml: write skew")
	of.Plays, of.Shown["lost update"], of.Wrong[Serial] = 6, 2, 1
	sc := &scenario.Scenario{Steps: []scenario.Step{{Session: "T1", SQL: "BEGIN"}, {Session: "T1", SQL: "UPDATE t SET v = 1"}}}
	c := &Catch{Key: "hazard lost update at READ COMMITTED: SELECT | UPDATE", Level: level, Seed: 8, Seen: 2,
		Finding:   &analyzer.Finding{ID: "3980209713b2", Anomaly: "lost update", Class: analyzer.Hazard, Summary: "T1 < T2"},
		Reduction: Unfinished, File: "found/01-lost-update.yaml"}
	t.Catches, t.seen[c.Key] = []*Catch{c}, c
	t.Mismatches = []*Mismatch{{Oracle: Serial, Key: "serial at READ COMMITTED: rows changed of UPDATE", Level: level, Seed: 9,
		Seen: 1, Scenario: sc, Shown: 10, Replays: 10, Reduction: Done, File: "found/serial-01.yaml",
		Difference: oracle.Difference{Step: 2, SQL: "UPDATE t SET v = 1", Aspect: oracle.Affected, Got: "2", Want: "1",
			GotOnly: []string{"(2)"}, WantOnly: []string{"(1)"}, By: "in autocommit, in the order 2,"}}}
	a := &Abnormality{Odd: random.Odd{SQL: "SELECT 1", Code: "1105", Message: "Can't find column"}, Level: level, Seed: 8, Seen: 1,
		Files: []string{"found/abnormal-8.yaml"}}
	t.Abnormal, t.odd[keyOfOdd(&a.Odd)] = []*Abnormality{a}, a
	return t
}

func TestTalliesAreWritten(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer) error{
		"tally.json": func(b *bytes.Buffer) error { return JSON(b, []*Tally{hunted()}) },
		"tally.txt":  func(b *bytes.Buffer) error { return hunted().Text(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := "testdata/" + name
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s is not what is written (%v; -update writes it):\n%s", path, err, b.String())
		}
	}
}

func TestDocumentationNamesEveryFieldOfTallies(t *testing.T) {
	text, err := os.ReadFile("../../docs/fuzz-json.md")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := JSON(&b, []*Tally{hunted()}); err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var visit func(value any)
	visit = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				if !strings.Contains(string(text), name+"`") && !strings.Contains(string(text), name+"[]`") {
					t.Errorf("docs/fuzz-json.md does not describe %s", name)
				}
				visit(inner)
			}
		case []any:
			if len(v) == 0 {
				t.Error("a list is empty")
			}
			for _, inner := range v {
				visit(inner)
			}
		}
	}
	doc.(map[string]any)["hunts"].([]any)[0].(map[string]any)["graph"].(map[string]any)["levels"] =
		doc.(map[string]any)["hunts"].([]any)[0].(map[string]any)["graph"].(map[string]any)["levels"].([]any)[:1]
	visit(doc)
}
