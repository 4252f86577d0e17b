package mysql

import (
	"fmt"
	"slices"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/session"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// captures is the session's side of capture inside the statement (ADR 7): a write collects
// what it replaced in session variables on the server, and isotap reads them once per transaction.
type captures struct {
	ready bool // the variables are set up
	// unread statements have entries in the variables.
	unread     []*observed
	unreadRows uint64 // about how many there are
	// ended transactions wait for the entries of their statements.
	ended []*history.Txn

	counts
}

const (
	// maxUnread is the number of statements after which their entries are read in any case.
	maxUnread = 256
	// entryBytes is the room that one entry takes in the variables at most: a row id, a list and a tag.
	entryBytes = 512
	// imageEntries is as how many entries an image counts.
	imageEntries = 8
	// readWithin bounds how long ended transactions of a busy session wait for their entries, in
	// nanoseconds. A session that is quiet reads them sooner, see Idle.
	readWithin = 100e6
)

// capturesDue reports whether entries are to be read before a statement is sent. Each read costs the server
// as much as a statement, and entries name theirs, so those of several transactions are read at once,
// unless each is to be stored before it is acknowledged.
func (s *Session) capturesDue(plan *sqlmysql.Plan) bool {
	switch {
	case len(s.unread) >= maxUnread, s.unreadRows*entryBytes >= uint64(s.env.MaxPacket)/8:
		return true
	case s.cfg.Durable:
		return plan.Txn.Ends || len(s.ended) > 0
	}
	return len(s.ended) > 0 && s.now-s.ended[0].End >= readWithin
}

// readyCaptures sets the variables up, once in a session.
func (s *Session) readyCaptures() {
	if s.ready {
		return
	}
	s.ready = true
	s.rowCountGone = true
	init := sqlmysql.CaptureInit
	if s.cfg.Predicates {
		init += sqlmysql.ImageInit
	}
	s.sendQuery(&exchange{done: func(s *Session, x *exchange) error {
		s.ready = !x.failed
		return nil
	}}, init)
}

// readCaptures asks for the entries that are still unread, and says whether there are any.
func (s *Session) readCaptures() bool {
	if len(s.unread) == 0 {
		return false
	}
	batch := s.unread
	s.unread, s.unreadRows = nil, 0
	counts, query := s.asksCounts(), sqlmysql.CaptureRead
	if s.cfg.Predicates {
		query += sqlmysql.ImageRead
	}
	s.sendQuery(&exchange{
		row: func(payload []byte) error {
			r := reader{b: payload}
			before := s.txn.bytesOf(batch)
			if err := takeCaptures(batch, &r); err != nil {
				return err
			}
			if s.cfg.Predicates {
				s.takeImages(batch, &r)
			}
			s.txn.unrecorded.Take(s.txn.bytesOf(batch) - before)
			return counts(&r)
		},
		done: func(s *Session, x *exchange) error {
			if x.failed || x.rows == 0 {
				lowerAll(batch, history.ReasonCaptureUnread)
			}
			s.release()
			return nil
		},
	}, query+askCounts)
	// Until the reply is there, transactions that end now wait for the batch.
	s.exchanges[len(s.exchanges)-1].reads = batch
	return true
}

// takeCaptures gives the entries of a capture read to their statements. Entries of statements that failed
// find none: the tag voids them.
func takeCaptures(batch []*observed, r *reader) error {
	collected := r.lenencBytes()
	if r.err != nil {
		return fmt.Errorf("parse captured entries: %w", r.err)
	}
	entries, uncollected, err := sqlmysql.ParseCapture(collected)
	byTag := make(map[history.Tag][]sqlmysql.CaptureEntry, len(batch))
	for _, e := range entries {
		byTag[e.Tag] = append(byTag[e.Tag], e)
	}
	for _, o := range batch {
		if !o.capturing {
			continue
		}
		switch o.met(byTag[o.tag()]); {
		case err != nil:
			o.lowerRecorded(history.ReasonUnreadableCapture)
		case uncollected > 0:
			o.lowerRecorded(history.ReasonCaptureOverflow)
		}
	}
	return nil
}

// lowerRecorded lowers the observation of a statement that stands in its transaction already: what it
// wrote is no longer certain.
func (o *observed) lowerRecorded(reason history.Reason) {
	o.doubtful = true
	st := &o.txn.Stmts[o.index]
	if st.Observation == history.Exact {
		st.Observation, st.Reason = history.Inexact, reason
	}
	for i := range st.Accesses {
		st.Accesses[i].Inexact = true
	}
}

func lowerAll(batch []*observed, reason history.Reason) {
	for _, o := range batch {
		if !o.capturing {
			continue
		}
		o.lowerRecorded(reason)
	}
}

// await takes note of a statement that may have collected entries or images.
func (s *Session) await(o *observed, x *exchange) {
	o.capturing = !x.failed && o.collected()
	rows := max(o.matched, o.affected)
	if pictures := !x.failed && o.pictures(); pictures {
		o.insertID, o.increment = x.ok.lastInsertID, s.literals.increment
		rows *= imageEntries
	} else if !o.capturing {
		return
	}
	s.unread = append(s.unread, o)
	s.unreadRows += rows
}

// awaitsCaptures reports whether statements of the transaction have entries that are not read yet.
func (s *Session) awaitsCaptures(t *history.Txn) bool {
	of := func(o *observed) bool { return o.txn == t }
	if slices.ContainsFunc(s.unread, of) {
		return true
	}
	return slices.ContainsFunc(s.exchanges, func(x *exchange) bool { return slices.ContainsFunc(x.reads, of) })
}

// release hands over the transactions that no longer wait for entries.
func (s *Session) release() {
	waiting := s.ended[:0:0]
	for _, t := range s.ended {
		if s.awaitsCaptures(t) {
			waiting = append(waiting, t)
			continue
		}
		s.events = append(s.events, session.Event{Txn: t})
	}
	s.ended = waiting
	if len(waiting) == 0 {
		s.holding = false
	}
}

// loseCaptures gives up what can no longer be read.
func (s *Session) loseCaptures(reason history.Reason) {
	lowerAll(s.unread, reason)
	s.unread, s.unreadRows = nil, 0
	s.release()
}
