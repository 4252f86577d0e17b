package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder/jsonlines"
)

// A Sink takes what is followed: see monitor.Monitor.
type Sink interface {
	Run(ctx context.Context, info history.Info) error
	Session(ctx context.Context, s history.Session) error
	Txn(ctx context.Context, t *history.Txn) error
	Skip(ctx context.Context, upTo history.TxnID) error
}

// ErrCut says that the stream ended before the run did: its writer was killed, or did not wait for the rest to be read.
// The recording has what is missing.
var ErrCut = errors.New("the recording was not followed to its end")

// Read gives a sink what comes on a connection of Dial's, from the given place on, until the run ends. It closes the
// connection. The clock goes as it reads. infos are the runs as they were told of last.
func Read(ctx context.Context, conn net.Conn, from From, clock *Clock, to Sink) (infos []history.Info, err error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := fmt.Fprintln(conn, from); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
	r := reader{in: jsonlines.NewDecoder(conn, "the stream"), to: to, clock: clock}
	for {
		ev, err := r.in.Next()
		var network *net.OpError
		switch {
		case ctx.Err() != nil:
			return r.infos, ctx.Err()
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network):
			return r.infos, ErrCut
		case err != nil:
			return r.infos, err
		case ev.End:
			return r.infos, nil
		}
		if err := r.event(ctx, ev); err != nil {
			return r.infos, err
		}
	}
}

type reader struct {
	in    *jsonlines.Decoder
	to    Sink
	clock *Clock
	infos []history.Info
}

func (r *reader) event(ctx context.Context, ev jsonlines.Event) error {
	switch {
	case ev.Run != nil:
		r.told(*ev.Run)
		return r.to.Run(ctx, *ev.Run)
	case ev.Session != nil:
		return r.to.Session(ctx, *ev.Session)
	case ev.After.Seq() > 0:
		return r.to.Skip(ctx, ev.After)
	case ev.Txn == nil:
		return nil // what matches a predicate
	}
	r.clock.heard(ev.Txn.End + r.offset(ev.Txn.ID.Run()))
	return r.to.Txn(ctx, ev.Txn)
}

// offset returns the time from the first run's start to a run's.
func (r *reader) offset(run history.Run) int64 {
	for i := range r.infos {
		if r.infos[i].Run == run {
			return int64(r.infos[i].Started.Sub(r.infos[0].Started))
		}
	}
	return 0
}

// told keeps what a run is told to be.
func (r *reader) told(info history.Info) {
	for i := range r.infos {
		if r.infos[i].Run == info.Run {
			r.infos[i] = info
			return
		}
	}
	r.infos = append(r.infos, info)
}

// A Clock tells the time of what is followed: the writer's as of the last transaction that ended, and what has passed
// since it came. It may be used from several goroutines.
type Clock struct {
	mu   sync.Mutex
	last int64
	at   time.Time
}

// heard takes in a time of the writer's.
func (c *Clock) heard(t int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.at.IsZero() || t > now {
		c.last, c.at = t, time.Now()
	}
}

// Now returns the writer's time, but for what the stream takes.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() int64 {
	if c.at.IsZero() {
		return c.last
	}
	return c.last + int64(time.Since(c.at))
}
