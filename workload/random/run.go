package random

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/workload"
)

// Patience is how long a statement may take, where nothing else is said, until the server counts as hung. Lock waits
// end far earlier.
const Patience = time.Minute

// A Step is a statement that was sent.
type Step struct {
	Session     int // from 0
	Transaction int // its number, from 1
	SQL         string
	Error       string    // the server's code; empty for success
	Sent, Ended time.Time // Ended is zero where there was no reply
}

// A Mistake is an error that statements ended with.
type Mistake struct {
	Code    string
	Message string
	SQL     string // the first statement that ended so
	Count   int
}

// An Outcome is what a run came to.
type Outcome struct {
	Transactions int // that were begun
	Committed    int
	Refused      int // that the server ended, for what others did: deadlocks, serialization failures
	Statements   int // beside BEGIN and those that end a transaction
	Failed       int // of these; those that were refused do not count
	Mistakes     map[string]*Mistake
	// Steps are the statements in the order in which they were sent.
	Steps []Step
	Odd   []Odd
}

// An Odd is what no healthy server does: a lost connection, a statement without an answer, an error that only a bug
// gives.
type Odd struct {
	Session int // from 0
	SQL     string
	Code    string // the server's; "lost" or "hung" where there is no answer
	Message string
}

// Run has the sessions of a generator work on a database that its set-up made, at a level, each on a connection that
// connect gives. A statement that takes longer than patience says that the server is hung. The error is the context's,
// or connect's; what servers do wrong is in the outcome.
func Run(ctx context.Context, g *Generator, level history.Level, patience time.Duration,
	connect func(ctx context.Context, session int) (*sql.Conn, error)) (*Outcome, error) {
	r := &run{g: g, patience: patience, out: &Outcome{Mistakes: make(map[string]*Mistake)}}
	var sessions []*session
	var all sync.WaitGroup
	defer func() {
		for _, s := range sessions {
			_ = s.conn.Close() // it may be lost
		}
	}()
	for i := range g.sessions {
		conn, err := connect(ctx, i)
		if err != nil {
			return nil, err
		}
		s := &session{run: r, place: i, conn: conn}
		sessions = append(sessions, s)
		for _, sql := range g.engine.session(level) {
			if _, err := conn.ExecContext(ctx, sql); err != nil {
				return nil, fmt.Errorf("%s: %w", sql, err)
			}
		}
	}
	r.began = time.Now()
	for _, s := range sessions {
		all.Go(func() { s.work(ctx) })
	}
	all.Wait()
	return r.out, context.Cause(ctx)
}

// session returns what a session begins with.
func (e Engine) session(level history.Level) []string {
	if e.postgresql() {
		return []string{workload.PostgreSQL.SetLevel(level), "SET lock_timeout = '5s'"}
	}
	return []string{workload.MySQL.SetLevel(level), "SET SESSION innodb_lock_wait_timeout = 5"}
}

// A run is what the sessions share.
type run struct {
	g        *Generator
	patience time.Duration
	began    time.Time
	mu       sync.Mutex
	out      *Outcome
}

// note changes the outcome.
func (r *run) note(change func(*Outcome)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.out)
}

// due waits until a transaction's turn has come by the profile's rate.
func (r *run) due(ctx context.Context, n int) error {
	if r.g.profile.Rate == 0 {
		return nil
	}
	at := time.Duration(n-1) * time.Second / time.Duration(r.g.profile.Rate)
	return workload.Pause(ctx, time.Until(r.began.Add(at)))
}

// A session runs its share of the transactions. It belongs to one goroutine.
type session struct {
	run    *run
	place  int // from 0
	number int // of its transaction
	conn   *sql.Conn
}

func (s *session) work(ctx context.Context) {
	for n := s.place + 1; n <= s.run.g.Transactions() && ctx.Err() == nil; n += s.run.g.sessions {
		if s.run.due(ctx, n) != nil {
			return
		}
		if s.number = n; !s.transaction(ctx, s.run.g.Transaction(n)) {
			return
		}
	}
}

// transaction runs one transaction. False ends the session.
func (s *session) transaction(ctx context.Context, statements []string) bool {
	s.run.note(func(o *Outcome) { o.Transactions++ })
	for i, sql := range statements {
		last := i == len(statements)-1
		switch f := s.execute(ctx, sql, i > 0 && !last); {
		case f.lost:
			return false
		case f.code == "" && last && sql == "COMMIT":
			s.run.note(func(o *Outcome) { o.Committed++ })
		case f.over: // the server has ended the transaction, or takes nothing more in it
			if f.refused {
				s.run.note(func(o *Outcome) { o.Refused++ })
			}
			return last || !s.execute(ctx, "ROLLBACK", false).lost
		}
	}
	return true
}

// execute sends a statement and reads the whole reply. A statement that counts is one of those that were drawn.
func (s *session) execute(whole context.Context, text string, counts bool) failure {
	at := 0
	s.run.note(func(o *Outcome) {
		at = len(o.Steps)
		o.Steps = append(o.Steps, Step{Session: s.place, Transaction: s.number, SQL: text, Sent: time.Now()})
	})
	ctx, cancel := context.WithTimeout(whole, s.run.patience)
	defer cancel()
	f := s.run.g.engine.classify(drain(ctx, s.conn, text))
	switch {
	case f.lost && whole.Err() != nil:
		return f // the run is over: nothing is wrong with the server
	case f.lost && ctx.Err() != nil:
		f.code, f.message = "hung", fmt.Sprintf("no answer within %v", s.run.patience)
	}
	s.run.note(func(o *Outcome) {
		o.Steps[at].Error, o.Steps[at].Ended = f.code, time.Now()
		if counts {
			o.Statements++
		}
		if f.code == "" {
			return
		}
		if counts && !f.refused {
			o.Failed++
		}
		m := o.Mistakes[f.code]
		if m == nil {
			m = &Mistake{Code: f.code, Message: f.message, SQL: text}
			o.Mistakes[f.code] = m
		}
		m.Count++
		if f.lost || f.odd {
			o.Odd = append(o.Odd, Odd{Session: s.place, SQL: text, Code: f.code, Message: f.message})
		}
	})
	return f
}

// drain runs a statement and reads all of its rows.
func drain(ctx context.Context, conn *sql.Conn, text string) error {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
