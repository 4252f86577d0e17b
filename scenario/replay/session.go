package replay

import (
	"context"
	"fmt"
	"time"
)

// A session is one connection of a scenario. A goroutine of its own sends the statements, one at a time,
// because a statement that waits for a lock must not keep the others from going on.
type session struct {
	name     string
	conn     conn
	prepared bool
	mayLose  bool // that the connection ends is a result, and no error of the run
	jobs     chan string
	replies  chan reply    // holds one: the goroutine never waits for its reader
	ended    chan struct{} // closed when the goroutine has returned

	// What follows belongs to the run's goroutine.
	running *Result   // the step in flight; nil when idle
	replied bool      // its reply has come; it is still in flight as long as the scenario holds it
	seen    int       // the notices that the trace has
	targets []int     // how many notices the step's conditions need, in their order
	unasked bool      // whether the step has ended is not to be looked at yet
	queue   []*Result // the steps that wait behind it
}

// A reply is what the connection had for a statement: a result, a server's error in it, or the
// connection's own failure.
type reply struct {
	result Result
	at     time.Time
	err    error
}

func newSession(name string, conn conn, prepared, mayLose bool) *session {
	s := &session{
		name: name, conn: conn, prepared: prepared, mayLose: mayLose,
		jobs: make(chan string), replies: make(chan reply, 1), ended: make(chan struct{}),
	}
	go s.serve()
	return s
}

func (s *session) serve() {
	defer close(s.ended)
	for sql := range s.jobs {
		r, err := s.conn.execute(sql, s.prepared)
		s.replies <- reply{result: r, at: time.Now(), err: err}
	}
}

// send starts a step. The session must be idle.
func (s *session) send(r *Result) {
	s.running, s.replied = r, false
	r.Sent = time.Now()
	s.jobs <- r.SQL
}

// receive waits for the reply to the step in flight, at most for the given time. It is false when it did not come.
func (s *session) receive(ctx context.Context, patience time.Duration) (bool, error) {
	if s.replied {
		return true, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-s.replies:
		if got.err != nil && s.mayLose {
			got.result = Result{Status: Lost, Message: got.err.Error()}
		} else if got.err != nil {
			return false, fmt.Errorf("step %d (session %s): %w", s.running.N, s.name, got.err)
		}
		s.running.take(&got.result)
		s.running.Ended = got.at
		s.replied = true
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// close ends the connection and the goroutine of a session with a statement in flight. That must have been killed
// before, or the server goes on with it.
func (s *session) close() {
	s.conn.abandon() // or the goroutine would read on
	s.end()
	_ = s.conn.quit() // a courtesy: the socket is closed in any case
}

// end ends the goroutine.
func (s *session) end() {
	close(s.jobs)
	<-s.ended
}

// take fills in the outcome; the step's own place in the scenario stays.
func (r *Result) take(outcome *Result) {
	place := *r
	*r = *outcome
	r.N, r.Session, r.SQL = place.N, place.Session, place.SQL
	r.Blocked, r.DoneAfter, r.Queued, r.WaitedFor = place.Blocked, place.DoneAfter, place.Queued, place.WaitedFor
	r.Held, r.Sent = place.Held, place.Sent
}
