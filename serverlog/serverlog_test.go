package serverlog

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// A scripted log gives what its streams are to give, one after the other, and then waits.
type scripted struct {
	streams []*scriptedStream
	errs    []error // by the attempt; nil: the next stream
	opened  int
}

func (s *scripted) Open(context.Context) (Stream, error) {
	if s.opened++; s.opened <= len(s.errs) && s.errs[s.opened-1] != nil {
		return nil, s.errs[s.opened-1]
	}
	next := s.streams[0]
	s.streams = s.streams[1:]
	return next, nil
}

type scriptedStream struct {
	txns     []*history.LoggedTxn
	err      error // after the transactions; nil: wait for Finish
	finished chan struct{}
	closed   atomic.Bool
}

func (s *scriptedStream) Next(ctx context.Context) (*history.LoggedTxn, error) {
	if len(s.txns) > 0 {
		t := s.txns[0]
		s.txns = s.txns[1:]
		return t, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	select {
	case <-s.finished:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scriptedStream) Finish(context.Context) error { close(s.finished); return nil }
func (s *scriptedStream) Close() error                 { s.closed.Store(true); return nil }

type kept struct {
	mu        sync.Mutex
	txns      []*history.LoggedTxn
	stretches map[int]history.LogStretch
}

func (k *kept) Logged(_ context.Context, t *history.LoggedTxn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.txns = append(k.txns, t)
	return nil
}

func (k *kept) LogStretch(_ context.Context, n int, s history.LogStretch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stretches[n] = s
	return nil
}

// read has a reader read a scripted log to its end, by a clock that counts its calls.
func read(t *testing.T, s *scripted) *kept {
	t.Helper()
	all := append([]*scriptedStream(nil), s.streams...)
	k := &kept{stretches: map[int]history.LogStretch{}}
	synctest.Test(t, func(t *testing.T) {
		for _, stream := range all {
			stream.finished = make(chan struct{})
		}
		var now atomic.Int64
		r, err := Open(t.Context(), s, func() int64 { return now.Add(100) }, zap.NewNop())
		require.NoError(t, err)
		r.Start(k)
		time.Sleep(time.Minute) // of the bubble's own: longer than the pauses
		r.Stop(t.Context())
	})
	for _, stream := range all {
		require.True(t, stream.closed.Load())
	}
	return k
}

func TestLostConnectionsMakeGaps(t *testing.T) {
	a, b := &history.LoggedTxn{From: 250, To: 260}, &history.LoggedTxn{From: 550, To: 560}
	k := read(t, &scripted{errs: []error{nil, errors.New("refused")}, streams: []*scriptedStream{
		{txns: []*history.LoggedTxn{a}, err: errors.New("reset by peer")}, {txns: []*history.LoggedTxn{b}}}})
	require.Equal(t, []*history.LoggedTxn{a, b}, k.txns)
	require.Equal(t, map[int]history.LogStretch{0: {From: 200, To: 250, Reason: "the connection was lost"},
		1: {From: 500, To: 600}}, k.stretches)
}

func TestUnreadableLogIsReadNoFurther(t *testing.T) {
	k := read(t, &scripted{streams: []*scriptedStream{{err: &Unreadable{Reason: "a record of an unknown kind"}}}})
	require.Equal(t, map[int]history.LogStretch{0: {From: 200, To: 200, Reason: "a record of an unknown kind"}},
		k.stretches)
}
