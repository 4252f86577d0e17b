package jsonlines

import (
	"fmt"
	"strconv"

	"github.com/isotap/isotap/history"
)

// A logStretch is a stretch during which the server's own log was read.
type logStretch struct {
	From   int64 `json:"from"`
	To     int64 `json:"to,omitempty"`
	Reason text  `json:"reason,omitempty"`
}

// logged is a [history.LoggedTxn].
type logged struct {
	Status   string        `json:"status"`
	Position uint64        `json:"position,string"` // more than a double holds
	File     text          `json:"file,omitempty"`
	From     int64         `json:"from,omitempty"`
	To       int64         `json:"to"`
	Seen     int64         `json:"seen,omitempty"`
	Database text          `json:"database,omitempty"`
	XIDs     []uint32      `json:"xids,omitempty"`
	Thread   uint64        `json:"thread,omitempty"`
	GTID     text          `json:"gtid,omitempty"`
	Unlogged []text        `json:"unlogged,omitempty"`
	Writes   []loggedWrite `json:"writes"`
	Cut      bool          `json:"cut,omitempty"`
}

type loggedWrite struct {
	Op      string   `json:"op"`
	Table   text     `json:"table,omitempty"`
	Row     text     `json:"row,omitempty"`
	Place   *tupleID `json:"place,omitempty"`
	Storage uint32   `json:"storage,omitempty"`
	Old     string   `json:"old,omitempty"`
	New     string   `json:"new,omitempty"`
}

func writeLogStretches(all []history.LogStretch) (out []logStretch) {
	for _, s := range all {
		out = append(out, logStretch{s.From, s.To, text(s.Reason)})
	}
	return out
}

func readLogStretches(all []logStretch) (out []history.LogStretch) {
	for _, s := range all {
		out = append(out, history.LogStretch{From: s.From, To: s.To, Reason: string(s.Reason)})
	}
	return out
}

func writeLogged(t *history.LoggedTxn) *logged {
	x := &logged{Status: t.Status.String(), Position: t.Position, File: text(t.File), From: t.From, To: t.To, Seen: t.Seen,
		Database: text(t.Database), XIDs: t.XIDs, Thread: t.Thread, GTID: text(t.GTID), Cut: t.Cut,
		Writes: make([]loggedWrite, len(t.Writes))}
	for _, table := range t.Unlogged {
		x.Unlogged = append(x.Unlogged, text(table))
	}
	for i := range t.Writes {
		w := &t.Writes[i]
		y := &x.Writes[i]
		*y = loggedWrite{Op: w.Op.String(), Table: text(w.Row.Table), Row: text(w.Row.ID), Storage: w.Storage}
		if w.TupleID != (history.TupleID{}) {
			y.Place = writeTupleID(&w.TupleID)
		}
		if w.Old != w.New || !w.Old.Initial() {
			y.Old, y.New = w.Old.String(), w.New.String()
		}
	}
	return x
}

func readLogged(x *logged) (*history.LoggedTxn, error) {
	t := &history.LoggedTxn{Position: x.Position, File: string(x.File), From: x.From, To: x.To, Seen: x.Seen,
		Database: string(x.Database), XIDs: x.XIDs, Thread: x.Thread, GTID: string(x.GTID), Cut: x.Cut}
	at := "transaction of the server's log at " + strconv.FormatUint(x.Position, 10)
	var err error
	if t.Status, err = statuses.parse("status", x.Status); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	for _, table := range x.Unlogged {
		t.Unlogged = append(t.Unlogged, string(table))
	}
	for i := range x.Writes {
		w, err := readLoggedWrite(&x.Writes[i])
		if err != nil {
			return nil, fmt.Errorf("%s, write %d: %w", at, i+1, err)
		}
		t.Writes = append(t.Writes, w)
	}
	return t, nil
}

func readLoggedWrite(x *loggedWrite) (w history.LoggedWrite, err error) {
	w = history.LoggedWrite{Row: history.Row{Table: string(x.Table), ID: string(x.Row)}, Storage: x.Storage}
	if w.Op, err = ops.parse("operation", x.Op); err != nil {
		return w, err
	}
	if x.Place != nil {
		if w.TupleID, err = readTupleID(x.Place); err != nil {
			return w, err
		}
	}
	if x.Old == "" && x.New == "" {
		return w, nil
	}
	if w.Old, err = history.ParseTag(x.Old); err != nil {
		return w, err
	}
	w.New, err = history.ParseTag(x.New)
	return w, err
}
