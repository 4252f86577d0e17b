package analysis

import (
	"context"
	"fmt"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/foreign"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
)

// findForeign reads the binary logs that stand in the recordings, and where somebody wrote without a tag, the
// transactions, too.
func (s *sources) findForeign(ctx context.Context) error {
	found := foreign.New()
	for i := range s.list {
		for _, run := range s.list[i].runs {
			if len(run.Log) > 0 && run.Server.Engine.Family() == dbms.MySQLFamily {
				found.AddRun(run)
			}
		}
	}
	err := s.eachLogged(ctx, func(_ history.Run, t *history.LoggedTxn) { found.Note(t) })
	if err != nil {
		return err
	}
	s.foreign = found
	if found.Empty() {
		return nil
	}
	for i := range s.list {
		x := &s.list[i]
		if err := s.each(ctx, x, func(*history.Txn) {}, found.Collect); err != nil {
			return fmt.Errorf("%s: %w", x.dir, err)
		}
	}
	if err := s.eachLogged(ctx, found.Add); err != nil {
		return err
	}
	found.Settle()
	return nil
}

// eachLogged calls do with the transactions of the binary logs in the recordings, as each log has them in order.
func (s *sources) eachLogged(ctx context.Context, do func(history.Run, *history.LoggedTxn)) error {
	for i := range s.list {
		x := &s.list[i]
		for _, run := range x.runs {
			if len(run.Log) == 0 || run.Server.Engine.Family() != dbms.MySQLFamily {
				continue
			}
			for t, err := range x.reader.Logged(ctx, run.Run) {
				if x.damaged(err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s: %w", x.dir, err)
				}
				do(run.Run, t)
			}
		}
	}
	return nil
}

// addForeign gives the analyzer the transactions that went past isotap, and what the binary logs told.
func (s *sources) addForeign(a *analyzer.Analyzer) error {
	if s.foreign == nil {
		return nil
	}
	runs, sessions, txns := s.foreign.Past()
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
		s.resolvedPast[t.ID] = t
		if err := a.AddTxn(t); err != nil {
			return err
		}
	}
	stats := s.foreign.Stats()
	a.Logged(analyzer.LogCoverage{Txns: stats.Txns, Past: len(txns), Effects: stats.Effects,
		Told: stats.Effects})
	return nil
}
