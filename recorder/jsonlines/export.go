package jsonlines

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// Export writes the recordings in dirs as lines. A transaction that cannot be read ends it with an
// error; what was written then lacks its last line, and Import does not take it.
func Export(ctx context.Context, w io.Writer, dirs ...string) error {
	e := &exporter{Encoder: NewEncoder(w), runs: map[history.Run]bool{}}
	for _, dir := range dirs {
		if err := e.recording(ctx, dir); err != nil {
			return fmt.Errorf("export %s: %w", dir, err)
		}
	}
	if err := e.End(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type exporter struct {
	*Encoder
	runs map[history.Run]bool
}

// recording writes each run with its sessions and transactions behind it. Both streams of the reader go
// by the run's number.
func (e *exporter) recording(ctx context.Context, dir string) (err error) {
	r, err := recorder.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	sessions := map[history.Run][]history.Session{}
	for s, err := range r.Sessions(ctx) {
		if errors.Is(err, recorder.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		sessions[s.Run] = append(sessions[s.Run], s)
	}
	checked, err := r.Check(ctx)
	if err != nil {
		return err
	}
	runs := r.Runs()
	for i := range runs {
		runs[i].Damaged = runs[i].Damaged || !checked.Sound()
		runs[i].Unreadable += checked.Of(runs[i].Run)
	}
	slices.SortFunc(runs, func(a, b history.Info) int { return cmp.Compare(a.Run, b.Run) })
	upTo := func(last history.Run) error {
		for len(runs) > 0 && runs[0].Run <= last {
			if err := e.run(&runs[0], sessions[runs[0].Run]); err != nil {
				return err
			}
			for m, err := range r.Matches(ctx, runs[0].Run) {
				if errors.Is(err, recorder.ErrCorrupt) {
					continue // the run says that it is damaged
				}
				if err != nil {
					return err
				}
				e.Matches(&m)
			}
			for d, err := range r.Definitions(ctx, runs[0].Run) {
				if errors.Is(err, recorder.ErrCorrupt) {
					continue // the run says that it is damaged
				}
				if err != nil {
					return err
				}
				e.Definition(&d)
			}
			for t, err := range r.Defined(ctx, runs[0].Run) {
				if errors.Is(err, recorder.ErrCorrupt) {
					continue // the run says that it is damaged
				}
				if err != nil {
					return err
				}
				e.Defined(t)
			}
			for l, err := range r.Logged(ctx, runs[0].Run) {
				if errors.Is(err, recorder.ErrCorrupt) {
					continue // the run says that it is damaged
				}
				if err != nil {
					return err
				}
				e.Logged(l)
			}
			runs = runs[1:]
		}
		return e.err
	}
	for t, err := range r.Txns(ctx) {
		if errors.Is(err, recorder.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		if err := upTo(t.ID.Run()); err != nil {
			return err
		}
		e.Txn(t)
	}
	return upTo(history.MaxRun)
}

func (e *exporter) run(info *history.Info, sessions []history.Session) error {
	if e.runs[info.Run] {
		return fmt.Errorf("run %s is given twice", info.Run)
	}
	e.runs[info.Run] = true
	e.Run(info)
	for i := range sessions {
		e.Session(&sessions[i])
	}
	return e.err
}

func writeRun(info *history.Info) *run {
	r := &run{Run: info.Run.String(), Started: info.Started, Isotap: text(info.Isotap), Mode: text(info.Mode),
		Engine: text(info.Server.Engine), Version: text(info.Server.Version),
		SnapshotIsolation: info.Server.SnapshotIsolation,
		System:            info.Server.System, Horizon: info.Horizon, RecentFrom: info.Recent.From,
		RecentTo: info.Recent.To, Running: info.Recent.Running, Columns: info.Columns, PutBack: info.PutBack,
		Untested: info.Untested, BeyondBound: info.BeyondBound, Damaged: info.Damaged, Unreadable: info.Unreadable,
		Log: writeLogStretches(info.Log)}
	for _, g := range info.Gaps {
		r.Gaps = append(r.Gaps, gap{g.From, g.To, g.Txns, text(g.Reason)})
	}
	for _, table := range info.Rewritten {
		r.Rewritten = append(r.Rewritten, text(table))
	}
	if !info.Ended.IsZero() {
		r.Ended = &info.Ended
	}
	return r
}

func writeSession(s *history.Session) *session {
	return &session{ID: uint32(s.ID), Client: text(s.Client), User: text(s.User), Database: text(s.Database),
		Start: s.Start, End: s.End}
}

func writeTxn(t *history.Txn) *txn {
	x := &txn{ID: t.ID.String(), Session: uint32(t.Session), Status: t.Status.String(), Level: t.Level.String(),
		Implicit: t.Implicit, StaleRead: t.StaleRead, Fresh: t.Fresh, Start: t.Start, End: t.End, Stmts: make([]stmt, len(t.Stmts))}
	if t.Conflicts != history.ConflictsUnknown {
		x.Conflicts = t.Conflicts.String()
	}
	for i := range t.Stmts {
		x.Stmts[i] = writeStmt(&t.Stmts[i])
	}
	return x
}

func writeStmt(s *history.Stmt) stmt {
	x := stmt{Num: s.Num, Kind: s.Kind.String(), Locking: s.Locking.String(), Observation: s.Observation.String(),
		Reason: text(s.Reason.String()), Void: s.Void, Shape: text(s.Shape), Origin: text(s.Sender.Place),
		Action: text(s.Sender.Action), Request: text(s.Sender.Request), Start: s.Start,
		End: s.End, Rows: s.Rows, Affected: s.Affected, XID: s.XID}
	for _, a := range s.Args {
		x.Args = append(x.Args, text(a))
	}
	if s.Error != (history.Error{}) {
		x.Error = &stmtError{Code: s.Error.Code, SQLState: text(s.Error.SQLState), Message: text(s.Error.Message)}
	}
	for i := range s.Accesses {
		a := &s.Accesses[i]
		y := rowAccess{Table: text(a.Row.Table), Row: text(a.Row.ID), Op: a.Op.String(), Inexact: a.Inexact,
			Subquery: a.Subquery, Version: a.Version.String()}
		for _, tag := range a.Prior {
			y.Prior = append(y.Prior, tag.String())
		}
		if i < len(s.TupleIDs) {
			y.Place = writeTupleID(&s.TupleIDs[i])
		}
		if i < len(s.Images) {
			y.Image = text(s.Images[i])
		}
		x.Accesses = append(x.Accesses, y)
	}
	for i := range s.Predicates {
		x.Predicates = append(x.Predicates, writeCondition(&s.Predicates[i]))
	}
	return x
}

func validUTF8(s string) bool { return utf8.ValidString(s) }

// appendJSON is json.Marshal that leaves <, > and & as they are: this is SQL, not HTML.
func appendJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
