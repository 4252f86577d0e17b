package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/config"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/report"
)

func proxyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "proxy --upstream URL --recording DIR",
		Short: "Stand between clients and their database, and record",
		Long: "Serves clients until SIGTERM or SIGINT, then lets open transactions finish.\n" +
			"Tables of MariaDB, MySQL and TiDB must carry isotap's columns to be observed: see isotap instrument.\n\n" +
			"On SIGHUP, and when the file of --config changes, the settings are read again; those that a running\n" +
			"proxy cannot take are named in the log. Every flag may come from the environment (ISOTAP_LISTEN for\n" +
			"--listen).",
		Example: "  isotap proxy --upstream mysql://app:secret@db:3306/shop --listen 127.0.0.1:3307 --recording ./rec\n" +
			"  isotap proxy --config /etc/isotap.yaml",
		Args: noArguments,
	}
	load := settingsFlags(c, config.Default())
	var live watching
	live.flags(c, "live", "analyse while recording, and print findings as they are made")
	var scope scopeFlag
	scope.add(c, "with --live: ")
	c.Flags().Uint64Var(&live.again, "live-again", defaultAgain, "with --live: how many transactions, with those of the "+
		"server's log and the rows that they wrote, are analysed once more at the end at most")
	c.Flags().BoolVar(&live.json, "json", false,
		"with --live: print findings as JSON, one object a line (docs/report-json.md)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := load()
		if err != nil {
			return err
		}
		o, err := options(&s.Settings)
		if err != nil {
			return err
		}
		var level zap.AtomicLevel
		if o.Logger, level, err = newLogger(s.LogLevel); err != nil {
			return err
		}
		if live.scope, err = scope.scope(); err != nil {
			return err
		}
		if c.Flags().Changed("scope") && !live.on {
			return errors.New("--scope: it takes --live to tell what lies between the transactions of a request")
		}
		if err := live.watch(&o, c.OutOrStdout()); err != nil {
			return err
		}
		srv, err := proxyserver.Start(c.Context(), o)
		if err != nil {
			return err
		}
		live.sayLate(c, srv)
		r := reloader{load: load, current: s, srv: srv, level: level, log: o.Logger}
		config.Watch(c.Context(), c.Flag("config").Value.String(), r.reload)
		sayUnwatched(c, srv)
		fmt.Fprintf(c.ErrOrStderr(), "isotap: clients connect to %s, the server is %s\n", srv.Addresses(), o.Upstream)
		if a := srv.AdminAddr(); a != nil {
			fmt.Fprintf(c.ErrOrStderr(), "isotap: metrics and health are at http://%s/metrics, /healthz, /readyz\n", a)
		}
		if err := srv.Wait(); err != nil || srv.Watched() == nil {
			return err
		}
		warn(c.ErrOrStderr(), srv.WatchStats(), srv.WatchDelay())
		result, err := live.end(c, srv, o.Recording)
		if err != nil {
			return err
		}
		return report.Summary(c.ErrOrStderr(), result, "")
	}
	return c
}

// sayLate says what a live analysis tells later than the rest.
func (w *watching) sayLate(c *cobra.Command, srv *proxyserver.Server) {
	if !w.on || !srv.Predicates() && !srv.ReadsLog() && w.scope == analyzer.NoScope {
		return
	}
	var of []string
	if srv.Predicates() {
		of = append(of, "by predicates")
	}
	if srv.ReadsLog() {
		of = append(of, "that rest on the server's log (who writes past isotap)")
	}
	if w.scope != analyzer.NoScope {
		of = append(of, "between transactions of a request")
	}
	when := "not told while they are made, but at the end"
	if w.slides() {
		when = fmt.Sprintf("told every %s, and the rest at the end", w.every)
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: findings %s are %s\n", strings.Join(of, ", "), when)
}

// sayUnwatched says what a proxy cannot watch.
func sayUnwatched(c *cobra.Command, srv *proxyserver.Server) {
	said, err := srv.Unwatched(c.Context())
	if err != nil {
		said = append(said, err.Error())
	}
	for _, sentence := range said {
		fmt.Fprintln(c.ErrOrStderr(), "isotap:", sentence)
	}
}

// A reloader gives a running proxy the settings that changed.
type reloader struct {
	load    func() (config.Loaded, error)
	current config.Loaded // as the proxy has them; what needs a restart is as it was at the start
	srv     *proxyserver.Server
	level   zap.AtomicLevel
	log     *zap.Logger
}

func (r *reloader) reload() {
	next, err := r.load()
	if err != nil {
		r.log.Error("the settings stay as they were", zap.Error(err))
		return
	}
	taken, left := r.current.Changes(&next)
	r.current = r.current.Taking(&next)
	o, err := options(&r.current.Settings)
	if err == nil {
		err = r.level.UnmarshalText([]byte(r.current.LogLevel))
	}
	if err != nil {
		r.log.Error("the settings stay as they were", zap.Error(err))
		return
	}
	r.srv.Reconfigure(o.Reloadable())
	r.log.Info("settings read again", zap.Strings("changed", taken), zap.Strings("need_restart", left))
}
