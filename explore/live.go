package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/recorder"
)

// LiveTime is how long a transaction's twins are played at most, and so how long its COMMIT waits for them, and after
// that its client for the reply.
const LiveTime = time.Second

// Why a transaction was not played beside its twin while it ran.
const (
	RolledBack  Reason = "a test rolled it back: it is played on a copy alone"
	NotHeld     Reason = "it could not wait for a twin before it committed"
	NothingRead Reason = "it read nothing before it wrote"
	Unread      Reason = "what it was answered, or what its session had set, is not all known"
	Busy        Reason = "another one was being played"
	TooLate     Reason = "its twin took longer than a second, or waited for another transaction"
	TwinFailed  Reason = "its twin's session could not do the same, or was lost"
)

// A Live plays twins of the transactions that go through a proxy, each on the database itself, just before and after it
// commits. It is safe for concurrent use.
type Live struct {
	target dsn.Target
	limit  time.Duration
	ctx    context.Context
	cancel context.CancelFunc
	acts   sync.WaitGroup

	mu       sync.Mutex
	sessions map[*liveSession]struct{}
	busy     bool // a transaction is being played
	stage    *stage
	// stale says that tables may be others than the stage knows.
	stale   bool
	beyond  *ElsewhereError    // why nothing of the database is played
	plays   map[string]int     // how often each program was played
	calls   []*instance        // of each program some, that may be played beside others
	paired  map[[2]string]bool // the programs of which a call of the second was played beside one of the first
	seen    map[string]bool    // values that instances so far brought
	why     map[history.TxnID]Reason
	played  map[history.TxnID]*play
	backs   writeBacks
	waited  time.Duration // how long clients have waited in all
	failure error         // the last one of a twin's session
}

// NewLive returns a Live for the proxy of a database, which logs in as the target says. Nothing is connected to before
// there is something to play. The caller closes it.
func NewLive(ctx context.Context, target dsn.Target) *Live {
	l := &Live{target: target, limit: LiveTime, sessions: make(map[*liveSession]struct{}),
		plays: make(map[string]int), paired: make(map[[2]string]bool), seen: make(map[string]bool),
		why: make(map[history.TxnID]Reason), played: make(map[history.TxnID]*play), backs: make(writeBacks)}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Close ends what is still played, and all connections.
func (l *Live) Close() error {
	l.cancel()
	l.acts.Wait()
	l.mu.Lock()
	st := l.stage
	l.stage = nil
	l.mu.Unlock()
	if st == nil {
		return nil
	}
	return st.leave()
}

// clear leaves the stage. Nobody waits for that, since the server need not answer.
func (l *Live) clear() {
	if st := l.stage; st != nil {
		l.stage = nil
		l.acts.Go(func() { _ = st.leave() }) // a courtesy: the sockets are closed in any case
	}
}

// Session follows a client's connection.
func (l *Live) Session(id history.SessionID) twin.Session {
	s := &liveSession{live: l, id: id, last: make(lastReads), replies: make(map[uint32]answered)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[s] = struct{}{}
	return s
}

// leave forgets a connection.
func (l *Live) leave(s *liveSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, s)
	l.clearUnused()
}

// clearUnused leaves the stage where no client is in its database any more: PostgreSQL drops none that is in use.
func (l *Live) clearUnused() {
	if l.stage == nil || l.busy {
		return
	}
	for s := range l.sessions {
		if s.database == l.stage.target.Database {
			return
		}
	}
	l.clear()
}

// refuse notes why a transaction is not played.
func (l *Live) refuse(id history.TxnID, why Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(id, why)
}

// maxNoted is of how many transactions it is known why they were not played.
const maxNoted = 1 << 20

// note notes the first reason why a transaction is not played.
func (l *Live) note(id history.TxnID, why Reason) {
	if _, noted := l.why[id]; !noted && len(l.why) < maxNoted {
		l.why[id] = why
	}
}

// admit returns why a transaction is not played; empty: it is, beside that twin, and nothing else until then.
func (l *Live) admit(s *liveSession, in *instance) (twin *instance, why Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in.alone = !l.others(s)
	if why := in.refusal(host{family: l.target.Family}); why != "" {
		return nil, why
	}
	program := in.program()
	switch {
	case !in.readsBeforeWrite():
		return nil, NothingRead
	case l.beyond != nil:
		return nil, ReachesOut
	case l.plays[program] >= playsPerProgram:
		return nil, Enough
	case l.busy:
		return nil, Busy
	}
	twin = l.partner(in, program)
	l.busy = true
	l.plays[program]++
	return twin, ""
}

// partner returns the call to play beside a transaction: at first itself, then an earlier one that uses the same, if
// there is one of a program that was not played beside this one. What inserts rows is not there twice.
func (l *Live) partner(in *instance, program string) *instance {
	if l.plays[program] == 0 || !in.block {
		return in
	}
	for _, meet := range meetings {
		for _, other := range l.calls {
			pair := [2]string{program, other.program()}
			if other.database == in.database && !l.paired[pair] && !in.sameValues(other) && !in.hangsOn(other) && meet(in, other) {
				l.paired[pair] = true
				return other
			}
		}
	}
	return in
}

// keep keeps a call that may be played beside later ones, the last ones of each program.
func (l *Live) keep(in *instance) {
	adds := slices.ContainsFunc(in.statements, func(s statement) bool { return s.inserts() })
	if !in.block || !in.readsBeforeWrite() || adds || in.refusal(host{family: l.target.Family}) != "" {
		return
	}
	in.read = in.answers()
	program, kept := in.program(), 0
	for i := len(l.calls) - 1; i >= 0; i-- {
		if l.calls[i].program() != program {
			continue
		}
		if kept++; kept >= playsPerProgram || l.calls[i].sameValues(in) {
			l.calls = slices.Delete(l.calls, i, i+1)
		}
	}
	l.calls = append(l.calls, in)
}

// others reports whether another client is in a transaction, or has a statement under way.
func (l *Live) others(s *liveSession) bool {
	for other := range l.sessions {
		if other != s && other.active {
			return true
		}
	}
	return false
}

// readsBeforeWrite reports whether the instance changes rows behind something that it read: else no twin reads the old.
func (in *instance) readsBeforeWrite() bool {
	first := slices.IndexFunc(in.statements, func(s statement) bool { return s.recorded.Kind == history.Select })
	return first >= 0 && slices.ContainsFunc(in.statements[first:], func(s statement) bool { return s.writes() && s.changed() > 0 })
}

// ready returns the stage of a database, entered and up to date. Only one play at a time asks for it.
func (l *Live) ready(ctx context.Context, database string) (*stage, error) {
	l.mu.Lock()
	if l.stage != nil && l.stage.target.Database != database {
		l.clear()
	}
	st, stale := l.stage, l.stale
	l.stale = false
	l.mu.Unlock()
	if st != nil && !stale {
		return st, nil
	}
	var err error
	if st == nil {
		st = &stage{target: l.target, mayBeBlind: true}
		st.target.Database = database
		err = st.enter(ctx)
	} else {
		err = st.learn()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage = st
	if err != nil {
		errors.As(err, &l.beyond)
		return nil, err
	}
	st.schema.gid = "" // a transaction that is left prepared would be in the clients' way
	return st, nil
}

// end takes what came of a play.
func (l *Live) end(a *act) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	if a.err != nil && !errors.Is(a.err, context.Canceled) { // else it was not to be played to its end
		l.failure = a.err
		l.clear() // what failed may be these connections
	}
	l.clearUnused()
}

// changed says that tables may be others now.
func (l *Live) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale, l.beyond = true, nil
}

// see notes the values that an instance brought, and what its updates wrote back.
func (l *Live) see(in *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range in.statements {
		for _, lit := range in.statements[i].literals {
			if lit.quoted {
				l.seen[lit.value] = true
			}
		}
	}
	if l.stage != nil && l.stage.schema != nil {
		l.backs.take(l.stage.schema, in, in.answers())
	}
	l.keep(in)
}

// Result judges what was played, by the recording of the run.
func (l *Live) Result(ctx context.Context, r *recorder.Reader, run history.Run) (*Result, error) {
	instances, err := instancesOf(ctx, r, run, l.target.Family)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	result := &Result{Live: true, NotPlayed: make(map[Reason]int), Took: l.waited, family: l.target.Family}
	journals, programs := journalsOf(instances), make(map[string]bool)
	for _, in := range instances {
		result.count(in, func(part *instance) Reason { return l.refusal(in, part) })
		play := l.played[in.id]
		if play == nil || l.refusal(in, in) != "" {
			continue
		}
		result.Plays++
		programs[play.twin.program()] = true
		if !play.asRecorded(own) {
			result.Diverged++
			continue
		}
		result.Judged++
		play.schema.journals, play.schema.versions = journals, play.schema.versionsOf(instances)
		if play.judgeable() {
			result.tell(play)
		}
	}
	result.Programs = len(programs)
	l.backs.tell(result.Races)
	result.Races = surest(result.Races, played)
	if l.failure != nil && result.NotPlayed[TwinFailed] > 0 {
		result.failure = l.failure.Error()
	}
	if l.beyond != nil && result.Judged == 0 {
		return nil, l.beyond
	}
	return result, nil
}

// refusal returns why an instance of the recording, or a part that a test wrapped in it, was not played; empty: it was.
func (l *Live) refusal(in, part *instance) Reason {
	switch why := part.refusal(host{family: l.target.Family}); {
	case in != part:
		return RolledBack
	case why == Failed:
		return why
	case l.played[in.id] != nil && !in.alone:
		return NotAlone
	case l.played[in.id] != nil:
		return ""
	case l.why[in.id] != "":
		return l.why[in.id]
	case why != "":
		return why
	}
	return NotHeld
}
