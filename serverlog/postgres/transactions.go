package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/serverlog/wal"
)

const (
	// maxWrites is how many rows one transaction may write so that isotap keeps what it wrote, and maxHeld how many all
	// that run may.
	maxWrites = 1 << 20
	maxHeld   = 4 << 20
)

// running are the (sub)transactions that have not ended, with what they wrote.
type running struct {
	writes map[uint32][]wal.Event
	held   int
	// whole is the id from which on all that a transaction wrote was read.
	whole uint32
}

func newRunning() *running { return &running{writes: make(map[uint32][]wal.Event)} }

// An ended transaction is one whose end the log has told of, with what it wrote, in order.
type ended struct {
	end    wal.Event
	writes []wal.Event
}

// errTooMuch ends a stretch: what was written is more than isotap keeps in memory until it knows how that ended.
var errTooMuch = errors.New("transactions wrote more rows than isotap keeps until they end")

// event takes in what the log tells.
func (st *stream) event(e *wal.Event) error {
	r := st.running
	switch e.Kind {
	case wal.Commit, wal.Abort:
		writes := r.end(e)
		if len(writes) > 0 && e.End > st.began {
			st.ended = append(st.ended, ended{*e, writes})
		}
		return nil
	}
	if e.XID == 0 || st.tables[e.File].System {
		return nil
	}
	if r.held++; r.held > maxHeld || len(r.writes[e.XID]) >= maxWrites {
		return errTooMuch
	}
	r.writes[e.XID] = append(r.writes[e.XID], *e)
	return nil
}

// end takes out what a transaction wrote, with its subtransactions that ended as it did.
func (r *running) end(e *wal.Event) []wal.Event {
	writes := r.writes[e.XID]
	delete(r.writes, e.XID)
	for _, sub := range e.Subs {
		writes = append(writes, r.writes[sub]...)
		delete(r.writes, sub)
	}
	r.held -= len(writes)
	if len(e.Subs) > 0 {
		slices.SortStableFunc(writes, func(a, b wal.Event) int {
			switch {
			case a.End < b.End:
				return -1
			case a.End > b.End:
				return 1
			}
			return 0
		})
	}
	return withoutRetracted(writes)
}

// withoutRetracted leaves out what never was there.
func withoutRetracted(writes []wal.Event) []wal.Event {
	if !slices.ContainsFunc(writes, func(w wal.Event) bool { return w.Kind == wal.Retract }) {
		return writes
	}
	var kept []wal.Event
	for _, w := range writes {
		if w.Kind != wal.Retract {
			kept = append(kept, w)
			continue
		}
		for i, k := range slices.Backward(kept) {
			if k.Kind == wal.Insert && k.File == w.File && k.New == w.Old {
				kept = slices.Delete(kept, i, i+1)
				break
			}
		}
	}
	return kept
}

// logged returns an ended transaction as a recording has it; nil where it wrote nothing that matters.
func (st *stream) logged(ctx context.Context, e ended) (*history.LoggedTxn, error) {
	database, writes, err := st.place(ctx, e.writes)
	if err != nil || len(writes) == 0 {
		return nil, err
	}
	t := &history.LoggedTxn{Status: history.Committed, Position: e.end.End, Database: database, Writes: writes,
		From: st.clock.notBefore(e.end.Time), To: st.source.Clock(),
		XIDs: append([]uint32{e.end.XID}, e.end.Subs...)}
	if e.end.Kind == wal.Abort {
		t.Status = history.Aborted
	}
	t.From = min(t.From, t.To)
	for _, xid := range t.XIDs {
		t.Cut = t.Cut || int32(xid-st.running.whole) < 0
	}
	return t, nil
}

// write is a write as a recording has it.
func write(w *wal.Event) history.LoggedWrite {
	l := history.LoggedWrite{Storage: w.File.Node, TupleID: history.TupleID{CTID: w.Old, NewID: w.New, LSN: w.End}}
	switch w.Kind {
	case wal.Insert:
		l.Op = history.InsertRow
	case wal.Update:
		l.Op = history.UpdateRow
	default:
		l.Op = history.DeleteRow
		return l
	}
	l.TupleID.NewXID = w.XID
	return l
}

// unreadable says of a log that is not as isotap knows it that it cannot be read.
func (st *stream) unreadable(err error) error {
	var format *wal.FormatError
	if errors.As(err, &format) {
		return &serverlog.Unreadable{Reason: format.Error()}
	}
	if err != nil {
		return fmt.Errorf("read the write-ahead log: %w", err)
	}
	return nil
}
