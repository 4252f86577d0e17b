package provoke

import (
	"strconv"
	"strings"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/namedlock"
)

// A Session is what is known of one client's connection. It belongs to the goroutine of the connection. All methods do
// nothing on nil, which is a session that nothing is to be held back of.
type Session struct {
	p    *Provoker
	wake func()

	window window
	open   bool   // a transaction is open
	wrote  bool   // that has written or locked
	last   string // by a statement of this shape
	// fresh says that something was read since the session came to a place where it may be held back.
	fresh bool
	used  time.Duration // how long the open transaction was held back
	heard time.Time     // when the last statement was answered
	names namedlock.Held
	due   string // the shape of the place to which it has come; empty: it has come to none
}

// followNames takes a statement that is sent: what it asks for by a name counts as taken. Nothing is held back while
// its session has such a lock: others wait for it that isotap does not see wait, nor would anybody come.
func (s *Session) followNames(shape string) {
	if namedlock.Mentioned(shape) {
		s.names.Follow(sqltoken.Shape(s.p.opts.Family, shape))
	}
}

// requestGap is how long after an answer a statement in autocommit may be sent that goes by it.
const requestGap = 50 * time.Millisecond

// NewSession returns the session of a new connection. Wake is called, by other sessions' goroutines, when a statement
// that is held back is to go on. It must not wait, nor call the Provoker.
func (p *Provoker) NewSession(wake func()) *Session {
	return &Session{p: p, wake: wake}
}

// A Statement is what is known of one before it is sent.
type Statement struct {
	Kind    history.Kind
	Locking history.Locking
	Shape   string
	Target  string        // the table that it writes, as history.Row has it; empty: it is not known
	Level   history.Level // of its transaction
}

// Sends says that the session is about to send a statement.
func (s *Session) Sends(st Statement) {
	if s != nil {
		s.sends(st)
	}
}

// Done says that a statement was answered, and whether a transaction is open behind it.
func (s *Session) Done(st *history.Stmt, open bool) {
	if s != nil {
		s.done(st, open)
	}
}

// Hold returns what the statement has to wait for that is about to be sent. Nil: nothing.
func (s *Session) Hold() *Hold {
	if s == nil || s.due == "" {
		return nil
	}
	shape := s.due
	s.due = ""
	return s.p.hold(s, shape)
}

// Pass says that the statement that is about to be sent is not held back.
func (s *Session) Pass() { s.due = "" }

func (s *Session) sends(st Statement) {
	if !s.open {
		s.used = 0
		if s.p.now().Sub(s.heard) > requestGap {
			s.forget()
		}
	}
	target := st.Target
	if len(s.window.keys) == 0 {
		target = ""
	}
	s.p.seen(s, target)
	s.due = ""
	s.followNames(st.Shape)
	if !s.fresh || s.names.Any() || st.Level == history.Serializable {
		return
	}
	switch {
	case writes(st.Kind) || st.Locking != history.NoLock:
		s.due, s.fresh = st.Shape, false
	case st.Kind == history.Commit && s.wrote:
		s.due, s.fresh = "COMMIT behind "+s.last, false
	}
}

// writes reports whether statements of a kind may write rows.
func writes(k history.Kind) bool {
	switch k {
	case history.Insert, history.Update, history.Delete, history.Replace, history.Merge, history.Call, history.Copy:
		return true
	}
	return false
}

func (s *Session) done(st *history.Stmt, open bool) {
	was := s.open
	s.open, s.heard = open, s.p.now()
	locks := writes(st.Kind) || st.Locking != history.NoLock
	switch {
	case was && (!open || st.Kind == history.Begin), !open && locks:
		s.forget()
	case locks:
		s.wrote, s.last = true, st.Shape
		s.window.locked(st)
	case st.Kind == history.Select && st.Observation != history.Nothing && s.window.read(st):
		s.fresh = true
	}
}

// forget begins with the next transaction or request.
func (s *Session) forget() {
	s.window, s.wrote, s.last, s.fresh, s.used = window{}, false, "", false, 0
	s.names.TxnEnded()
}

// A key is what two sessions can both have read: a row, or a question whatever the answer was.
type key struct{ of, id string }

// A window is what a session has read without a lock, and may go by.
type window struct {
	keys map[key][]string // the tables that a key is about; nil: they are not known
}

// maxKeys bounds a window: who reads a list does not go by each of its rows.
const maxKeys = 64

// read takes what a statement read, and reports whether that is anything.
func (w *window) read(st *history.Stmt) bool {
	before := len(w.keys)
	var tables []string
	note := func(table string) {
		if len(tables) < maxKeys && (len(tables) == 0 || tables[len(tables)-1] != table) {
			tables = append(tables, table)
		}
	}
	for i := range st.Accesses {
		a := &st.Accesses[i]
		note(a.Row.Table)
		w.add(rowKey(st, i), []string{a.Row.Table})
	}
	for i := range st.Predicates {
		note(st.Predicates[i].Table)
	}
	w.add(key{"?" + st.Shape, strings.Join(st.Args, "\x00")}, tables)
	return len(w.keys) > before
}

func (w *window) add(k key, tables []string) {
	if w.keys == nil {
		w.keys = make(map[key][]string)
	}
	if len(w.keys) < maxKeys {
		w.keys[k] = tables
	}
}

// rowKey is the key of the row that an access is about. Without a primary key PostgreSQL's rows are known by the place
// of their versions alone.
func rowKey(st *history.Stmt, at int) key {
	row := st.Accesses[at].Row
	if row.ID == "" && at < len(st.TupleIDs) {
		row.ID = strconv.FormatUint(st.TupleIDs[at].CTID, 16)
	}
	return key{row.Table, row.ID}
}

// locked takes out the rows that a statement has locked: nobody comes in between any more.
func (w *window) locked(st *history.Stmt) {
	for i := range st.Accesses {
		delete(w.keys, rowKey(st, i))
	}
}

// contested returns the keys of tables in which somebody has written.
func (w *window) contested(written map[string]struct{}) map[key]struct{} {
	keys := make(map[key]struct{}, len(w.keys))
	for k, tables := range w.keys {
		if len(tables) == 0 {
			keys[k] = struct{}{}
		}
		for _, t := range tables {
			if _, is := written[t]; is {
				keys[k] = struct{}{}
				break
			}
		}
	}
	return keys
}
