// Package serverlog has the log that a database server keeps of its own writes recorded beside what the proxy sees: a
// second witness of who wrote what, whoever it was.
//
// A [Source] opens the log of one server, a [Reader] owns what is open and ends it. Nothing is created on the server
// for it and nothing switched on; a client waits for none of it. What is read are [history.LoggedTxn], in stretches
// without gaps ([history.LogStretch]): a connection that is lost is made again, and what was missed in between is a
// gap. A log that isotap does not understand ([Unreadable]) is read no further: there is no guessing.
package serverlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

// A Source is the log of one server.
type Source interface {
	// Open connects, and begins to read where the log ends now: what ends from the call on is given. An Unreadable
	// error is for good.
	Open(ctx context.Context) (Stream, error)
}

// A Stream reads a log from where it was opened. Next and Close are for one goroutine; Finish may be called beside
// them.
type Stream interface {
	// Next returns the next transaction that has ended. It gives io.EOF once all has been given that had ended when
	// Finish was called.
	Next(ctx context.Context) (*history.LoggedTxn, error)
	// Finish has Next end.
	Finish(ctx context.Context) error
	Close() error
}

// An Unreadable error says why a log cannot be read, however often it is tried.
type Unreadable struct {
	Reason string
	// Remedy is what the user can do about it, as a sentence without its point; it may be empty.
	Remedy string
}

func (e *Unreadable) Error() string {
	if e.Remedy == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Remedy
}

// A Recorder takes what a log says.
type Recorder interface {
	Logged(ctx context.Context, t *history.LoggedTxn) error
	LogStretch(ctx context.Context, number int, s history.LogStretch) error
}

// A Reader reads the log of a server until it is stopped.
type Reader struct {
	source   Source
	recorder Recorder
	clock    func() int64
	log      *zap.Logger
	stop     context.CancelFunc
	running  sync.WaitGroup
	stretch  history.LogStretch
	number   int

	mu       sync.Mutex
	stream   Stream // nil while there is none
	finished int64  // when Stop was called; 0: it was not
}

// openLimit is how long a server may take to give its log.
const openLimit = 5 * time.Second

// Open connects to the log, and has it wait there until [Reader.Start]. The clock counts nanoseconds since the run's
// start.
func Open(ctx context.Context, source Source, clock func() int64, log *zap.Logger) (*Reader, error) {
	r := &Reader{source: source, clock: clock, log: log}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	began := r.clock()
	stream, err := r.source.Open(ctx)
	if err != nil {
		return fmt.Errorf("the server's log: %w", err)
	}
	r.mu.Lock()
	r.stream = stream
	r.mu.Unlock()
	// What ends while the log is being opened is part of the stretch only if it ends after that.
	r.stretch = history.LogStretch{From: max(began, r.clock())}
	return nil
}

// Start begins to record what the log says, until [Reader.Stop].
func (r *Reader) Start(recorder Recorder) {
	r.recorder = recorder
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.running.Go(func() { r.run(ctx) })
}

// Stop records what has ended until now, for as long as ctx allows, and ends the reading. It is called once.
func (r *Reader) Stop(ctx context.Context) {
	r.mu.Lock()
	r.finished = r.clock()
	stream := r.stream
	r.mu.Unlock()
	if stream == nil || r.recorder == nil || stream.Finish(ctx) != nil {
		r.abandon()
		return
	}
	done := context.AfterFunc(ctx, r.stop)
	r.running.Wait()
	done()
	r.stop()
}

// abandon ends the reading wherever it is.
func (r *Reader) abandon() {
	if r.stop != nil {
		r.stop()
	}
	r.running.Wait()
	if r.stream != nil && r.recorder == nil {
		_ = r.stream.Close()
	}
}

// The pauses between attempts to read a log that was lost.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// run reads stretch after stretch.
func (r *Reader) run(ctx context.Context) {
	pause := firstPause
	for {
		err := r.read(ctx)
		var unreadable *Unreadable
		if err == nil || ctx.Err() != nil || errors.As(err, &unreadable) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if err = r.open(ctx); err == nil {
				pause = firstPause
				r.number++
				break
			}
			r.log.Debug("the server's log cannot be read again yet", zap.Error(err))
			if errors.As(err, &unreadable) {
				return
			}
			pause = min(2*pause, lastPause)
		}
	}
}

// read records what an open stream gives, to its end.
func (r *Reader) read(ctx context.Context) error {
	s := r.stretch
	// Without an end the stretch is worth nothing yet, but says that the log was being read.
	err := r.recorder.LogStretch(ctx, r.number, s)
	for err == nil {
		var t *history.LoggedTxn
		if t, err = r.stream.Next(ctx); err != nil {
			break
		}
		// Whatever had ended before this one did stands before it in the log.
		s.To = max(s.To, t.From)
		err = r.recorder.Logged(ctx, t)
	}
	r.mu.Lock()
	closed := r.stream.Close()
	r.stream = nil
	if errors.Is(err, io.EOF) {
		s.To, err = r.finished, nil
	}
	r.mu.Unlock()
	if err != nil {
		s.To = max(s.To, s.From)
		s.Reason = reason(err)
		r.log.Debug("the server's log is read no further", zap.Error(errors.Join(err, closed)))
	}
	// The end of the stretch is recorded even where ctx has ended: the recorder takes it or is closed.
	return errors.Join(err, r.recorder.LogStretch(context.WithoutCancel(ctx), r.number, s))
}

// reason is why a stretch ended, for the report.
func reason(err error) string {
	var unreadable *Unreadable
	switch {
	case errors.As(err, &unreadable):
		return unreadable.Error()
	case errors.Is(err, context.Canceled):
		return "isotap did not wait for the rest of it"
	}
	return "the connection was lost"
}
