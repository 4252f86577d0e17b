package fuzz

import (
	"context"
	"fmt"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/reduce"
	"github.com/isotap/isotap/workload"
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
func (r *Reduced) good() bool { return isSmall(r.Scenario) && r.each() }

// each reports whether each replay showed it.
func (r *Reduced) each() bool { return r.Shown == replays }

func isSmall(s *scenario.Scenario) bool {
	transactions, statements := reduce.Count(s)
	return transactions <= fewTransactions && statements <= fewStatements
}

// better reports whether it shows each time where another does not, or is smaller, or surer where they are as large.
func (r *Reduced) better(other *Reduced) bool {
	if r.each() != other.each() {
		return r.each()
	}
	_, mine := reduce.Count(r.Scenario)
	_, others := reduce.Count(other.Scenario)
	return mine < others || mine == others && r.Shown > other.Shown
}

// A reducer makes scenarios small that are of one family's SQL.
type reducer struct {
	family dbms.Family
	// until is when it takes what it has; zero: never.
	until time.Time
}

// Reduce makes a scenario small that shows an anomaly at a level, and returns how many were tried. It takes three
// minutes at most; if the scenario is large even then, more as long as it becomes smaller.
func Reduce(ctx context.Context, family dbms.Family, whole *scenario.Scenario, level history.Level,
	anomaly analyzer.Anomaly, shows reduce.Shows) (*Reduced, int, error) {
	return reducer{family: family}.anomaly(ctx, whole, level, anomaly, shows)
}

// anomaly makes a scenario small that shows an anomaly at a level.
func (r reducer) anomaly(ctx context.Context, whole *scenario.Scenario, level history.Level, anomaly analyzer.Anomaly,
	shows reduce.Shows) (*Reduced, int, error) {
	small, tried, err := r.surest(ctx, whole, shows)
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

// ReduceDifference makes a script small in which an oracle finds a difference at a level, the first that it names. It
// returns the difference as the small one shows it, and how many were tried.
func ReduceDifference(ctx context.Context, j *Judge, by Oracle, whole *scenario.Scenario,
	level history.Level) (small *Reduced, d oracle.Difference, tried int, err error) {
	at := workload.Isolation{Level: level}
	v, err := j.Verdict(ctx, by, oracle.Script{Scenario: whole}, level)
	if err != nil {
		return nil, d, 0, err
	}
	if !v.Wrong() {
		return nil, d, 0, fmt.Errorf("the oracle %s finds no difference in its replay at %s", by, level)
	}
	d = v.Differences[0]
	key := keyOfDifference(by, &d, at)
	shows := func(ctx context.Context, s *scenario.Scenario) (bool, error) {
		v, err := j.Verdict(ctx, by, oracle.Script{Scenario: s}, level)
		if err != nil {
			return false, answers(ctx, j.Runner, err)
		}
		x := differing(v, by, at, key)
		if x != nil {
			d = x.difference
		}
		return x != nil, nil
	}
	small, tried, err = reducer{family: j.Runner.Server.Engine.Family()}.surest(ctx, whole, shows)
	if err != nil {
		return nil, d, tried, err
	}
	small.Scenario = atLevel(small.Scenario, at)
	small.Scenario.Name, small.Scenario.From, small.Scenario.Oracle = key, whole.Name, string(by)
	return small, d, tried, nil
}

// insistence is how often in a row a try has to show what is looked for, one reduction after the other, until what
// comes of one shows it each time.
var insistence = []int{1, 3, replays}

// surest makes a scenario small. Where what comes of it shows what it does only at times, it looks for one that does so
// several times in a row at each try, and takes the surest.
func (r reducer) surest(ctx context.Context, whole *scenario.Scenario, shows reduce.Shows) (best *Reduced, tried int,
	err error) {
	for _, times := range insistence {
		small, n, err := r.inStages(ctx, whole, inARow(times, shows), shows)
		if tried += n; err != nil {
			return nil, tried, err
		}
		if best == nil || small.better(best) {
			best = small
		}
		if best.each() || late(r.until) {
			break
		}
	}
	return best, tried, nil
}

// late reports whether it is later than a moment; a zero one never comes.
func late(until time.Time) bool { return !until.IsZero() && !time.Now().Before(until) }

// inStages reduces a scenario as long as that makes a large one smaller, and plays what comes of it ten times. Holds is
// what each try has to pass.
func (r reducer) inStages(ctx context.Context, whole *scenario.Scenario, holds, shows reduce.Shows) (small *Reduced,
	tried int, err error) {
	small = &Reduced{Scenario: whole}
	for range stages {
		before := len(small.Scenario.Steps) + len(small.Scenario.Setup)
		n, over := 0, false
		if small.Scenario, n, over, err = r.inTime(ctx, small.Scenario, holds); err != nil {
			return nil, tried, err
		}
		if tried += n; over || isSmall(small.Scenario) || late(r.until) ||
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
func (r reducer) inTime(ctx context.Context, whole *scenario.Scenario, holds reduce.Shows) (small *scenario.Scenario,
	tried int, over bool, err error) {
	end := time.Now().Add(patience)
	if !r.until.IsZero() && r.until.Before(end) {
		end = r.until
	}
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	small, tried, err = reduce.Reduce(limited, r.family, whole, holds)
	if ctx.Err() == nil && limited.Err() != nil {
		return small, tried, false, nil
	}
	return small, tried, true, err
}

// inARow shows what shows does so many times in a row.
func inARow(times int, shows reduce.Shows) reduce.Shows {
	return func(ctx context.Context, s *scenario.Scenario) (bool, error) {
		for range times {
			if ok, err := shows(ctx, s); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}
}
