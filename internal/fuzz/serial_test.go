package fuzz

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/workload"
)

var (
	serialLies  = flag.Int("serial.lies", 5, "how many lies to tell the oracle serial")
	serialSeed  = flag.Uint64("serial.seed", 1, "the first seed of these lies")
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

// A teller of lies changes what a server answers in transactions, or does there, not in autocommit.
type teller struct {
	kind         string // of lie
	session, sql string // the step
	nth          int    // of its like
	lie          func(*replay.Result)
	again        bool // the step is done twice, and answered once
}

// told returns a play whose server lies.
func (l teller) told(play func(*scenario.Scenario) (replay.Trace, error), sc *scenario.Scenario) (replay.Trace, error) {
	at := -1
	if l.again {
		if sc, at = l.twice(sc); at < 0 {
			return play(sc)
		}
	}
	trace, err := play(sc)
	if err != nil {
		return trace, err
	}
	if l.again {
		hide(&trace, at)
		return trace, nil
	}
	l.change(&trace)
	return trace, nil
}

// twice returns a scenario with the step twice, and the place of the second; -1 where it has none, or no transaction.
func (l teller) twice(sc *scenario.Scenario) (*scenario.Scenario, int) {
	if !slices.ContainsFunc(sc.Steps, func(x scenario.Step) bool { return reduce.Bounds(x.SQL) }) {
		return sc, -1
	}
	n := 0
	for i, x := range sc.Steps {
		if sql, _, _ := strings.Cut(x.SQL, " /*"); x.Session == l.session && sql == l.sql {
			if n++; n == l.nth {
				c := *sc
				c.Steps = slices.Insert(slices.Clone(sc.Steps), i+1, x)
				return &c, i + 1
			}
		}
	}
	return sc, -1
}

// hide takes a step out of a trace.
func hide(t *replay.Trace, at int) {
	t.Results = slices.Delete(t.Results, at, at+1)
	for i := range t.Results {
		r := &t.Results[i]
		r.N = i + 1
		if r.DoneAfter > at {
			r.DoneAfter--
		}
	}
	t.Events = slices.DeleteFunc(t.Events, func(e replay.Event) bool { return e.Step == at+1 })
	for i := range t.Events {
		if t.Events[i].Step > at {
			t.Events[i].Step--
		}
	}
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

// Each reply of a judged statement that is changed in one value, lacks a row, or counts a write twice is told. So is
// a write that is done twice, where that can be seen. At SERIALIZABLE another session reads beside statements.
func TestLiesAboutConcurrentTransactionsAreTold(t *testing.T) {
	for _, level := range []history.Level{history.ReadCommitted, history.Serializable} {
		t.Run(level.String(), func(t *testing.T) { tellLies(t, workload.Isolation{Level: level}) })
	}
}

func tellLies(t *testing.T, level workload.Isolation) {
	s := openStage(t, testdb.Current(t).URL())
	told, unseen := make(map[string]int), 0
	sum := func() (n int) {
		for _, of := range told {
			n += of
		}
		return n
	}
	for seed := *serialSeed; sum() < *serialLies; seed++ {
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
		whole := withTables(script)
		trace, err := s.Replies(t.Context(), whole, level.Level)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range liesAbout(script.Scenario, &trace, seed) {
			h.play = func(ctx context.Context, sc *scenario.Scenario, level history.Level) (replay.Trace, error) {
				return l.told(func(sc *scenario.Scenario) (replay.Trace, error) { return s.Replies(ctx, sc, level) }, sc)
			}
			h.record = func(ctx context.Context, sc *scenario.Scenario, level history.Level) (_ replay.Trace, txns []*history.Txn, _ error) {
				trace, err := l.told(func(sc *scenario.Scenario) (trace replay.Trace, err error) {
					trace, txns, err = s.Record(ctx, sc, level)
					return trace, err
				}, sc)
				return trace, txns, err
			}
			if l.again {
				lied, err := h.play(t.Context(), whole, level.Level)
				if err != nil {
					t.Fatal(err)
				}
				if answersOf(&lied) == answersOf(&trace) {
					unseen++
					continue
				}
			}
			v, err := h.verdict(t.Context(), Serial, script, level)
			if err != nil {
				t.Fatal(err)
			}
			if told[l.kind]++; sum()%100 == 0 {
				t.Logf("seed %d: %d lies", seed, sum())
			}
			if !v.Wrong() {
				t.Errorf("seed %d: a lie (%s) about %q (%d) of %s is not told: %v", seed, l.kind, l.sql, l.nth, l.session, v.NotJudged)
			}
		}
	}
	t.Logf("lies told: %v; writes done twice that nobody can see: %d", told, unseen)
}

// withTables is a script with a look at each table behind it.
func withTables(s oracle.Script) *scenario.Scenario {
	c := *s.Scenario
	c.Steps = slices.Clone(c.Steps)
	c.Sessions = append(slices.Clone(c.Sessions), scenario.Session{Name: "reader", Late: true})
	for _, table := range s.Tables {
		c.Steps = append(c.Steps, scenario.Step{Session: "reader", SQL: "SELECT * FROM " + table})
	}
	return &c
}

// answersOf returns what a trace tells, without the order of rows.
func answersOf(t *replay.Trace) string {
	var b strings.Builder
	for i := range t.Results {
		r := &t.Results[i]
		rows := make([]string, len(r.Rows))
		for j, row := range r.Rows {
			rows[j] = fmt.Sprint(row)
		}
		slices.Sort(rows)
		fmt.Fprintln(&b, r.Status, r.ErrorCode(), r.Affected, rows)
	}
	return b.String()
}

// leastRow returns the place of the least row, so that a lie is about the same row in each order that a server gives.
func leastRow(r *replay.Result) (least int) {
	for i := range r.Rows {
		if fmt.Sprint(r.Rows[i]) < fmt.Sprint(r.Rows[least]) {
			least = i
		}
	}
	return least
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
		l := teller{kind: "another value", session: r.Session, sql: r.SQL, nth: seen[key]}
		switch {
		case len(r.Rows) > 0 && (uint64(i)+seed)%2 == 0:
			l.kind, l.lie = "a row less", func(r *replay.Result) {
				least := leastRow(r)
				r.Rows = slices.Delete(slices.Clone(r.Rows), least, least+1)
			}
		case len(r.Rows) > 0:
			l.lie = func(r *replay.Result) {
				r.Rows = slices.Clone(r.Rows)
				row := &r.Rows[leastRow(r)]
				*row = slices.Clone(*row)
				(*row)[0] = replay.Value{Text: (*row)[0].Text + "1"}
			}
		case r.Affected > 0 && (uint64(i)+seed)%2 == 0:
			l.kind, l.again = "a write done twice", true
		case r.Affected > 0:
			l.kind, l.lie = "twice the rows changed", func(r *replay.Result) { r.Affected *= 2 }
		default:
			continue
		}
		all = append(all, l)
	}
	return all
}
