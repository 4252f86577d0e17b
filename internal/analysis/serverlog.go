package analysis

import (
	"context"
	"fmt"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/pglog"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// findWriters reads the write-ahead logs that stand in the recordings, and the transactions for whose they are.
func (s *sources) findWriters(ctx context.Context) error {
	first := history.FirstPast
	for i := range s.list {
		first += history.Run(len(s.list[i].runs)) // those before are of other families' logs
	}
	found := pglog.New(first)
	any := false
	for i := range s.list {
		x := &s.list[i]
		for _, info := range x.runs {
			if info.Server.Engine != dbms.PostgreSQL || x.hurt || !x.usable(&info) {
				continue
			}
			any = true
			found.AddRun(info)
			for t, err := range x.logged(ctx, info.Run) {
				if x.damaged(err) {
					return nil // a log that lacks something is no witness
				}
				if err != nil {
					return fmt.Errorf("%s: %w", x.dir, err)
				}
				found.AddLogged(info.Run, t)
			}
		}
	}
	if !any {
		return nil
	}
	found.Link()
	for i := range s.list {
		x := &s.list[i]
		for session, err := range x.reader.Sessions(ctx) {
			switch {
			case x.damaged(err):
			case err != nil:
				return fmt.Errorf("%s: %w", x.dir, err)
			default:
				found.AddSession(session)
			}
		}
		if err := s.each(ctx, x, func(*history.Txn) {}, found.Observe); err != nil {
			return fmt.Errorf("%s: %w", x.dir, err)
		}
		if x.hurt {
			return nil // nor is one beside transactions that are missing: it would call theirs another's
		}
	}
	found.Settle()
	s.writers = found
	return nil
}

// usable reports whether PostgreSQL's log of a run can be set beside its transactions.
func (x *source) usable(info *history.Info) bool {
	if x.part != nil {
		return pglog.Logged(info)
	}
	return pglog.Usable(info)
}

// complete adds what PostgreSQL's log says that a transaction wrote unseen.
func (s *sources) complete(t *history.Txn) {
	if s.writers != nil {
		s.writers.Complete(t)
	}
}

// collectPast has the transactions that went past isotap among those whose versions get names.
func (s *sources) collectPast(v *pgversions.Resolver) error {
	if s.writers == nil {
		return nil
	}
	runs, sessions, txns := s.writers.Past()
	for _, run := range runs {
		v.Add(run)
	}
	for _, session := range sessions {
		v.AddSession(session)
	}
	for _, t := range txns {
		if err := v.Collect(t); err != nil {
			return err
		}
	}
	return nil
}

// addWriters gives the analyzer the transactions that went past isotap, and what the logs told.
func (s *sources) addWriters(a *analyzer.Analyzer) error {
	if s.writers == nil {
		return nil
	}
	if err := s.addPast(a, s.writers, s.name); err != nil {
		return err
	}
	stats := s.writers.Stats()
	a.Logged(analyzer.LogCoverage{Txns: stats.Txns, Past: stats.Past, Either: stats.Either,
		Effects: stats.Effects, Told: stats.Told, Ends: stats.Ends, Disputed: stats.Disputed, Example: stats.Example})
	return nil
}

// addPast gives the analyzer the transactions that went past isotap, after resolve was given each.
func (s *sources) addPast(a *analyzer.Analyzer, logs interface {
	Past() ([]history.Info, []history.Session, []*history.Txn)
}, resolve func(*history.Txn)) error {
	runs, sessions, txns := logs.Past()
	for _, run := range runs {
		if err := a.Add(run); err != nil {
			return err
		}
	}
	for _, session := range sessions {
		if err := a.AddSession(session); err != nil {
			return err
		}
	}
	if s.resolvedPast == nil {
		s.resolvedPast = make(map[history.TxnID]*history.Txn, len(txns))
	}
	for _, t := range txns {
		resolve(t)
		s.resolvedPast[t.ID] = t
		if err := a.AddTxn(t); err != nil {
			return err
		}
	}
	return nil
}
