package hunt

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/scratch"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// databaseOf names the database in which a lane has its rounds.
func databaseOf(lane int) string {
	if lane == 0 {
		return "isotap_fuzz"
	}
	return fmt.Sprintf("isotap_fuzz_%d", lane+1)
}

// A round is one random database at one level.
type round struct {
	generator *random.Generator
	level     workload.Isolation
	seed      uint64
	recording string // its directory, while the round is counted
	outcome   *random.Outcome
	result    *analyzer.Result
	worked    time.Duration // how long the sessions did
	saved     string        // where the recording is kept; empty: it is not
}

func (h *hunter) newRound(seed uint64, level workload.Isolation) *round {
	return &round{generator: random.New(random.Engine{Name: h.stage.Server.Engine, Optimistic: level.Optimistic}, h.Profile, seed), level: level, seed: seed}
}

// round runs one round and takes stock of it.
func (h *hunter) round(ctx context.Context, r *round, database string) (err error) {
	dir, err := os.MkdirTemp("", "isotap-fuzz-")
	if err != nil {
		return fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.recording = filepath.Join(dir, "recording")
	seen := h.stage.Options()
	o := scratch.Options{Database: database, Recording: r.recording, Columns: seen.Columns, Predicates: seen.Predicates, Version: h.Version}
	if r.result, err = scratch.Run(ctx, h.stage.Target(), o, func(ctx context.Context, dsn string) error { return h.transact(ctx, r, dsn) }); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.count(r); err != nil {
		return err
	}
	if h.Progress != nil {
		h.Progress(h.tally)
	}
	return nil
}

// transact runs the set-up, the transactions and the last reads.
func (h *hunter) transact(ctx context.Context, r *round, dsn string) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range r.generator.Setup() {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	began := time.Now()
	r.outcome, err = random.Run(ctx, r.generator, r.level.Level, func(ctx context.Context, _ int) (*sql.Conn, error) { return db.Conn(ctx) })
	r.worked = time.Since(began)
	if err != nil {
		return err
	}
	for _, text := range r.generator.Sweep() {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// count adds a round to the tally, and keeps what is new.
func (h *hunter) count(r *round) error {
	h.tally.add(r)
	for _, f := range r.result.Findings {
		if err := h.catch(r, f); err != nil {
			return err
		}
	}
	if len(r.outcome.Odd) > 0 && h.Dir != "" {
		if err := write(filepath.Join(h.Dir, fmt.Sprintf("abnormal-%d.yaml", r.seed)), r.schedule()); err != nil {
			return err
		}
		return h.keep(r)
	}
	return nil
}
