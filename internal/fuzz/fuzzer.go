// Package fuzz hunts a server for isolation anomalies with random transactions: it is `isotap fuzz`. Round after round
// makes a small random database (workload/random), has a few sessions work on it through isotap, analyzes what was
// recorded, and keeps what no earlier round has shown (IsoRel 5.1: the number, order and types of the statements are
// others), made small by scenario/reduce.
//
// fuzzer.go goes round and round, round.go is one round, tally.go counts, catch.go is what was found, reduce.go makes
// it small; state.go goes on with a hunt, json.go writes it; abnormal.go is what no healthy server does, beyond.go what
// IsoRel does not see.
//
// judged.go has the oracles that play scripts judge them, and mismatch.go is what these find; alone.go, serial.go and
// views.go make the scripts, mixed.go those of several sessions. template.go has what one hunt found tried in another.
package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/internal/private"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// Options say what [Run] does.
type Options struct {
	Oracles  []Oracle             // none: Graph
	Levels   []workload.Isolation // none: all that the server has, in turn
	Duration time.Duration
	Rounds   int    // the most; 0: as many as Duration allows
	Seed     uint64 // that of the first round; each further one has the next
	Lanes    int    // how many rounds go on at the same time, each in a database of its own; 0: one
	Profile  random.Profile
	Dir      string // where findings go, a directory that is made; empty: nowhere
	Reduce   int    // how many findings of each anomaly, class and level to make small
	// ReduceTime bounds how long findings are made small, all together; 0: no bound.
	ReduceTime time.Duration
	// Patience is how long a statement may take until the server counts as hung; 0: random.Patience.
	Patience time.Duration
	// ServerLog gives the end of what the server logged; nil where nobody knows.
	ServerLog func() string
	// Restart gives a runner on a server in the place of the one that is gone, when nothing works on that one any more.
	// Its giver closes it, after Run. Nil: the run ends with its server.
	Restart func(context.Context) (*runner.Runner, error)
	// From is the hunt in Dir that is gone on with: Duration and Rounds are those of both together; nil: a new one
	// begins. Asked is kept in Dir for who goes on with this one.
	From    *State
	Asked   map[string]string
	Version string // isotap's own
	Log     io.Writer
	// Progress is called after each round, if it is not nil.
	Progress func(*Tally)
}

// A fuzzer is the state of one run.
type fuzzer struct {
	Options
	runner *runner.Runner
	pool   *tempdb.Pool // of rounds' databases, on the runner's server
	// database is where a round has its tables; several rounds at once have numbers behind it.
	database string
	made     []place    // where databases of runs may be left
	mu       sync.Mutex // for tally, and what it holds
	tally    *Tally
	log      sync.Mutex    // for Log
	over     atomic.Bool   // there is no server any more
	until    time.Time     // when there is no time any more to make findings small; zero: never
	began    time.Time     // when this run's rounds began; zero: they did not, or are over
	before   time.Duration // how long those of earlier runs took
	// next is how many rounds have begun, left are those that an earlier run began, and underway are those that this
	// one did, each with the oracle that it is at. All are mu's.
	next     int
	left     []job
	underway map[int]int
	// play and record play what [Alone], [Serial] and [Views] judge in place of the runner, if they are not nil.
	play   oracle.Play
	record oracle.Record
}

// Run looks for anomalies on a runner's server until the duration is over, the rounds are, the server is gone for good,
// or ctx ends: all that is no error. Then it makes small what it found.
func Run(ctx context.Context, s *runner.Runner, o Options) (_ *Tally, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Patience = cmp.Or(o.Patience, random.Patience)
	if len(o.Oracles) == 0 {
		o.Oracles = []Oracle{Graph}
	}
	if len(o.Levels) == 0 {
		o.Levels = workload.Isolations(s.Server.Engine)
	}
	if o.Dir != "" {
		if err := private.MkdirAll(o.Dir); err != nil {
			return nil, fmt.Errorf("make the directory for what is found: %w", err)
		}
	}
	if s, err = quickly(ctx, s); err != nil {
		return nil, fmt.Errorf("see what the server lets be set: %w", err)
	}
	if o.Dir != "" {
		leave, err := hold(o.Dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = leave() }()
	}
	h := &fuzzer{Options: o, database: newDatabase(), tally: newTally(s.Server, o.Levels)}
	if err := h.on(s); err != nil {
		return nil, err
	}
	h.tally.Isotap, h.tally.Seed, h.tally.Oracles = o.Version, o.Seed, o.Oracles
	err = h.open()
	if err == nil {
		err = h.tidy(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.leave())
	}
	err = h.run(ctx)
	h.tally.End = h.end(ctx, err)
	if err == nil && !h.over.Load() {
		err = h.reduceAll(ctx)
	}
	if h.Reduce > 0 {
		h.setAside()
	}
	switch {
	case ctx.Err() != nil:
		h.tally.End, err = Interrupted, nil
	case err != nil:
		h.tally.End = Failed
	}
	if left := h.leave(); left != nil {
		err = errors.Join(err, left)
	} else {
		h.tidied()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tally, errors.Join(err, h.saveState())
}

// on has the rounds take place on a server.
func (h *fuzzer) on(s *runner.Runner) error {
	pool, err := tempdb.NewPool(s.Target(), h.database, h.Patience)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	h.runner, h.pool = s, pool
	return nil
}

// leave drops what the rounds left for the next ones. Of a server that is gone nothing is there, nor where no round has
// been.
func (h *fuzzer) leave() error {
	if h.pool == nil {
		return nil
	}
	if err := h.pool.Close(); err != nil && !h.over.Load() {
		return err
	}
	return nil
}

// open goes on with the hunt that is asked for, or begins one.
func (h *fuzzer) open() error {
	if h.From != nil {
		return h.resume(h.From)
	}
	if h.Dir == "" {
		return nil
	}
	switch s, err := ReadState(h.Dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("a hunt cannot begin in %s: %w", h.Dir, err)
	default:
		h.say("%s: a hunt of %d rounds was there, and cannot be gone on with any more", h.Dir, s.next)
		h.made = s.made
	}
	return h.saveState()
}

// end returns what ended the rounds.
func (h *fuzzer) end(ctx context.Context, err error) End {
	switch {
	case ctx.Err() != nil:
		return Interrupted
	case err != nil:
		return Failed
	case h.over.Load():
		return ServerGone
	case h.more():
		return DurationOver
	}
	return RoundsOver
}

// run runs rounds until there are enough, on one server after the other where they crash and can be started.
func (h *fuzzer) run(ctx context.Context) error {
	h.began, h.before = time.Now(), h.tally.Hunted
	defer func() {
		h.tally.Hunted = h.before + time.Since(h.began)
		h.began = time.Time{}
	}()
	hunting, cancel := ctx, context.CancelFunc(func() {})
	if h.Duration > 0 {
		hunting, cancel = context.WithTimeout(ctx, h.Duration-h.before)
	}
	defer cancel()
	for {
		if err := h.rounds(hunting); err != nil || !h.over.Load() {
			return err
		}
		if h.Restart == nil || ctx.Err() != nil || h.Reduce == 0 && (hunting.Err() != nil || !h.more()) {
			return nil
		}
		if err := h.restart(ctx); err != nil {
			return err
		}
		h.over.Store(false)
	}
}

// restart goes on on another server.
func (h *fuzzer) restart(ctx context.Context) error {
	s, err := h.Restart(ctx)
	if err == nil {
		s, err = quickly(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("start a server in the place of the one that is gone: %w", err)
	}
	_ = h.leave() // it is gone
	return h.on(s)
}

// rounds runs rounds until there are enough or the server is gone, as many at once as there are lanes.
func (h *fuzzer) rounds(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for range max(h.Lanes, 1) {
		all.Go(func() {
			if err := h.lane(ctx); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != context.DeadlineExceeded {
		return err
	}
	return nil
}

// more reports whether there are rounds to begin.
func (h *fuzzer) more() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Rounds == 0 || h.next < h.Rounds || len(h.left)+len(h.underway) > 0
}

// lane runs one round after the other, each in a database of its own.
func (h *fuzzer) lane(ctx context.Context) error {
	for ctx.Err() == nil && !h.over.Load() {
		next, ok := h.begin()
		if !ok {
			return nil
		}
		n := next.Round
		seed := h.Seed + uint64(n)
		if err := h.judge(ctx, seed, h.Levels[n%len(h.Levels)], next.Oracle); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("round %d (seed %d): %w", n+1, seed, err)
		}
	}
	return nil
}

// judge runs one round of each oracle, from one on.
func (h *fuzzer) judge(ctx context.Context, seed uint64, level workload.Isolation, from int) error {
	for _, o := range h.Oracles[from:] {
		var err error
		switch o {
		case Graph:
			err = h.round(ctx, h.newRound(seed, level))
		case Alone, Forms:
			err = h.aloneRound(ctx, o, seed, level)
		case Serial:
			err = h.serialRound(ctx, seed, level)
		case Views:
			err = h.viewsRound(ctx, seed, level)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
