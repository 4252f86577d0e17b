package proxyserver

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer/predicate"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy"
)

// A matching recorder shows a matcher what it records.
type matching struct {
	proxy.Recorder
	matcher   *predicate.Matcher
	databases databases
}

func (m *matching) Session(ctx context.Context, s history.Session) error {
	m.databases.note(s)
	return m.Recorder.Session(ctx, s)
}

func (m *matching) Txn(ctx context.Context, t *history.Txn) error {
	m.matcher.Add(m.databases.of(t.Session), t) // before its recorder owns it
	return m.Recorder.Txn(ctx, t)
}

// lastMatches is how long the predicates and versions that came last may be tested when a run ends.
const lastMatches = 10 * time.Second

// match begins to hold what is recorded against predicates, and returns the recorder to record with. Gentle: see
// [predicate.Matcher].
func (srv *Server) match(tester predicate.Tester, gentle bool, log *zap.Logger, started time.Time) *matching {
	m := &matching{Recorder: srv.recorder, matcher: predicate.NewMatcher(tester, srv.writer, log),
		databases: newDatabases()}
	m.matcher.Gentle = gentle
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		m.matcher.Run(ctx, srv.asking, lastMatches, func() int64 { return int64(time.Since(started)) })
	})
	srv.settle = func() (untested, beyond int) {
		stop()
		running.Wait()
		return m.matcher.Untested(), m.matcher.Beyond()
	}
	return m
}
