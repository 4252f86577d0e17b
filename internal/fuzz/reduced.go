package fuzz

import (
	"context"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
)

// A Reduction is what became of making a finding small.
type Reduction string

// The Reductions.
const (
	NotReduced Reduction = "" // nobody tried: those of its kind that were made small are as many as were wanted
	Done       Reduction = "done"
	Unfinished Reduction = "unfinished" // it was interrupted, or there was no time (any more)
	NotShown   Reduction = "not shown"  // no replay shows it again
	NotPlayed  Reduction = "not played" // its replays failed
)

// isFinal reports whether another try would come to the same.
func (r Reduction) isFinal() bool { return r == Done || r == NotShown || r == NotPlayed }

// unfinished counts one that is not finished.
func (r Reduction) unfinished() int {
	if r == Unfinished {
		return 1
	}
	return 0
}

// text says why a scenario is not as small as it may be, to follow what is said of it.
func (r Reduction) text() string {
	switch r {
	case Unfinished:
		return "; not made small yet"
	case NotShown:
		return "; no replay shows it"
	case NotPlayed:
		return "; its replays failed"
	}
	return ""
}

// A Reduced is a scenario made small, and how surely it shows what it does.
type Reduced struct {
	Scenario *scenario.Scenario
	Shown    int // of ten replays
}

// good reports whether it is as small and as sure as one is wanted.
func (r *Reduced) good() bool { return isSmall(r.Scenario) && r.Shown >= surely }

func isSmall(s *scenario.Scenario) bool {
	transactions, statements := reduce.Count(s)
	return transactions <= fewTransactions && statements <= fewStatements
}

// better reports whether it is surer than another that is no smaller, or small where that is not.
func (r *Reduced) better(other *Reduced) bool {
	if r.Shown >= surely != (other.Shown >= surely) {
		return r.Shown > other.Shown
	}
	_, mine := reduce.Count(r.Scenario)
	_, others := reduce.Count(other.Scenario)
	return mine < others || mine == others && r.Shown > other.Shown
}

// Reduce makes a scenario small that shows an anomaly at a level, and returns how many were tried. It takes three
// minutes at most; if the scenario is large even then, more as long as it becomes smaller. Where what comes of it shows
// the anomaly only at times, it looks for one that does three times in a row at each try.
//
// When it is later than until, it takes what it has; a zero until never comes.
func Reduce(ctx context.Context, until time.Time, family dbms.Family, whole *scenario.Scenario, level history.Level,
	anomaly analyzer.Anomaly, shows reduce.Shows) (*Reduced, int, error) {
	small, tried, err := inStages(ctx, until, family, whole, shows)
	if err == nil && small.Shown < surely && !late(until) {
		sure, n, again := inStages(ctx, until, family, whole, thrice(shows))
		if tried, err = tried+n, again; err == nil && sure.better(small) {
			small = sure
		}
	}
	if err != nil {
		return nil, tried, err
	}
	small.Scenario.Name, small.Scenario.From = string(anomaly), whole.Name
	for i := range small.Scenario.Sessions {
		small.Scenario.Sessions[i].Level = level.String()
	}
	small.Scenario.Expect = scenario.Outcome{Anomalies: []string{string(anomaly)}}
	return small, tried, nil
}

// late reports whether it is later than a moment; a zero one never comes.
func late(until time.Time) bool { return !until.IsZero() && !time.Now().Before(until) }

// inStages reduces a scenario as long as that makes a large one smaller, and plays what comes of it ten times.
func inStages(ctx context.Context, until time.Time, family dbms.Family, whole *scenario.Scenario,
	shows reduce.Shows) (small *Reduced, tried int, err error) {
	small = &Reduced{Scenario: whole}
	for range stages {
		before := len(small.Scenario.Steps) + len(small.Scenario.Setup)
		n, over := 0, false
		if small.Scenario, n, over, err = inTime(ctx, until, family, small.Scenario, shows); err != nil {
			return nil, tried, err
		}
		if tried += n; over || isSmall(small.Scenario) || late(until) ||
			len(small.Scenario.Steps)+len(small.Scenario.Setup) == before {
			break
		}
	}
	for range replays {
		ok, err := shows(ctx, small.Scenario)
		if err != nil {
			return nil, tried, err
		}
		if ok {
			small.Shown++
		}
	}
	return small, tried, nil
}

// inTime reduces a scenario with a stage's patience, and reports whether it came to an end.
func inTime(ctx context.Context, until time.Time, family dbms.Family, whole *scenario.Scenario,
	shows reduce.Shows) (small *scenario.Scenario, tried int, over bool, err error) {
	end := time.Now().Add(patience)
	if !until.IsZero() && until.Before(end) {
		end = until
	}
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	small, tried, err = reduce.Reduce(limited, family, whole, shows)
	if ctx.Err() == nil && limited.Err() != nil {
		return small, tried, false, nil
	}
	return small, tried, true, err
}

// thrice shows what shows does three times in a row.
func thrice(shows reduce.Shows) reduce.Shows {
	return func(ctx context.Context, s *scenario.Scenario) (bool, error) {
		for range 3 {
			if ok, err := shows(ctx, s); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}
}
