package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/history"
)

// TestPatternsThatAreSafeAreNotReported runs what careful applications do side by side at READ COMMITTED: workers that
// take jobs with SKIP LOCKED, a counter that an advisory lock guards, and reports at REPEATABLE READ.
func TestPatternsThatAreSafeAreNotReported(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newPostgresBench(t, "CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL DEFAULT 'new')",
		"INSERT INTO job SELECT i FROM generate_series(1, 120) i",
		"CREATE TABLE counter (id int PRIMARY KEY, v int NOT NULL)", "INSERT INTO counter VALUES (1, 0)")
	ctx := t.Context()
	var clients sync.WaitGroup
	start := func(mode pgx.QueryExecMode, o pgx.TxOptions, times int, transaction func(tx pgx.Tx) error) {
		c := b.connect(b.through(), mode)
		clients.Go(func() {
			for range times {
				if err := pgx.BeginTxFunc(ctx, c, o, transaction); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 4 {
		start(postgresModes[n], pgx.TxOptions{}, 30, func(tx pgx.Tx) error { return takeJob(ctx, tx) })
		start(postgresModes[n], pgx.TxOptions{}, 30, func(tx pgx.Tx) error { return countUp(ctx, tx) })
	}
	start(pgx.QueryExecModeSimpleProtocol, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, 10,
		func(tx pgx.Tx) error { return reportOn(ctx, t, tx) })
	clients.Wait()

	c := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
	var done, counted int
	if err := c.QueryRow(ctx, "SELECT (SELECT count(*) FROM job WHERE state = 'done'), v FROM counter").Scan(&done,
		&counted); err != nil {
		t.Fatal(err)
	}
	if done != 120 || counted != 120 {
		t.Errorf("%d jobs are done and %d counted, of 120", done, counted)
	}
	r := b.analyze()
	for _, f := range r.Findings {
		t.Errorf("%s %s x%d: %v%s", f.Class, f.Anomaly, f.Count, f.Explanation, transactionsOf(f))
	}
	for _, k := range []history.Kind{history.Update, history.Select} {
		if o := r.Coverage.Kinds[k]; o.Exact != o.Statements() {
			t.Errorf("%d of %d %ss are exact: %v", o.Exact, o.Statements(), k, r.Coverage.Reasons)
		}
	}
}

// takeJob takes a job that nobody else has, and does it.
func takeJob(ctx context.Context, tx pgx.Tx) error {
	var id int
	if err := tx.QueryRow(ctx, "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 "+
		"FOR UPDATE SKIP LOCKED").Scan(&id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE job SET state = 'done' WHERE id = $1", id)
	return err
}

// countUp changes a counter that it has read, under a lock that is not the row's.
func countUp(ctx context.Context, tx pgx.Tx) error {
	var v int
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(1)"); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, "SELECT v FROM counter WHERE id = 1").Scan(&v); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE counter SET v = $1 WHERE id = 1", v+1)
	return err
}

// reportOn sums up all of one snapshot, and finds it unchanged.
func reportOn(ctx context.Context, t *testing.T, tx pgx.Tx) error {
	var first, again [2]int
	for _, sums := range []*[2]int{&first, &again} {
		const query = "SELECT count(*) FILTER (WHERE state = 'done')::int, max(v) FROM job, counter"
		if err := tx.QueryRow(ctx, query).Scan(&sums[0], &sums[1]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT state, count(*) FROM job GROUP BY state"); err != nil {
			return err
		}
	}
	if first != again {
		t.Errorf("a snapshot has %v, then %v", first, again)
	}
	return nil
}
