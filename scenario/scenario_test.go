package scenario

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

func TestScenariosReadBack(t *testing.T) {
	want := &Scenario{Name: "a: 'b'\n\x1b", Setup: []string{"CREATE TABLE t (a INT)"},
		Sessions: []Session{{Name: "T1"}, {Name: "T2", Level: "SERIALIZABLE", Late: true}},
		Steps: []Step{{Session: "T1", SQL: "SELECT '\xff', \"- x\" -- y",
			Reply: Reply{Rows: new(uint64(0)), Waits: true, Values: [][]*string{{new("1"), nil}}}},
			{Session: "T2", SQL: "null", Reply: Reply{Error: "40001"}}},
		Expect: Outcome{Anomalies: []string{"write skew"}},
		Outcomes: []Outcome{{Engines: []string{"mariadb 11"}, Levels: []string{"SERIALIZABLE"},
			Steps: map[int]Reply{2: {Waits: true}}}}}
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBadScenariosAreRefusedWithLines: bad scenarios are refused with the reason and the line.
func TestBadScenariosAreRefusedWithLines(t *testing.T) {
	const head = "format: isotap-scenario/1\n"
	for text, want := range map[string]string{
		"":                          "a.yaml: read the scenario",
		"format: isotap-scenario/9": `a.yaml:1: the scenario's format is "isotap-scenario/9"`,
		head + "x: 1":               "a.yaml:2: ",
		head + "steps: [":           "a.yaml:2: ",
		head + "sessions:\n- {name: T1}\n- {name: T2, level: CURSOR STABILITY}":                     `a.yaml:4: isolation level "CURSOR STABILITY" is none of`,
		head + "sessions:\n- name: T1\n  settings: {\"a b\": 1}":                                    `a.yaml:4: settings: "a b=1" is no NAME=VALUE`,
		head + "outcomes:\n- {}\n- {levels: [CURSOR STABILITY]}":                                    `a.yaml:4: the scenario's outcomes: isolation level "CURSOR STABILITY" is none of`,
		head + "outcomes: [{steps: {\n1: {waits: true}}}]":                                          "a.yaml:3: the scenario's outcomes speak of step 1 of 0",
		head + "witness: {\n2: {rows: 1}}":                                                          "a.yaml:3: the scenario's witness speaks of step 2 of 0",
		head + "steps:\n- {session: T1, sql: SELECT 1}":                                             `a.yaml:3: step 1 is of session "T1"`,
		head + "sessions: [{name: a}]\nsteps:\n- {session: a, sql: x, name: x, until: [{step: y}]}": `a.yaml:4: step 1 has a condition on step "y"`,
		head + "sessions: [{name: a}]\nsteps:\n- {session: a, sql: x, name: x, until: [{step: y}]}\n- {session: a, sql: y, name: y, until: [{step: x}]}": "a.yaml:4: steps wait for each other: x, y, x",
	} {
		if _, err := ReadFile(strings.NewReader(text), "a.yaml"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What is expected on a server at a level is the first outcome that fits, or what stands beside the steps.
func TestOutcomesFitServersAndLevels(t *testing.T) {
	s := &Scenario{Steps: []Step{{}, {Reply: Reply{Waits: true}}}, Expect: Outcome{Anomalies: []string{"any"}},
		Outcomes: []Outcome{
			{Engines: []string{"postgresql 12"}, Anomalies: []string{"12"}},
			{Engines: []string{"mariadb", "postgresql 1"}, Levels: []string{"SERIALIZABLE"},
				Anomalies: []string{"serializable"}},
			{Engines: []string{"tidb"}, Settings: Settings{"tidb_txn_mode": "optimistic"},
				Anomalies: []string{"optimistic"}},
		}}
	for _, tt := range []struct {
		engine   dbms.Engine
		version  string
		level    history.Level
		settings Settings
		want     string
	}{
		{"postgresql", "12.22 (Debian)", history.Serializable, nil, "12"},
		{"postgresql", "120.1", history.Serializable, nil, "any"},
		{"mariadb", "10.11", history.Serializable, Settings{}, "serializable"},
		{"mariadb", "10.11", history.Serializable, Settings{"innodb_snapshot_isolation": "ON"}, "any"},
		{"mariadb", "10.11", history.ReadCommitted, nil, "any"},
		{"tidb", "8.0.11", history.ReadCommitted, nil, "any"},
		{"tidb", "8.0.11", history.ReadCommitted, Settings{"tidb_txn_mode": "optimistic"}, "optimistic"},
	} {
		got := s.Expected(history.Server{Engine: tt.engine, Version: tt.version}, tt.level, tt.settings)
		if got.Anomalies[0] != tt.want || tt.want == "any" && !got.Steps[2].Waits {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}
