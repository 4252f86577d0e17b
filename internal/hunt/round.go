package hunt

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/tap"
	"github.com/isotap/isotap/workload/random"
)

// database is the name of each round's database.
const database = "isotap_fuzz"

// open opens a pool of connections.
func open(f catalog.Family, dsn string) (*sql.DB, error) {
	driver := "mysql"
	if f == catalog.PostgreSQL {
		driver = "pgx"
	}
	return sql.Open(driver, dsn)
}

// A round is one random database at one level.
type round struct {
	generator *random.Generator
	level     history.Level
	seed      uint64
	outcome   *random.Outcome
	result    *analyzer.Result
}

// round runs one round and takes stock of it.
func (h *hunter) round(ctx context.Context, seed uint64, level history.Level) (err error) {
	dir, err := os.MkdirTemp("", "isotap-fuzz-")
	if err != nil {
		return fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &round{generator: random.New(random.Engine{Name: h.stage.Server.Engine}, h.Profile, seed), level: level, seed: seed}
	recording := filepath.Join(dir, "recording")
	run, err := h.work(ctx, r, recording)
	if err != nil {
		return err
	}
	if r.result, err = tap.AnalyzeRun(ctx, recording, run, analyzer.Options{}); err != nil {
		return err
	}
	return h.count(r)
}

// work makes the database, has the sessions work on it through a tap, and drops it.
func (h *hunter) work(ctx context.Context, r *round, recording string) (run history.Run, err error) {
	target := h.stage.Target()
	admin, err := open(target.Family, dsn(target))
	if err != nil {
		return run, err
	}
	defer admin.Close()
	if err := remake(ctx, admin, target.Family); err != nil {
		return run, err
	}
	defer func() {
		if dropErr := drop(context.WithoutCancel(ctx), admin, target.Family); err == nil {
			err = dropErr
		}
	}()
	target.Database = database
	t, err := tap.Start(context.WithoutCancel(ctx), tap.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: recording, Args: true, Version: h.Version})
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	db, err := open(target.Family, t.DSN(database))
	if err != nil {
		return run, err
	}
	defer db.Close()
	return t.Run(), h.transact(ctx, r, db)
}

// transact runs the set-up, the transactions and the last reads.
func (h *hunter) transact(ctx context.Context, r *round, db *sql.DB) error {
	for _, text := range r.generator.Setup() {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	began := time.Now()
	var err error
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

// dsn is the server itself, as Go's drivers have it.
func dsn(target catalog.Target) string {
	if target.Family == catalog.PostgreSQL {
		return target.URL()
	}
	return fmt.Sprintf("%s:%s@%s(%s)/", target.User, target.Password, cmp.Or(target.Network, "tcp"), target.Address)
}

// remake makes the database anew.
func remake(ctx context.Context, admin *sql.DB, f catalog.Family) error {
	if err := drop(ctx, admin, f); err != nil {
		return err
	}
	_, err := admin.ExecContext(ctx, "CREATE DATABASE "+database)
	return err
}

// drop removes the database if it is there.
func drop(ctx context.Context, admin *sql.DB, f catalog.Family) error {
	text := "DROP DATABASE IF EXISTS " + database
	if f == catalog.PostgreSQL {
		text += " WITH (FORCE)"
	}
	_, err := admin.ExecContext(ctx, text)
	return err
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
		return write(filepath.Join(h.Dir, fmt.Sprintf("abnormal-%d.yaml", r.seed)), r.schedule())
	}
	return nil
}
