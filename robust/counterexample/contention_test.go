package counterexample_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/tempdb"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/counterexample"
	"github.com/isotap/isotap/workload"
)

var contention = flag.Duration("contention", 0, "how long each set of programs runs; 0: for some hundred transactions")

// customers are few, so that the programs meet.
const customers = 3

// A load runs programs of a benchmark as its file has them, each time by one of their ways.
type load struct {
	programs []*robust.Program
	levels   []robust.Level // parallel to programs; nil: READ COMMITTED for all
	tables   *counterexample.Tables
	unique   atomic.Int64
}

func (l *load) Setup() (tables, statements []string) { return nil, nil }

func (l *load) Check(context.Context, workload.Handle) ([]workload.Check, error) { return nil, nil }

func (l *load) Programs() []workload.Program {
	var all []workload.Program
	for i, p := range l.programs {
		ways := robust.Unfold(p)
		all = append(all, workload.Program{Name: p.Name, Weight: 1,
			Run: func(ctx context.Context, c *workload.Client) error {
				return l.run(ctx, c, ways[c.Random.IntN(len(ways))], l.begins(i))
			}})
	}
	return all
}

// begins returns what the transactions of a program begin with, to run at its level.
func (l *load) begins(program int) string {
	level := history.ReadCommitted
	if l.levels != nil {
		level = map[robust.Level]history.Level{robust.ReadCommitted: level,
			robust.SnapshotIsolation: history.RepeatableRead,
			robust.Serializable:      history.Serializable}[l.levels[program]]
	}
	return "SET TRANSACTION ISOLATION LEVEL " + level.String()
}

// run runs a way through a program for two customers that differ.
func (l *load) run(ctx context.Context, c *workload.Client, way *robust.LTP, begins string) error {
	first := c.Random.IntN(customers)
	second := (first + 1 + c.Random.IntN(customers-1)) % customers
	one, two := strconv.Itoa(first+1), strconv.Itoa(second+1)
	values := map[string]string{":N1": one, ":x1": one, ":B": one, ":N2": two, ":x2": two,
		":V": strconv.Itoa(c.Random.IntN(100)), ":T": strconv.Itoa(c.Random.IntN(100)),
		":logId": strconv.FormatInt(l.unique.Add(1), 10)}
	return c.Transaction(ctx, func(tx workload.Handle) error {
		if err := tx.Exec(ctx, begins); err != nil {
			return err
		}
		for _, q := range way.Statements {
			sql, err := l.tables.Bind(q.Statement, values)
			if err != nil {
				return err
			}
			if err := tx.Exec(ctx, sql); err != nil {
				return err
			}
			if err := c.Think(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// fills returns the statements that fill a benchmark's tables, for a customer.
var fills = map[string]string{
	"smallbank": "INSERT INTO Savings VALUES (%[1]d, 100); INSERT INTO Checking VALUES (%[1]d, 100); INSERT INTO Account VALUES ('%[1]d', %[1]d)",
	"auction":   "INSERT INTO Buyer VALUES (%[1]d, 0); INSERT INTO Bids VALUES (%[1]d, 50)",
}

// What is robust against READ COMMITTED has no cycle there, however much its transactions meet; and what is not robust
// has, under the same load.
func TestRobustSetsHaveNoCycleUnderContention(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, c := range []struct {
		benchmark, programs string
		cycles              bool
	}{
		{"smallbank", "Am DC TS", false},
		{"smallbank", "Bal DC", false},
		{"smallbank", "Bal TS", false},
		{"auction", "FB PB", false},
		{"smallbank", "Bal Am DC TS WC", true},
	} {
		t.Run(c.benchmark+" "+c.programs, func(t *testing.T) {
			w, tables, definitions := benchmark(t, c.benchmark)
			l := &load{tables: tables}
			for _, p := range w.Programs {
				if slices.Contains(strings.Fields(c.programs), p.Label()) {
					l.programs = append(l.programs, p)
				}
			}
			if a := robust.Analyze(l.programs, robust.Setting{ForeignKeys: true}); a.Robust(robust.TypeII) == c.cycles {
				t.Fatalf("they are robust: %v", !c.cycles)
			}
			result := l.under(t, definitions, fills[c.benchmark])
			if !c.cycles {
				findsNothing(t, result)
			} else if len(result.Findings) == 0 {
				t.Error("nothing was found: the load is too small")
			}
		})
	}
}

func findsNothing(t *testing.T, r *analyzer.Result) {
	t.Helper()
	for _, f := range r.Findings {
		t.Errorf("%s: %s", f.Anomaly, f.Summary)
	}
}

// under runs the load on PostgreSQL through isotap.
func (l *load) under(t *testing.T, definitions, fill string) *analyzer.Result {
	t.Helper()
	config := workload.Config{Clients: 8, Transactions: 300, Think: time.Millisecond, Seed: 1,
		Isolation: workload.Isolation{Level: history.ReadCommitted}}
	if *contention > 0 {
		config.Transactions, config.Duration = 0, *contention
	}
	options := tempdb.Options{Database: "isotap_contention", Predicates: true}
	result, err := tempdb.Run(t.Context(), postgresql(t), options, func(ctx context.Context, dsn string) error {
		db, err := workload.DialectOf(dsn).Open(dsn, false)
		if err != nil {
			return err
		}
		defer db.Close()
		// Amalgamate deadlocks with itself; the clients connect after this.
		setup := append([]string{"ALTER DATABASE isotap_contention SET deadlock_timeout = '50ms'"},
			strings.Split(definitions, ";")...)
		for i := range customers {
			setup = append(setup, strings.Split(fmt.Sprintf(fill, i+1), ";")...)
		}
		for _, sql := range setup {
			if _, err := db.ExecContext(ctx, sql); err != nil {
				return err
			}
		}
		outcome, err := workload.Run(ctx, dsn, l, config)
		if err == nil {
			t.Log(outcome.Programs)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d findings; of %d statements %d were observed exactly", len(result.Findings),
		result.Coverage.Statements, result.Coverage.Exact)
	return result
}
