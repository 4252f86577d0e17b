package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
)

// What there is no time for keeps all that its round sent, and is told.
func TestWhatThereIsNoTimeForStaysWhole(t *testing.T) {
	r, f := unseen(t)
	level := workload.Isolation{Level: history.RepeatableRead}
	r.level, r.seed, r.recording = level, 7, filepath.Join(t.TempDir(), "recording")
	if err := os.MkdirAll(r.recording, 0o700); err != nil {
		t.Fatal(err)
	}
	server := history.Server{Engine: dbms.MariaDB, Version: "10"}
	h := &fuzzer{Options: Options{Dir: t.TempDir(), Reduce: 1, ReduceTime: time.Nanosecond, Log: io.Discard},
		runner: &runner.Runner{Server: server}, tally: newTally(server, []workload.Isolation{level})}
	if err := h.catch(r, f); err != nil {
		t.Fatal(err)
	}
	sc := &scenario.Scenario{Name: "x", Sessions: []scenario.Session{{Name: "S1"}},
		Steps: []scenario.Step{{Session: "S1", SQL: "SELECT 1"}}}
	d := oracle.Difference{Step: 1, SQL: "SELECT 1", Aspect: oracle.Rows, Got: "1 row: (2)", Want: "1 row: (1)"}
	v := &oracle.Verdict{Differences: []oracle.Difference{d}}
	if err := h.mismatch(Alone, oracle.Script{Scenario: sc}, 7, level, v, d); err != nil {
		t.Fatal(err)
	}
	if err := h.reduceAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.setAside()
	c, m := h.tally.Catches[0], h.tally.Mismatches[0]
	if c.Reduction != Unfinished || m.Reduction != Unfinished || c.Replays+m.Replays > 0 {
		t.Errorf("%+v, %+v", c, m)
	}
	whole := readSaved(t, c.File)
	if whole.Expect.Anomalies[0] != "lost update" || whole.Sessions[0].Level != "REPEATABLE READ" || len(whole.Steps) < 10 {
		t.Errorf("%d steps at %s, of %v", len(whole.Steps), whole.Sessions[0].Level, whole.Expect.Anomalies)
	}
	if s := readSaved(t, m.File); len(s.Steps) != 1 || s.Sessions[0].Level != "REPEATABLE READ" {
		t.Errorf("%d steps at %s", len(s.Steps), s.Sessions[0].Level)
	}
	if page, err := os.ReadFile(m.Page()); err != nil || !strings.Contains(string(page), "the server said 1 row: (2)") {
		t.Errorf("%v: %s", err, page)
	}
	var text bytes.Buffer
	if err := h.tally.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first with seed 7; not made small yet: " + c.File,
		"first with seed 7; not made small yet: " + m.File,
		"2 of these are not made small yet: there was no time (--reduce-time)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// A reduction takes what it has when its time is over, and still says how surely that shows what it does.
func TestReductionsEndInTime(t *testing.T) {
	whole := lostUpdate()
	for range 200 {
		whole.Steps = append(whole.Steps, whole.Steps...)[:min(2*len(whole.Steps), 1000)]
	}
	const slow = 2 * time.Millisecond
	shows := func(_ context.Context, s *scenario.Scenario) (bool, error) {
		time.Sleep(slow)
		return len(s.Steps) >= 7, nil
	}
	began := time.Now()
	r := reducer{dbms.MySQLFamily, began.Add(20 * slow)}
	small, _, err := r.anomaly(t.Context(), whole, history.ReadCommitted, "lost update", shows)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second || small.Shown != replays || len(small.Scenario.Steps) >= len(whole.Steps) {
		t.Errorf("%d steps of %d, shown %d times, in %s", len(small.Scenario.Steps), len(whole.Steps), small.Shown, took)
	}
}

// What shows only at times when it is as small as can be is left larger, where that shows each time: three tries in a
// row are passed by chance now and then, ten hardly.
func TestReductionsComeToWhatShowsEachTime(t *testing.T) {
	whole := lostUpdate()
	for i := range 4 {
		whole.Steps = append(whole.Steps, scenario.Step{Session: "A", SQL: fmt.Sprintf("SELECT %d", i)})
	}
	needed := len(whole.Steps) - 2
	for _, seldom := range []int{3, 5} { // of so many plays of what is smaller one shows nothing
		plays := 0
		shows := func(_ context.Context, s *scenario.Scenario) (bool, error) {
			if len(s.Steps) >= needed {
				return true, nil
			}
			plays++
			return plays%seldom > 0, nil
		}
		small, _, err := Reduce(t.Context(), dbms.MySQLFamily, whole, history.ReadCommitted, "lost update", shows)
		if err != nil {
			t.Fatal(err)
		}
		if len(small.Scenario.Steps) != needed || small.Shown != replays {
			t.Errorf("one play of %d without it: %d steps, shown %d times; %d steps show it each time", seldom,
				len(small.Scenario.Steps), small.Shown, needed)
		}
	}
}
