package explore

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// newLivePlay returns the play of twins beside a transaction that its client has run up to its COMMIT: that is the only
// step of its own. Of a write in autocommit that is the write: the racing twin reads before it, and writes behind it.
//
// A twin of another call is played in the same way. What it reads while the transaction is not committed is what it
// reads by itself; behind what it wrote then, and within its block, the transaction's first reads are played again.
func newLivePlay(s *schema, in, twin *instance, seen map[string]bool) *play {
	p := blankPlay(s, in, twin, beginning{}, seen)
	p.live = true
	for at := range in.statements {
		p.replies[own][at] = in.statements[at].answer
	}
	if in.block {
		p.statements(racing)
		p.readsBehind()
		p.end(own, "COMMIT")
	} else {
		p.statements(racing)
		write := slices.IndexFunc(p.steps, func(st step) bool { return st.at == in.before })
		p.steps = slices.Insert(p.steps, write, step{own, ends, in.statements[in.before].text})
	}
	p.giveUp()
	p.statements(serial)
	p.end(serial, "ROLLBACK")
	return p
}

// readsBehind plays what the transaction reads before it first writes once more, behind a twin of another call.
func (p *play) readsBehind() {
	if p.twin == p.in {
		return
	}
	for at := range p.in.statements {
		if st := &p.in.statements[at]; st.writes() || st.recorded.Locking != history.NoLock {
			return
		}
		p.steps = append(p.steps, step{reverse, at, p.in.statements[at].text})
	}
}

// session names the session that plays a role.
func (p *play) session(r role) string {
	if p.live && r == reverse {
		return racing.String()
	}
	return r.String()
}

// aside takes, of a play beside a client, what a twin of another call is answered by itself: what it was before it
// first waited. From there on it is taken to be what its own client was answered.
func (p *play) aside() {
	waited := false
	for at, r := range p.replies[racing] {
		if waited = waited || r == nil || r.Blocked; waited {
			p.replies[before][at] = p.twin.statements[at].answer
		} else {
			p.replies[before][at] = r
		}
	}
	if waited {
		clear(p.replies[reverse])
	}
}

// judgeable reports whether a play beside a client tells something: a twin of another call has to read what its own
// client did.
func (p *play) judgeable() bool {
	return p.twin == p.in || p.asRecorded(before) && p.readsAsRecorded()
}

// answers are what the client was answered.
func (in *instance) answers() []answered {
	all := make([]answered, len(in.statements))
	for i := range in.statements {
		all[i] = in.statements[i].answer
	}
	return all
}
