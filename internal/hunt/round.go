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
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/scratch"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// database is the name of each round's database.
const database = "isotap_fuzz"

// A round is one random database at one level.
type round struct {
	generator *random.Generator
	level     history.Level
	seed      uint64
	recording string // its directory, while the round is counted
	outcome   *random.Outcome
	result    *analyzer.Result
	saved     string // where the recording is kept; empty: it is not
}

// round runs one round and takes stock of it.
func (h *hunter) round(ctx context.Context, seed uint64, level history.Level) (err error) {
	r := &round{generator: random.New(random.Engine{Name: h.stage.Server.Engine}, h.Profile, seed), level: level, seed: seed}
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
	return h.count(r)
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
	r.outcome, err = random.Run(ctx, r.generator, r.level, func(ctx context.Context, _ int) (*sql.Conn, error) { return db.Conn(ctx) })
	h.tally.transacted += time.Since(began)
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
	t, o := h.tally, r.outcome
	t.Rounds++
	t.Random.Transactions += o.Transactions
	t.Random.Committed += o.Committed
	t.Random.Refused += o.Refused
	t.Random.Statements += o.Statements
	t.Random.Failed += o.Failed
	for code, m := range o.Mistakes {
		if t.Random.Mistakes[code] == nil {
			t.Random.Mistakes[code] = &random.Mistake{Code: code, Message: m.Message, SQL: m.SQL}
		}
		t.Random.Mistakes[code].Count += m.Count
	}
	for _, odd := range o.Odd {
		t.Abnormal = append(t.Abnormal, fmt.Sprintf("seed %d, %s: %s", r.seed, r.level, odd))
	}
	c := r.result.Coverage
	t.Coverage.Exact, t.Coverage.Inexact, t.Coverage.Opaque = t.Coverage.Exact+c.Exact, t.Coverage.Inexact+c.Inexact, t.Coverage.Opaque+c.Opaque
	at := t.Levels[r.level]
	at.Rounds++
	at.Transactions += o.Transactions
	for _, f := range r.result.Findings {
		if f.Class == analyzer.Violation {
			at.Violations[f.Anomaly] += f.Count
		} else {
			at.Hazards[f.Anomaly] += f.Count
		}
		if err := h.catch(r, f); err != nil {
			return err
		}
	}
	if len(o.Odd) > 0 && h.Dir != "" {
		if err := write(filepath.Join(h.Dir, fmt.Sprintf("abnormal-%d.yaml", r.seed)), r.schedule()); err != nil {
			return err
		}
		return h.keep(r)
	}
	return nil
}
