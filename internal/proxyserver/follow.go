package proxyserver

import (
	"context"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/tail"
	"github.com/isotap/isotap/proxy"
)

// followed shows what is recorded to those who follow the recording.
type followed struct {
	proxy.Recorder
	server *tail.Server
}

// Session records a session and shows it.
func (f followed) Session(ctx context.Context, s history.Session) error {
	err := f.Recorder.Session(ctx, s)
	f.server.Session(s)
	return err
}

// Txn records a transaction and shows it.
func (f followed) Txn(ctx context.Context, t *history.Txn) error {
	err := f.Recorder.Txn(ctx, t)
	f.server.Txn(t)
	return err
}

// serveFollowers lets others follow the recording. Where that cannot be, it is recorded all the same.
func (srv *Server) serveFollowers(dir string, log *zap.Logger) {
	server, err := tail.Serve(dir, srv.writer, log)
	if err != nil {
		log.Warn("nobody can follow the recording", zap.Error(err))
		return
	}
	srv.follow, srv.recorder = server, followed{srv.recorder, server}
}

// ended returns a run that has ended as it should; nil for one that has not.
func ended(info history.Info) *history.Info {
	if info.Ended.IsZero() {
		return nil
	}
	return &info
}
