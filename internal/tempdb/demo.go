package tempdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/explore"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/clone"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/workload/shop"
)

const demoDatabase = "shop"

// DemoOptions say what [RunDemo] runs.
type DemoOptions struct {
	Engine  string // one of engine.Names; empty: the first of them that is installed, MariaDB when none is
	Seed    uint64
	Columns bool      // PostgreSQL's rows are known by isotap's columns
	Version string    // isotap's own
	Log     io.Writer // what is being done, a line each
}

// A DemoResult is what [RunDemo] shows.
type DemoResult struct {
	Watched  *analyzer.Result // what happened to clients that worked at the same time
	Tested   *analyzer.Result // and to those of a test suite, which worked one after the other
	Explored *explore.Result  // what could have happened to these
}

// testTransactions is how many the shop's test suite has: each program a few times.
const testTransactions = 65

// RunDemo starts a server, runs the shop through the proxy and analyzes the recording; then it runs the shop's programs
// one after the other, as a test suite does, and explores that recording. Everything it made is gone when it returns.
func RunDemo(ctx context.Context, o DemoOptions) (result *DemoResult, err error) {
	e, err := engine.Find(o.Engine)
	if err != nil {
		return nil, err
	}
	server, err := e.Start(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	dir, err := os.MkdirTemp("", "isotap-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the recordings: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	result = &DemoResult{}
	if result.Watched, err = watchShop(ctx, o, e, server, filepath.Join(dir, "recording")); err != nil {
		return nil, err
	}
	if err := result.exploreShop(ctx, o, e, server, filepath.Join(dir, "tests")); err != nil {
		return nil, err
	}
	return result, nil
}

// watchShop has the shop's clients work at the same time.
func watchShop(ctx context.Context, o DemoOptions, e *engine.Engine, server engine.Server, recording string) (*analyzer.Result,
	error) {
	target, err := openShop(ctx, e, server, demoDatabase, o.Columns)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	_, outcome, err := trade(ctx, o, target, recording, shop.Config{Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Log, "the shop worked for %.1f s through isotap; its own books say:\n%v\n", time.Since(started).Seconds(), outcome)
	return analysis.Analyze(ctx, []string{recording}, analyzer.Options{})
}

// exploreShop has them take turns, and plays that on copies of the shop as it was before.
func (d *DemoResult) exploreShop(ctx context.Context, o DemoOptions, e *engine.Engine, server engine.Server,
	recording string) error {
	target, err := openShop(ctx, e, server, demoDatabase+"_tests", o.Columns)
	if err != nil {
		return err
	}
	was, err := clone.Make(ctx, target, clone.Options{})
	if err != nil {
		return err
	}
	run, _, err := trade(ctx, o, target, recording, shop.Config{Seed: o.Seed, Transactions: testTransactions, Serial: true})
	if err != nil {
		return err
	}
	if d.Tested, err = analysis.Analyze(ctx, []string{recording}, analyzer.Options{}); err != nil {
		return err
	}
	r, err := recorder.Open(recording)
	if err != nil {
		return err
	}
	defer r.Close()
	d.Explored, err = explore.Explore(ctx, r, explore.Options{Was: was.Target(), Database: target.Database, Run: run,
		Copy: clone.Temporary})
	return err
}

// openShop makes a database with the shop's tables and readies them for isotap.
func openShop(ctx context.Context, e *engine.Engine, server engine.Server, database string, columns bool) (dsn.Target, error) {
	target, err := dsn.Parse(server.URL() + database)
	if err != nil {
		return target, err
	}
	db, err := server.DB("")
	if err != nil {
		return target, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return target, fmt.Errorf("make the shop's database: %w", err)
	}
	inShop, err := server.DB(database)
	if err != nil {
		return target, err
	}
	defer inShop.Close()
	if err := shop.Setup(ctx, inShop); err != nil {
		return target, fmt.Errorf("make the shop's tables: %w", err)
	}
	return target, e.Ready(ctx, target, columns)
}

// trade runs the shop through a proxy.
func trade(ctx context.Context, o DemoOptions, target dsn.Target, recording string, config shop.Config) (run history.Run,
	outcome shop.Outcome, err error) {
	srv, err := proxyserver.Start(ctx, proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: recording, Columns: o.Columns, Args: true,
		Drain: time.Second, ServerLog: serverlog.Auto, Version: o.Version})
	if err != nil {
		return run, outcome, err
	}
	place, err := srv.Environment()
	if err == nil {
		outcome, err = shop.Run(ctx, place["dsn"], config)
	}
	return srv.Run(), outcome, errors.Join(err, srv.Stop())
}
