package e2e

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/known"
	"github.com/isotap/isotap/workload/shop"
)

var (
	figureRuns = flag.Int("provoke-figures", 0, "measure the time to the first finding in so many runs of each workload")
	figureRate = flag.Float64("provoke-rate", 20, "transactions a second")
	figureTime = flag.Duration("provoke-time", time.Minute, "how long a run without a finding goes on")
)

// TestFiguresOfTheFirstFinding measures how long workloads whose transactions begin at random times run until the first
// finding, with and without statements that are held back.
func TestFiguresOfTheFirstFinding(t *testing.T) {
	if *figureRuns == 0 {
		t.Skip("it measures: -provoke-figures 5")
	}
	for _, family := range []string{"MariaDB", "PostgreSQL"} {
		for _, name := range []string{"smallbank", "shop"} {
			for _, provoked := range []bool{true, false} {
				var times []time.Duration
				for seed := range *figureRuns {
					f := figure{t: t, workload: name, seed: uint64(seed + 1), provoked: provoked}
					times = append(times, f.measure(family))
				}
				slices.Sort(times)
				fmt.Printf("%s, %s, provoked %t: median %v of %v\n", family, name, provoked, times[len(times)/2], times)
			}
		}
	}
}

// A figure is one run.
type figure struct {
	t        *testing.T
	workload string
	seed     uint64
	provoked bool
}

// measure returns when, after the clients had begun, the first hazard was complete; -provoke-time where there was none.
func (f *figure) measure(family string) time.Duration {
	f.t.Helper()
	var how *provoke.Options
	if f.provoked {
		how = &provoke.Options{Max: provoke.DefaultMax, Seed: f.seed}
	}
	target, db := f.database(family)
	if f.workload == "shop" {
		if err := shop.Setup(f.t.Context(), db); err != nil {
			f.t.Fatal(err)
		}
		if family == "MariaDB" {
			instrument(f.t, target.Database)
		}
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), *figureTime)
	defer cancel()
	srv, recording := provokes(f.t, target, how, func(o *proxyserver.Options) {
		o.Watch = &monitor.Options{Every: 50 * time.Millisecond, Tell: func([]analyzer.News) { cancel() }}
	})
	began := f.work(ctx, srv.DSN(target.Database))
	run := srv.Run()
	if err := srv.Stop(); err != nil {
		f.t.Error(err)
	}
	first := f.first(recording, run, began)
	fmt.Printf("  %s, %s, seed %d: %v, %+v\n", family, f.workload, f.seed, first.Round(time.Millisecond), srv.Provoked())
	return first.Round(10 * time.Millisecond)
}

// first returns how long after began the first hazard was complete.
func (f *figure) first(recording string, run history.Run, began time.Time) time.Duration {
	r, err := analysis.AnalyzeRun(context.Background(), recording, run, analyzer.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	first := *figureTime
	for _, found := range r.Findings {
		first = min(first, time.Duration(found.First)-began.Sub(r.Runs[0].Started))
	}
	return first
}

// database makes one.
func (f *figure) database(family string) (dsn.Target, *sql.DB) {
	var url, name string
	var db *sql.DB
	if family == "MariaDB" {
		name = testdb.NewDatabase(f.t)
		url, db = testdb.Current(f.t).URL()+name, testdb.Open(f.t, name)
	} else {
		name = testdb.NewPostgreSQLDatabase(f.t)
		url, db = testdb.PostgreSQL(f.t).DSN(name), testdb.OpenPostgreSQL(f.t, name)
	}
	target, err := dsn.Parse(url)
	if err != nil {
		f.t.Fatal(err)
	}
	return target, db
}

// work has clients work until the context ends, and returns when they began.
func (f *figure) work(ctx context.Context, data string) (began time.Time) {
	if f.workload == "shop" {
		began = time.Now()
		if _, err := shop.Run(ctx, data, shop.Config{Seed: f.seed, Transactions: 1 << 20, Rate: *figureRate}); ctx.Err() == nil {
			f.t.Fatal(err)
		}
		return began
	}
	w, err := known.New(f.workload, known.Options{Scale: 5})
	if err != nil {
		f.t.Fatal(err)
	}
	dialect := workload.DialectOf(data)
	db, err := dialect.Open(data, false)
	if err != nil {
		f.t.Fatal(err)
	}
	defer db.Close()
	tables, statements := w.Setup()
	if err := workload.Setup(f.t.Context(), db, tables, statements); err != nil {
		f.t.Fatal(err)
	}
	began = time.Now()
	_, err = workload.Run(ctx, data, w, workload.Config{Duration: *figureTime, Rate: *figureRate, Irregular: true, Seed: f.seed,
		Isolation: workload.Isolation{Level: history.ReadCommitted}})
	if ctx.Err() == nil && err != nil {
		f.t.Fatal(err)
	}
	return began
}
