package fuzz

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

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

func (h *fuzzer) newRound(seed uint64, level workload.Isolation) *round {
	return &round{generator: random.New(random.Engine{Name: h.runner.Server.Engine, Version: h.runner.Server.Version,
		Optimistic: level.Optimistic}, h.Profile, seed), level: level, seed: seed}
}

// round runs one round and takes stock of it.
func (h *fuzzer) round(ctx context.Context, r *round) (err error) {
	dir, err := os.MkdirTemp("", "isotap-fuzz-")
	if err != nil {
		return fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.recording = filepath.Join(dir, "recording")
	seen := h.runner.Options()
	o := tempdb.Options{Recording: r.recording,
		Columns: seen.Columns, Predicates: seen.Predicates, ServerLog: seen.ServerLog, Version: h.Version}
	if r.result, err = h.pool.Run(ctx, o,
		func(ctx context.Context, dsn string) error { return h.transact(ctx, r, dsn) }); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return h.broken(ctx, r, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.count(r); err != nil {
		return err
	}
	if err := h.advance(r.seed); err != nil {
		return err
	}
	if h.Progress != nil {
		h.Progress(h.tally)
	}
	return nil
}

// transact runs the set-up, the transactions and the last reads.
func (h *fuzzer) transact(ctx context.Context, r *round, dsn string) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := h.execute(ctx, db, r.generator.Setup()); err != nil {
		return err
	}
	began := time.Now()
	r.outcome, err = random.Run(ctx, r.generator, r.level.Level, h.Patience,
		func(ctx context.Context, _ int) (*sql.Conn, error) { return h.connect(ctx, db) })
	r.worked = time.Since(began)
	if err != nil {
		return err
	}
	return h.execute(ctx, db, r.generator.Sweep())
}

// connect gives a session its connection, on PostgreSQL with the runner's settings.
func (h *fuzzer) connect(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if h.runner.Server.Engine.Family() != dbms.PostgreSQLFamily {
		return c, nil
	}
	settings := h.runner.Options().Settings
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, err := c.ExecContext(ctx, "SET "+name+" = '"+settings[name]+"'"); err != nil {
			return nil, errors.Join(fmt.Errorf("set %s: %w", name, err), c.Close())
		}
	}
	return c, nil
}

// execute runs statements of the run's own, each with the time that the sessions' have.
func (h *fuzzer) execute(ctx context.Context, db *sql.DB, texts []string) error {
	for _, text := range texts {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, h.Patience)
			defer cancel()
			_, err := db.ExecContext(ctx, text)
			return err
		}()
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// count adds a round to the tally, and keeps what is new.
func (h *fuzzer) count(r *round) error {
	h.tally.add(r)
	for _, f := range r.result.Findings {
		if err := h.catch(r, f); err != nil {
			return err
		}
	}
	return h.strange(r, r.outcome.Odd)
}
