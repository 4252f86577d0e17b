// Package explore shows what could have happened in a run that went well. It takes the transactions of a recording,
// plays them once more in their order on a copy of the database as it was before, and beside each new kind of
// transaction it plays another of the same program: its twin.
//
// A twin reads twice: before the transaction commits (racing), and once more after that (serial). What it reads
// otherwise in the serial play is what the transaction's commit changes of that which such a transaction goes by. Where
// the racing twin reads the old, and a write of it after that succeeds, two such requests at once are a race, and the
// server has shown it. Reads judge, final tables do not: a real second request might take another way. No twin commits.
//
//   - program.go takes a recording's transactions as programs with the values that they ran with; wrapped.go does so
//     with what a test wraps in one that it rolls back;
//   - statement.go and literal.go read what a statement writes and which column each of its values is of;
//   - databases.go divides them by their databases: those that the run made begin empty;
//   - reach.go says which statements are played again at all, so that nothing but the copy is changed;
//   - schema.go asks the server for columns and keys, counts.go for counters; definitions.go makes tables that the run
//     made itself;
//   - explorer.go goes through the programs, and says which of them are played beside which;
//   - play.go plays, by package scenario/replay; later.go leaves a transaction out until the place of another one, so
//     that two meet which a suite runs one after the other;
//   - stage.go has what plays are played on;
//   - live.go plays beside the clients of a proxy, on the database itself: livesession.go follows each client, act.go
//     plays while that waits, liveplay.go says what;
//   - brief.go shortens statements; values.go maps the values that a server or a client makes anew;
//   - difference.go compares what two plays read, judge.go makes races of it; text.go and json.go print them.
package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/recorder"
)

// DefaultTime is how long an exploration takes at most, unless it is told otherwise.
const DefaultTime = 60 * time.Second

// Options of an exploration.
type Options struct {
	// Was is the database as it was when the run began. Nothing is played on it.
	Was dsn.Target
	// Database is its name in the recording.
	Database string
	// Made reports whether a database was made in the run, as some frameworks do for their tests. Empty makes an empty
	// one to play such a database's transactions on, where what Copy does is played on a copy of Was. Nil: they are not
	// played.
	Made  func(database string) bool
	Empty func(context.Context) (empty dsn.Target, drop func() error, err error)
	// Copy returns a copy of a database, and what drops it. It is called once for each way through the run, and once
	// for each transaction that a test wrapped around others. Nobody is connected to the database meanwhile.
	Copy func(ctx context.Context, of dsn.Target) (copied dsn.Target, drop func() error, err error)
	// Run is the run of the recording.
	Run history.Run
	// Time bounds the plays; 0: DefaultTime. What is not reached is counted.
	Time time.Duration
}

// A Result is what an exploration found.
type Result struct {
	// Transactions were played again in their order, and as many of them were Diverged: they did otherwise than
	// recorded, so that nothing is told of them.
	Transactions, Diverged int
	Programs               int // that were played beside a twin, by the shapes of their statements
	Plays                  int // twins that were played
	Judged                 int // transactions that were played beside a twin of their own program, as recorded
	// Refused counts the plays whose racing twin the server refused: it protects their program.
	Refused int
	// Wrapped are the transactions that were rolled back behind savepoints, as tests do: what they held was played as
	// if each part had been by itself.
	Wrapped int
	Races   []Race // the surest first
	// NotPlayed counts transactions without a twin, by why.
	NotPlayed map[Reason]int
	Took      time.Duration
	// Live says that twins were played beside the run itself, on its database; Took is how long its clients waited
	// then.
	Live bool

	family  dbms.Family // whose SQL the races have
	failure string      // of a twin that was played live, the last one
}

// A Reason is why a transaction was not played beside its twin.
type Reason string

// The reasons.
const (
	CutValues      Reason = "the recording does not have all of its values"
	Serializable   Reason = "SERIALIZABLE: only its commit would tell, and it cannot be prepared"
	Optimistic     Reason = "an optimistic transaction: only its commit would tell, and a twin's is not made"
	NotAlone       Reason = "it ran beside others"
	LeavesTraces   Reason = "no ROLLBACK takes all of it back"
	NamedLock      Reason = "its session had a lock by a name"
	ReachesOut     Reason = "it is not played at all: it reaches out of the database, or its texts are not all of it"
	Failed         Reason = "it failed when it ran, or was rolled back"
	NothingChanged Reason = "it changed no row"
	Elsewhere      Reason = "it is of another database than the one that was copied"
	Enough         Reason = "three of its program were played"
	NoTime         Reason = "the time was over"
)

// Explore plays a recorded run on copies of its database.
func Explore(ctx context.Context, r *recorder.Reader, o Options) (*Result, error) {
	began := time.Now()
	instances, err := instancesOf(ctx, r, o.Run, o.Was.Family)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	result, backs := &Result{NotPlayed: make(map[Reason]int), family: o.Was.Family}, make(writeBacks)
	ends := began.Add(cmp.Or(o.Time, DefaultTime))
	for _, g := range o.groups(instances) {
		if g.fresh == nil {
			for _, in := range g.instances {
				result.count(in, func(*instance) Reason { return Elsewhere })
			}
			continue
		}
		if !slices.ContainsFunc(g.instances, func(in *instance) bool { return in.mayHaveTwin(host{family: o.Was.Family, prepares: true}) }) {
			for _, in := range g.instances {
				result.count(in, func(part *instance) Reason { return part.refusal(host{family: o.Was.Family, prepares: true}) })
			}
			continue
		}
		definitions, err := definitionsOf(ctx, r, o.Run, g.database)
		if err != nil {
			return nil, err
		}
		x := &explorer{instances: g.instances, definitions: definitions, fresh: g.fresh, copy: o.Copy, ends: ends,
			creates: createdBy(g.instances), journals: journalsOf(g.instances), calls: make(map[string][]*instance), backs: backs, result: result}
		if err := x.passes(ctx); err != nil {
			return nil, err
		}
		result.Programs += len(x.programs)
	}
	result.Took = time.Since(began)
	backs.tell(result.Races)
	result.Races = surest(result.Races, played)
	return result, nil
}
