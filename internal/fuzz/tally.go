package fuzz

import (
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// A Tally is what a run has come to.
type Tally struct {
	Server  history.Server
	Isotap  string // its version
	Seed    uint64 // the first round's
	Oracles []Oracle
	Began   time.Time
	Hunted  time.Duration // how long the rounds took; 0 while they go on
	// Reducing is how long it took to make small what was found.
	Reducing time.Duration
	End      End // of the hunt; empty while it goes on
	Rounds   int
	Random   random.Outcome // of all rounds; without steps
	// Kinds says how well the statements of each kind were observed; Reasons counts those that were not observed
	// exactly.
	Kinds   map[history.Kind]analyzer.Observed
	Reasons map[string]int // by their texts
	Levels  map[workload.Isolation]*LevelTally
	// Aggregated are the findings whose cycle reads by an aggregate, Aborted those that rest on what was rolled back:
	// both are among those of Levels.
	Aggregated, Aborted Found
	Catches             []*Catch
	Mismatches          []*Mismatch
	Abnormal            []*Abnormality // what no healthy server does
	Crashes             int            // how often the server was gone
	seen                map[string]*Catch
	odd                 map[string]*Abnormality
	worked              time.Duration // the time in which sessions worked, of all lanes together
}

// An End is what ended a hunt.
type End string

// The ends.
const (
	DurationOver End = "duration"    // its time was over
	RoundsOver   End = "rounds"      // it had as many rounds as it was to have
	Interrupted  End = "interrupted" // its context ended, in a round or while what was found was made small
	ServerGone   End = "server gone"
	Failed       End = "failed" // by an error of its own
)

// A LevelTally counts what was found at one level.
type LevelTally struct {
	Rounds, Transactions int
	Violations, Hazards  map[analyzer.Anomaly]*Found
	Judged               map[Oracle]*JudgedTally // of oracles that play scripts
	Templates            map[string]*TemplateTally
}

// judged returns what an oracle that plays scripts judged.
func (l *LevelTally) judged(by Oracle) *JudgedTally {
	if l.Judged == nil {
		l.Judged = make(map[Oracle]*JudgedTally)
	}
	if l.Judged[by] == nil {
		l.Judged[by] = &JudgedTally{}
	}
	return l.Judged[by]
}

// Found says how often an anomaly was found.
type Found struct {
	Times  int
	Unique int // of these, that no earlier one was like (see keyOf)
}

func newTally(server history.Server, levels []workload.Isolation) *Tally {
	t := &Tally{Server: server, Began: time.Now(), Levels: make(map[workload.Isolation]*LevelTally),
		seen: make(map[string]*Catch), odd: make(map[string]*Abnormality)}
	t.Random.Mistakes = make(map[string]*random.Mistake)
	t.Kinds, t.Reasons = make(map[history.Kind]analyzer.Observed), make(map[string]int)
	for _, l := range levels {
		t.Levels[l] = newLevelTally()
	}
	return t
}

func newLevelTally() *LevelTally {
	return &LevelTally{Violations: make(map[analyzer.Anomaly]*Found), Hazards: make(map[analyzer.Anomaly]*Found)}
}

// found returns the counts of a class.
func (l *LevelTally) found(c analyzer.Class) map[analyzer.Anomaly]*Found {
	if c == analyzer.Violation {
		return l.Violations
	}
	return l.Hazards
}

// of returns the counts of a finding's anomaly.
func (l *LevelTally) of(f *analyzer.Finding) *Found {
	all := l.found(f.Class)
	if all[f.Anomaly] == nil {
		all[f.Anomaly] = &Found{}
	}
	return all[f.Anomaly]
}

// all adds the counts of a class up.
func (l *LevelTally) all(c analyzer.Class) *Found {
	sum := &Found{}
	for _, f := range l.found(c) {
		sum.Times, sum.Unique = sum.Times+f.Times, sum.Unique+f.Unique
	}
	return sum
}

// TransactionsPerSecond is how fast the sessions of a round worked, without set-up and analysis.
func (t *Tally) TransactionsPerSecond() float64 {
	if t.worked == 0 {
		return 0
	}
	return float64(t.Random.Transactions) / t.worked.Seconds()
}

// add counts a round.
func (t *Tally) add(r *round) {
	t.transacted(r)
	t.cover(&r.result.Coverage)
	at := t.Levels[r.level]
	at.templated(r.generator).found(r.result.Findings)
	for _, f := range r.result.Findings {
		at.of(f).Times += f.Count
		for _, beyond := range t.beyond(f) {
			beyond.Times += f.Count
		}
	}
}

// beyond returns the counts of what a finding shows that is not seen where aggregates and aborted writes are not.
func (t *Tally) beyond(f *analyzer.Finding) []*Found {
	var all []*Found
	if byAggregate(f) {
		all = append(all, &t.Aggregated)
	}
	if byAborted(f) {
		all = append(all, &t.Aborted)
	}
	return all
}

// transacted counts what a round's sessions did.
func (t *Tally) transacted(r *round) {
	o := r.outcome
	t.Rounds++
	t.worked += r.worked
	t.Random.Transactions += o.Transactions
	t.Random.Committed += o.Committed
	t.Random.Refused += o.Refused
	t.Random.Statements += o.Statements
	t.Random.Failed += o.Failed
	for code, m := range o.Mistakes {
		if t.Random.Mistakes[code] == nil {
			t.Random.Mistakes[code] = &random.Mistake{Code: code, Message: m.Message, SQL: m.SQL}
		}
		t.Random.Mistakes[code].Count += m.Count
	}
	at := t.Levels[r.level]
	at.Rounds++
	at.Transactions += o.Transactions
}

// cover adds how well a round's statements were observed.
func (t *Tally) cover(c *analyzer.Coverage) {
	for kind, o := range c.Kinds {
		t.Kinds[kind] = t.Kinds[kind].Plus(o)
	}
	for reason, n := range c.Reasons {
		t.Reasons[reason.String()] += n
	}
}

// Observed returns how well all statements were observed.
func (t *Tally) Observed() analyzer.Observed {
	var all analyzer.Observed
	for _, o := range t.Kinds {
		all = all.Plus(o)
	}
	return all
}
