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
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/engine"
	"github.com/isotap/isotap/internal/proxyserver"
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

// RunDemo starts a server, runs the shop through the proxy and analyzes the recording. Everything it made
// is gone when it returns.
func RunDemo(ctx context.Context, o DemoOptions) (result *analyzer.Result, err error) {
	e, err := engine.Find(o.Engine)
	if err != nil {
		return nil, err
	}
	server, err := e.Start(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	target, err := openShop(ctx, e, server, o.Columns)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "isotap-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the recording: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recording := filepath.Join(dir, "recording")
	if err := trade(ctx, o, target, recording); err != nil {
		return nil, err
	}
	return analysis.Analyze(ctx, []string{recording}, analyzer.Options{})
}

// openShop makes the shop's tables and readies them for isotap.
func openShop(ctx context.Context, e *engine.Engine, server engine.Server, columns bool) (dsn.Target, error) {
	target, err := dsn.Parse(server.URL() + demoDatabase)
	if err != nil {
		return target, err
	}
	db, err := server.DB("")
	if err != nil {
		return target, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+demoDatabase); err != nil {
		return target, fmt.Errorf("make the shop's database: %w", err)
	}
	inShop, err := server.DB(demoDatabase)
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
func trade(ctx context.Context, o DemoOptions, target dsn.Target, recording string) error {
	srv, err := proxyserver.Start(ctx, proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0",
		Recording: recording, Columns: o.Columns, Args: true,
		Drain: time.Second, ServerLog: serverlog.Auto, Version: o.Version})
	if err != nil {
		return err
	}
	place, err := srv.Environment()
	if err != nil {
		return errors.Join(err, srv.Stop())
	}
	started := time.Now()
	outcome, err := shop.Run(ctx, place["dsn"], shop.Config{Seed: o.Seed})
	if err := errors.Join(err, srv.Stop()); err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "the shop worked for %.1f s through isotap; its own books say:\n%v\n",
		time.Since(started).Seconds(), outcome)
	return nil
}
