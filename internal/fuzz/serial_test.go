package fuzz

import (
	"bytes"
	"context"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/workload"
)

var (
	serialLies  = flag.Int("serial.lies", 5, "how many lies to tell the oracle serial")
	serialTests = flag.Int("serial.rounds", 2, "how many scripts the oracle serial judges at each level")
)

// A healthy server answers concurrent transactions as their statements in autocommit, but for what is known.
func TestConcurrentTransactionsAreNotAccused(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
		"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStage(t, url(t))
			rounds := *serialTests * len(s.Levels())
			if testing.Short() {
				rounds = 2
			}
			tally, err := Run(t.Context(), s, Options{Oracles: []Oracle{Serial}, Rounds: rounds, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := tally.Text(&text); err != nil {
				t.Fatal(err)
			}
			for _, m := range tally.Mismatches {
				if m.Difference.Known == "" {
					t.Errorf("%s", text.String())
				}
			}
			judged := 0
			for _, at := range tally.Levels {
				judged += at.judged(Serial).Statements
			}
			if t.Logf("%s", text.String()); judged == 0 {
				t.Error("nothing was judged")
			}
		})
	}
}

// A teller of lies changes what a server answers in transactions, not in autocommit.
type teller struct {
	session, sql string // the step
	nth          int    // of its like
	lie          func(*replay.Result)
}

func (l teller) change(t *replay.Trace) {
	if !slices.ContainsFunc(t.Results, func(r replay.Result) bool { return reduce.Bounds(r.SQL) }) {
		return
	}
	n := 0
	for i := range t.Results {
		r := &t.Results[i]
		if sql, _, _ := strings.Cut(r.SQL, " /*"); r.Session == l.session && sql == l.sql {
			if n++; n == l.nth {
				l.lie(r)
			}
		}
	}
}

// Each reply of a judged statement that is changed in one value, lacks a row, or counts a write twice is told.
func TestLiesAboutConcurrentTransactionsAreTold(t *testing.T) {
	s := openStage(t, testdb.Current(t).URL())
	level := workload.Isolation{Level: history.ReadCommitted}
	told := 0
	for seed := uint64(1); told < *serialLies; seed++ {
		h := &fuzzer{runner: s}
		script, _ := h.serialScript(seed, level)
		honest, err := h.verdict(t.Context(), Serial, script, level)
		if err != nil {
			t.Fatal(err)
		}
		if honest.Wrong() {
			t.Errorf("seed %d: %s", seed, honest)
		}
		if len(honest.NotJudged) > 0 { // what is judged hangs on what is drawn then
			continue
		}
		trace, err := s.Direct(t.Context(), script.Scenario, level.Level)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range liesAbout(script.Scenario, &trace, seed) {
			h.play = func(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, error) {
				trace, err := s.Direct(ctx, sc, level)
				l.change(&trace)
				return trace, err
			}
			h.record = func(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, []*history.Txn, error) {
				trace, txns, err := s.Record(ctx, sc, level)
				l.change(&trace)
				return trace, txns, err
			}
			v, err := h.verdict(t.Context(), Serial, script, level)
			if err != nil {
				t.Fatal(err)
			}
			if told++; !v.Wrong() {
				t.Errorf("seed %d: a lie about %q (%d) of %s is not told: %v", seed, l.sql, l.nth, l.session, v.NotJudged)
			}
		}
	}
	t.Logf("%d lies", told)
}

// liesAbout returns a few that can be told about a script: about statements of transactions that commit.
func liesAbout(s *scenario.Scenario, trace *replay.Trace, seed uint64) (all []teller) {
	seen := make(map[string]int)
	committed := make(map[int]bool)
	for _, steps := range reduce.Transactions(s.Steps) {
		last := steps[len(steps)-1]
		for _, i := range steps {
			committed[i] = strings.HasPrefix(s.Steps[last].SQL, "COMMIT") && !reduce.Bounds(s.Steps[i].SQL)
		}
	}
	for i := range trace.Results {
		r := &trace.Results[i]
		key := r.Session + r.SQL
		if seen[key]++; !committed[i] || r.Status != replay.OK {
			continue
		}
		l := teller{session: r.Session, sql: r.SQL, nth: seen[key]}
		switch {
		case len(r.Rows) > 0 && (uint64(i)+seed)%2 == 0:
			l.lie = func(r *replay.Result) { r.Rows = r.Rows[1:] }
		case len(r.Rows) > 0:
			l.lie = func(r *replay.Result) {
				r.Rows = slices.Clone(r.Rows)
				r.Rows[0] = slices.Clone(r.Rows[0])
				r.Rows[0][0] = replay.Value{Text: r.Rows[0][0].Text + "1"}
			}
		case r.Affected > 0:
			l.lie = func(r *replay.Result) { r.Affected *= 2 }
		default:
			continue
		}
		all = append(all, l)
	}
	return all
}
