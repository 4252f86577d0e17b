package proxyserver

import (
	"cmp"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/internal/admin"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/proxy"
)

// Metrics adds isotap's metrics to a page. docs/operating.md explains each.
func (srv *Server) Metrics(p *admin.Page) {
	srv.processMetrics(p)
	s := srv.proxy.Stats()
	connectionMetrics(p, &s)
	if srv.writer == nil {
		return
	}
	trafficMetrics(p, &s)
	srv.recorderMetrics(p)
	if srv.watch != nil {
		srv.watchMetrics(p)
	}
	plans := srv.backend.plans()
	p.Counter("isotap_plan_cache_hits_total", "Statements whose plan was in the cache.", float64(plans.Hits))
	p.Counter("isotap_plan_cache_templates_total",
		"Statements whose plan was made from that of another text, which differs in literals only.", float64(plans.Templated))
	p.Counter("isotap_plan_cache_misses_total", "Statements whose plan had to be made.", float64(plans.Misses()))
	p.Counter("isotap_definitions_misled_total",
		"Readings that had a table otherwise than the statements told that had defined it.", float64(srv.backend.misled()))
}

func (srv *Server) processMetrics(p *admin.Page) {
	p.Gauge("isotap_info", "Always 1; the labels say what runs.", 1, "version", srv.version, "mode", srv.mode())
	p.Gauge("isotap_start_time_seconds", "When this proxy started, in Unix time.",
		float64(srv.started.UnixMilli())/1000)
	p.Gauge("isotap_draining", "1 while the proxy takes no more clients and waits for open transactions.",
		number(srv.draining()))
	p.Gauge("go_goroutines", "Goroutines that exist now.", float64(runtime.NumGoroutine()))
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	p.Counter("go_gc_pause_seconds_total", "How long the garbage collector stopped the process.",
		gc.PauseTotal.Seconds())
}

func connectionMetrics(p *admin.Page, s *proxy.Stats) {
	p.Gauge("isotap_connections_open", "Clients connected now.", float64(s.Open))
	p.Counter("isotap_connections_accepted_total", "Clients that connected.", float64(s.Accepted))
	const name, help = "isotap_connections_refused_total", "Clients that were turned away."
	p.Counter(name, help, float64(s.TooMany), "reason", "max_connections")
	p.Counter(name, help, float64(s.TooManyLogins), "reason", "max_logins")
	p.Counter(name, help, float64(s.Unreachable), "reason", "server_unreachable")
	p.Counter(name, help, float64(s.LocalUpstream), "reason", "local_upstream")
	p.Counter("isotap_faults_total", "Failures of isotap's own on what a client or the server sent; "+
		"each is in the log, at most one a second.", float64(s.Faults))
	p.Gauge("isotap_logins_open", "Clients that have not logged in now.", float64(s.LoggingIn))
	p.Gauge("isotap_logins_waiting", "Those of them that wait for a connection to the server.",
		float64(s.LoginsWaiting))
	p.Counter("isotap_logins_overdue_total", "Clients that took too long to log in.", float64(s.Overdue))
	byLegs := func(a, b proxy.LegSafety) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Server, b.Server))
	}
	for _, legs := range slices.SortedFunc(maps.Keys(s.Logins), byLegs) {
		p.Counter("isotap_logins_total",
			"Clients that logged in, by how their connection and isotap's to the server are encrypted.",
			float64(s.Logins[legs]), "client", legs.Client.String(), "server", legs.Server.String())
	}
	p.Counter("isotap_tls_downgrades_total",
		"Connections to the server that are not encrypted although TLS is preferred.", float64(s.Downgrades))
}

func trafficMetrics(p *admin.Page, s *proxy.Stats) {
	for _, status := range slices.Sorted(maps.Keys(s.Txns)) {
		p.Counter("isotap_transactions_total", "Transactions that ended.", float64(s.Txns[status]), "outcome",
			status.String())
	}
	byKind := func(a, b proxy.StmtClass) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Observation, b.Observation))
	}
	for _, c := range slices.SortedFunc(maps.Keys(s.Stmts), byKind) {
		p.Counter("isotap_statements_total", "Statements of transactions that ended, by how well they were observed.",
			float64(s.Stmts[c]),
			"kind", strings.ToLower(c.Kind.String()), "observation", c.Observation.String())
	}
	byReason := func(a, b proxy.StmtReason) int {
		return cmp.Or(cmp.Compare(a.Observation, b.Observation), cmp.Compare(a.Reason, b.Reason))
	}
	for _, r := range slices.SortedFunc(maps.Keys(s.Reasons), byReason) {
		p.Counter("isotap_statements_not_exact_total", "Statements not observed exactly, by reason.",
			float64(s.Reasons[r]),
			"observation", r.Observation.String(), "reason", r.Reason)
	}
	for _, code := range slices.Sorted(maps.Keys(s.Refusals)) {
		p.Counter("isotap_rewrites_refused_total",
			"Statements left as they were because the server refused their rewritten form.",
			float64(s.Refusals[code]), "error", code)
	}
	p.Counter("isotap_results_misplanned_total",
		"Results out of which columns of isotap's were taken that their plans did not know of.",
		float64(s.Misplanned))
}

func (srv *Server) recorderMetrics(p *admin.Page) {
	s := srv.writer.Stats()
	p.Gauge("isotap_recorder_up", "1 while the recording can be written.", number(srv.writer.Err() == nil))
	p.Counter("isotap_recorder_transactions_total", "Transactions written to the recording.", float64(s.Txns))
	p.Counter("isotap_recorder_statements_total", "Statements written to the recording.", float64(s.Stmts))
	p.Counter("isotap_recorder_bytes_total", "Bytes written to the recording.", float64(s.Bytes))
	p.Counter("isotap_recorder_syncs_total", "Syncs of the recording.", float64(s.Syncs))
	p.Gauge("isotap_recorder_last_sync_seconds", "When the last sync ended, in Unix time; 0: none yet.",
		unixSeconds(s.Synced))
	p.Counter("isotap_recorder_sync_seconds_total", "How long syncs took, in sum.", s.Syncing.Seconds())
	p.Gauge("isotap_recorder_longest_sync_seconds",
		"How long the longest took since the proxy began, the one under way included.", s.Longest.Seconds())
	p.Gauge("isotap_recorder_longest_write_seconds",
		"How long the longest write to the recording's files took, likewise: what ends meanwhile waits in memory.",
		s.LongestWrite.Seconds())
	p.Gauge("isotap_recorder_queue_length", "Transactions and sessions that wait to be written.", float64(s.Waiting))
	p.Gauge("isotap_recorder_queue_bytes", "Memory that they take.", float64(s.Queued))
	p.Gauge("isotap_recorder_halted", "1 while transactions that begin are not recorded, since the disk takes nothing.",
		number(srv.writer.Err() != nil))
	p.Counter("isotap_recorder_lost_transactions_total", "Transactions that were not recorded for that.",
		float64(s.Lost))
	proxied := srv.proxy.Stats()
	p.Counter("isotap_refused_transactions_total", "Transactions that were refused for that.", float64(proxied.Refused))
	p.Counter("isotap_unrecorded_commits_total",
		"Sessions ended with an error since a transaction that the server had committed was not recorded.",
		float64(proxied.Unrecorded))
	p.Counter("isotap_recorder_full_waits_total", "Times that a client had to wait because the queue was full.",
		float64(s.Stalls))
	p.Counter("isotap_recorder_full_wait_seconds_total", "How long clients waited for that.", s.Stalled.Seconds())
}

func (srv *Server) watchMetrics(p *admin.Page) {
	counts := srv.watch.Counts()
	byName := func(a, b monitor.Kind) int {
		return cmp.Or(cmp.Compare(a.Anomaly, b.Anomaly), cmp.Compare(a.Class, b.Class))
	}
	for _, k := range slices.SortedFunc(maps.Keys(counts), byName) {
		p.Counter("isotap_findings_total", "Anomalies seen so far, with --live.", float64(counts[k]), "anomaly",
			string(k.Anomaly), "class", string(k.Class))
	}
	s := srv.watch.Stats()
	p.Gauge("isotap_live_transactions_kept", "Transactions in memory that others may still make an anomaly with.",
		float64(s.Kept))
	p.Counter("isotap_live_transactions_cut_total",
		"Transactions let go before their time, because there were too many.", float64(s.Cut))
	d := srv.watch.Delay()
	p.Counter("isotap_live_findings_told_total", "Findings told, each once.", float64(d.Findings))
	p.Counter("isotap_live_finding_delay_seconds_total", "How long after the commits that completed them, in sum.",
		d.Sum.Seconds())
	p.Gauge("isotap_live_finding_delay_max_seconds", "How long after it at most.", d.Max.Seconds())
}

func (srv *Server) mode() string {
	if srv.writer == nil {
		return "off"
	}
	return "items"
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func unixSeconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}
