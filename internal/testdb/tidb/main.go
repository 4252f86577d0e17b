// Command tidb is a throw-away TiDB server for isotap's tests: one process, its data in memory. Its
// user is root without a password, from this machine only; what it stored is gone when it ends.
//
// It is a module of its own, so that isotap does not depend on TiDB. "make tidb" builds it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pingcap/tidb/pkg/config"
	"github.com/pingcap/tidb/pkg/ddl"
	"github.com/pingcap/tidb/pkg/server"
	"github.com/pingcap/tidb/pkg/session"
	"github.com/pingcap/tidb/pkg/store/mockstore"
	"github.com/pingcap/tidb/pkg/util/logutil"
)

func main() {
	port := flag.Uint("port", 4000, "TCP port on 127.0.0.1")
	level := flag.String("log", "error", "what is logged, to standard output: debug, info, warn, error or fatal")
	flag.Parse()
	if err := serve(*port, *level); err != nil {
		fmt.Fprintln(os.Stderr, "tidb:", err)
		os.Exit(1)
	}
}

// serve runs the server until SIGINT or SIGTERM.
func serve(port uint, level string) error {
	cfg := config.NewConfig()
	cfg.Host, cfg.Port, cfg.Socket = "127.0.0.1", port, ""
	cfg.Status.ReportStatus = false
	cfg.Performance.ForceInitStats = false // it would wait for statistics that nobody collects
	cfg.Log.Level = level
	config.StoreGlobalConfig(cfg)
	if err := logutil.InitLogger(cfg.Log.ToLogConfig()); err != nil {
		return fmt.Errorf("set the log up: %w", err)
	}
	store, err := mockstore.NewMockStore()
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer store.Close()
	if err := ddl.StartOwnerManager(context.Background(), store); err != nil {
		return fmt.Errorf("start the DDL owner: %w", err)
	}
	domain, err := session.BootstrapSession(store)
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	defer domain.Close()
	srv, err := server.NewServer(cfg, server.NewTiDBDriver(store))
	if err != nil {
		return fmt.Errorf("make the server: %w", err)
	}
	srv.SetDomain(domain)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; srv.Close() }()
	return srv.Run(domain)
}
