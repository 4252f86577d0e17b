package fuzz

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/workload"
	"github.com/isotap/isotap/workload/random"
)

// An Oracle is a way to tell that a server is wrong.
type Oracle string

// The oracles.
const (
	// Graph finds anomalies in the dependencies of concurrent transactions.
	Graph Oracle = "graph"
	// Alone holds single transactions against their statements in autocommit ([oracle.Alone]).
	Alone Oracle = "alone"
	// Serial holds concurrent transactions against their statements in autocommit ([oracle.Serial]).
	Serial Oracle = "serial"
	// Views holds statements against themselves on what they have to see ([oracle.Views]).
	Views Oracle = "views"
)

// Oracles are all that there are.
func Oracles() []Oracle { return []Oracle{Graph, Alone, Serial, Views} }

// A Mismatch is a difference that an oracle found and no earlier round had.
type Mismatch struct {
	Oracle     Oracle
	Key        string // what makes it another one: oracle, aspect, kind of statement, outcomes
	Level      workload.Isolation
	Seed       uint64
	Seen       int // in how many rounds
	Difference oracle.Difference
	// Scenario is the smallest that shows it, Shown how often of so many replays.
	Scenario       *scenario.Scenario
	Shown, Replays int
	File           string // the scenario's; empty: none was written
	last           uint64 // the last round's seed that showed it
}

// alonePerRound is how many transactions share the databases of one round, one behind the other: making them takes
// longer than what is done in them.
const alonePerRound = 10

// aloneRound judges a few random transactions, each by itself.
func (h *fuzzer) aloneRound(ctx context.Context, seed uint64, level workload.Isolation) error {
	s := h.aloneScript(seed, level)
	return h.judgeScript(ctx, Alone, s, h.aloneGenerator(seed, level), seed, level)
}

// judgeScript has an oracle judge a round's script, and takes stock of it.
func (h *fuzzer) judgeScript(ctx context.Context, by Oracle, s oracle.Script, g *random.Generator, seed uint64,
	level workload.Isolation) error {
	v, err := h.verdict(ctx, by, s, level)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return h.broken(ctx, &round{generator: g, level: level, seed: seed}, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally.Levels[level].judged(by).add(v)
	for _, d := range v.Differences {
		if err := h.mismatch(by, s, seed, level, d); err != nil {
			return err
		}
	}
	return nil
}

func (h *fuzzer) aloneGenerator(seed uint64, level workload.Isolation) *random.Generator {
	p := h.Profile
	p.Closed, p.Sessions, p.Transactions = true, 1, min(cmp.Or(p.Transactions, alonePerRound), alonePerRound)
	p.Weights = make(map[string]int)
	for kind, weight := range h.Profile.Weights {
		p.Weights[kind] = weight
	}
	p.Weights["savepoint"] = 0 // what it undoes has no like in autocommit
	server := h.runner.Server
	return random.New(random.Engine{Name: server.Engine, Version: server.Version, Optimistic: level.Optimistic}, p, seed)
}

// aloneScript makes a round's transactions, all of one session.
func (h *fuzzer) aloneScript(seed uint64, level workload.Isolation) oracle.Script {
	g := h.aloneGenerator(seed, level)
	session := scenario.Session{Name: sessionName(0)}
	if h.runner.Server.Engine != dbms.PostgreSQL { // of literals, as of columns
		session.Settings = scenario.Settings{"collation_connection": "utf8mb4_bin"}
	}
	s := &scenario.Scenario{Name: fmt.Sprintf("seed %d", seed), Setup: g.Setup(), Sessions: []scenario.Session{session}}
	for n := range g.Transactions() {
		for _, sql := range g.Transaction(n + 1) {
			s.Steps = append(s.Steps, scenario.Step{Session: session.Name, SQL: sql})
		}
	}
	return oracle.Script{Scenario: s, Tables: g.Tables(), Closed: true}
}

// verdict has an oracle judge a script.
func (h *fuzzer) verdict(ctx context.Context, by Oracle, s oracle.Script, level workload.Isolation) (*oracle.Verdict,
	error) {
	play, record := h.play, h.record
	if play == nil {
		play = h.runner.Direct
	}
	if record == nil && h.runner != nil {
		record = h.runner.Record
	}
	switch by {
	case Alone:
		return oracle.Alone(ctx, play, h.runner.Server, s, level.Level)
	case Serial:
		j := &oracle.Serial{Play: play, Record: record, Server: h.runner.Server,
			Random: rand.New(rand.NewPCG(h.Seed, 0))} // the same for the same script
		return j.Judge(ctx, s, level.Level)
	case Views:
		return oracle.Views(ctx, play, h.runner.Scratch, h.runner.Server, s, level.Level)
	}
	return nil, fmt.Errorf("the oracle %q judges no scripts", by)
}

// keyOfDifference returns what tells differences apart.
func keyOfDifference(by Oracle, d *oracle.Difference, level workload.Isolation) string {
	if d.Known != "" {
		name, _, _ := strings.Cut(d.Known, ":")
		return fmt.Sprintf("%s at %s: %s", by, level, name)
	}
	kind, _, _ := strings.Cut(d.SQL, " ")
	if d.Aspect == oracle.Table {
		kind = "table"
	}
	key := fmt.Sprintf("%s at %s: %s of %s", by, level, d.Aspect, kind)
	if d.Aspect == oracle.Outcome || d.Aspect == oracle.Warnings {
		key += fmt.Sprintf(": %s, alone %s", d.Got, d.Want)
	}
	return key
}

// mismatch keeps a difference if it is new.
func (h *fuzzer) mismatch(by Oracle, s oracle.Script, seed uint64, level workload.Isolation, d oracle.Difference) error {
	h.tally.Levels[level].judged(by).Differences++
	key := keyOfDifference(by, &d, level)
	i := slices.IndexFunc(h.tally.Mismatches, func(m *Mismatch) bool { return m.Key == key })
	if i >= 0 {
		if m := h.tally.Mismatches[i]; m.last != seed {
			m.Seen, m.last = m.Seen+1, seed
		}
		return nil
	}
	m := &Mismatch{Oracle: by, Key: key, Level: level, Seed: seed, Seen: 1, Difference: d, Scenario: s.Scenario, last: seed}
	h.tally.Mismatches = append(h.tally.Mismatches, m)
	h.say("seed %d: %s", seed, key)
	if h.Dir == "" {
		return nil
	}
	m.File = filepath.Join(h.Dir, fmt.Sprintf("%s-%02d.yaml", by, len(h.tally.Mismatches)))
	return write(m.File, m.Scenario)
}

// reduceMismatches makes the scenarios of all differences small.
func (h *fuzzer) reduceMismatches(ctx context.Context) error {
	for _, m := range h.tally.Mismatches {
		shows := func(ctx context.Context, s *scenario.Scenario) (bool, error) {
			v, err := h.verdict(ctx, m.Oracle, oracle.Script{Scenario: s, Closed: true}, m.Level)
			if err != nil {
				if ctx.Err() != nil {
					return false, context.Cause(ctx)
				}
				return false, h.alive(ctx) // what was left out was needed
			}
			i := slices.IndexFunc(v.Differences, func(d oracle.Difference) bool {
				return keyOfDifference(m.Oracle, &d, m.Level) == m.Key
			})
			if i >= 0 {
				m.Difference = v.Differences[i]
			}
			return i >= 0, nil
		}
		small, tried, err := inStages(ctx, h.runner.Server.Engine.Family(), m.Scenario, shows)
		if err != nil {
			return fmt.Errorf("reduce %q: %w", m.Key, err)
		}
		small.Scenario.Name = m.Key
		for i := range small.Scenario.Sessions {
			small.Scenario.Sessions[i].Level = m.Level.Level.String()
		}
		m.Scenario, m.Shown, m.Replays = small.Scenario, small.Shown, replays
		h.say("%s (seed %d): %d steps after %d tries; shown %d times of %d", m.Key, m.Seed, len(m.Scenario.Steps), tried,
			m.Shown, replays)
		if m.File == "" {
			continue
		}
		if err := write(m.File, m.Scenario); err != nil {
			return err
		}
	}
	return nil
}

// A JudgedTally counts what an oracle judged at one level that plays scripts.
type JudgedTally struct {
	Transactions, Statements int
	Differences              int // that may not be
	ByDesign                 int
	Known                    int            // differences that published bugs explain
	NotJudged                map[string]int // statements, by why
}

func (t *JudgedTally) add(v *oracle.Verdict) {
	t.Transactions += v.Transactions
	t.Statements += v.Statements
	t.ByDesign += len(v.ByDesign)
	for _, d := range v.Differences {
		if d.Known != "" {
			t.Known++
		}
	}
	for why, n := range v.NotJudged {
		if t.NotJudged == nil {
			t.NotJudged = make(map[string]int)
		}
		t.NotJudged[why] += n
	}
}
