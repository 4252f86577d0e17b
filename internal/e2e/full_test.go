//go:build linux

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// A smallDisk is a file system of its own for a recording.
type smallDisk struct {
	t      *testing.T
	dir    string
	filled []string
}

func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts file systems; TestDirectoryThatGoesAwayComesBack of package recorder needs none")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=120m", "tmpfs",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return &smallDisk{t: t, dir: dir}
}

// leave leaves so many MiB.
func (d *smallDisk) leave(mib int64) {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		d.t.Fatal(err)
	}
	name := filepath.Join(d.dir, fmt.Sprint("fill", len(d.filled)))
	d.filled = append(d.filled, name)
	if err := os.WriteFile(name, make([]byte, max(0, int64(s.Bavail)*s.Bsize-mib<<20)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// giveBack gives all of that back.
func (d *smallDisk) giveBack() {
	d.t.Helper()
	for _, name := range d.filled {
		if err := os.Remove(name); err != nil {
			d.t.Fatal(err)
		}
	}
	d.filled = nil
}

// The space that the tests' recordings leave free, and the MiB with which the disk is full for new transactions, and
// for all.
const (
	fullMinFree  = 40 << 20
	fullForNew   = 32
	fullForAll   = 8
	fullPatience = 20 * time.Second
)

// An opener opens a pool of a client's connections to an address, with parameters of its driver.
type opener func(address, parameters string) (*sql.DB, error)

func openMySQL(database string) opener {
	return func(address, parameters string) (*sql.DB, error) {
		config, err := mysql.ParseDSN(fmt.Sprintf("root@tcp(%s)/%s?%s", address, database, parameters))
		if err != nil {
			return nil, err
		}
		config.Logger = &mysql.NopLogger{} // it would log the connections that isotap ends
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
}

func openPgx(database string) opener {
	return func(address, parameters string) (*sql.DB, error) {
		return sql.Open("pgx", fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&%s",
			address, database, parameters))
	}
}

// The parameters of the drivers for texts, and for prepared statements.
const (
	asText      = "interpolateParams=true"
	prepared    = "interpolateParams=false"
	pgxText     = "default_query_exec_mode=simple_protocol"
	pgxPrepared = "default_query_exec_mode=cache_statement"
)

// A fullFamily is a server to test on.
type fullFamily struct {
	name   string
	start  func(t *testing.T) (dsn.Target, opener, *sql.DB)
	params []string // of the driver: a text and a prepared protocol
	insert string
	bump   string
	read   string
	// refused and unknown are the error of a transaction that is refused, and of one that may have committed.
	refused, unknown func(error) bool
}

func mysqlCode(code uint16, state string) func(error) bool {
	return func(err error) bool {
		var e *mysql.MySQLError
		return errors.As(err, &e) && e.Number == code && string(e.SQLState[:]) == state
	}
}

func postgresCode(code string) func(error) bool {
	return func(err error) bool {
		var e *pgconn.PgError
		return errors.As(err, &e) && e.Code == code
	}
}

var fullFamilies = []fullFamily{
	{"MySQL family", func(t *testing.T) (dsn.Target, opener, *sql.DB) {
		database := testdb.NewDatabase(t)
		db := testdb.Open(t, database)
		fullTables(t, db)
		return instrument(t, database), openMySQL(database), db
	}, []string{asText, prepared}, "INSERT INTO entry (id) VALUES (?)", "UPDATE slot SET n = n + 1 WHERE id = ?",
		"SELECT n FROM slot WHERE id = ? FOR UPDATE",
		mysqlCode(1021, "HY000"), mysqlCode(1180, "08007")},
	{"PostgreSQL", func(t *testing.T) (dsn.Target, opener, *sql.DB) {
		database := testdb.NewPostgreSQLDatabase(t)
		db := testdb.OpenPostgreSQL(t, database)
		fullTables(t, db)
		target, err := dsn.Parse(testdb.PostgreSQL(t).URL() + database)
		if err != nil {
			t.Fatal(err)
		}
		return target, openPgx(database), db
	}, []string{pgxText, pgxPrepared}, "INSERT INTO entry (id) VALUES ($1)", "UPDATE slot SET n = n + 1 WHERE id = $1",
		"SELECT n FROM slot WHERE id = $1 FOR UPDATE",
		postgresCode("53100"), postgresCode("08007")},
}

func fullTables(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, s := range []string{"CREATE TABLE entry (id BIGINT PRIMARY KEY)",
		"CREATE TABLE slot (id INT PRIMARY KEY, n INT NOT NULL)", "INSERT INTO slot VALUES (1, 0), (2, 0), (3, 0)"} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// fullProxy starts an isotap whose recording is on a small disk.
func fullProxy(t *testing.T, disk *smallDisk, target dsn.Target, durability recorder.Durability,
	whenFull recorder.WhenFull) *proxyserver.Server {
	t.Helper()
	srv, err := proxyserver.Start(context.Background(), proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: filepath.Join(disk.dir, "rec"), Args: true,
		Durability: durability, WhenFull: whenFull, MinFree: fullMinFree, Drain: time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	return srv
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(fullPatience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, fullPatience)
		}
	}
}

func TestFullDiskRefusesNewTransactionsInWords(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, family := range fullFamilies {
		for _, durability := range []recorder.Durability{recorder.Relaxed, recorder.Commit} {
			for _, params := range family.params {
				t.Run(family.name+" "+durability.String()+" "+params, func(t *testing.T) {
					disk := newSmallDisk(t)
					target, open, direct := family.start(t)
					srv := fullProxy(t, disk, target, durability, recorder.Refuse)
					db, err := open(srv.Addr().String(), params)
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					ctx := t.Context()
					conn, err := db.Conn(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := conn.ExecContext(ctx, family.insert, 1); err != nil {
						t.Fatal(err)
					}
					open1, err := db.BeginTx(ctx, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := open1.ExecContext(ctx, family.insert, 2); err != nil {
						t.Fatal(err)
					}
					disk.leave(fullForNew)
					until(t, "the disk is seen to be full", func() bool { return srv.Ready(ctx) != nil })
					if err := srv.Healthy(ctx); err != nil {
						t.Errorf("an isotap that serves is not healthy: %v", err)
					}
					if _, err := conn.ExecContext(ctx, family.insert, 3); !family.refused(err) {
						t.Errorf("an INSERT gave %v", err)
					}
					if tx, err := conn.BeginTx(ctx, nil); err == nil {
						// Drivers may begin with the first statement only.
						if _, err = tx.ExecContext(ctx, family.insert, 4); !family.refused(err) {
							t.Errorf("the first statement gave %v", err)
						}
						tx.Rollback()
					} else if !family.refused(err) {
						t.Errorf("BEGIN gave %v", err)
					}
					var one int
					if err := conn.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil || one != 1 {
						t.Errorf("what touches no row gave %v", err)
					}
					fresh, err := open(srv.Addr().String(), params)
					if err != nil {
						t.Fatal(err)
					}
					defer fresh.Close()
					if err := fresh.PingContext(ctx); err != nil {
						t.Errorf("a new client cannot connect: %v", err)
					}
					if _, err := fresh.ExecContext(ctx, family.insert, 5); !family.refused(err) {
						t.Errorf("an INSERT of a new client gave %v", err)
					}
					// What is under way goes on.
					if _, err := open1.ExecContext(ctx, family.bump, 1); err != nil {
						t.Errorf("a transaction under way: %v", err)
					}
					if err := open1.Commit(); err != nil {
						t.Errorf("COMMIT of what was under way: %v", err)
					}
					disk.giveBack()
					until(t, "room is noticed", func() bool { return srv.Ready(ctx) == nil })
					for id, c := range map[int]interface {
						ExecContext(context.Context, string, ...any) (sql.Result, error)
					}{6: conn, 7: fresh} {
						if _, err := c.ExecContext(ctx, family.insert, id); err != nil {
							t.Errorf("with room again: %v", err)
						}
					}
					conn.Close()
					db.Close()
					fresh.Close()
					if err := srv.Stop(); err != nil {
						t.Fatal(err)
					}
					var stored string
					rows, err := direct.QueryContext(ctx, "SELECT id FROM entry ORDER BY id")
					if err != nil {
						t.Fatal(err)
					}
					defer rows.Close()
					for rows.Next() {
						var id string
						if err := rows.Scan(&id); err != nil {
							t.Fatal(err)
						}
						stored += " " + id
					}
					if stored != " 1 2 6 7" {
						t.Errorf("the server has%s, want 1 2 6 7: refused statements must not run", stored)
					}
					result := analyzed(t, disk)
					if c := result.Coverage; c.Unrecorded != 0 || c.Committed < 4 || len(result.Findings) != 0 {
						t.Errorf("%d findings, coverage %+v", len(result.Findings), c)
					}
				})
			}
		}
	}
}

func analyzed(t *testing.T, disk *smallDisk) *analyzer.Result {
	t.Helper()
	r, err := analysis.Analyze(t.Context(), []string{filepath.Join(disk.dir, "rec")}, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCommitThatCannotBeRecordedIsNotAcknowledged has no room left when a COMMIT comes, or an autocommitted statement:
// the server has committed, so the client gets neither success nor a failure, and the connection ends.
func TestCommitThatCannotBeRecordedIsNotAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, family := range fullFamilies {
		for _, params := range family.params {
			t.Run(family.name+" "+params, func(t *testing.T) {
				disk := newSmallDisk(t)
				target, open, direct := family.start(t)
				srv := fullProxy(t, disk, target, recorder.Commit, recorder.Refuse)
				db, err := open(srv.Addr().String(), params)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				ctx := t.Context()
				var txs []*sql.Tx
				for id := range 2 {
					tx, err := db.BeginTx(ctx, nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := tx.ExecContext(ctx, family.insert, id+1); err != nil {
						t.Fatal(err)
					}
					txs = append(txs, tx)
				}
				disk.leave(fullForAll)
				if err := txs[0].Commit(); !family.unknown(err) {
					t.Errorf("COMMIT gave %v", err)
				}
				if err := txs[1].Rollback(); err != nil {
					t.Errorf("ROLLBACK, of which nobody waits for the record, gave %v", err)
				}
				var n int
				if err := direct.QueryRowContext(ctx, "SELECT COUNT(*) FROM entry WHERE id = 1").Scan(&n); err != nil ||
					n != 1 {
					t.Errorf("%d rows of the transaction are there, %v: the error said that it had committed", n, err)
				}
				disk.giveBack()
				until(t, "room is noticed", func() bool { return srv.Ready(ctx) == nil })
				if _, err := db.ExecContext(ctx, family.insert, 9); err != nil {
					t.Errorf("with room again: %v", err)
				}
				db.Close()
				if err := srv.Stop(); err != nil {
					t.Fatal(err)
				}
				// It waited in memory: the record is whole all the same.
				if c := analyzed(t, disk).Coverage; c.Unrecorded != 0 || c.Committed != 2 {
					t.Errorf("coverage %+v, want two committed transactions", c)
				}
			})
		}
	}
}

// TestNoFalseFindingAfterAHole takes the disk away in the middle of a workload that no order of can go wrong, and gives
// it back, again and again: what is missing is counted, and nothing is found because of it.
func TestNoFalseFindingAfterAHole(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	t.Parallel() // much of its time is waiting
	for _, family := range fullFamilies {
		for _, durability := range []recorder.Durability{recorder.Relaxed, recorder.Commit} {
			t.Run(family.name+" "+durability.String(), func(t *testing.T) {
				disk := newSmallDisk(t)
				target, open, direct := family.start(t)
				srv := fullProxy(t, disk, target, durability, recorder.Pass)
				db, err := open(srv.Addr().String(), family.params[1])
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				ctx, cancel := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				var mu sync.Mutex
				bumped := 0
				for client := range 4 {
					clients.Go(func() {
						rng := rand.New(rand.NewPCG(uint64(client), 5))
						for n := 0; ctx.Err() == nil; n++ {
							if err := careful(db, &family, rng, 1_000_000*(client+1)+n); err != nil {
								t.Errorf("client %d: %v", client, err)
								return
							}
							mu.Lock()
							bumped++
							mu.Unlock()
						}
					})
				}
				holes := 2
				for range holes {
					time.Sleep(200 * time.Millisecond)
					disk.leave(fullForNew)
					until(t, "the disk is seen to be full", func() bool { return srv.Ready(t.Context()) != nil })
					if err := srv.Healthy(t.Context()); err != nil {
						t.Errorf("an isotap that serves is not healthy: %v", err)
					}
					time.Sleep(300 * time.Millisecond)
					disk.giveBack()
					until(t, "room is noticed", func() bool { return srv.Ready(t.Context()) == nil })
				}
				time.Sleep(200 * time.Millisecond)
				cancel()
				clients.Wait()
				db.Close()
				if err := srv.Stop(); err != nil {
					t.Fatal(err)
				}
				var sum int
				if err := direct.QueryRowContext(t.Context(), "SELECT SUM(n) FROM slot").Scan(&sum); err != nil ||
					sum != bumped {
					t.Errorf("%d transactions were acknowledged, the server has %d: %v", bumped, sum, err)
				}
				r := analyzed(t, disk)
				if len(r.Findings) > 0 {
					t.Errorf("%d findings, the first: %s", len(r.Findings),
						strings.Join(r.Findings[0].Explanation, "\n"))
				}
				c := r.Coverage
				if gaps := r.Runs[0].Gaps; len(gaps) != holes || c.Unrecorded < 10 ||
					c.Committed+c.Unrecorded < bumped {
					t.Errorf("%d acknowledged, %d recorded, %d told to be missing in gaps %+v", bumped,
						c.Committed, c.Unrecorded, gaps)
				}
				t.Logf("%d transactions, %d recorded, %d not", bumped, c.Committed, c.Unrecorded)
			})
		}
	}
}

// careful locks a row before it changes it.
func careful(db *sql.DB, family *fullFamily, rng *rand.Rand, id int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	slot, n := 1+rng.IntN(3), 0
	if err := tx.QueryRow(family.read, slot).Scan(&n); err != nil {
		return err
	}
	if _, err := tx.Exec(family.bump, slot); err != nil {
		return err
	}
	if _, err := tx.Exec(family.insert, id); err != nil {
		return err
	}
	return tx.Commit()
}
