package tap

import (
	"context"
	"errors"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/live"
	"github.com/isotap/isotap/proxy"
)

// watched gives what is recorded to a watch as well.
type watched struct {
	proxy.Recorder
	run   history.Run
	watch *live.Watch
}

// Session records a session and has it watched.
func (w watched) Session(ctx context.Context, s history.Session) error {
	s.Run = w.run
	return errors.Join(w.Recorder.Session(ctx, s), w.watch.Session(ctx, s))
}

// Txn records a transaction and has it watched. Both only read it from then on.
func (w watched) Txn(ctx context.Context, t *history.Txn) error {
	return errors.Join(w.Recorder.Txn(ctx, t), w.watch.Txn(ctx, t))
}

// startWatch has the run watched from its beginning.
func (t *Tap) startWatch(ctx context.Context, o *live.Options, info history.Info) error {
	watching := *o
	watching.Clock = func() int64 { return int64(time.Since(info.Started)) }
	t.watch = live.Start(watching)
	t.recorder = watched{t.recorder, t.writer.Run(), t.watch}
	return t.watch.Run(ctx, info)
}

// endWatch ends it, and keeps the result.
func (t *Tap) endWatch() error {
	err := t.watch.Run(context.Background(), t.writer.Info())
	result, failed := t.watch.Close()
	t.result = result
	return errors.Join(err, failed)
}

// Watched gives the result of a tap that was watched, once it has ended; nil where it was not.
func (t *Tap) Watched() *analyzer.Result { return t.result }

// WatchStats says how much the watch keeps; nothing where there is none.
func (t *Tap) WatchStats() analyzer.LiveStats {
	if t.watch == nil {
		return analyzer.LiveStats{}
	}
	return t.watch.Stats()
}

// WatchDelay says how quickly the watch told what it found.
func (t *Tap) WatchDelay() live.Delay {
	if t.watch == nil {
		return live.Delay{}
	}
	return t.watch.Delay()
}
