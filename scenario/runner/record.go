package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// Record plays a scenario at a level through isotap, and returns what was observed, in memory: the transactions of each
// session in order, with row versions under their tags. The server's own log is left out, as replies tell who wrote
// what, and no order is known of the writers that the log adds; so are conditions.
//
// Plays begin on an isotap that others left, since to start and stop one takes longer than a play.
func (s *Runner) Record(ctx context.Context, sc *scenario.Scenario, level history.Level) (t replay.Trace,
	txns []*history.Txn, err error) {
	i, err := s.isotaps.take(ctx, s)
	if err != nil {
		return t, nil, err
	}
	through := s.direct
	through.Addr, through.TLS = i.server.Addr().String(), nil
	t, err = s.runner.Run(ctx, through, sc, level,
		replay.Options{Settings: s.options.Settings, Whoever: true, Ended: func() error { return i.finish(ctx) }})
	if err == nil && !t.ServerGone {
		txns, err = i.observed(ctx)
	}
	if err != nil || t.ServerGone || i.plays >= mostPlays {
		return t, txns, errors.Join(err, i.server.Stop())
	}
	s.isotaps.leave(i)
	return t, txns, nil
}

// mostPlays is how many plays an isotap is used for: what it knows of their databases, which are gone, goes with it.
const mostPlays = 200

// isotaps are those that no play goes through now. They are safe for concurrent use.
type isotaps struct {
	mu   sync.Mutex
	left []*isotap
}

// An isotap is for one play at a time.
type isotap struct {
	server *proxyserver.Server
	kept   *kept
	plays  int
}

// take returns an isotap that the caller leaves, or stops.
func (all *isotaps) take(ctx context.Context, s *Runner) (*isotap, error) {
	if i := all.idle(); i != nil {
		i.plays++
		return i, nil
	}
	i := &isotap{kept: &kept{}, plays: 1}
	var err error
	// It serves other plays than this one: the one that closes the Runner stops it.
	i.server, err = proxyserver.Start(context.WithoutCancel(ctx), proxyserver.Options{Upstream: s.target,
		Listen: "127.0.0.1:0", Recorder: i.kept, Args: true, Drain: drain, Columns: s.options.Columns,
		Version: s.options.Version})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// idle takes out one that was left; nil where there is none.
func (all *isotaps) idle() *isotap {
	all.mu.Lock()
	defer all.mu.Unlock()
	n := len(all.left)
	if n == 0 {
		return nil
	}
	i := all.left[n-1]
	all.left = all.left[:n-1]
	return i
}

func (all *isotaps) leave(i *isotap) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.left = append(all.left, i)
}

func (all *isotaps) close() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var errs []error
	for _, i := range all.left {
		errs = append(errs, i.server.Stop())
	}
	all.left = nil
	return errors.Join(errs...)
}

// look is how often it is looked whether isotap has done with its clients.
const look = time.Millisecond

// finish waits until isotap has done with clients that have left: it may still be asking what a write did.
func (i *isotap) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	for i.server.Stats().Open > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until isotap has recorded the sessions: %w", ctx.Err())
		case <-time.After(look):
		}
	}
	return nil
}

// observed takes out what was observed of a play that has ended.
func (i *isotap) observed(ctx context.Context) ([]*history.Txn, error) {
	sessions, txns := i.kept.take()
	if i.server.Upstream().Family != dbms.PostgreSQLFamily {
		return txns, nil
	}
	v := pgversions.New()
	v.Add(i.server.Info(ctx))
	for _, s := range sessions {
		v.AddSession(s)
	}
	for _, t := range txns {
		if err := v.Collect(t); err != nil {
			return nil, err
		}
	}
	v.Settle()
	for _, t := range txns {
		v.Resolve(t)
	}
	return txns, nil
}

// kept is what isotap observed, in memory. It is a [proxy.Recorder].
type kept struct {
	mu       sync.Mutex
	sessions []history.Session // the last that is said of one counts
	txns     []*history.Txn
}

// Session keeps a session.
func (k *kept) Session(_ context.Context, s history.Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions = append(k.sessions, s)
	return nil
}

// Txn keeps a transaction.
func (k *kept) Txn(_ context.Context, t *history.Txn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.txns = append(k.txns, t)
	return nil
}

// Defined leaves out a transaction that touched no row.
func (k *kept) Defined(context.Context, *history.DefiningTxn) error { return nil }

// take takes out what is kept, the transactions by session and number.
func (k *kept) take() (sessions []history.Session, txns []*history.Txn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	sessions, txns, k.sessions, k.txns = k.sessions, k.txns, nil, nil
	slices.SortFunc(txns, func(a, b *history.Txn) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.ID, b.ID))
	})
	return sessions, txns
}
