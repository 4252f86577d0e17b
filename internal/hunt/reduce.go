package hunt

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/stage"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/scenario/replay"
)

// replays is how often a reduced scenario is played to say how surely it shows what it does.
const replays = 10

// patience bounds the reduction of one finding.
const patience = 3 * time.Minute

// atOnce is how many findings are reduced at the same time: a replay mostly waits.
const atOnce = 4

// reduceAll makes what was found small: so many of each anomaly, class and level as Options say, those of the fewest
// transactions and statements.
func (h *hunter) reduceAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	taken := make(map[string]int)
	for _, c := range slices.SortedStableFunc(slices.Values(h.tally.Catches), func(a, b *Catch) int { return a.weight() - b.weight() }) {
		kind := fmt.Sprint(c.Finding.Class, c.Finding.Anomaly, c.Level)
		if taken[kind]++; taken[kind] > h.Reduce {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			if err := h.reduce(ctx, c); err != nil {
				cancel(fmt.Errorf("reduce %q: %w", c.Key, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// say writes a line to the log.
func (h *hunter) say(format string, args ...any) {
	h.log.Lock()
	defer h.log.Unlock()
	fmt.Fprintf(h.Log, format+"\n", args...)
}

// reduce makes a catch's scenario, out of the first beginning that shows it: the same anomaly, by statements of the same
// kinds.
func (h *hunter) reduce(ctx context.Context, c *Catch) error {
	shows := Shows(h.stage, c.Level.Level, func(f *analyzer.Finding) bool { return keyOf(f, c.Level) == c.Key })
	for _, b := range c.round.beginnings(c.Finding) {
		whole, err := h.shown(ctx, b, c.Level.Level, shows)
		if err != nil {
			return err
		}
		if whole == nil {
			continue
		}
		small, tried, err := Reduce(ctx, whole, c.Level.Level, c.Finding.Anomaly, shows)
		if err != nil {
			return err
		}
		c.Scenario, c.Shown, c.Replays = small.Scenario, small.Shown, replays
		h.say("%s (seed %d): %s after %d tries; shown %d times of %d", c.Key, c.Seed, c.size(), tried, c.Shown, replays)
		if c.File == "" {
			return nil
		}
		return write(c.File, c.Scenario)
	}
	h.say("%s (seed %d): a replay does not show it", c.Key, c.Seed)
	return nil
}

// shown gives a beginning's scenario if it shows what is looked for, the rows made in its set-up if that does as well; nil
// if it does not.
func (h *hunter) shown(ctx context.Context, b beginning, level history.Level, shows reduce.Shows) (*scenario.Scenario, error) {
	if ok, err := shows(ctx, b.scenario); err != nil || !ok {
		return nil, err
	}
	if b.before == 0 {
		return b.scenario, nil
	}
	p, err := h.stage.Play(ctx, b.scenario.At(), level)
	if err != nil {
		return nil, err
	}
	inSetup := *b.scenario
	inSetup.Setup, inSetup.Steps = slices.Clone(b.scenario.Setup), b.scenario.Steps[b.before:]
	for _, r := range p.Trace.Results[:b.before] {
		if r.Status != replay.Failed {
			inSetup.Setup = append(inSetup.Setup, r.SQL)
		}
	}
	if ok, err := shows(ctx, &inSetup); err != nil || ok {
		return &inSetup, err
	}
	return b.scenario, nil
}

// Like says that a finding is of an anomaly and class.
func Like(anomaly analyzer.Anomaly, class analyzer.Class) func(*analyzer.Finding) bool {
	return func(f *analyzer.Finding) bool { return f.Anomaly == anomaly && f.Class == class }
}

// Shows says whether a scenario's replay has a finding that is wanted.
func Shows(s *stage.Stage, level history.Level, wanted func(*analyzer.Finding) bool) reduce.Shows {
	return func(ctx context.Context, sc *scenario.Scenario) (bool, error) {
		p, err := s.Play(ctx, sc.At(), level)
		if err != nil {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if _, gone := engine.Identify(ctx, s.Target()); gone != nil {
				return false, fmt.Errorf("play a part of it: %w", gone)
			}
			return false, nil // what was left out was needed: a table, a session's end
		}
		return slices.ContainsFunc(p.Result.Findings, wanted), nil
	}
}

// A Reduced is a scenario made small, and how surely it shows what it does.
type Reduced struct {
	Scenario *scenario.Scenario
	Shown    int // of ten replays
}

// Reduce makes a scenario small that shows an anomaly at a level, with at most three minutes' work, and says how many were
// tried.
func Reduce(ctx context.Context, whole *scenario.Scenario, level history.Level, anomaly analyzer.Anomaly, shows reduce.Shows) (*Reduced, int, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	small, tried, err := reduce.Reduce(limited, whole, shows)
	if err != nil && limited.Err() == nil || ctx.Err() != nil {
		return nil, tried, err
	}
	out := &Reduced{Scenario: small}
	for range replays {
		ok, err := shows(ctx, small)
		if err != nil {
			return nil, tried, err
		}
		if ok {
			out.Shown++
		}
	}
	small.Name, small.From = string(anomaly), whole.Name
	for i := range small.Sessions {
		small.Sessions[i].Level = level.String()
	}
	small.Expect = scenario.Outcome{Anomalies: []string{string(anomaly)}}
	return out, tried, nil
}
