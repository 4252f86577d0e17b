package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// A stream is an open log, as serverlog.Stream has it. The library's goroutine brings the events ([stream.HandleEvent])
// and waits while there is no room for what they make.
type stream struct {
	source   *Source
	catalog  *catalogmysql.Conn // for the assembly
	marker   *catalogmysql.Conn // for marks
	syncer   *replication.BinlogSyncer
	events   *replication.BinlogStreamer // of which only the error is used
	assembly *assembly                   // of the library's goroutine
	stop     context.CancelFunc
	running  sync.WaitGroup
	wake     chan struct{} // something changed for Next
	room     chan struct{} // Next took something

	mu     sync.Mutex
	queue  []*history.LoggedTxn
	writes int      // in queue
	read   position // up to which the log was read
	clock  clock
	blind  bool      // the server said no longer where its log ends
	last   *position // where Finish found the log's end
	failed error
	closed bool
}

// maxQueued bounds the writes that wait for Next.
const maxQueued = 20_000

var errClosed = errors.New("the log is closed")

// decodeRows decodes what was written to a table that isotap watches, and nothing of others. What cannot be decoded
// leaves no rows.
func (st *stream) decodeRows(e *replication.RowsEvent, data []byte) error {
	at, err := e.DecodeHeader(data)
	if err != nil {
		return err
	}
	if g := st.assembly.open; g != nil {
		if l := g.tables[e.TableID]; l != nil && (l.unwatchable || !l.watched()) {
			return nil
		}
	}
	if e.DecodeData(at, data) != nil {
		e.Rows = nil
	}
	return nil
}

// HandleEvent takes an event from the library.
func (st *stream) HandleEvent(e *replication.BinlogEvent) error {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	t, err := st.assembly.take(ctx, e)
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		return err
	}
	switch event := e.Event.(type) {
	case *replication.RotateEvent:
		st.read = position{string(event.NextLogName), event.Position}
	case *replication.FormatDescriptionEvent:
		// The server makes one where a reader begins. Its end is counted from there, and nothing stands there.
	default:
		if e.Header.LogPos > 0 {
			st.read = position{st.assembly.file, uint64(e.Header.LogPos)}
		}
	}
	if t != nil {
		t.To = st.source.Clock()
		st.queue = append(st.queue, t)
		st.writes += len(t.Writes)
	}
	signal(st.wake)
	for st.writes > maxQueued && !st.closed {
		st.mu.Unlock()
		<-st.room
		st.mu.Lock()
	}
	if st.closed {
		return errClosed
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch takes note that the library has given up.
func (st *stream) watch(ctx context.Context) {
	_, err := st.events.GetEvent(ctx)
	if ctx.Err() == nil {
		st.mu.Lock()
		st.failed = fmt.Errorf("reading the binary log: %w", err)
		st.mu.Unlock()
		signal(st.wake)
	}
}

// markEvery is how often the server is asked where its log ends: so closely it is known when somebody wrote past
// isotap.
const markEvery = 25 * time.Millisecond

// tick asks for marks.
func (st *stream) tick(ctx context.Context) {
	ticker := time.NewTicker(markEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, silence)
		_, err := st.mark(limited)
		cancel()
		st.mu.Lock()
		st.blind = err != nil
		st.mu.Unlock()
		signal(st.wake)
	}
}

// mark asks the server where its log ends.
func (st *stream) mark(ctx context.Context) (at position, err error) {
	asked := st.source.Clock()
	if st.source.Engine == dbms.MariaDB {
		at, err = askSnapshot(ctx, st.marker)
	} else {
		var e end
		e, err = askEnd(ctx, st.marker, st.source.Engine)
		at = e.at
	}
	if err != nil {
		return at, err
	}
	st.mu.Lock()
	st.clock.add(mark{at, asked, st.source.Clock()})
	st.mu.Unlock()
	return at, nil
}

// askSnapshot asks where the log ends that a snapshot has all of, and nothing more. MariaDB alone knows that: see
// https://mariadb.com/kb/en/enhancements-for-start-transaction-with-consistent-snapshot/.
func askSnapshot(ctx context.Context, c *catalogmysql.Conn) (at position, err error) {
	rows, err := c.QueryInSnapshot(ctx, catalogmysql.Query{Purpose: "the end of the binary log", Columns: 2,
		Text: "SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')"})
	if err != nil {
		return at, err
	}
	for _, r := range rows {
		if r[0] == "Binlog_snapshot_file" {
			at.file = r[1]
		} else if at.offset, err = strconv.ParseUint(r[1], 10, 64); err != nil {
			return at, fmt.Errorf("the end of the binary log: %w", err)
		}
	}
	return at, nil
}

// Next returns the next transaction of the log.
func (st *stream) Next(ctx context.Context) (*history.LoggedTxn, error) {
	for {
		t, err := st.next()
		if t != nil || err != nil {
			return t, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-st.wake:
		}
	}
}

// next returns a transaction, or an error, if there is one by now. A transaction waits for a mark above it.
func (st *stream) next() (*history.LoggedTxn, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.queue) == 0 {
		switch {
		case st.last != nil && st.read.compare(*st.last) >= 0:
			return nil, io.EOF
		case st.failed != nil:
			return nil, st.failed
		}
		return nil, nil
	}
	t := st.queue[0]
	at := position{t.File, t.Position}
	if !st.clock.passed(at) && !st.blind && st.failed == nil {
		return nil, nil
	}
	var seen int64
	t.From, seen = st.clock.times(at)
	if st.source.Engine == dbms.MariaDB {
		t.Seen = seen
	}
	st.queue[0] = nil
	st.queue = st.queue[1:]
	st.writes -= len(t.Writes)
	signal(st.room)
	return t, nil
}

// Finish has Next end where the log ends now.
func (st *stream) Finish(ctx context.Context) error {
	at, err := st.mark(ctx)
	if err != nil {
		return err
	}
	st.mu.Lock()
	st.last = &at
	st.mu.Unlock()
	signal(st.wake)
	return nil
}

// Close ends the reading.
func (st *stream) Close() error {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	signal(st.room)
	if st.stop != nil {
		st.stop()
	}
	if st.syncer != nil {
		st.syncer.Close()
	}
	st.running.Wait()
	err := st.catalog.Close()
	if st.marker != nil {
		err = errors.Join(err, st.marker.Close())
	}
	return err
}
