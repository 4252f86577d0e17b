package mining

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/programname"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
	"github.com/isotap/isotap/robust/program"
	"github.com/isotap/isotap/sqltoken"
)

// build makes a workload of the programs.
func (m *miner) build(clusters []*cluster) error {
	b := program.NewBuilder("recording", m.o.Schema)
	var namer programname.Namer
	for _, c := range clusters {
		seen := Program{Calls: len(c.traces), Levels: map[history.Level]int{}}
		var actions programname.Actions
		for _, t := range c.traces {
			seen.Levels[m.traces[t].level]++
			actions.Add(m.traces[t].action)
		}
		leaves(c.nodes, func(n *node) { seen.Shapes = append(seen.Shapes, m.shapes[n.shape].shape) })
		d := b.Program(namer.Program(m.o.Family, actions, seen.Shapes), "", seen.origin())
		d.Summary, d.Calls = m.summary(c.nodes), seen.Calls
		u := usage{m: m, draft: d, found: map[*node][]traceOccurrence{}}
		u.sight(c)
		d.Body = u.parts(c.nodes, nil)
		d.Notes = u.notes
		m.mined.Programs = append(m.mined.Programs, seen)
	}
	var err error
	if m.mined.Workload, err = b.Workload(); err != nil {
		return err
	}
	return nil
}

// origin says how often the program was seen, and at which levels.
func (p *Program) origin() string {
	var levels []string
	for _, l := range slices.Sorted(maps.Keys(p.Levels)) {
		if l != history.LevelUnknown {
			levels = append(levels, l.String())
		}
	}
	if len(levels) == 0 {
		return fmt.Sprintf("%d calls", p.Calls)
	}
	return fmt.Sprintf("%d calls at %s", p.Calls, strings.Join(levels, ", "))
}

// summary writes a program's statements; what is optional stands in brackets.
func (m *miner) summary(nodes []*node) string {
	var parts []string
	for _, n := range nodes {
		switch {
		case n.loop:
			parts = append(parts, "LOOP "+m.summary(n.body)+" END LOOP")
		case n.optional:
			parts = append(parts, "["+m.summary(n.body)+"]")
		default:
			parts = append(parts, m.shapes[n.shape].shape)
		}
	}
	return strings.Join(parts, "; ")
}

// A traceOccurrence is an occurrence in a trace.
type traceOccurrence struct {
	occurrence
	trace int
}

// A usage makes the parts of one program.
type usage struct {
	m      *miner
	draft  *program.Draft
	found  map[*node][]traceOccurrence
	naming naming
	notes  []string
}

// sight finds the program's statements in its traces.
func (u *usage) sight(c *cluster) {
	for _, t := range c.traces {
		found := match(c.nodes, u.m.traces[t].calls)
		if found == nil {
			u.notes = append(u.notes, "a call took a way that was not followed: its values are left out of account")
			continue
		}
		for n, all := range found {
			for _, o := range all {
				u.found[n] = append(u.found[n], traceOccurrence{o, t})
			}
		}
	}
}

func (u *usage) parts(nodes []*node, loops []*node) robust.Part {
	var all robust.Sequence
	for _, n := range nodes {
		var part robust.Part
		switch {
		case n.loop:
			part = u.parts(n.body, append(loops[:len(loops):len(loops)], n))
			if part != nil {
				part = &robust.Loop{Body: part}
			}
		case n.optional:
			part = u.parts(n.body, loops)
			if part != nil {
				part = &robust.Optional{Body: part}
			}
		default:
			part = u.statement(n, loops)
		}
		if part != nil {
			all = append(all, part)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// statement makes the part that a statement stands for.
func (u *usage) statement(n *node, loops []*node) robust.Part {
	s := u.m.shapes[n.shape]
	text, params := spell(u.m.o.Family, s.shape)
	fp, err := footprint.Of(u.m.o.Family, text, u.m.o.Schema)
	if err != nil {
		return u.unread(n, err)
	}
	st := program.Statement{SQL: s.shape, Text: text, Origin: s.shape}
	for _, seen := range u.found[n] {
		st.Misses, st.Several = st.Misses || seen.call.missed, st.Several || seen.call.several
	}
	for k := range params {
		s := u.slot(n, loops, k, params)
		st.Params = append(st.Params, u.naming.add(s))
		if len(s.loops) == 0 && s.name != "" && !slices.Contains(u.draft.Single, s.name) {
			u.draft.Single = append(u.draft.Single, s.name)
		}
	}
	return u.draft.Part(fp, st)
}

// slot gathers what was seen of argument k of a statement that has so many.
func (u *usage) slot(n *node, loops []*node, k, params int) *slot {
	s := &slot{loops: loops, values: map[string]string{}}
	for _, seen := range u.found[n] {
		if len(seen.call.args) != params {
			continue // a list was folded, or the arguments were not recorded
		}
		v, ok := plain(seen.call.args[k])
		if !ok {
			return &slot{}
		}
		s.values[place(seen.trace, seen.path)] = v
	}
	return s
}

// spell writes a shape as its family's grammar reads it, and counts its parameters.
func spell(family dbms.Family, shape string) (text string, params int) {
	values := sqltoken.Values(family, shape)
	texts := make([]string, len(values))
	for i := range values {
		texts[i] = footprint.Param(family, i+1)
	}
	return sqltoken.Fill(shape, values, texts), len(values)
}

// errNothingKnown is the error of a statement that cannot be read, and used no row that is known of.
var errNothingKnown = errors.New("it used no row that is known of")

// unread makes of a statement that cannot be read all that it may have done to the tables whose rows it used.
func (u *usage) unread(n *node, err error) robust.Part {
	s := u.m.shapes[n.shape]
	fp := &footprint.Footprint{Notes: []string{fmt.Sprintf("not read (%v): it is taken to use all of the tables "+
		"whose rows it used", err)}}
	seen := map[*footprint.Table]bool{}
	for _, sighted := range u.found[n] {
		for _, name := range sighted.call.tables {
			if t := u.m.o.Schema.Table("", name); t != nil && !t.View && !seen[t] {
				seen[t] = true
				fp.Steps = append(fp.Steps, footprint.Anything(t, u.m.writes(n.shape))...)
			}
		}
	}
	if len(fp.Steps) == 0 {
		u.m.unreadable(fmt.Sprintf("%s: %v; %v", s.shape, err, errNothingKnown))
		return nil
	}
	return u.draft.Part(fp, program.Statement{SQL: s.shape, Origin: s.shape})
}
