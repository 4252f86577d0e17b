package scenario

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestScenariosReadBack(t *testing.T) {
	want := &Scenario{Name: "a: 'b'\n\x1b", Setup: []string{"CREATE TABLE t (a INT)"}, Sessions: []Session{{Name: "T1"}, {Name: "T2", Level: "SERIALIZABLE", Late: true}},
		Steps:  []Step{{Session: "T1", SQL: "SELECT '\xff', \"- x\" -- y", Rows: new(uint64(0)), Waits: true}, {Session: "T2", SQL: "null", Error: "40001"}},
		Expect: Outcome{[]string{"write skew"}}}
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

func TestBadScenariosAreRefusedWithTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "read the scenario",
		"format: isotap-scenario/9":       `format is "isotap-scenario/9"`,
		"format: isotap-scenario/1\nx: 1": "line 2: field x not found",
		"format: isotap-scenario/1\nsteps: [{session: T1, sql: SELECT 1}]": `step 1 is of session "T1"`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
