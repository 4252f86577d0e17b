package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/sqltoken"
	"github.com/isotap/isotap/sqltoken/namedlock"
)

// An answered is what a statement of an open transaction was answered; nil: it is not known.
type answered = *replay.Result

// A liveSession follows one client's connection for a Live. It belongs to the goroutine of the connection, but for
// active and database, which are its Live's.
type liveSession struct {
	live  *Live
	id    history.SessionID
	login twin.Login
	// settings are statements by which a twin's session gets those of this one, and within those of the open block,
	// which a rollback takes back. strange says that there are others, strangeBlock those of the block.
	settings, within      []string
	strange, strangeBlock bool
	traces                bool   // the open block has done what no ROLLBACK takes back, though nothing was recorded of it
	active                bool   // it is in a transaction, or has a statement under way
	database              string // that it was in with its last statement
	replies               map[uint32]answered
	named                 namedlock.Held
	locked                bool // the open transaction had one of these at some time
	last                  lastReads
	coming                *twin.Statement // what is about to be sent and commits; nil: nothing does
	in                    *instance       // of what commits and is under way; nil: nothing is
	why                   Reason          // why it is not played
	act                   *act            // that plays beside it; nil: nothing does
	ended                 bool            // the transaction of the act is over
	broken                bool            // isotap has failed on it
}

// survive has the client's connection go on where isotap fails on what it was told. From then on nothing is played of
// it.
func (s *liveSession) survive() {
	if recover() != nil {
		s.broken = true
	}
}

// maxSettings is how many statements may make a session's settings.
const maxSettings = 50

// LoggedIn takes who the client is.
func (s *liveSession) LoggedIn(l twin.Login) {
	s.login, s.settings, s.strange = l, slices.Clone(l.Settings), l.Strange
	s.within, s.strangeBlock = nil, false
	s.named.Reset()
}

// Sends takes the statement that is about to be sent.
func (s *liveSession) Sends(st twin.Statement) {
	defer s.survive()
	s.live.mu.Lock()
	s.active, s.database = true, st.Database
	s.live.mu.Unlock()
	s.coming = nil
	if st.Kind == history.Commit && st.Txn != nil || st.Autocommit && writes(st.Kind) {
		s.coming = &st
	}
}

func (s *liveSession) setActive(active bool) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.active = active
}

// Pass says that nothing waits.
func (s *liveSession) Pass() { s.coming = nil }

// Answered takes what a statement was answered.
func (s *liveSession) Answered(a twin.Answer) {
	defer s.survive()
	s.setActive(a.Block)
	st := a.Stmt
	reply := resultOf(st, a.Reply)
	failed := st.Error != history.Error{}
	switch {
	case st.Kind == history.DDL:
		s.live.changed()
	case failed:
	case st.Kind == history.Set:
		s.set(a.Text, a.Block)
	case a.Changes && !firstWord(a.Text, "USE"):
		s.strange = true
	}
	if in := s.in; in != nil && !in.block && writes(st.Kind) {
		s.wrote(in, a, reply)
	}
	if !failed {
		s.follow(s.live.target.Family, a.Text)
	}
	s.traces = s.traces || a.Block && st.Num == 0 && leavesUnseen(s.live.target.Family, a.Text)
	switch {
	case a.Block:
		s.replies[st.Num] = reply
	case st.Kind == history.Select && st.Num > 0:
		s.join(st, reply)
	case st.Num > 0 && st.Kind != history.Commit && st.Kind != history.Rollback:
		delete(s.last, s.id)
	}
}

// wrote takes the answer to a write in autocommit that is under way.
func (s *liveSession) wrote(in *instance, a twin.Answer, reply answered) {
	st := &in.statements[in.before]
	in.id = a.Txn
	st.recorded.Affected, st.recorded.Rows, st.recorded.Error = a.Stmt.Affected, a.Stmt.Rows, a.Stmt.Error
	st.answer, in.failed = reply, st.failed()
	switch {
	case s.why != "":
	case reply == nil:
		s.why = Unread
	case in.failed:
		s.why = Failed
	case st.changed() == 0:
		s.why = NothingChanged
	}
	if s.why != "" {
		s.live.refuse(in.id, s.why)
	}
	if s.act != nil && s.why != "" {
		s.act.cancel()
	}
}

// writes reports whether statements of a kind change rows.
func writes(k history.Kind) bool { return (&statement{recorded: &history.Stmt{Kind: k}}).writes() }

// answeredSoFar are the instance's statements without a write in autocommit that is under way.
func (in *instance) answeredSoFar() []statement {
	if in.block {
		return in.statements
	}
	return in.statements[:in.before]
}

// join takes a read in autocommit, which may be of one request with what follows.
func (s *liveSession) join(st *history.Stmt, reply answered) {
	read := newInstance(&history.Txn{Session: s.id, Implicit: true, Status: history.Committed, Start: st.Start, End: st.End,
		Stmts: []history.Stmt{*st}}, s.live.target.Family)
	for i := range read.statements {
		read.statements[i].answer = reply
	}
	s.last.join(read)
}

// leavesUnseen reports whether a statement that came to no rows notifies, or the like.
func leavesUnseen(family dbms.Family, text string) bool {
	tokens, err := sqltoken.Statement(family, text)
	return err != nil || text == "" || hasWord(tokens, staysBehind) || hasWord(tokens, reachesOut) ||
		firstWord(text, "NOTIFY") || firstWord(text, "LISTEN")
}

// set takes a SET that succeeded.
func (s *liveSession) set(text string, block bool) {
	tokens, err := sqltoken.Statement(s.live.target.Family, text)
	has := func(word string) bool {
		return slices.ContainsFunc(tokens, func(t sqltoken.Token) bool { return strings.Contains(strings.ToLower(t.Text), word) })
	}
	switch {
	case text == "" || err != nil || len(tokens) < 2, hasWord(tokens, serverWide), has("@@global"), has("@@persist"):
		s.strange = true // what is set for all is not set again
	case has("isolation"), has("autocommit"), tokens[1].Is("TRANSACTION"), tokens[1].Is("CONSTRAINTS"):
		// A twin begins its own blocks, at the transaction's level.
	case tokens[1].Is("LOCAL") && s.live.target.Family == dbms.PostgreSQLFamily:
		s.strangeBlock = true
	case firstWord(text, "DISCARD") && tokens[1].Is("ALL"):
		s.named.Reset()
		fallthrough
	case firstWord(text, "DISCARD") || firstWord(text, "RESET") && tokens[1].Is("ALL"):
		s.settings, s.strange = slices.Clone(s.login.Settings), s.login.Strange
	case block:
		s.within = append(s.within, text)
	default:
		s.keep(text)
	}
}

// keep has twins begin with a setting, too.
func (s *liveSession) keep(text string) {
	s.settings = append(slices.DeleteFunc(s.settings, func(other string) bool { return other == text }), text)
	s.strange = s.strange || len(s.settings) > maxSettings
}

// firstWord reports whether a text begins with a word.
func firstWord(text, word string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return strings.EqualFold(first, word)
}

// Ended takes how the transaction ended.
func (s *liveSession) Ended(status history.Status) {
	defer s.survive()
	s.setActive(false)
	s.ended = true
	if s.act != nil {
		s.act.commit(status)
	}
	if status == history.Committed && (s.in == nil || !s.in.failed) {
		for _, text := range s.within {
			s.keep(text)
		}
		if s.in != nil {
			s.live.see(s.in)
		}
	}
	s.in, s.why, s.within, s.strangeBlock, s.traces = nil, "", nil, false, false
	s.locked = false
	s.named.TxnEnded()
	clear(s.replies)
}

// Before plays beside the transaction whose COMMIT is about to be sent, up to that.
func (s *liveSession) Before() {
	defer s.survive()
	st := s.coming
	s.coming, s.ended = nil, false
	if st == nil {
		return
	}
	s.in = s.instance(st)
	var beside *instance
	if s.why = s.unfit(st, s.in); s.why == "" {
		beside, s.why = s.live.admit(s, s.in)
	}
	if s.why != "" {
		s.live.refuse(s.in.id, s.why)
		return
	}
	s.act = s.live.begin(s, s.in, beside)
	s.act.await(s.act.atCommit)
}

// instance makes one of the open transaction, or of a write in autocommit, which is taken to change a row until its
// answer is there.
func (s *liveSession) instance(st *twin.Statement) *instance {
	x := history.Txn{Session: s.id, Level: st.Level, Implicit: true, Start: st.Stmt.Start}
	if st.Autocommit {
		x.Stmts = []history.Stmt{st.Stmt}
		x.Stmts[0].Affected = 1
	} else {
		x = *st.Txn
		x.Stmts, x.Implicit = slices.Clone(st.Txn.Stmts), false
	}
	x.Status = history.Committed
	in := newInstance(&x, s.live.target.Family)
	in.database, in.named = st.Database, s.locked || s.named.Any()
	for i := range in.statements {
		in.statements[i].answer = s.replies[in.statements[i].recorded.Num]
	}
	s.last.join(in)
	return in
}

// unfit returns why no twin can be as the session is; empty: one can.
func (s *liveSession) unfit(st *twin.Statement, in *instance) Reason {
	switch {
	case !st.Alone:
		return NotHeld
	case !in.writes():
		return NothingChanged
	case !in.readsBeforeWrite():
		return NothingRead
	case in.named:
		return NamedLock
	case s.traces:
		return LeavesTraces
	case st.Database == "", s.broken, s.strange, s.strangeBlock, s.login.Connection == 0, s.login.User != s.live.target.User,
		slices.ContainsFunc(in.answeredSoFar(), func(st statement) bool { return st.answer == nil && st.isAnswered() }):
		return Unread
	}
	return ""
}

// isAnswered reports whether a statement's answer says something that plays are judged by.
func (s *statement) isAnswered() bool { return s.writes() || s.recorded.Kind == history.Select }

// After plays beside the transaction from its commit on.
func (s *liveSession) After() {
	defer s.survive()
	if s.act == nil || !s.ended {
		return
	}
	a := s.act
	s.act = nil
	a.await(a.done)
	s.live.take(a)
}

// Ends ends what is played.
func (s *liveSession) Ends() {
	if a := s.act; a != nil {
		s.act = nil
		a.cancel()
		a.await(a.done)
		s.live.refuse(a.of.id, NotHeld)
	}
	s.live.leave(s)
}

// resultOf is a statement's answer as plays have it; nil where it is not known.
func resultOf(st *history.Stmt, reply *twin.Reply) answered {
	if st.Error != (history.Error{}) {
		return &replay.Result{Status: replay.Failed, Code: st.Error.Code, State: st.Error.SQLState, Message: st.Error.Message}
	}
	if reply == nil {
		return nil
	}
	r := &replay.Result{Status: replay.OK, Affected: reply.Affected, InsertID: reply.InsertID}
	for _, c := range reply.Columns {
		r.Columns = append(r.Columns, replay.Column{Name: c.Name, Type: c.Type, OrgTable: c.Table, OrgName: c.Origin,
			TableOID: c.TableOID, Attribute: c.AttributeNumber})
	}
	for _, row := range reply.Rows {
		values := make([]replay.Value, len(row))
		for i, v := range row {
			values[i] = replay.Value(v)
		}
		r.Rows = append(r.Rows, values)
	}
	return r
}
