package proxyserver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/sliding"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/recorder"
)

// watched gives what is recorded to a watch as well.
type watched struct {
	proxy.Recorder
	run    history.Run
	watch  *monitor.Monitor
	window *sliding.Window // nil: there is none
}

// Session records a session and has it watched.
func (w watched) Session(ctx context.Context, s history.Session) error {
	s.Run = w.run
	return errors.Join(w.Recorder.Session(ctx, s), w.watch.Session(ctx, s))
}

// Txn records a transaction and has it watched. Both only read it from then on.
func (w watched) Txn(ctx context.Context, t *history.Txn) error {
	err := w.Recorder.Txn(ctx, t)
	if w.window != nil {
		w.window.Txn(t)
	}
	return errors.Join(err, w.watch.Txn(ctx, t))
}

// startWatch has the run watched from its beginning.
func (srv *Server) startWatch(ctx context.Context, o *Options, info history.Info) error {
	watching := *o.Watch
	clock := func() int64 { return int64(time.Since(info.Started)) }
	watching.Clock = clock
	srv.watch = monitor.Start(watching)
	if o.Slide.Every > 0 && o.Slide.Limit > 0 && (srv.predicates || srv.logged.reader != nil || o.Slide.Scope != analyzer.NoScope) {
		slide := o.Slide
		slide.Tell = srv.foundLater
		slide.Complain = func(err error) { o.Logger.Warn("live", zap.Error(err)) }
		srv.window = sliding.Slide(sliding.Recording{Dir: o.Recording, Writer: srv.writer, Clock: clock}, slide)
	}
	srv.recorder = watched{srv.recorder, srv.writer.Run(), srv.watch, srv.window}
	return srv.watch.Run(ctx, info)
}

// foundLater has what a stretch of the recording showed told, and keeps it for the result.
func (srv *Server) foundLater(r *analyzer.Result) {
	findings := analysis.KnownLater(r)
	for _, f := range findings {
		if srv.later[f.ID] == nil {
			srv.later[f.ID] = f
		}
	}
	srv.watch.Found(findings)
}

// endWindow ends the analyses of stretches. Where there is too much for one of the whole they have the rest.
func (srv *Server) endWindow(limit uint64) {
	if srv.window != nil {
		srv.leftOut = srv.window.Close(srv.writer.Stats().Analyzed() > limit)
	}
}

// endWatch ends it, and keeps the result.
func (srv *Server) endWatch() error {
	err := srv.watch.Run(context.Background(), srv.writer.Info())
	result, failed := srv.watch.Close()
	if srv.result = result; result != nil {
		result.Include(slices.SortedFunc(maps.Values(srv.later), func(f, g *analyzer.Finding) int {
			return cmp.Compare(f.First, g.First)
		}))
	}
	return errors.Join(err, failed)
}

// LeftOut returns how many transactions of the server's log no stretch of the recording had that was analyzed while it
// was made ([Options.Slide]), once isotap has ended.
func (srv *Server) LeftOut() uint64 { return srv.leftOut }

// Watched returns the result of isotap that was watched, once it has ended; nil where it was not.
func (srv *Server) Watched() *analyzer.Result { return srv.result }

// ReadsLog reports whether the server's own log is being read.
func (srv *Server) ReadsLog() bool { return srv.logged.reader != nil }

// LogRead reports, of one that has ended, whether any of the server's own log was recorded.
func (srv *Server) LogRead() bool {
	return srv.writer != nil && slices.ContainsFunc(srv.writer.Info().Log, func(s history.LogStretch) bool { return !s.Empty() })
}

// Recorded returns what was recorded.
func (srv *Server) Recorded() recorder.Stats {
	if srv.writer == nil {
		return recorder.Stats{}
	}
	return srv.writer.Stats()
}

// WatchStats returns how much the watch keeps; nothing where there is none.
func (srv *Server) WatchStats() analyzer.LiveStats {
	if srv.watch == nil {
		return analyzer.LiveStats{}
	}
	return srv.watch.Stats()
}

// WatchDelay returns how quickly the watch told what it found.
func (srv *Server) WatchDelay() monitor.Delay {
	if srv.watch == nil {
		return monitor.Delay{}
	}
	return srv.watch.Delay()
}
