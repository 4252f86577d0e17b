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
			for t, err := range x.logged(ctx, run.Run) {
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
	if err := s.addPast(a, s.foreign, func(*history.Txn) {}); err != nil {
		return err
	}
	stats := s.foreign.Stats()
	_, _, past := s.foreign.Past()
	a.Logged(analyzer.LogCoverage{Txns: stats.Txns, Past: len(past), Effects: stats.Effects, Told: stats.Effects,
		Unlogged: stats.Silent})
	return nil
}
