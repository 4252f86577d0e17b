package proxyserver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/recorder"
)

// watched gives what is recorded to a watch as well.
type watched struct {
	proxy.Recorder
	run   history.Run
	watch *monitor.Monitor
}

// Session records a session and has it watched.
func (w watched) Session(ctx context.Context, s history.Session) error {
	s.Run = w.run
	return errors.Join(w.Recorder.Session(ctx, s), w.watch.Session(ctx, s))
}

// Txn records a transaction and has it watched. Both only read it from then on.
func (w watched) Txn(ctx context.Context, t *history.Txn) error {
	return errors.Join(w.Recorder.Txn(ctx, t), w.watch.Txn(ctx, t))
}

// startWatch has the run watched from its beginning.
func (srv *Server) startWatch(ctx context.Context, o *monitor.Options, info history.Info) error {
	watching := *o
	watching.Clock = func() int64 { return int64(time.Since(info.Started)) }
	srv.watch = monitor.Start(watching)
	srv.recorder = watched{srv.recorder, srv.writer.Run(), srv.watch}
	return srv.watch.Run(ctx, info)
}

// endWatch ends it, and keeps the result.
func (srv *Server) endWatch() error {
	err := srv.watch.Run(context.Background(), srv.writer.Info())
	result, failed := srv.watch.Close()
	srv.result = result
	return errors.Join(err, failed)
}

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
