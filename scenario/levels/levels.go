// Package levels measures which anomalies a server's isolation levels permit: scenarios are played at each level, and
// what came of them makes a table. It is what `isotap levels` stands on.
//
// catalogue.go has the anomalies and the scenarios that show them, columns.go what a server is asked for, levels.go
// plays. text.go and json.go write the table, says.go what it means for whoever writes an application.
package levels

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// A Table says what each row came to in each column.
type Table struct {
	Server  history.Server
	Columns []Column
	Rows    []Row
	cells   [][]cell // by row and column
}

// A cell has what came of each scenario of its row.
type cell []played

// What came of a scenario: what it showed, or why it was not played.
type played struct {
	shows runner.Showing
	why   string
}

// outcome is the worst: what one of them showed happens.
func (c cell) outcome() Outcome {
	worst := NotPlayed
	for _, s := range c {
		worst = max(worst, outcomeOf(s.shows))
	}
	return worst
}

// An Outcome is what a server did about an anomaly.
type Outcome int

// The Outcomes. Where several scenarios show an anomaly the last of them counts.
const (
	NotPlayed Outcome = iota // its set-up failed, it needs a server of its own, or nothing tells whether it happened
	Prevented                // without a wait and without an error, as by a snapshot
	Waits                    // a statement had to wait for the other transaction
	Fails                    // a statement failed
	Permitted                // it happened
)

func outcomeOf(s runner.Showing) Outcome {
	switch {
	case s == "":
		return NotPlayed
	case s.Happened():
		return Permitted
	case s == runner.Refused:
		return Fails
	case s == runner.Waited:
		return Waits
	}
	return Prevented
}

// workers are how many scenarios are played at once. Each has up to four connections, of which servers have 100 in
// all by their defaults; most of the time goes into asking InnoDB who waits, which one answer tells to all.
const workers = 8

// An Own starts a throw-away server with command line options and opens a runner on it; end ends both.
type Own func(ctx context.Context, args []string) (on *runner.Runner, end func() error, err error)

// Measure plays all rows at all columns. Scenarios that need a server of their own are played on what own starts, and
// not at all where it is nil. It returns the context's cause where that ends it.
func Measure(ctx context.Context, on *runner.Runner, columns []Column, rows []Row, own Own) (*Table, error) {
	t := &Table{Server: on.Server, Columns: columns, Rows: rows, cells: make([][]cell, len(rows))}
	var all []job
	var alone []*scenario.Scenario
	at := make(map[*scenario.Scenario][]*job) // of alone
	for i := range rows {
		t.cells[i] = make([]cell, len(columns))
		for j := range columns {
			t.cells[i][j] = make(cell, len(rows[i].Scenarios))
			for k, s := range rows[i].Scenarios {
				to := job{on.With(columns[j].Settings), s.At(), columns[j].Level, &t.cells[i][j][k]}
				switch {
				case len(s.Shows)+len(s.Witness) == 0:
					to.to.why = "it has no witness, and names nothing that isotap would find"
				case !s.OwnServer():
					all = append(all, to)
				case own == nil:
					to.to.why = "it needs a throw-away server of its own (--engine)"
				default:
					if at[s] == nil {
						alone = append(alone, s)
					}
					at[s] = append(at[s], &to)
				}
			}
		}
	}
	if err := play(ctx, all); err != nil {
		return nil, err
	}
	for _, s := range alone {
		if err := playAlone(ctx, own, s.Server.Args, at[s]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// playAlone plays the jobs of one scenario on a server that own starts, and on another after one that it has ended.
func playAlone(ctx context.Context, own Own, args []string, jobs []*job) (err error) {
	var on *runner.Runner
	end := func() error { return nil }
	defer func() { err = errors.Join(err, end()) }()
	for _, j := range jobs {
		if on == nil {
			if on, end, err = own(ctx, args); err != nil {
				end = func() error { return nil }
				return err
			}
		}
		j.on = on.With(j.on.Options().Settings)
		gone, err := j.do(ctx)
		if err != nil {
			return err
		}
		if gone {
			if err := end(); err != nil {
				return err
			}
			on, end = nil, func() error { return nil }
		}
	}
	return nil
}

// A job is one scenario to be played in one column.
type job struct {
	on       *runner.Runner
	scenario *scenario.Scenario
	level    history.Level
	to       *played
}

// do plays on the server itself where the scenario has a witness, else through isotap. It reports whether the server
// has ended.
func (j *job) do(ctx context.Context) (gone bool, err error) {
	perform := j.on.Play
	if len(j.scenario.Witness) > 0 {
		perform = j.on.Witness
	}
	p, err := perform(ctx, j.scenario, j.level)
	var unfit *replay.SetUpError
	if errors.As(err, &unfit) && ctx.Err() == nil {
		j.to.why = unfit.Error()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	j.to.shows = p.Shows()
	return p.Trace.ServerGone, nil
}

// play plays all jobs. The first error ends the others, whose databases are dropped; what could not be dropped is
// told.
func play(ctx context.Context, all []job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *job)
	errs := make([]error, workers)
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() {
			for j := range next {
				if _, err := j.do(ctx); err != nil {
					errs[i] = err
					cancel(err)
					return
				}
			}
		})
	}
hand:
	for i := range all {
		select {
		case next <- &all[i]:
		case <-ctx.Done():
			break hand
		}
	}
	close(next)
	working.Wait()
	if ctx.Err() == nil {
		return nil
	}
	return errors.Join(context.Cause(ctx), left(context.Cause(ctx), errs))
}

// left are the databases that are still there, but for what an error tells already.
func left(told error, errs []error) error {
	var all []error
	for _, err := range errs {
		var l *replay.LeftError
		if errors.As(err, &l) && !slices.Contains(all, error(l)) && !errors.Is(told, l) {
			all = append(all, l)
		}
	}
	return errors.Join(all...)
}
