package tail

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/recorder/jsonlines"
)

// From says where a follower begins.
type From string

// The places to begin at. They are also what a follower asks for, in one line.
const (
	Beginning From = "beginning" // with all that the recording holds
	Now       From = "now"       // with what comes
)

// readRequest reads what a follower asks for.
func readRequest(conn net.Conn) (From, error) {
	conn.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReaderSize(conn, 64).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read what a follower asks for: %w", err)
	}
	switch from := From(strings.TrimSpace(line)); from {
	case Beginning, Now:
		return from, nil
	}
	return "", fmt.Errorf("a follower asks for %q: neither beginning nor now", strings.TrimSpace(line))
}

// A follower is sent what is recorded. It is used by one goroutine, but for its queue.
type follower struct {
	conn   net.Conn
	ctx    context.Context // ends when it may not read the recording any more
	cancel context.CancelFunc
	writer *recorder.Writer
	info   history.Info // of the run that is being written
	from   From
	after  uint32 // from Now: the highest counter that it is not sent
	out    *jsonlines.Encoder
	queue  *queue
	sent   numset.Set  // the counters of the run's transactions that it was sent, or is not to be
	busy   atomic.Bool // it was given something that it has not sent yet
}

func newFollower(conn net.Conn, w *recorder.Writer, info history.Info, from From, limit int) *follower {
	f := &follower{conn: conn, writer: w, info: info, from: from, out: jsonlines.NewEncoder(conn),
		queue: newQueue(limit, from == Beginning)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// run sends until the run ends, the follower goes away, or is canceled.
func (f *follower) run() error {
	stop := context.AfterFunc(f.ctx, func() { f.conn.Close() }) // for one that does not read what it is sent
	defer stop()
	if err := f.begin(f.ctx); err != nil {
		return err
	}
	for {
		f.busy.Store(true)
		ended, err := f.turn()
		f.busy.Store(false)
		if err != nil || ended {
			return err
		}
		select {
		case <-f.queue.ready:
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
}

// turn sends what waits. It reports whether that was the run's end.
func (f *follower) turn() (ended bool, err error) {
	items, behind := f.queue.take()
	if behind {
		if err := f.catchUp(f.ctx); err != nil {
			return false, err
		}
	}
	for _, it := range items {
		if it.ended != nil {
			f.out.Run(it.ended)
			return true, f.out.End()
		}
		if err := f.send(it); err != nil {
			return false, err
		}
	}
	return false, f.out.Flush()
}

// begin sends the runs before the one that is being written, and tells of that.
func (f *follower) begin(ctx context.Context) error {
	if f.from == Now {
		err := f.out.Run(&f.info)
		if f.after > 0 {
			err = f.out.After(history.MakeTxnID(f.info.Run, f.after))
		}
		return err
	}
	r, err := f.writer.Snapshot()
	if err != nil {
		return err
	}
	defer r.Close()
	for _, info := range r.Runs() {
		if info.Run == f.info.Run {
			continue
		}
		f.out.Run(&info)
		if err := f.read(ctx, r, info.Run, func(uint32) bool { return false }); err != nil {
			return err
		}
	}
	return f.out.Run(&f.info)
}

// catchUp sends what of the run is in the recording and was not sent.
func (f *follower) catchUp(ctx context.Context) error {
	if err := f.writer.Flush(ctx); err != nil {
		return err
	}
	r, err := f.writer.Snapshot()
	if err != nil {
		return err
	}
	defer r.Close()
	return f.read(ctx, r, f.info.Run, f.sent.Has)
}

// read sends a run's sessions and transactions.
func (f *follower) read(ctx context.Context, r *recorder.Reader, run history.Run, skip func(uint32) bool) error {
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return err
		}
		if s.Run == run {
			f.out.Session(&s)
		}
	}
	for t, err := range r.InOrder(ctx, run, skip) {
		if err != nil {
			return err
		}
		if err := f.send(item{txn: t}); err != nil {
			return err
		}
	}
	return nil
}

// send sends one item, unless it was sent before.
func (f *follower) send(it item) error {
	switch {
	case it.session != nil:
		return f.out.Session(it.session)
	case it.txn.ID.Run() == f.info.Run && !f.sent.Add(it.txn.ID.Seq()):
		return nil
	}
	return f.out.Txn(it.txn)
}
