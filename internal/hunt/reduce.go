package hunt

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/stage"
	"github.com/isotap/isotap/report"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
)

// replays is how often a reduced scenario is played to say how surely it shows what it does.
const replays = 10

// patience bounds the reduction of one finding.
const patience = 3 * time.Minute

// atOnce is how many findings are reduced at the same time: a replay mostly waits.
const atOnce = 4

// reduceAll makes what was found small: so many of each anomaly, class and level as Options say, the first ones.
func (h *hunter) reduceAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	free := make(chan struct{}, atOnce)
	taken := make(map[string]int)
	for _, c := range h.tally.Catches {
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

// reduce makes a catch's scenario: of its own transactions alone where these show it, else of the whole round.
func (h *hunter) reduce(ctx context.Context, c *Catch) error {
	r := c.round
	begin := alone(r, c.Finding)
	shows := Shows(h.stage, r.level.Level, c.Finding.Anomaly, c.Finding.Class)
	for _, whole := range []*scenario.Scenario{begin, r.schedule()} {
		if whole == nil {
			continue
		}
		ok, err := shows(ctx, whole)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		small, tried, err := Reduce(ctx, h.stage, whole, r.level.Level, c.Finding.Anomaly, c.Finding.Class)
		if err != nil {
			return err
		}
		c.Scenario, c.Shown, c.Replays = small.Scenario, small.Shown, replays
		h.say("%s (seed %d): %d statements of %d sessions after %d tries; shown %d times of %d", c.Key, c.Seed, len(c.Scenario.Steps), len(c.Scenario.Sessions), tried, c.Shown, replays)
		if c.File == "" {
			return nil
		}
		return write(c.File, c.Scenario)
	}
	h.say("%s (seed %d): a replay does not show it", c.Key, c.Seed)
	return nil
}

// alone is the interleaving of a finding's transactions, on the round's database.
func alone(r *round, f *analyzer.Finding) *scenario.Scenario {
	s := report.Scenario(f, r.result.Runs)
	if s != nil {
		s.Setup, s.Tables = r.generator.Setup(), nil // a replay has another database
	}
	return s
}

// Shows says whether a scenario's replay has a finding of an anomaly and class.
func Shows(s *stage.Stage, level history.Level, anomaly analyzer.Anomaly, class analyzer.Class) reduce.Shows {
	return func(ctx context.Context, sc *scenario.Scenario) (bool, error) {
		p, err := s.Play(ctx, sc.At(), level)
		if err != nil {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			return false, nil // what was left out was needed: a table, a session's end
		}
		return slices.ContainsFunc(p.Result.Findings, func(f *analyzer.Finding) bool { return f.Anomaly == anomaly && f.Class == class }), nil
	}
}

// A Reduced is a scenario made small, and how surely it shows what it does.
type Reduced struct {
	Scenario *scenario.Scenario
	Shown    int // of ten replays
}

// Reduce makes a scenario small that shows an anomaly, with at most three minutes' work, and says how many were tried.
func Reduce(ctx context.Context, s *stage.Stage, whole *scenario.Scenario, level history.Level, anomaly analyzer.Anomaly, class analyzer.Class) (*Reduced, int, error) {
	shows := Shows(s, level, anomaly, class)
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
