// Package hunt hunts a server for isolation anomalies with random transactions: it is `isotap fuzz`. Round after round
// makes a small random database (workload/random), has a few sessions work on it through isotap, analyses what was
// recorded, and keeps what no earlier round has shown (IsoRel 5.1: the number, order and types of the statements are
// others), made small by scenario/reduce.
//
// hunt.go goes round and round, round.go is one round, catch.go what was found, reduce.go makes it small.
package hunt

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/stage"
	"github.com/isotap/isotap/workload/random"
)

// Options of a hunt.
type Options struct {
	Levels   []history.Level // none: all that the server has, in turn
	Duration time.Duration
	Rounds   int    // the most; 0: as many as Duration allows
	Seed     uint64 // that of the first round; each further one has the next
	Profile  random.Profile
	Dir      string // where findings go, a directory that is made; empty: nowhere
	Reduce   int    // how many findings of each anomaly, class and level to make small
	Version  string // isotap's own
	Log      io.Writer
	// Progress is called after each round, if it is not nil.
	Progress func(*Tally)
}

// A Tally is what a hunt has come to.
type Tally struct {
	Server     history.Server
	Began      time.Time
	Rounds     int
	Random     random.Outcome // of all rounds; without steps
	Coverage   analyzer.Observed
	Levels     map[history.Level]*LevelTally
	Catches    []*Catch
	Abnormal   []string // what no healthy server does
	seen       map[string]*Catch
	transacted time.Duration // the time in which sessions worked
}

// A LevelTally counts the findings at one level.
type LevelTally struct {
	Rounds, Transactions int
	Violations, Hazards  map[analyzer.Anomaly]int
}

// TransactionsPerSecond is how fast the sessions worked, without set-up and analysis.
func (t *Tally) TransactionsPerSecond() float64 {
	if t.transacted == 0 {
		return 0
	}
	return float64(t.Random.Transactions) / t.transacted.Seconds()
}

// A hunter is the state of one hunt.
type hunter struct {
	Options
	stage *stage.Stage
	tally *Tally
	mu    sync.Mutex // for Log
}

// Run hunts on a stage's server until the duration is over, the rounds are, or ctx ends, which is no error.
func Run(ctx context.Context, s *stage.Stage, o Options) (*Tally, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if len(o.Levels) == 0 {
		o.Levels = s.Levels()
	}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the directory for what is found: %w", err)
		}
	}
	h := &hunter{Options: o, stage: s, tally: &Tally{Server: s.Server, Began: time.Now(), Levels: make(map[history.Level]*LevelTally), seen: make(map[string]*Catch)}}
	h.tally.Random.Mistakes = make(map[string]*random.Mistake)
	for _, l := range o.Levels {
		h.tally.Levels[l] = &LevelTally{Violations: make(map[analyzer.Anomaly]int), Hazards: make(map[analyzer.Anomaly]int)}
	}
	err := h.rounds(ctx)
	if err == nil && o.Reduce > 0 {
		err = h.reduceAll(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return h.tally, err
}

// rounds runs rounds until there are enough.
func (h *hunter) rounds(ctx context.Context) error {
	if h.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Duration)
		defer cancel()
	}
	for n := 0; ctx.Err() == nil && (h.Rounds == 0 || n < h.Rounds); n++ {
		seed := h.Seed + uint64(n)
		if err := h.round(ctx, seed, h.Levels[n%len(h.Levels)]); err != nil && ctx.Err() == nil {
			return fmt.Errorf("round %d (seed %d): %w", n+1, seed, err)
		}
		if h.Progress != nil {
			h.Progress(h.tally)
		}
	}
	return nil
}
