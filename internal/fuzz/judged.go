package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/oracle"
	"github.com/isotap/isotap/scenario/runner"
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
	// Forms holds the statements of single transactions against themselves in other forms ([oracle.Forms]).
	Forms Oracle = "forms"
)

// Oracles are all that there are.
func Oracles() []Oracle { return []Oracle{Graph, Alone, Serial, Views, Forms} }

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
	h.tally.Levels[level].templated(g).judged(by, v)
	for _, d := range v.Differences {
		if err := h.mismatch(by, s, seed, level, v, d); err != nil {
			return err
		}
	}
	return h.advance(seed)
}

// does says what oracles that play scripts do.
var does = map[Oracle]string{
	Alone:  "each transaction against its own statements in autocommit",
	Serial: "concurrent transactions against their statements in autocommit, in orders that their dependencies allow",
	Views:  "each statement against itself on what it has to see",
	Forms:  "each statement against itself in other forms, in the same transaction",
}

// Does says what an oracle that plays scripts does, in words.
func (o Oracle) Does() string { return does[o] }

// A Judge has oracles judge scripts on a server.
type Judge struct {
	Runner *runner.Runner
	// Seed is that of the orders that [Serial] draws: one seed gives a script the same each time.
	Seed uint64
	// Play and Record play what is judged in place of the runner, if they are not nil.
	Play   oracle.Play
	Record oracle.Record
}

// Verdict returns what an oracle says of a script at a level.
func (j *Judge) Verdict(ctx context.Context, by Oracle, s oracle.Script, level history.Level) (*oracle.Verdict, error) {
	play, record := j.Play, j.Record
	if play == nil {
		play = j.Runner.Replies
	}
	if record == nil && j.Runner != nil {
		record = j.Runner.Record
	}
	switch by {
	case Alone:
		return oracle.Alone(ctx, play, j.Runner.Server, s, level)
	case Forms:
		return oracle.Forms(ctx, play, j.Runner.Server, s, level)
	case Serial:
		serial := &oracle.Serial{Play: play, Record: record, Server: j.Runner.Server,
			Random: rand.New(rand.NewPCG(j.Seed, 0))}
		return serial.Judge(ctx, s, level)
	case Views:
		return oracle.Views(ctx, play, j.Runner.Scratch, j.Runner.Server, s, level)
	}
	return nil, fmt.Errorf("the oracle %q judges no scripts", by)
}

// verdict has an oracle judge a script.
func (h *fuzzer) verdict(ctx context.Context, by Oracle, s oracle.Script, level workload.Isolation) (*oracle.Verdict,
	error) {
	j := &Judge{Runner: h.runner, Seed: h.Seed, Play: h.play, Record: h.record}
	return j.Verdict(ctx, by, s, level.Level)
}

// A JudgedTally counts what an oracle judged at one level that plays scripts.
type JudgedTally struct {
	Rounds                   int
	Transactions, Statements int
	Differences              int // that may not be
	ByDesign                 int
	Known                    int            // differences that published bugs explain
	NotJudged                map[string]int // statements, by why
}

func (t *JudgedTally) add(v *oracle.Verdict) {
	t.Rounds++
	t.Transactions += v.Transactions
	t.Statements += v.Statements
	t.ByDesign += len(v.ByDesign)
	for _, d := range v.Differences {
		if d.Known != "" {
			t.Known++
		}
	}
	for why, n := range v.NotJudged {
		t.leaveOut(why, n)
	}
}

// leaveOut counts statements that are not judged.
func (t *JudgedTally) leaveOut(why string, n int) {
	if t.NotJudged == nil {
		t.NotJudged = make(map[string]int)
	}
	t.NotJudged[why] += n
}
