package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/serverlog"
)

// What was written past the proxy, or by statements that tell no versions, has writers that nobody knows. Who read
// the same version of it is ordered all the same.

// TestLostUpdatesOfUnseenRowsAreFound loses an update of a row that came to be in each way that tells no version.
func TestLostUpdatesOfUnseenRowsAreFound(t *testing.T) {
	const table, row = "CREATE TABLE stock (id int PRIMARY KEY, n int)", "INSERT INTO stock VALUES (1, 10)"
	copied := func(b *postgresBench, c *pgx.Conn) {
		if _, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader("1\t10\n"), "COPY stock FROM STDIN"); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		setup []string
		seed  func(b *postgresBench, through *pgx.Conn)
	}{
		{"past the proxy", []string{table}, func(b *postgresBench, _ *pgx.Conn) {
			b.exec(b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol), row)
		}},
		{"by COPY", []string{table}, copied},
		{"by a DO block", []string{table}, func(b *postgresBench, c *pgx.Conn) {
			b.exec(c, "DO $$ BEGIN INSERT INTO stock VALUES (1, 10); END $$")
		}},
		{"in the transaction of its table", nil, func(b *postgresBench, c *pgx.Conn) {
			b.exec(c, "BEGIN", table, row, "COMMIT")
		}},
	} {
		for _, blind := range []bool{false, true} {
			name := tt.name
			if blind {
				name += ", over who did not look"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newLoggedBench(t, serverlog.Off, tt.setup...)
				x, y := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol),
					b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
				tt.seed(b, x)
				b.exec(x, "BEGIN", "SELECT n FROM stock WHERE id = 1")
				if blind {
					b.exec(y, "UPDATE stock SET n = n - 1 WHERE id = 1")
				} else {
					b.exec(y, "BEGIN", "SELECT n FROM stock WHERE id = 1", "UPDATE stock SET n = 9 WHERE id = 1", "COMMIT")
				}
				b.exec(x, "UPDATE stock SET n = 8 WHERE id = 1", "COMMIT")
				r := b.analyze()
				if len(r.Findings) != 1 || countOf(t, r, analyzer.LostUpdate) != 1 {
					t.Errorf("%d findings", len(r.Findings))
				}
				want := 2
				if blind {
					want = 1
				}
				if r.Coverage.UnseenOrigins != want {
					t.Errorf("%d reads of versions that nobody was seen to write, want %d", r.Coverage.UnseenOrigins, want)
				}
			})
		}
	}
}

// TestLostUpdatesOfUnseenRowsAreCounted is TestLostUpdatesAreCountedAsByClients on rows that were inserted past the
// proxy while it ran.
func TestLostUpdatesOfUnseenRowsAreCounted(t *testing.T) {
	b := newPostgresBench(t, "CREATE TABLE counter (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)")
	b.exec(b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol),
		"INSERT INTO counter SELECT i, 0 FROM generate_series(0, 1000) i")
	var next atomic.Int64
	all := b.plant(history.ReadCommitted.String(), func(ctx context.Context, c *pgx.Conn, _ *rand.Rand) ([]touched,
		error) {
		x, v := touched{id: int(next.Add(1)) / 4}, 0
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

// TestServerIsNotBlamedBesideUnseenWriters has clients write rows that others write past the proxy at the same time.
// The server keeps its word all the while: no finding is a violation. At SERIALIZABLE its word is not given for cycles
// through writers at other levels, as those are.
func TestServerIsNotBlamedBesideUnseenWriters(t *testing.T) {
	for _, level := range []history.Level{history.RepeatableRead, history.Serializable} {
		t.Run(level.String(), func(t *testing.T) {
			b := newLoggedBench(t, serverlog.Off,
				"CREATE TABLE counter (id int PRIMARY KEY, v int, n int NOT NULL DEFAULT 0)",
				"INSERT INTO counter SELECT i, 0 FROM generate_series(1, 6) i")
			beside := b.connect(b.direct(), pgx.QueryExecModeSimpleProtocol)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan int)
			go func() {
				r, n := rand.New(rand.NewPCG(5, 5)), 0
				for ; ctx.Err() == nil; n++ {
					beside.Exec(t.Context(), "UPDATE counter SET v = v + 1 WHERE id = $1", 1+r.IntN(6))
				}
				done <- n
			}()
			all := b.plant(level.String(), func(ctx context.Context, c *pgx.Conn, r *rand.Rand) ([]touched, error) {
				return nil, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
					for range 1 + r.IntN(3) {
						if _, err := tx.Exec(ctx, "SELECT v FROM counter WHERE id IN ($1, $2)", 1+r.IntN(6), 1+r.IntN(6)); err != nil {
							return err
						}
						if r.IntN(3) == 0 {
							continue
						}
						if _, err := tx.Exec(ctx, "UPDATE counter SET v = v + 1 WHERE id = $1", 1+r.IntN(6)); err != nil {
							return err
						}
					}
					return nil
				})
			})
			stop()
			n, r := <-done, b.analyze()
			for _, f := range r.Findings {
				if f.Class == analyzer.Violation {
					t.Errorf("%s %s, %d times: %v", f.Class, f.Anomaly, f.Count, f.Explanation)
				}
			}
			t.Logf("%d transactions, %d writes beside them, %d reads of these", len(all), n, r.Coverage.UnseenOrigins)
			if r.Coverage.UnseenOrigins == 0 || len(all) == 0 {
				t.Error("nobody read what was written beside the proxy")
			}
		})
	}
}
