package explore

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/sqltoken"
)

// A statement is one that a client sent, with its values.
type statement struct {
	recorded *history.Stmt
	text     string
	whole    bool // all values are there
	void     bool // it failed, or was rolled back by itself
	literals []literal
	target   string            // the table that it writes; empty: none is known
	sets     map[string]string // the columns that it assigns a value to, and the value; of an INSERT none
	assigned []string          // the columns that an UPDATE sets, whatever to
	named    []string          // the tables that it names
	// An upsert is an INSERT that changes the row that is there. Its overwrites are the columns that take the new row's
	// value, whatever the old one was.
	upsert     bool
	overwrites []string
	reach      reach
	tokens     []sqltoken.Token
	answer     *replay.Result // what the client got for it, where it is played beside that; nil: it is not known
}

func newStatement(family dbms.Family, recorded *history.Stmt, text string) statement {
	s := statement{recorded: recorded, text: text, void: recorded.Void, sets: make(map[string]string)}
	tokens, err := sqltoken.Statement(family, text)
	if err != nil {
		s.reach = beyond // it cannot be told what it does
		return s
	}
	s.tokens, s.reach = tokens, reachOf(family, recorded.Kind, tokens)
	if len(sqltoken.Statements(tokens)) > 1 {
		s.reach = beyond // it may be another one than was recorded
	}
	r := reader{tokens: tokens}
	r.read()
	s.literals, s.target, s.named = r.literals, r.target, r.tables
	s.upsert, s.overwrites = r.readUpsert()
	if recorded.Kind == history.Update {
		s.assigned = r.readAssigned()
		for i := range s.literals {
			if l := &s.literals[i]; l.assigned {
				s.sets[l.column.name] = l.value
			}
		}
	}
	return s
}

// writes reports whether the statement is one that changes rows.
func (s *statement) writes() bool {
	switch s.recorded.Kind {
	case history.Insert, history.Update, history.Delete, history.Replace, history.Merge:
		return true
	}
	return false
}

// stamps reports whether all that the statement does is to note when: an UPDATE that sets columns of moments alone.
func (s *statement) stamps(of *schema) bool {
	return len(s.assigned) > 0 && !slices.ContainsFunc(s.assigned, func(name string) bool {
		c, known := of.named(s.target, name)
		return !known || !of.moments[c]
	})
}

// changed returns how many rows a write changed when it was recorded. Of one that showed them, MariaDB says nothing
// else.
func (s *statement) changed() uint64 { return max(s.recorded.Affected, s.recorded.Rows) }

// reads reports whether the statement only reads rows. What its functions do is not known.
func (s *statement) reads() bool { return s.recorded.Kind == history.Select && s.reach == withinRows }

// failed reports whether the statement failed when it was recorded.
func (s *statement) failed() bool { return s.recorded.Error != history.Error{} }

// inserts reports whether it makes rows.
func (s *statement) inserts() bool {
	return s.recorded.Kind == history.Insert || s.recorded.Kind == history.Replace
}

// filled returns the text with other values, where there are others.
func (s *statement) filled(other func(*literal) (string, bool)) string {
	var b strings.Builder
	from := 0
	for i := range s.literals {
		l := &s.literals[i]
		value, ok := other(l)
		if !ok {
			continue
		}
		b.WriteString(s.text[from:l.start])
		b.WriteString(l.spelled(value))
		from = l.end
	}
	b.WriteString(s.text[from:])
	return b.String()
}
