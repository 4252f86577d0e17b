package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	catalog "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/serverlog/wal"
)

// A stream is a log that is being read.
type stream struct {
	source  *Source
	pg      *pgconn.PgConn
	decoder *wal.Decoder
	clock   clock
	running *running
	began   uint64 // what ended up to this position is of before
	tables  map[wal.File]catalog.StoredTable
	names   map[uint32]string // of databases
	ended   []ended           // that were not given yet
	moved   time.Time         // when something new came last

	told  time.Time // when the server was told how far the log has been read
	asked bool      // it is to answer
	// traffic says that something came since the server was asked last.
	traffic bool

	mu       sync.Mutex
	wake     context.CancelFunc // ends the wait that is under way; nil: none is
	finish   time.Time          // zero: not asked for
	inserted uint64             // where the log ended then
	flushed  uint64
}

// tick is how long the server is waited for at once. A test has another.
var tick = 100 * time.Millisecond

const (
	// tellEvery is how often the server is told how far the log has been read while something comes, and idleEvery
	// while nothing does: it ends connections that say nothing for wal_sender_timeout (a minute).
	tellEvery = time.Second
	idleEvery = 10 * time.Second
	// settle is how long what was committed without waiting for the disk (synchronous_commit = off) may take to get
	// there: three times wal_writer_delay, and some more.
	settle = 700 * time.Millisecond
)

// Next returns the next transaction that wrote rows and has ended.
func (st *stream) Next(ctx context.Context) (*history.LoggedTxn, error) {
	for {
		for len(st.ended) > 0 {
			e := st.ended[0]
			st.ended = st.ended[1:]
			t, err := st.logged(ctx, e)
			if t != nil || err != nil {
				return t, err
			}
		}
		if st.done() {
			return nil, io.EOF
		}
		if err := st.receive(ctx); err != nil {
			return nil, err
		}
	}
}

// receive takes in what the server sends next, if anything comes.
func (st *stream) receive(ctx context.Context) error {
	if err := st.tell(false); err != nil {
		return err
	}
	waiting, cancel := st.waiting(ctx)
	defer cancel()
	var m pgproto3.BackendMessage
	err := guard.Call("pgx", func() (err error) {
		m, err = st.pg.ReceiveMessage(waiting)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && (pgconn.Timeout(err) || errors.Is(err, context.Canceled)):
		return nil
	case err != nil:
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		return fmt.Errorf("read the write-ahead log: %w", pgconn.ErrorResponseToPgError(m))
	case *pgproto3.CopyDone:
		return errors.New("the server ends the reading of its write-ahead log")
	case *pgproto3.CopyData:
		return st.message(m.Data)
	}
	return nil
}

// waiting returns the context of one wait for the server, which Finish ends: there may be nothing more to come.
func (st *stream) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, tick)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.wake = cancel
	return ctx, cancel
}

// The messages within the stream, and their sizes (see the protocol's page on streaming replication).
const (
	messageLog       = 'w'
	messageKeepalive = 'k'
	messageStatus    = 'r'
	logHeader        = 25
	keepaliveBytes   = 18
)

func (st *stream) message(b []byte) error {
	switch {
	case len(b) >= logHeader && b[0] == messageLog:
		if at := binary.BigEndian.Uint64(b[1:]); at != st.decoder.Position() {
			return fmt.Errorf("the server sends its log from %X on instead of %X", at, st.decoder.Position())
		}
		st.moved, st.traffic = time.Now(), true
		return st.unreadable(st.decoder.Feed(b[logHeader:]))
	case len(b) >= keepaliveBytes && b[0] == messageKeepalive:
		if st.asked {
			st.asked = false
			st.clock.answered(int64(binary.BigEndian.Uint64(b[9:])))
		}
		if b[17] != 0 {
			return st.tell(true)
		}
	}
	return nil
}

// tell tells the server how far the log has been read, when it is time or now. Only what was received counts, never
// what was written to a disk: so the server takes isotap for no standby that a commit could wait for, and lets it go
// when it is stopped.
func (st *stream) tell(now bool) error {
	since := time.Since(st.told)
	if !now && since < tellEvery || !now && !st.traffic && since < idleEvery {
		return nil
	}
	const unixToPostgres = 946684800
	b := append(make([]byte, 0, 34), messageStatus)
	b = binary.BigEndian.AppendUint64(b, st.decoder.Position())
	b = append(b, make([]byte, 16)...)
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMicro()-unixToPostgres*1e6))
	if now {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		st.asked = true
		st.clock.ask(st.source.Clock())
		st.traffic = false
	}
	st.told = time.Now()
	st.pg.Frontend().Send(&pgproto3.CopyData{Data: b})
	if err := st.pg.Frontend().Flush(); err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	return nil
}

// Finish has Next end once it has given what had been committed by now.
func (st *stream) Finish(ctx context.Context) error {
	inserted, flushed, err := catalog.LogEnds(ctx, st.source.Conn)
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.finish, st.inserted, st.flushed = time.Now(), inserted, flushed
	if st.wake != nil {
		st.wake()
	}
	return nil
}

// done reports whether all was read that Finish asked for.
func (st *stream) done() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.finish.IsZero() {
		return false
	}
	// What is not on disk by then is no commit.
	settled := time.Since(st.finish) > settle && time.Since(st.moved) > settle
	return st.decoder.Reached(st.inserted) || settled && st.decoder.Reached(st.flushed)
}

// Close ends the connection.
func (st *stream) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return guard.Call("pgx", func() error { return st.pg.Close(ctx) })
}

func asPg(err error, into **pgconn.PgError) bool { return errors.As(err, into) }
