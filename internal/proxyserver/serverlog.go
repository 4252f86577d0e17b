package proxyserver

import (
	"context"
	"errors"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/serverlog"
)

// A loggedBy is the server's own log as a run has it: what reads it, or why nothing does.
type loggedBy struct {
	reader  *serverlog.Reader // nil: it is not read
	missing string            // why; empty where nobody wanted it
}

// openLog opens the server's log, where it is wanted. Only where it is required it is an error that it cannot be read.
func openLog(ctx context.Context, o *Options, b backend, clock func() int64) (loggedBy, error) {
	if o.ServerLog == serverlog.Off {
		return loggedBy{}, nil
	}
	source, err := b.serverLog(clock)
	var l loggedBy
	if err == nil {
		l.reader, err = serverlog.Open(ctx, source, clock, o.Logger)
	}
	if err == nil {
		return l, nil
	}
	if o.ServerLog == serverlog.Require {
		return l, err
	}
	l.missing = err.Error()
	var unreadable *serverlog.Unreadable
	if errors.As(err, &unreadable) {
		l.missing = unreadable.Reason
	}
	return l, nil
}

// start has the recording hold what the log says, or why nothing does.
func (l *loggedBy) start(ctx context.Context, recorder serverlog.Recorder, now int64) error {
	switch {
	case l.reader != nil:
		l.reader.Start(recorder)
	case l.missing != "":
		return recorder.LogStretch(ctx, 0, history.LogStretch{From: now, To: now, Reason: l.missing})
	}
	return nil
}

// lastLogged is how long the server may take to give the rest of its log when a run ends.
const lastLogged = 3 * time.Second

// end records the rest of the log.
func (l *loggedBy) end(ctx context.Context) {
	if l.reader == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastLogged)
	defer cancel()
	l.reader.Stop(ctx)
	l.reader = nil
}
