package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/isotap/isotap/internal/config"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// settingsFlags adds --config and the flags of all settings to c. load gives the settings once c runs,
// and reads the file anew each time.
func settingsFlags(c *cobra.Command, defaults config.Settings) (load func() (config.Loaded, error)) {
	given := defaults
	file := c.Flags().String("config", "", "read settings from this YAML file (configs/isotap.yaml explains them)")
	config.Flags(c.Flags(), &given)
	completeSettings(c)
	return func() (config.Loaded, error) { return config.Load(defaults, *file, c.Flags()) }
}

// settingsFlag adds --upstream alone. The URL is known once c runs.
func settingsFlag(c *cobra.Command) func() string {
	url := c.Flags().String("upstream", "", config.Options[0].Usage)
	return func() string { return *url }
}

// options turns the settings into those of isotap.
func options(s *config.Settings) (proxyserver.Options, error) {
	o := proxyserver.Options{URL: s.Upstream, Listen: s.Listen, ReusePort: s.ReusePort, Recording: s.Recording,
		Definitions: true, AllowLocal: s.AllowLocalUpstream, Off: s.Mode == "off", Predicates: s.Mode == "predicates",
		Auto:    s.Mode == "auto" && s.RecordValues,
		Version: isotapVersion(),
		Admin:   s.Admin, AdminPprof: s.AdminPprof,
		Args: s.RecordValues, Drain: s.Drain, MaxConns: s.MaxConnections, MaxLogins: s.MaxLogins,
		MaxLoginsPerAddress: s.MaxLoginsAddress, TxnMemory: s.MaxTxnMemory << 20, LogSQL: logSQL[s.LogSQL],
		RowMemory: s.MaxRowMemory << 20, StrictPlans: s.StrictPlans, Columns: s.RowIdentity == "columns"}
	var err error
	if o.Upstream, err = upstream(s); err != nil {
		return o, err
	}
	if o.ClientTLS, err = proxyserver.ParseClientTLS(s.TLS, s.TLSCert, s.TLSKey, s.TLSClientCA); err != nil {
		return o, err
	}
	if o.Predicates && !o.Args {
		return o, errors.New("mode predicates records the values of rows: record_values must be on")
	}
	mode, err := strconv.ParseUint(s.SocketMode, 8, 32)
	if err != nil || mode > 0o777 {
		return o, fmt.Errorf("socket_mode: %q is no octal number like 0660", s.SocketMode)
	}
	o.SocketMode, o.LoginTimeout = fs.FileMode(mode), s.LoginTimeout
	if o.Durability, err = recorder.ParseDurability(s.Durability); err != nil {
		return o, err
	}
	if o.ServerLog, err = serverlog.ParseUse(s.ServerLog); err != nil {
		return o, err
	}
	o.WhenFull = recorder.Pass
	if o.Durability == recorder.Commit {
		o.WhenFull = recorder.Refuse
	}
	if s.WhenFull != "auto" {
		if o.WhenFull, err = recorder.ParseWhenFull(s.WhenFull); err != nil {
			return o, err
		}
	}
	if !o.Off && o.Recording == "" {
		return o, errors.New("no directory given for the recording: use --recording DIR")
	}
	return o, nil
}

var logSQL = map[string]proxy.LogSQL{"none": proxy.LogNone, "shape": proxy.LogShape, "full": proxy.LogFull}

// upstream is the server, connected to as the settings of its TLS say where the URL does not.
func upstream(s *config.Settings) (dsn.Target, error) {
	t, err := parseUpstream(s.Upstream)
	if err != nil {
		return t, err
	}
	if s.UpstreamCA != "" {
		t.TLS.CA = s.UpstreamCA
		t.TLS.Mode = max(t.TLS.Mode, dsn.TLSVerifyCA)
	}
	if s.UpstreamCert != "" || s.UpstreamKey != "" {
		t.TLS.Cert, t.TLS.Key = s.UpstreamCert, s.UpstreamKey
		t.TLS.Mode = max(t.TLS.Mode, dsn.TLSPrefer)
	}
	if s.UpstreamTLS != "" {
		if t.TLS.Mode, err = dsn.ParseTLSMode(s.UpstreamTLS); err != nil {
			return t, fmt.Errorf("--upstream-tls: %w", err)
		}
	}
	return t, nil
}

func parseUpstream(url string) (dsn.Target, error) {
	if url == "" {
		return dsn.Target{}, errors.New("no server given: " +
			"use --upstream mysql://user:password@host:port/database or postgres://..., or set ISOTAP_UPSTREAM")
	}
	t, err := dsn.Parse(url)
	if err != nil {
		return t, fmt.Errorf("--upstream: %w", err)
	}
	return t, nil
}

// newLogger returns a log on standard error, and the level that it can be set to later.
func newLogger(level string) (*zap.Logger, zap.AtomicLevel, error) {
	l, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, l, fmt.Errorf("log_level: %w", err)
	}
	cfg := zap.NewProductionConfig()
	cfg.Level = l
	cfg.DisableCaller, cfg.DisableStacktrace = true, true
	cfg.Sampling = nil // of statements that are logged, each one counts
	log, err := cfg.Build()
	return log, l, err
}
