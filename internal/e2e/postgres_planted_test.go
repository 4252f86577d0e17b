package e2e

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
)

// Mistakes that are planted, and counted by who makes them: each row has a number that every write makes one larger,
// so that a client knows which version it read and which one it wrote.

const (
	plantingClients = 8
	plantedEach     = 40
)

// A touched row is one whose version a transaction read, and perhaps the one that it left.
type touched struct{ id, read, left int }

// plant has clients run transactions, and returns what those that committed saw.
func (b *postgresBench) plant(level string, transaction func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched,
	error)) (all [][]touched) {
	var clients sync.WaitGroup
	var mu sync.Mutex
	for n := range plantingClients {
		c, r := b.connect(b.through(), postgresModes[n], "default_transaction_isolation", level),
			rand.New(rand.NewPCG(11, uint64(n)))
		clients.Go(func() {
			for range plantedEach {
				if saw, err := transaction(b.t.Context(), c, r); err == nil {
					mu.Lock()
					all = append(all, saw)
					mu.Unlock()
				}
			}
		})
	}
	clients.Wait()
	return all
}

// countOf is how often an anomaly was found. None is the server's fault.
func countOf(t *testing.T, r *analyzer.Result, a analyzer.Anomaly) (n int) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Class != analyzer.Hazard {
			t.Errorf("%s %s: %v", f.Class, f.Anomaly, f.Explanation)
		}
		if f.Anomaly == a {
			n += f.Count
		}
	}
	return n
}

// TestEvidenceOutlivesLongTransactions has rows that were written after a transaction began that still runs.
func TestEvidenceOutlivesLongTransactions(t *testing.T) {
	b := startPostgresBench(t, tapMode{}, "CREATE TABLE stock (id int PRIMARY KEY, n int)")
	b.stop()
	long, other := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol),
		b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
	b.exec(long, "BEGIN", "CREATE TABLE kept_open (id int)")
	b.exec(other, "INSERT INTO stock VALUES (1, 10)")
	b.recording = filepath.Join(t.TempDir(), "late")
	b.start(func(*proxyserver.Options) {})
	x, y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
		b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	for _, c := range []*pgx.Conn{x, y} {
		b.exec(c, "BEGIN", "SELECT n FROM stock WHERE id = 1")
	}
	for _, c := range []*pgx.Conn{x, y} {
		b.exec(c, "UPDATE stock SET n = 9 WHERE id = 1", "COMMIT")
	}
	if r := b.analyze(); len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 {
		t.Errorf("%d findings", len(r.Findings))
	}
	b.exec(long, "ROLLBACK")
}

// TestLostUpdatesAreCountedAsByClients has clients read a counter, and write what they have worked out:
// an update is lost if the version that it replaced is not the one that was read.
func TestLostUpdatesAreCountedAsByClients(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE counter (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)",
		"INSERT INTO counter VALUES (1, 0), (2, 0), (3, 0)")
	all := b.plant(history.ReadCommitted.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched,
		error) {
		x, v := touched{id: 1 + r.IntN(3)}, 0
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "SELECT v, n FROM counter WHERE id = $1", x.id).Scan(&v, &x.read); err != nil {
				return err
			}
			return tx.QueryRow(ctx, "UPDATE counter SET v = $1, n = n + 1 WHERE id = $2 RETURNING n", v+1,
				x.id).Scan(&x.left)
		})
		return []touched{x}, err
	})
	b.findsEachLostUpdate(all)
}

// findsEachLostUpdate compares the lost updates that are found with those that the clients saw: the version that a
// transaction replaced is not the one that it read.
func (b *postgresBench) findsEachLostUpdate(all [][]touched) {
	b.t.Helper()
	lost := 0
	for _, saw := range all {
		if saw[0].left != saw[0].read+1 {
			lost++
		}
	}
	b.t.Logf("%d transactions lost %d updates", len(all), lost)
	if got := countOf(b.t, b.analyze(), analyzer.LostUpdate); got != lost || lost == 0 {
		b.t.Errorf("%d lost updates are found, the clients know of %d", got, lost)
	}
}

// TestWriteSkewsAreCountedAsByClients has clients read both rows of a pair, and write one: a skew is two
// transactions of which each wrote the row that the other one read, right after the version that it read.
func TestWriteSkewsAreCountedAsByClients(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE duty (id int PRIMARY KEY, n int NOT NULL DEFAULT 0)",
		"INSERT INTO duty SELECT i FROM generate_series(0, 5) i")
	all := b.plant(history.RepeatableRead.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched,
		error) {
		wrote := touched{id: r.IntN(6)}
		other := touched{id: wrote.id ^ 1}
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for _, x := range []*touched{&wrote, &other} {
				if err := tx.QueryRow(ctx, "SELECT n FROM duty WHERE id = $1", x.id).Scan(&x.read); err != nil {
					return err
				}
			}
			return tx.QueryRow(ctx, "UPDATE duty SET n = n + 1 WHERE id = $1 RETURNING n", wrote.id).Scan(&wrote.left)
		})
		return []touched{wrote, other}, err
	})
	skews := 0
	writers := make(map[touched][]touched) // what a version's writer saw, by the version
	for _, saw := range all {
		writers[touched{id: saw[0].id, left: saw[0].left}] = saw
	}
	for _, saw := range all {
		other := writers[touched{id: saw[1].id, left: saw[1].read + 1}]
		if other != nil && other[1].read+1 == saw[0].left {
			skews++ // seen from both
		}
	}
	t.Logf("%d transactions, %d write skews", len(all), skews/2)
	if got := countOf(t, b.analyze(), analyzer.WriteSkew); got != skews/2 || skews == 0 {
		t.Errorf("%d write skews are found, the clients know of %d", got, skews/2)
	}
}
