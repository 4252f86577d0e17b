// Package admin is the HTTP server beside a proxy: metrics for Prometheus, the answers that
// orchestrators ask for, and, when that is wanted, Go's profiles. page.go writes Prometheus' text format;
// what the metrics are is their owner's affair.
//
//	/metrics       Prometheus' text format, version 0.0.4
//	/healthz       200 while the proxy can do its work, 503 and the reason otherwise
//	/readyz        200 while it takes new clients, 503 and the reason otherwise
//	/debug/pprof/  profiles
package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Options of a Server.
type Options struct {
	Address string // host:port
	// Pprof serves profiles too. They hold memory, and so may hold passwords: the address must then be a
	// loopback one.
	Pprof bool
	// Metrics writes the page /metrics.
	Metrics func(p *Page)
	// Healthy and Ready give nil or the reason.
	Healthy, Ready func(ctx context.Context) error
}

// A Server serves until it is closed.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen opens the address. Nobody is answered before [Server.Serve].
func Listen(o Options) (*Server, error) {
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for admin requests: %w", err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); o.Pprof && (!ok || !a.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("admin_pprof: profiles may hold passwords; "+
			"serve them at a loopback address, not at %s", l.Addr()), l.Close())
	}
	return &Server{listener: l, http: &http.Server{ReadHeaderTimeout: requestTime, Handler: handler(o)}}, nil
}

// requestTime bounds how long a request may take to arrive, and a check to be answered.
const requestTime = 5 * time.Second

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests from now on, in the background.
func (s *Server) Serve() { go s.http.Serve(s.listener) }

// Close ends the server, whether it served or not.
func (s *Server) Close() error {
	err := s.http.Close()
	if e := s.listener.Close(); !errors.Is(e, net.ErrClosed) { // which it is when the server served
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("close the admin server: %w", err)
	}
	return nil
}

func handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		var p Page
		o.Metrics(&p)
		w.Write(p.text) // who asked may be gone
	})
	mux.HandleFunc("GET /healthz", answer(o.Healthy))
	mux.HandleFunc("GET /readyz", answer(o.Ready))
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// answer turns a check into a page.
func answer(check func(ctx context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if err := check(ctx); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}
