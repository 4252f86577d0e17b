package fuzz

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/workload"
)

var viewed = map[string]func(*testing.T) string{
	"mysql":      func(t *testing.T) string { return testdb.Current(t).URL() },
	"postgresql": func(t *testing.T) string { return testdb.PostgreSQL(t).URL() },
}

// A healthy server answers each statement as it has to on what the statement has to see, at all levels.
func TestStatementsOnTheirViewsAreNotAccused(t *testing.T) {
	all := maps.Clone(viewed)
	all["tidb"] = func(t *testing.T) string {
		server := testdb.TiDB(t)
		if server == nil {
			t.Skip(testdb.NoTiDB)
		}
		return server.URL()
	}
	for name, url := range all {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "mysql" {
				t.Skip("slow, as rounds on PostgreSQL and TiDB's start are: make check runs it")
			}
			s := openStage(t, url(t))
			tally, err := Run(t.Context(), s, Options{Oracles: []Oracle{Views}, Rounds: len(s.Levels()), Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := tally.Text(&text); err != nil {
				t.Fatal(err)
			}
			if tally.Failed() {
				t.Errorf("%s", text.String())
			}
			for level, at := range tally.Levels {
				if v := at.judged(Views); v.Transactions == 0 || v.Statements < v.Transactions {
					t.Errorf("%s: %+v", level, v)
				}
			}
		})
	}
}

// A liar plays scenarios on a server, and says something else than that.
type liar struct {
	play  oracle.Play
	at    int                    // the number of the step it lies about; 0: it is honest
	lie   func(r *replay.Result) // nil: it does the step twice
	trace replay.Trace           // what it said
}

func (l *liar) said(ctx context.Context, s *scenario.Scenario, level history.Level) (replay.Trace, error) {
	var err error
	switch {
	case l.at == 0:
		l.trace, err = l.play(ctx, s, level)
	case l.lie != nil:
		if l.trace, err = l.play(ctx, s, level); err == nil {
			l.lie(&l.trace.Results[l.at-1])
		}
	default:
		twice := *s
		twice.Steps = slices.Insert(slices.Clone(s.Steps), l.at, s.Steps[l.at-1])
		if l.trace, err = l.play(ctx, &twice, level); err == nil {
			l.forget()
		}
	}
	return l.trace, err
}

// forget takes the second one of a step that was done twice from the trace.
func (l *liar) forget() {
	l.trace.Results, l.trace.Events = slices.Clone(l.trace.Results), slices.Clone(l.trace.Events)
	hide(&l.trace, l.at)
}

// saidOf is what clients can see of a trace.
func saidOf(t replay.Trace) (all [][]any) {
	for i := range t.Results {
		r := &t.Results[i]
		all = append(all, []any{r.Status, r.Affected, r.ErrorCode(), r.RowSet()})
	}
	return all
}

// lies are about rows. Each reports whether it could lie.
var lies = map[string]func(r *replay.Result) bool{
	"another value": func(r *replay.Result) bool {
		if len(r.Rows) == 0 {
			return false
		}
		r.Rows = slices.Clone(r.Rows)
		r.Rows[0] = slices.Clone(r.Rows[0])
		r.Rows[0][0] = replay.Value{Text: r.Rows[0][0].Text + "9"}
		return true
	},
	"a row less": func(r *replay.Result) bool {
		if len(r.Rows) == 0 {
			return false
		}
		r.Rows = r.Rows[1:]
		return true
	},
	"a change more": func(r *replay.Result) bool {
		word, _, _ := strings.Cut(r.SQL, " ")
		r.Affected++
		return r.Status == replay.OK && slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE"}, word)
	},
	"no error": func(r *replay.Result) bool {
		failed := r.Status == replay.Failed && r.Code != 1213 && r.State != "40001" && r.State != "40P01"
		r.Status, r.Code, r.State = replay.OK, 0, ""
		return failed
	},
	"a step twice": nil,
}

// What a lying server says is told wherever it can be seen.
func TestLiesAboutViewsAreTold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, since each of the lies is another play: make check runs it")
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
	for name, url := range viewed {
		t.Run(name, func(t *testing.T) {
			h := &fuzzer{runner: openStage(t, url(t))}
			seen, levels := 0, workload.Isolations(h.runner.Server.Engine)
			rapid.Check(t, func(t *rapid.T) {
				level := rapid.SampledFrom(levels).Draw(t, "level")
				s := h.viewsScript(rapid.Uint64Range(1, 1<<40).Draw(t, "seed"), level)
				seen += h.lieAbout(t, s, level)
			})
			t.Logf("%d lies could be seen", seen)
			if seen == 0 {
				t.Error("there was no lie")
			}
		})
	}
}

// A falsehood is a lie about a step.
type falsehood struct {
	at   int // the step's number
	kind string
}

// falsehoods are those that a trace leaves room for.
func falsehoods(t replay.Trace) (all []falsehood) {
	for i, r := range t.Results {
		if slices.Contains([]string{"BEGIN", "COMMIT", "ROLLBACK"}, r.SQL) || r.Session == "isotap_reader" {
			continue
		}
		for kind, lie := range lies {
			copied := r
			if lie != nil && lie(&copied) || lie == nil && r.Affected > 0 && r.Columns == nil {
				all = append(all, falsehood{i + 1, kind})
			}
		}
	}
	slices.SortFunc(all, func(a, b falsehood) int { return cmp.Or(a.at-b.at, strings.Compare(a.kind, b.kind)) })
	return all
}

// lieAbout has a server lie about a script a few times, and returns how many lies could be seen.
func (h *fuzzer) lieAbout(t *rapid.T, s oracle.Script, level workload.Isolation) (seen int) {
	judge := func(l *liar) *oracle.Verdict {
		v, err := oracle.Views(t.Context(), l.said, h.runner.Scratch, h.runner.Server, s, level.Level)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	honest := &liar{play: h.runner.Direct}
	v := judge(honest)
	all := falsehoods(honest.trace)
	if len(v.NotJudged) > 0 || v.Wrong() || len(all) == 0 {
		return 0
	}
	for range 4 {
		x := rapid.SampledFrom(all).Draw(t, "lie")
		lying := &liar{play: h.runner.Direct, at: x.at}
		if lie := lies[x.kind]; lie != nil {
			lying.lie = func(r *replay.Result) { lie(r) }
			lying.play = func(context.Context, *scenario.Scenario, history.Level) (replay.Trace, error) {
				again := honest.trace
				again.Results = slices.Clone(again.Results)
				return again, nil
			}
		}
		v := judge(lying)
		if slices.EqualFunc(saidOf(honest.trace), saidOf(lying.trace), equalReplies) {
			continue
		}
		if seen++; !v.Wrong() && len(v.NotJudged) == 0 {
			t.Errorf("%s at step %d (%s) is not told", x.kind, x.at, s.Steps[x.at-1].SQL)
		}
	}
	return seen
}

func equalReplies(a, b []any) bool {
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && slices.EqualFunc(a[3].([][]replay.Value), b[3].([][]replay.Value),
		func(x, y []replay.Value) bool { return slices.Equal(x, y) })
}

// A hunt's end may come while a round makes its scratch database.
func TestViewsEndWithTheirContext(t *testing.T) {
	h := &fuzzer{runner: openStage(t, testdb.Current(t).URL())}
	ctx, cancel := context.WithCancel(t.Context())
	open := func(ctx context.Context) (*replay.Scratch, error) {
		defer cancel()
		return h.runner.Scratch(ctx)
	}
	s := h.viewsScript(1, workload.Isolation{Level: history.ReadCommitted})
	if _, err := oracle.Views(ctx, h.runner.Direct, open, h.runner.Server, s, history.ReadCommitted); err == nil {
		t.Error("no error")
	}
}

// An UPDATE that fails has written no row, also none of those that it chose: others need not wait for it there.
func TestFailedWritesHoldNoRows(t *testing.T) {
	h := &fuzzer{runner: openStage(t, testdb.Current(t).URL())}
	s := &scenario.Scenario{Name: "a write that fails", Sessions: []scenario.Session{{Name: "T1"}, {Name: "T2"}}, Setup: []string{
		"CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"}}
	for _, line := range []string{"T1: BEGIN", "T1: UPDATE t SET u = 9", "T2: BEGIN", "T2: DELETE FROM t WHERE id = 3",
		"T2: COMMIT", "T1: COMMIT"} {
		session, sql, _ := strings.Cut(line, ": ")
		s.Steps = append(s.Steps, scenario.Step{Session: session, SQL: sql})
	}
	v, err := h.verdict(t.Context(), Views, oracle.Script{Scenario: s}, workload.Isolation{Level: history.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if v.Wrong() || len(v.NotJudged) > 0 {
		t.Errorf("%s; not judged: %v", v, v.NotJudged)
	}
}
