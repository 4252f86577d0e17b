package tail

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// A Server serves a recording that is being written to those who follow it. Its methods may be called from several
// goroutines.
type Server struct {
	writer   *recorder.Writer
	info     history.Info // of the writer's run
	log      *zap.Logger
	listener net.Listener
	remove   func() error
	limit    int           // of a follower's queue
	patience time.Duration // see patience
	serving  sync.WaitGroup

	mu        sync.Mutex
	followers map[*follower]bool
	sessions  map[history.SessionID]history.Session // those that are open
	last      uint32                                // the highest counter of a transaction that has ended
	closed    bool                                  // nobody more is taken in
}

// Serve begins to serve what a writer writes to the recording in dir, before it is given anything.
func Serve(dir string, w *recorder.Writer, log *zap.Logger) (*Server, error) {
	l, remove, err := listen(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{writer: w, info: w.Info(), log: log, listener: l, remove: remove, limit: queueLimit,
		patience:  patience,
		followers: make(map[*follower]bool), sessions: make(map[history.SessionID]history.Session)}
	s.serving.Go(s.accept)
	return s, nil
}

// Session tells the followers of a session, once the writer has been given it.
func (s *Server) Session(x history.Session) {
	x.Run = s.info.Run
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.End == 0 {
		s.sessions[x.ID] = x
	} else {
		delete(s.sessions, x.ID)
	}
	s.put(item{session: &x})
}

// Txn tells them of a transaction, once the writer has been given it. Nobody may change it from then on.
func (s *Server) Txn(t *history.Txn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, t.ID.Seq())
	s.put(item{txn: t})
}

func (s *Server) put(it item) {
	for f := range s.followers {
		f.queue.put(it)
	}
}

// patience is how long the followers have to take what is left when the run ends.
const patience = 3 * time.Second

// Drain ends the reading of the recording, and is called before the writer is closed. Followers that are still behind
// after a few seconds are left to read the rest themselves.
func (s *Server) Drain() {
	s.listener.Close()
	deadline := time.Now().Add(s.patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.idle(time.Now().After(deadline)) {
		<-tick.C
	}
}

// idle reports whether all followers were sent all, and lets no other in then. Those that were not are canceled, if
// they are to be.
func (s *Server) idle(cancel bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := true
	for f := range s.followers {
		if f.queue.idle() && !f.busy.Load() {
			continue
		}
		idle = false
		if cancel {
			f.cancel()
		}
	}
	s.closed = idle
	return idle
}

// Close tells the followers how the run ended, once the writer is closed; nil: it has no end.
func (s *Server) Close(ended *history.Info) error {
	s.mu.Lock()
	for f := range s.followers {
		f.conn.SetWriteDeadline(time.Now().Add(s.patience))
		if ended == nil {
			f.cancel()
		} else {
			f.queue.end(ended)
		}
	}
	s.mu.Unlock()
	s.serving.Wait()
	return s.remove()
}

// accept takes followers until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer conn.Close()
			if err := s.serve(conn); err != nil {
				s.log.Info("a follower is gone", zap.Error(err))
			}
		})
	}
}

// serve serves one follower until it has gone or the run has ended.
func (s *Server) serve(conn net.Conn) error {
	from, err := readRequest(conn)
	if err != nil {
		return err
	}
	f := s.admit(conn, from)
	if f == nil {
		return errors.New("it came when the run ended")
	}
	defer func() {
		f.cancel()
		s.mu.Lock()
		delete(s.followers, f)
		s.mu.Unlock()
	}()
	if err := f.run(); err != nil {
		return fmt.Errorf("serve a follower: %w", err)
	}
	return nil
}

// admit takes a follower in: what comes from now on comes into its queue. Nil when the run has ended.
func (s *Server) admit(conn net.Conn, from From) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	f := newFollower(conn, s.writer, s.info, from, s.limit)
	if from == Now {
		f.after = s.last
		f.sent.AddUntil(s.last)
		for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
			f.queue.put(item{session: ptr(s.sessions[id])})
		}
	}
	s.followers[f] = true
	return f
}

func ptr[T any](v T) *T { return &v }
