package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/replay"
)

// An act is what is played beside one transaction of a client's, which waits for it twice: at its COMMIT until the
// racing twin has gone as far as it can, and behind that until the serial one has ended.
type act struct {
	of       *instance // the client's
	in, twin *instance // what is played, until all is over a copy of it
	cancel   context.CancelFunc
	until    time.Time
	began    time.Time
	atCommit chan struct{} // closed when the COMMIT is to go on
	once     sync.Once
	answers  chan []answered // what all of its statements were answered, once it has committed
	done     chan struct{}   // closed when all is over; play, err and why are set then
	play     *play
	err      error
	why      Reason
}

// cleanUp is how long an act has to end when its time is over.
const cleanUp = 100 * time.Millisecond

// begin begins to play beside a client's transaction.
func (l *Live) begin(s *liveSession, in, twin *instance) *act {
	now := time.Now()
	played := in.clone()
	if twin == in {
		twin = played
	}
	a := &act{of: in, in: played, twin: twin, began: now, until: now.Add(l.limit), atCommit: make(chan struct{}),
		answers: make(chan []answered, 1), done: make(chan struct{})}
	ctx, cancel := context.WithDeadline(l.ctx, a.until)
	a.cancel = cancel
	connection, settings := s.login.Connection, slices.Concat(s.settings, s.within)
	l.acts.Go(func() {
		defer close(a.done)
		defer cancel()
		defer l.end(a)
		defer a.release()
		defer func() {
			if fault := recover(); fault != nil { // it is isotap's, and not to be the clients'
				a.why, a.err = TwinFailed, fmt.Errorf("isotap failed: %v", fault)
			}
		}()
		a.why, a.err = l.perform(ctx, a, connection, settings)
	})
	return a
}

// release has the COMMIT go on.
func (a *act) release() { a.once.Do(func() { close(a.atCommit) }) }

// await waits until a channel is closed, or the time is over.
func (a *act) await(closed <-chan struct{}) {
	timer := time.NewTimer(time.Until(a.until) + cleanUp)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		a.cancel()
	}
}

// commit takes what became of the transaction, whose statements all have their answers. Where it has not committed
// there is nothing more to play.
func (a *act) commit(status history.Status) {
	if status != history.Committed {
		a.cancel()
		return
	}
	select {
	case a.answers <- a.of.answers():
	default:
	}
}

// do is the act's COMMIT: that of the client.
func (a *act) do(ctx context.Context, _ string) (replay.Result, error) {
	a.release()
	select {
	case all := <-a.answers:
		copy(a.play.replies[own], all)
		return replay.Result{Status: replay.OK}, nil
	case <-ctx.Done():
		return replay.Result{}, context.Cause(ctx)
	}
}

// bounds end a twin's statements, and its session, should nobody be left to do so.
var bounds = map[dbms.Family][]string{
	dbms.PostgreSQLFamily: {"SET statement_timeout = '3s'", "SET lock_timeout = '3s'",
		"SET idle_in_transaction_session_timeout = '3s'"},
	dbms.MySQLFamily: {"SET SESSION innodb_lock_wait_timeout = 3, lock_wait_timeout = 3, wait_timeout = 5"},
}

// perform plays, and returns why nothing came of it; empty where something did.
func (l *Live) perform(ctx context.Context, a *act, connection uint32, settings []string) (Reason, error) {
	st, err := l.ready(ctx, a.in.database)
	switch {
	case err != nil && l.leadsOut():
		return ReachesOut, nil
	case err != nil:
		return failure(ctx), err
	case a.in.namesDatabase(st.schema.databases), a.twin.namesDatabase(st.schema.databases):
		return ReachesOut, nil
	case st.schema.leavesTraces(a.in), st.schema.leavesTraces(a.twin):
		return LeavesTraces, nil
	}
	l.mu.Lock()
	a.play = newLivePlay(st.schema, a.in, a.twin, l.seen)
	l.mu.Unlock()
	err = st.perform(ctx, a.play, replay.Options{Session: slices.Concat(settings, bounds[l.target.Family]),
		Outside: map[string]replay.Outsider{own.String(): {Connection: connection, Do: a.do}}})
	switch {
	case err != nil:
		return failure(ctx), err
	case a.play.isHeldUp():
		return TooLate, nil
	case a.play.couldNot():
		return TwinFailed, nil
	}
	if a.twin != a.in {
		a.play.aside()
	}
	return "", nil
}

// failure is why a play has failed.
func failure(ctx context.Context) Reason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TooLate
	}
	return TwinFailed
}

// leadsOut reports whether nothing of the database is played.
func (l *Live) leadsOut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beyond != nil
}

// isHeldUp reports whether a twin still waited when all else was over: for somebody else than the transaction.
func (p *play) isHeldUp() bool {
	for _, r := range []role{racing, serial} {
		if slices.ContainsFunc(p.replies[r], func(reply answered) bool {
			return reply == nil || reply.Status == replay.Blocked || reply.Status == replay.NotRun
		}) {
			return true
		}
	}
	return false
}

// couldNot reports whether a twin was refused what its session has not, or may not: a temporary table, or the rights to
// one (SQLSTATE's class 42). On TiDB it meets isotap's columns, too, where an INSERT names none (21S01).
func (p *play) couldNot() bool {
	for _, r := range []role{racing, serial} {
		for _, reply := range p.replies[r] {
			if reply != nil && reply.Status == replay.Failed && (strings.HasPrefix(reply.State, "42") || reply.State == "21S01") {
				return true
			}
		}
	}
	return false
}

// take takes what came of an act whose client goes on.
func (l *Live) take(a *act) {
	why := TooLate
	select {
	case <-a.done:
		why = a.why
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited += time.Since(a.began)
	if why != "" {
		l.note(a.of.id, why)
		return
	}
	*a.in = *a.of
	l.played[a.of.id] = a.play
}

// clone returns a copy whose statements nobody else changes.
func (in *instance) clone() *instance {
	c := *in
	c.statements = slices.Clone(in.statements)
	for i := range c.statements {
		recorded := *c.statements[i].recorded
		c.statements[i].recorded = &recorded
	}
	return &c
}
