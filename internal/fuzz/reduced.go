package fuzz

import (
	"context"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/reduce"
)

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
func Reduce(ctx context.Context, family dbms.Family, whole *scenario.Scenario, level history.Level,
	anomaly analyzer.Anomaly, shows reduce.Shows) (*Reduced, int, error) {
	small, tried, err := inStages(ctx, family, whole, shows)
	if err == nil && small.Shown < surely {
		sure, n, again := inStages(ctx, family, whole, thrice(shows))
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

// inStages reduces a scenario as long as that makes a large one smaller, and plays what comes of it ten times.
func inStages(ctx context.Context, family dbms.Family, whole *scenario.Scenario,
	shows reduce.Shows) (small *Reduced, tried int, err error) {
	small = &Reduced{Scenario: whole}
	for range stages {
		before := len(small.Scenario.Steps) + len(small.Scenario.Setup)
		n, over := 0, false
		if small.Scenario, n, over, err = inTime(ctx, family, small.Scenario, shows); err != nil {
			return nil, tried, err
		}
		if tried += n; over || isSmall(small.Scenario) ||
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
func inTime(ctx context.Context, family dbms.Family, whole *scenario.Scenario,
	shows reduce.Shows) (small *scenario.Scenario, tried int, over bool, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
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
