// Package config knows the settings of a proxy: their names, what they may be, and where they come
// from. A setting stands in the configuration file under its name (log_level), in the environment as
// ISOTAP_LOG_LEVEL, on the command line as --log-level; the command line goes before the environment,
// the environment before the file, the file before the default.
//
// A setting is described once, in [Options]; the file's decoder, the flags, `isotap config show` and
// the reload all follow that list: config.go has it, file.go, value.go and load.go read the places, nearest.go
// guesses what a misspelled name meant, watch.go waits for changes. configs/isotap.yaml shows every setting with its
// default.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Settings are what a proxy needs to know.
type Settings struct {
	Upstream           string
	UpstreamTLS        string
	UpstreamCA         string
	UpstreamCert       string
	UpstreamKey        string
	Listen             string
	ReusePort          bool
	SocketMode         string
	LoginTimeout       time.Duration
	TLS                string
	TLSCert            string
	TLSKey             string
	TLSClientCA        string
	Mode               string
	RowIdentity        string
	Recording          string
	Durability         string
	WhenFull           string
	ServerLog          string
	RecordValues       bool
	StrictPlans        bool
	MaxConnections     int
	MaxLogins          int
	MaxLoginsAddress   int
	MaxTxnMemory       int
	MaxRowMemory       int
	AllowLocalUpstream bool
	Drain              time.Duration
	Admin              string
	AdminPprof         bool
	LogLevel           string
	LogSQL             string
}

// Default returns the settings of somebody who set none.
func Default() Settings {
	return Settings{Listen: "127.0.0.1:0", Mode: "items", RowIdentity: "system", Durability: "relaxed",
		WhenFull: "auto", ServerLog: "auto", RecordValues: true, Drain: 10 * time.Second,
		LogLevel: "info", LogSQL: "none", SocketMode: "0600", MaxLogins: 128, MaxLoginsAddress: 32, MaxTxnMemory: 256,
		MaxRowMemory: 1024}
}

// An Option describes one setting.
type Option struct {
	Name  string // in the configuration file
	Usage string
	// Reloads says that a running proxy takes a new value.
	Reloads bool
	// Secret values are shown without their passwords.
	Secret bool
	// Choices are the values there are; nil when they cannot be listed.
	Choices []string
	// implied is the value of a flag that is given without one.
	implied string
	value   func(s *Settings) any // a pointer to the setting
}

// Options lists every setting, in the order of configs/isotap.yaml.
var Options = []Option{
	{Name: "upstream", Secret: true, value: func(s *Settings) any { return &s.Upstream },
		Usage: "the server, as mysql://user:password@host:port/database or postgres://..."},
	{Name: "upstream_tls", value: func(s *Settings) any { return &s.UpstreamTLS },
		Usage: "TLS with the server: disable, prefer, require, verify-ca or verify-full (default: what upstream says)"},
	{Name: "upstream_ca", value: func(s *Settings) any { return &s.UpstreamCA },
		Usage: "PEM file with the certificates to trust the server by"},
	{Name: "upstream_cert", value: func(s *Settings) any { return &s.UpstreamCert },
		Usage: "PEM file with isotap's certificate, for a server that asks for one"},
	{Name: "upstream_key", value: func(s *Settings) any { return &s.UpstreamKey },
		Usage: "PEM file with the key of that certificate"},
	{Name: "listen", value: func(s *Settings) any { return &s.Listen },
		Usage: "where clients connect: host:port, unix:/path, or systemd for sockets that systemd opened; " +
			"several are separated by commas"},
	{Name: "reuse_port", value: func(s *Settings) any { return &s.ReusePort },
		Usage: "let another isotap of the same user listen on the same TCP addresses, " +
			"to take over without a refused connection (Linux)"},
	{Name: "socket_mode", value: func(s *Settings) any { return &s.SocketMode },
		Usage: "permissions of unix sockets, as an octal number"},
	{Name: "login_timeout", value: func(s *Settings) any { return &s.LoginTimeout },
		Usage: "how long a client may take to log in, and the server to answer; 0s is what such servers allow: " +
			"10s, PostgreSQL 1m"},
	{Name: "tls", value: func(s *Settings) any { return &s.TLS },
		Usage: "TLS with clients: off, optional or required (default: optional with a certificate, otherwise off)"},
	{Name: "tls_cert", value: func(s *Settings) any { return &s.TLSCert },
		Usage: "PEM file with the certificate that clients are shown, or auto for one made at the start"},
	{Name: "tls_key", value: func(s *Settings) any { return &s.TLSKey },
		Usage: "PEM file with the key of that certificate"},
	{Name: "tls_client_ca", value: func(s *Settings) any { return &s.TLSClientCA },
		Usage: "PEM file: clients that use TLS must show a certificate that it vouches for"},
	{Name: "mode", Choices: []string{"items", "predicates", "auto", "off"}, value: func(s *Settings) any { return &s.Mode },
		Usage: "items records row reads and writes, predicates also what conditions did not find, " +
			"auto does that where it can, and tests conditions for a fifth of the time at most, off passes bytes through"},
	{Name: "row_identity", Choices: []string{"system", "columns"},
		value: func(s *Settings) any { return &s.RowIdentity },
		Usage: "what PostgreSQL's row versions are known by: its system columns, or isotap's in tables that have them"},
	{Name: "recording", value: func(s *Settings) any { return &s.Recording },
		Usage: "the recording's directory"},
	{Name: "durability", Choices: []string{"relaxed", "commit"}, value: func(s *Settings) any { return &s.Durability },
		Usage: "commit stores a transaction before its end is acknowledged, relaxed within 200 ms"},
	{Name: "when_full", Choices: []string{"auto", "refuse", "pass"},
		value: func(s *Settings) any { return &s.WhenFull },
		Usage: "while the disk takes nothing: refuse answers new transactions with an error, " +
			"pass lets them go on unrecorded; auto: refuse with durability commit, pass with relaxed"},
	{Name: "server_log", Choices: []string{"auto", "off", "require"},
		value: func(s *Settings) any { return &s.ServerLog },
		Usage: "record what the server's own log says of writes by anyone: auto where it can be read, " +
			"require fails where it cannot"},
	{Name: "record_values", Reloads: true, value: func(s *Settings) any { return &s.RecordValues },
		Usage: "record the values of literals and parameters"},
	{Name: "strict_plans", Reloads: true, value: func(s *Settings) any { return &s.StrictPlans },
		Usage: "leave a SELECT alone when a wider select list could make the server choose other rows or another order"},
	{Name: "max_connections", Reloads: true, value: func(s *Settings) any { return &s.MaxConnections },
		Usage: "how many clients may be connected at once; 0: as many as the server takes"},
	{Name: "max_logins", Reloads: true, value: func(s *Settings) any { return &s.MaxLogins },
		Usage: "how many clients may be logging in to the server at once; others wait for their turn; 0: no bound"},
	{Name: "max_logins_per_address", Reloads: true, value: func(s *Settings) any { return &s.MaxLoginsAddress },
		Usage: "how many clients of one address may be logging in to the server at once; 0: no bound"},
	{Name: "max_transaction_memory", Reloads: true, value: func(s *Settings) any { return &s.MaxTxnMemory },
		Usage: "how many MiB are kept of an open transaction until it is recorded; " +
			"its later statements go unobserved; 0: no bound"},
	{Name: "max_row_memory", value: func(s *Settings) any { return &s.MaxRowMemory },
		Usage: "how many MiB are held of long rows and replies, for all clients together; 0: no bound"},
	{Name: "allow_local_upstream", value: func(s *Settings) any { return &s.AllowLocalUpstream },
		Usage: "permit a server on this host behind a listener that others can reach"},
	{Name: "drain", Reloads: true, value: func(s *Settings) any { return &s.Drain },
		Usage: "how long open transactions may go on after SIGTERM"},
	{Name: "admin", value: func(s *Settings) any { return &s.Admin },
		Usage: "where /metrics, /healthz and /readyz are served: host:port; empty: nowhere"},
	{Name: "admin_pprof", value: func(s *Settings) any { return &s.AdminPprof },
		Usage: "serve Go's profiles at /debug/pprof on the admin address, which must be a loopback one"},
	{Name: "log_level", Reloads: true, Choices: []string{"debug", "info", "warn", "error"},
		value: func(s *Settings) any { return &s.LogLevel },
		Usage: "what is logged: debug, info, warn or error"},
	{Name: "log_sql", Reloads: true, Choices: []string{"none", "shape", "full"}, implied: "shape",
		value: func(s *Settings) any { return &s.LogSQL },
		Usage: "log each statement: none, shape (literals replaced by ?) or full (with their values)"},
}

// Flag is the setting's name on the command line, without the dashes.
func (o *Option) Flag() string { return strings.ReplaceAll(o.Name, "_", "-") }

// Variable is the environment variable of a flag.
func Variable(flag string) string {
	return "ISOTAP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flags adds the flags of all settings to f. What is parsed goes into s, whose present values are the
// defaults that the help shows.
func Flags(f *pflag.FlagSet, s *Settings) {
	for i := range Options {
		o := &Options[i]
		flag := f.VarPF(o.bind(s), o.Flag(), "", o.Usage)
		if _, yes := o.value(s).(*bool); yes {
			flag.NoOptDefVal = "true"
		}
		if o.implied != "" {
			flag.NoOptDefVal = o.implied
		}
	}
}

// find returns the option of a name in the file; nil when there is none.
func find(name string) *Option {
	i := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &Options[i]
}

// Check returns what about the settings cannot be, each for itself and together. What is missing is no
// mistake yet: it may come from elsewhere.
func (s *Settings) Check() error {
	if s.LogSQL == "full" && !s.RecordValues {
		return fmt.Errorf("log_sql: full logs the values that record_values: false leaves out; use log_sql: shape")
	}
	if s.AdminPprof && s.Admin == "" {
		return fmt.Errorf("admin_pprof needs an address to be served at: set admin, for instance to 127.0.0.1:9104")
	}
	return nil
}
