package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

const (
	// replays is how often a reduced scenario is played to say how surely it shows what it does: each of them should.
	replays = 10
	// fewTransactions and fewStatements are how large a scenario is at most that is small enough.
	fewTransactions, fewStatements = 3, 8
	// patience bounds a stage of one reduction, stages how many there are as long as each makes it smaller.
	patience, stages = 3 * time.Minute, 4
	// atOnce is how many findings are reduced at the same time: a replay mostly waits.
	atOnce = 4
	// attempts is how many findings of a kind are looked at for each that is wanted.
	attempts = 3
	// beginnings is how often it is begun to make something small: again only where the server has ended meanwhile.
	beginnings = 2
)

// reduceAll makes what was found small, on one server after the other where they crash and can be started.
func (h *fuzzer) reduceAll(ctx context.Context) error {
	if h.Reduce == 0 {
		return nil
	}
	began := time.Now()
	defer func() { h.tally.Reducing = time.Since(began) }()
	if h.ReduceTime > 0 {
		h.until = began.Add(h.ReduceTime)
	}
	for {
		err := h.reduceFound(ctx)
		var at *reductionError
		if !errors.As(err, &at) || h.Restart == nil || ctx.Err() != nil {
			return err
		}
		end := h.alive(ctx)
		if end == nil || ctx.Err() != nil {
			return err
		}
		if err := h.endedBy(at, end); err != nil {
			return err
		}
		if err := h.restart(ctx); err != nil {
			return err
		}
	}
}

// A reductionError is what kept something from being made small.
type reductionError struct {
	key   string
	level workload.Isolation
	seed  uint64
	err   error
}

// Error makes reductionError an error.
func (e *reductionError) Error() string { return fmt.Sprintf("reduce %q: %v", e.key, e.err) }

// Unwrap returns what it was.
func (e *reductionError) Unwrap() error { return e.err }

// endedBy keeps that the server has ended while something was made small, and what it logged.
func (h *fuzzer) endedBy(at *reductionError, end error) error {
	h.tally.Crashes++
	a := &Abnormality{Odd: random.Odd{Code: gone, Message: fmt.Sprintf("%v, while %q was made small", end, at.key)},
		Level: at.level, Seed: at.seed, Seen: 1}
	if h.Dir != "" && h.ServerLog != nil {
		a.Files = []string{filepath.Join(h.Dir, fmt.Sprintf("abnormal-small-%d.log", at.seed))}
		if err := private.WriteFile(a.Files[0], []byte(h.ServerLog()+"\n")); err != nil {
			return fmt.Errorf("write what the server logged: %w", err)
		}
	}
	h.tally.Abnormal = append(h.tally.Abnormal, a)
	h.say("seed %d: ABNORMAL %s: %s", a.Seed, a.Code, a.Message)
	return nil
}

// reduceFound makes what was found small, as long as there is time: first what no server may do.
func (h *fuzzer) reduceFound(ctx context.Context) error {
	var hazards, violations [][]*Catch
	for _, kind := range h.kinds() {
		if kind[0].Finding.Class == analyzer.Violation {
			violations = append(violations, kind)
		} else {
			hazards = append(hazards, kind)
		}
	}
	err := together(ctx, h.tally.Mismatches, h.reduceMismatch)
	for _, kinds := range [][][]*Catch{violations, hazards} {
		if err == nil {
			err = together(ctx, kinds, h.reduceSome)
		}
	}
	return err
}

// together does something with each of some things, a few at the same time, until one fails.
func together[T any](ctx context.Context, things []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, x := range things {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := do(ctx, x); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// kinds are the catches of each anomaly, class and level, those of the fewest transactions and statements first.
func (h *fuzzer) kinds() [][]*Catch {
	kinds := make(map[string][]*Catch)
	for _, c := range slices.SortedStableFunc(slices.Values(h.tally.Catches),
		func(a, b *Catch) int { return a.weight() - b.weight() }) {
		kind := fmt.Sprint(c.Finding.Class, c.Finding.Anomaly, c.Level)
		kinds[kind] = append(kinds[kind], c)
	}
	all := make([][]*Catch, 0, len(kinds))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kinds[kind])
	}
	return all
}

// wanted are those of some catches of a kind that are yet to be made small, if each is when it is tried.
func (h *fuzzer) wanted(kind []*Catch) []*Catch {
	left := slices.DeleteFunc(slices.Clone(kind), func(c *Catch) bool { return c.Reduction.isFinal() })
	small, tried := 0, len(kind)-len(left)
	for _, c := range kind {
		if c.Reduction == Done {
			small++
		}
	}
	return left[:max(min(len(left), h.Reduce-small, attempts*h.Reduce-tried), 0)]
}

// reduceSome makes some of a kind's catches small, as many as Options say. One whose replay fails though the server
// is there, as on a machine too busy to connect in time, is passed over.
func (h *fuzzer) reduceSome(ctx context.Context, kind []*Catch) error {
	for !late(h.until) {
		next := h.wanted(kind)
		if len(next) == 0 {
			return nil
		}
		c := next[0]
		c.begun++
		err := h.passOver(ctx, c.begun, h.reduce(ctx, c), func(why error) error {
			return h.settle(func() error { return c.take(NotPlayed, nil) },
				func() { h.say("%s (seed %d): not made small: %v", c.Key, c.Seed, why) })
		})
		if err != nil {
			return &reductionError{c.Key, c.Level, c.Seed, err}
		}
	}
	return nil
}

// passOver gives something up whose replays failed though the server is there, or whose server has ended each time
// that a reduction was begun. It returns the error where the server has ended: the others need another one.
func (h *fuzzer) passOver(ctx context.Context, begun int, failed error, over func(error) error) error {
	if failed == nil || ctx.Err() != nil {
		return failed
	}
	end := h.alive(ctx)
	if end == nil || begun >= beginnings {
		if err := over(failed); err != nil {
			return err
		}
	}
	if end != nil { // the others need a server
		return failed
	}
	return nil
}

// setAside marks what there was no time for.
func (h *fuzzer) setAside() {
	for _, kind := range h.kinds() {
		for _, c := range h.wanted(kind) {
			c.Reduction = Unfinished
		}
	}
	for _, m := range h.tally.Mismatches {
		if !m.Reduction.isFinal() {
			m.Reduction = Unfinished
		}
	}
}

// say writes a line to the log.
func (h *fuzzer) say(format string, args ...any) {
	h.log.Lock()
	defer h.log.Unlock()
	fmt.Fprintf(h.Log, format+"\n", args...)
}

// reduce makes a catch's scenario, out of the first of its sightings that comes out small and sure: the same anomaly,
// by statements of the same kinds.
func (h *fuzzer) reduce(ctx context.Context, c *Catch) error {
	best, tried, err := h.best(ctx, c)
	if err != nil {
		return err
	}
	outcome := Done
	switch over := late(h.until); {
	case over && (best == nil || !best.good()):
		outcome = Unfinished
	case best == nil && c.Scenario == nil:
		outcome = NotShown
		h.say("%s (seed %d): a replay does not show it", c.Key, c.Seed)
	}
	return h.settle(func() error { return c.take(outcome, best) }, func() {
		if best != nil {
			h.say("%s (seed %d): %s after %d tries; shown %d times of %d", c.Key, c.Seed, c.size(), tried, c.Shown, replays)
		}
	})
}

// settle takes what a reduction came to, and says so.
func (h *fuzzer) settle(take func() error, say func()) error {
	h.mu.Lock()
	err := take()
	if err == nil {
		err = h.saveState()
	}
	h.mu.Unlock()
	if err == nil {
		say()
	}
	return err
}

// take keeps what a reduction came to; best is nil where that is nothing.
func (c *Catch) take(outcome Reduction, best *Reduced) error {
	c.Reduction = outcome
	if best == nil {
		return nil
	}
	c.Scenario, c.Shown, c.Replays = best.Scenario, best.Shown, replays
	if c.File == "" {
		return nil
	}
	return write(c.File, c.Scenario)
}

// best returns the smallest and surest scenario of those that a catch's sightings come to, and how many were tried;
// nil where no replay shows it.
func (h *fuzzer) best(ctx context.Context, c *Catch) (best *Reduced, tried int, err error) {
	for _, seen := range c.seen {
		whole, err := h.again(ctx, c, seen)
		if errors.Is(err, errLate) {
			break
		}
		if err != nil {
			return nil, tried, err
		}
		if whole == nil {
			continue
		}
		small, n, err := h.small(ctx, c, whole)
		if tried += n; err != nil {
			return nil, tried, err
		}
		small.Scenario = numbered(small.Scenario)
		if small.Shown > 0 && (best == nil || small.better(best)) {
			best = small
		}
		if small.good() {
			break
		}
	}
	return best, tried, nil
}

// reducer makes scenarios of the server small, as long as there is time.
func (h *fuzzer) reducer() reducer { return reducer{h.runner.Server.Engine.Family(), h.until} }

// errLate is what ends a reduction that comes too late to begin.
var errLate = errors.New("there is no time for it any more")

// small reduces a scenario that shows a catch. What stays large as long as the statements are to be of the same kinds
// may come out small as another of its anomaly.
func (h *fuzzer) small(ctx context.Context, c *Catch, whole *scenario.Scenario) (*Reduced, int, error) {
	level, anomaly := c.Level.Level, c.Finding.Anomaly
	best, tried, err := h.reducer().anomaly(ctx, whole, level, anomaly, Shows(h.runner, level, c.is))
	if err != nil || best.good() || late(h.until) {
		return best, tried, err
	}
	other, n, err := h.reducer().anomaly(ctx, best.Scenario, level, anomaly,
		Shows(h.runner, level, Like(anomaly, c.Finding.Class)))
	if err == nil && other.better(best) {
		best = other
	}
	return best, tried + n, err
}

// is reports whether a finding is of a catch's kind.
func (c *Catch) is(f *analyzer.Finding) bool { return keyOf(f, c.Level) == c.Key }

// numbered is a scenario whose sessions are T1, T2 and so on, in the order of their first steps.
func numbered(s *scenario.Scenario) *scenario.Scenario {
	n := *s
	n.Sessions, n.Steps = nil, slices.Clone(s.Steps)
	names := make(map[string]string)
	for i, x := range s.Steps {
		if names[x.Session] == "" {
			of := *s.Session(x.Session)
			of.Name = fmt.Sprintf("T%d", len(names)+1)
			names[x.Session], n.Sessions = of.Name, append(n.Sessions, of)
		}
		n.Steps[i].Session = names[x.Session]
	}
	return &n
}

// again returns a scenario that shows a catch as a round did, as small a one as there is; nil where none does.
func (h *fuzzer) again(ctx context.Context, c *Catch, seen occurrence) (*scenario.Scenario, error) {
	rows := h.rows(ctx, seen.round)
	var p *runner.Result
	var err error
	if seen.whole != nil {
		p, err = h.first(ctx, c, []*scenario.Scenario{seen.whole})
	} else {
		a := seen.round.account(h.runner.Server.Engine)
		p, err = h.first(ctx, c, a.beginnings(seen.finding, rows))
		if p == nil && err == nil {
			p, err = h.first(ctx, c, a.until(seen.finding))
		}
	}
	if p == nil || err != nil {
		return nil, err
	}
	if !isSmall(p.Scenario) {
		// In a replay one statement follows the other: what it did is known better than what the round did.
		f := p.Result.Findings[slices.IndexFunc(p.Result.Findings, c.is)]
		less, err := h.first(ctx, c, accountOf(p).beginnings(f, rows))
		if err != nil {
			return nil, err
		}
		if less != nil {
			p = less
		}
	}
	p.Scenario.Name = fmt.Sprintf("seed %d", seen.round.seed)
	return p.Scenario, nil
}

// first plays scenarios until one shows a catch, or it is too late.
func (h *fuzzer) first(ctx context.Context, c *Catch, all []*scenario.Scenario) (*runner.Result, error) {
	for _, s := range all {
		if late(h.until) {
			return nil, errLate
		}
		p, err := play(ctx, h.runner, s, c.Level.Level)
		if err != nil {
			return nil, err
		}
		if p != nil && slices.ContainsFunc(p.Result.Findings, c.is) {
			return p, nil
		}
	}
	return nil, nil
}

// rows returns what makes a round's database as writes have left it: its set-up with the rows that are read there. It
// is nil where that cannot be told.
func (h *fuzzer) rows(ctx context.Context, r *round) func(*account, []string) []string {
	return func(a *account, earlier []string) []string {
		s := &scenario.Scenario{Setup: a.setup, Sessions: []scenario.Session{{Name: "before"}}}
		for _, sql := range slices.Concat(earlier, r.generator.Sweep()) {
			s.Steps = append(s.Steps, scenario.Step{Session: "before", SQL: sql})
		}
		p, err := play(ctx, h.runner, s, r.level.Level)
		if err != nil || p == nil {
			return nil
		}
		var tables [][][]*string
		for _, swept := range p.Trace.Results[len(earlier):] {
			if swept.Status != replay.OK {
				return nil
			}
			tables = append(tables, texts(swept.Rows))
		}
		return r.generator.Refill(tables)
	}
}

// texts are rows as texts; nil is NULL.
func texts(rows [][]replay.Value) [][]*string {
	all := make([][]*string, len(rows))
	for i, row := range rows {
		all[i] = make([]*string, len(row))
		for j := range row {
			if !row[j].Null {
				all[i][j] = &row[j].Text
			}
		}
	}
	return all
}

// play plays a scenario at a level; it gives nil where that is not possible.
func play(ctx context.Context, s *runner.Runner, sc *scenario.Scenario, level history.Level) (*runner.Result, error) {
	p, err := s.Play(ctx, sc.At(), level)
	if err == nil {
		return p, nil
	}
	return nil, answers(ctx, s, err)
}

// answers returns why a part of a scenario cannot be played: the context's error, or err where the server is not there;
// nil where something was left out that was needed, as a table or a session's end.
func answers(ctx context.Context, s *runner.Runner, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for range 3 { // a busy machine may keep one connection waiting for too long
		if _, err = engine.Identify(ctx, s.Target()); err == nil {
			return nil
		}
	}
	return fmt.Errorf("play a part of it: %w", err)
}

// Like returns the test of whether a finding is of an anomaly and class.
func Like(anomaly analyzer.Anomaly, class analyzer.Class) func(*analyzer.Finding) bool {
	return func(f *analyzer.Finding) bool { return f.Anomaly == anomaly && f.Class == class }
}

// Shows reports whether a scenario's replay has a finding that is wanted.
func Shows(s *runner.Runner, level history.Level, wanted func(*analyzer.Finding) bool) reduce.Shows {
	return func(ctx context.Context, sc *scenario.Scenario) (bool, error) {
		p, err := play(ctx, s, sc, level)
		return p != nil && slices.ContainsFunc(p.Result.Findings, wanted), err
	}
}
