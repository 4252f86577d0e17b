package jsonlines

import (
	"fmt"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

func readRun(r *run) (history.Info, error) {
	number, err := history.ParseRun(r.Run)
	if err != nil {
		return history.Info{}, err
	}
	info := history.Info{Run: number, Started: r.Started, Isotap: string(r.Isotap), Mode: string(r.Mode),
		Horizon: r.Horizon, Recent: history.Recent{From: r.RecentFrom, To: r.RecentTo, Running: r.Running},
		Columns: r.Columns, PutBack: r.PutBack, Untested: r.Untested, BeyondBound: r.BeyondBound, Damaged: r.Damaged, Unreadable: r.Unreadable,
		Log: readLogStretches(r.Log),
		Server: history.Server{Engine: dbms.Engine(r.Engine), Version: string(r.Version),
			SnapshotIsolation: r.SnapshotIsolation, System: r.System}}
	if r.Started.IsZero() {
		return info, fmt.Errorf("run %s does not say when it started", number)
	}
	for _, table := range r.Rewritten {
		info.Rewritten = append(info.Rewritten, string(table))
	}
	for _, g := range r.Gaps {
		info.Gaps = append(info.Gaps, history.Gap{From: g.From, To: g.To, Txns: g.Txns, Reason: string(g.Reason)})
	}
	if r.Ended != nil {
		info.Ended = *r.Ended
	}
	return info, nil
}

func readTxn(x *txn) (*history.Txn, error) {
	id, err := history.ParseTxnID(x.ID)
	if err != nil {
		return nil, err
	}
	t := &history.Txn{ID: id, Session: history.SessionID(x.Session), Implicit: x.Implicit, StaleRead: x.StaleRead,
		Fresh: x.Fresh, Start: x.Start, End: x.End}
	if t.Status, err = statuses.parse("status", x.Status); err != nil {
		return nil, fmt.Errorf("transaction %s: %w", id, err)
	}
	if t.Level, err = levels.parse("level", x.Level); err != nil {
		return nil, fmt.Errorf("transaction %s: %w", id, err)
	}
	if x.Conflicts != "" {
		if t.Conflicts, err = conflicts.parse("conflicts", x.Conflicts); err != nil {
			return nil, fmt.Errorf("transaction %s: %w", id, err)
		}
	}
	for i := range x.Stmts {
		s, err := readStmt(&x.Stmts[i])
		if err != nil {
			return nil, fmt.Errorf("transaction %s, statement %d: %w", id, x.Stmts[i].Num, err)
		}
		t.Stmts = append(t.Stmts, s)
	}
	return t, nil
}

func (d *definition) read() *history.Definition {
	return &history.Definition{Database: string(d.Database), Name: string(d.Name), At: d.At, SQL: string(d.SQL),
		References: string(d.References), Missing: string(d.Missing)}
}

func readStmt(x *stmt) (s history.Stmt, err error) {
	s = history.Stmt{Num: x.Num, Void: x.Void, Reason: history.ParseReason(string(x.Reason)), Shape: string(x.Shape),
		Sender: history.Sender{Place: string(x.Origin), Action: string(x.Action), Request: string(x.Request)}, Start: x.Start, End: x.End,
		Rows: x.Rows, Affected: x.Affected, XID: x.XID}
	if s.Num == 0 {
		return s, fmt.Errorf("statements are numbered from 1")
	}
	if s.Kind, err = kinds.parse("kind", x.Kind); err != nil {
		return s, err
	}
	if s.Locking, err = lockings.parse("locking", x.Locking); err != nil {
		return s, err
	}
	if s.Observation, err = observations.parse("observation", x.Observation); err != nil {
		return s, err
	}
	for _, a := range x.Args {
		s.Args = append(s.Args, string(a))
	}
	if x.Error != nil {
		s.Error = history.Error{Code: x.Error.Code, SQLState: string(x.Error.SQLState),
			Message: string(x.Error.Message)}
	}
	for i := range x.Accesses {
		a, err := readAccess(&x.Accesses[i])
		if err != nil {
			return s, fmt.Errorf("access %d: %w", i+1, err)
		}
		s.Accesses = append(s.Accesses, a)
		if image := x.Accesses[i].Image; image != "" {
			if s.Images == nil {
				s.Images = make([]string, len(x.Accesses))
			}
			s.Images[i] = string(image)
		}
		if x.Accesses[i].Place == nil {
			continue
		}
		if s.TupleIDs == nil {
			s.TupleIDs = make([]history.TupleID, len(x.Accesses))
		}
		if s.TupleIDs[i], err = readTupleID(x.Accesses[i].Place); err != nil {
			return s, fmt.Errorf("access %d: %w", i+1, err)
		}
	}
	for i := range x.Predicates {
		s.Predicates = append(s.Predicates, readCondition(&x.Predicates[i]))
	}
	return s, nil
}

func readAccess(x *rowAccess) (a history.Access, err error) {
	a = history.Access{Row: history.Row{Table: string(x.Table), ID: string(x.Row)}, Inexact: x.Inexact,
		Subquery: x.Subquery}
	if a.Op, err = ops.parse("operation", x.Op); err != nil {
		return a, err
	}
	if a.Version, err = history.ParseTag(x.Version); err != nil {
		return a, err
	}
	for _, p := range x.Prior {
		tag, err := history.ParseTag(p)
		if err != nil {
			return a, err
		}
		a.Prior = append(a.Prior, tag)
	}
	return a, nil
}
