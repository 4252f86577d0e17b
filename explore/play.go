package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/replay"
)

// A role is one part in a play.
type role int

const (
	own      role = iota // the transaction itself, which commits
	racing               // its twin before the commit
	serial               // and after it
	before               // of another program, that by itself, before the transaction began
	reverse              // the transaction behind before, in the same block
	counting             // none of them: it asks for counters
	roles
)

func (r role) String() string {
	return [roles]string{"own", "racing", "serial", "before", "before", "counting"}[r]
}

// A step is one of a play's. At is the statement, or ends where it is none of the instance's.
type step struct {
	role role
	at   int
	sql  string
}

// ends is the At of what begins and ends a block, and tries the At of what tries its COMMIT.
const (
	ends  = -1
	tries = -2
)

// A play is one of an instance: by itself, or with a twin, which is an instance of the same program or of another one.
type play struct {
	schema  *schema
	in      *instance
	twin    *instance // nil: there is none
	steps   []step
	mapped  [roles]*mapping
	replies [roles][]*replay.Result
	drawn   counts          // where the counters stood when the transaction had drawn its keys, and no twin had
	tried   *replay.Result  // of the racing twin's COMMIT; nil: it was not tried
	seen    map[string]bool // values that instances so far brought
	live    bool            // it is played beside the transaction's own client
	beginning
}

// A beginning is where a play of two different calls begins.
type beginning struct {
	left  *leftOut // that the transaction was, until now; nil: it was not
	start counts   // where the counters stand
}

// blankPlay returns a play without steps.
func blankPlay(s *schema, in, twin *instance, from beginning, seen map[string]bool) *play {
	p := &play{schema: s, in: in, twin: twin, beginning: from, seen: seen}
	for r := range p.mapped {
		p.mapped[r] = newMapping()
		if of := p.of(role(r)); of != nil {
			p.replies[r] = make([]*replay.Result, len(of.statements))
		}
	}
	if twin == in {
		p.mapped[racing].renew(s, twin.statements, seen)
		p.mapped[serial].renew(s, twin.statements, seen)
	}
	return p
}

func newPlay(s *schema, in, twin *instance, from beginning, seen map[string]bool) *play {
	p := blankPlay(s, in, twin, from, seen)
	if twin == nil && !in.block {
		for at := range in.statements { // some definitions are refused in a block
			p.steps = append(p.steps, step{own, at, in.statements[at].text})
		}
		return p
	}
	if twin != nil && twin != in {
		p.statements(before)
		if p.left != nil {
			p.drawsAsRecorded()
		}
		p.statements(reverse)
		p.end(before, "ROLLBACK")
		p.drawsAsRecorded()
	}
	p.statements(own)
	if twin != nil {
		for _, sql := range countsQuestions[s.family] {
			p.end(counting, sql)
		}
		p.drawsNow()
		p.statements(racing)
	}
	if in.commits {
		p.end(own, "COMMIT")
	} else {
		p.end(own, "ROLLBACK")
	}
	if twin != nil {
		p.giveUp()
		p.drawsNow()
		p.statements(serial)
		p.end(serial, "ROLLBACK")
	}
	return p
}

// of returns the instance that a role plays.
func (p *play) of(r role) *instance {
	switch r {
	case own, reverse:
		return p.in
	case counting:
		return nil
	}
	return p.twin
}

// base is the role that the twins are compared with.
func (p *play) base() role {
	if p.twin != p.in {
		return before
	}
	return own
}

// statements adds those of a role, up to where it ends. In autocommit the statement that writes is played in a block as
// well, since a twin's must not stay, with the reads before it.
func (p *play) statements(r role) {
	in := p.of(r)
	begin := 0
	if in.block {
		begin = in.before
	}
	for at := range in.statements {
		if at == begin && r != reverse {
			p.end(r, p.schema.begin())
		}
		p.numbered(r, at)
		p.steps = append(p.steps, step{r, at, in.statements[at].text})
	}
	if (r == racing || r == serial) && p.schema.family == dbms.PostgreSQLFamily {
		p.end(r, "SET CONSTRAINTS ALL IMMEDIATE")
	}
}

// giveUp ends the racing twin. What PostgreSQL refuses a serializable one for shows with its COMMIT: it is prepared,
// which checks all that COMMIT does, and then rolled back.
func (p *play) giveUp() {
	if !p.twin.serializable(p.schema.family) {
		p.end(racing, "ROLLBACK")
		return
	}
	p.steps = append(p.steps, step{racing, tries, "PREPARE TRANSACTION '" + p.schema.gid + "'"})
	p.end(racing, "ROLLBACK PREPARED '"+p.schema.gid+"'")
}

// refused reports whether the server would not have let the racing twin commit, and whether that is known: what has
// used temporary tables, for one, it prepares not.
func (p *play) refused() (refused, known bool) {
	if p.tried == nil || p.tried.Status == replay.OK {
		return false, true
	}
	code := p.tried.ErrorCode()
	known = strings.HasPrefix(code, "40") || strings.HasPrefix(code, "23") // rolled back for others, or for a constraint
	return known, known
}

func (p *play) end(r role, sql string) { p.steps = append(p.steps, step{r, ends, sql}) }

// scenario returns the play for package replay.
func (p *play) scenario() *scenario.Scenario {
	s := &scenario.Scenario{Name: p.in.id.String()}
	for r := range roles {
		if of := p.of(r); of != nil && r != reverse {
			s.Sessions = append(s.Sessions, scenario.Session{Name: r.String(), Level: of.playsAt().String()})
		}
	}
	for _, st := range p.steps {
		s.Steps = append(s.Steps, scenario.Step{Session: p.session(st.role), SQL: st.sql})
	}
	return s
}

// fill returns the text of a step, with a twin's own values.
func (p *play) fill(n int, so []replay.Result) string {
	st := &p.steps[n-1]
	if st.at < 0 || st.role != racing && st.role != serial {
		return st.sql
	}
	p.learn(so)
	m, s := p.mapped[st.role], &p.twin.statements[st.at]
	return s.filled(func(l *literal) (string, bool) {
		of, known := p.schema.of(l)
		return m.other(p.schema, of, known, l.value)
	})
}

// learn takes in the keys that the server made for the twins so far.
func (p *play) learn(so []replay.Result) {
	p.take(so)
	for i, st := range p.steps {
		if (st.role == racing || st.role == serial) && st.at >= 0 && so[i].Status == replay.OK {
			if base := p.replies[p.base()][st.at]; base != nil {
				p.mapped[st.role].learn(p.schema, &p.twin.statements[st.at], base, &so[i])
			}
		}
	}
}

// take notes the replies.
func (p *play) take(so []replay.Result) {
	for i, st := range p.steps {
		switch {
		case so[i].Status == replay.NotRun:
		case st.role == counting && len(so[i].Columns) == 2:
			p.drawn = p.schema.told(countsOf(&so[i]))
		case st.at == tries:
			p.tried = &so[i]
		case st.at >= 0:
			if p.schema.tidb {
				hideColumns(&so[i])
			}
			p.replies[st.role][st.at] = &so[i]
		}
	}
}

// hideColumns takes isotap's columns out of a result, as the proxy does on TiDB.
func hideColumns(r *replay.Result) {
	keep := make([]int, 0, len(r.Columns))
	for i, c := range r.Columns {
		if !isIsotaps(c.Name) {
			keep = append(keep, i)
		}
	}
	if len(keep) == len(r.Columns) {
		return
	}
	columns := r.Columns
	r.Columns = nil
	for _, i := range keep {
		r.Columns = append(r.Columns, columns[i])
	}
	for n, row := range r.Rows {
		shown := make([]replay.Value, 0, len(keep))
		for _, i := range keep {
			shown = append(shown, row[i])
		}
		r.Rows[n] = shown
	}
}

// differences returns what a twin was answered otherwise than by itself.
func (p *play) differences(r role) []difference {
	return differences(p.schema, p.twin.statements, p.replies[p.base()], p.replies[r], p.mapped[r])
}

// turned reports whether the transaction would have been answered otherwise behind the twin, before something that it
// wrote: then neither order of the two explains what both wrote by the old.
func (p *play) turned() bool {
	for _, d := range differences(p.schema, p.in.statements, p.replies[own], p.replies[reverse], p.mapped[reverse]) {
		if !d.failed && !p.in.statements[d.at].writes() && p.in.changesBehind(p.schema, d.at) {
			return true
		}
	}
	return false
}

// changesBehind reports whether the instance changes rows behind a statement: more than that it notes what it does, or
// when.
func (in *instance) changesBehind(s *schema, at int) bool {
	return slices.ContainsFunc(in.statements[at+1:], func(w statement) bool {
		return w.writes() && !w.void && w.changed() > 0 && !w.notes(s) && !w.stamps(s)
	})
}

// waited reports whether a write of the racing twin waited for the transaction, and the transaction writes the same
// table: then both are taken to write one row.
func (p *play) waited() bool {
	for at, r := range p.replies[racing] {
		if s := &p.twin.statements[at]; r != nil && r.Blocked && s.writes() && p.in.writesTo(s.target) {
			return true
		}
	}
	return false
}

// apart reports whether the two change rows of some table, and each other columns of them: then neither writes over
// what the other one set.
func (p *play) apart() bool {
	common := false
	for i := range p.twin.statements {
		w := &p.twin.statements[i]
		for j := range p.in.statements {
			s := &p.in.statements[j]
			if !w.writes() || !s.writes() || w.inserts() || s.inserts() || !strings.EqualFold(s.target, w.target) {
				continue
			}
			if common = true; len(w.assigned) == 0 || len(s.assigned) == 0 || p.schema.setSame(w, s) {
				return false
			}
		}
	}
	return common
}

// setSame reports whether two UPDATEs of a table set a column that is not of moments.
func (s *schema) setSame(a, b *statement) bool {
	return slices.ContainsFunc(a.assigned, func(name string) bool {
		c, known := s.named(a.target, name)
		return !(known && s.moments[c]) &&
			slices.ContainsFunc(b.assigned, func(other string) bool { return strings.EqualFold(name, other) })
	})
}

// writesTo reports whether the instance writes a table.
func (in *instance) writesTo(table string) bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool { return s.writes() && strings.EqualFold(s.target, table) })
}

// asRecorded reports whether a role did what it did when it was recorded.
func (p *play) asRecorded(r role) bool {
	in := p.of(r)
	for i := range in.statements {
		st, reply := &in.statements[i], p.replies[r][i]
		if reply == nil || (reply.Status == replay.OK) != (st.recorded.Error == history.Error{}) {
			return false
		}
		if reply.Status == replay.OK && !p.schema.sameCounts(st, reply) {
			return false
		}
	}
	return true
}

// readsAsRecorded reports whether the twin read by itself what it did when it was recorded, but for numbers: those are
// of the state that it finds. One that finds an order in another state would not go on as recorded.
func (p *play) readsAsRecorded() bool {
	if p.twin.read == nil {
		return true
	}
	for _, d := range differences(p.schema, p.twin.statements, p.twin.read, p.replies[before], newMapping()) {
		if p.twin.statements[d.at].writes() {
			continue // keys that the server makes are others
		}
		if d.failed || d.rows || slices.ContainsFunc(d.changed, func(c change) bool { return !c.key && !isNumber(c) }) {
			return false
		}
	}
	return true
}

// sameCounts reports whether as many rows came, or were changed. Of MySQL's family a recorded UPDATE may have counted
// only those that it did not leave as they were.
func (s *schema) sameCounts(st *statement, r *replay.Result) bool {
	switch {
	case st.recorded.Kind == history.Select:
		return st.recorded.Rows == uint64(len(r.Rows))
	case !st.writes():
		return true
	case s.family == dbms.MySQLFamily && st.recorded.Kind == history.Update:
		return st.changed() <= affected(r)
	}
	return st.changed() == affected(r)
}
