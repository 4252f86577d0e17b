package analyzer

import (
	"maps"
	"slices"
)

// A book holds the groups of anomalies that a [Live] has found, by their keys: those of transactions that are gone
// add up, those of the others each step finds anew.
type book struct {
	settled map[string]*group
	known   map[string]*group            // by the last step
	awaited map[string]*group            // see partAwaited; settled at the end
	garbage map[string]map[string]*group // settled, by run, for as long as that has not ended
	stages  map[string]int               // as collector.stages
	occurs  map[Anomaly]bool             // the phenomena that occur (see search.occurring)
}

// A wording is a group's shortest witness in words, made while its transactions were kept.
type wording struct {
	finding  *Finding
	programs []int32 // in the order in which the witness meets them
	length   int
	count    int // how often the group was seen, as told last
}

func newBook() *book {
	return &book{settled: make(map[string]*group), awaited: make(map[string]*group), garbage: make(map[string]map[string]*group), occurs: make(map[Anomaly]bool)}
}

// take takes in what a step found.
func (b *book) take(a *Analyzer, s *search, told map[string]*wording) error {
	c := s.found
	c.groups = slices.DeleteFunc(c.groups, func(g *group) bool { return g.part == partOpen })
	for _, anomaly := range s.occurring() {
		b.occurs[anomaly] = true
	}
	b.known = make(map[string]*group)
	for _, g := range c.groups {
		if t := told[g.key]; t == nil || g.length < t.length {
			f, err := a.finding(c, g, make(map[int32]*Program))
			if err != nil {
				return err
			}
			if t == nil {
				t = &wording{}
				told[g.key] = t
			}
			t.finding, t.programs, t.length = f, a.inOrder(g), g.length
		}
		g.told = told[g.key]
		b.part(g.part).put(g)
	}
	b.stages = make(map[string]int)
	for _, part := range []groups{b.settled, b.known, b.awaited} {
		for _, g := range part {
			for _, l := range g.links {
				if key := l.key(g.class); l.kind == rw && g.stage > 0 && (b.stages[key] == 0 || g.stage < b.stages[key]) {
					b.stages[key] = g.stage
				}
			}
		}
	}
	return nil
}

// part gives where the groups of a part are.
func (b *book) part(part string) groups {
	switch part {
	case partSettled:
		return b.settled
	case partKnown:
		return b.known
	case partAwaited:
		return b.awaited
	}
	if b.garbage[part] == nil {
		b.garbage[part] = make(map[string]*group)
	}
	return b.garbage[part]
}

type groups map[string]*group

// put adds what a step found of a group to what is there.
func (m groups) put(g *group) {
	old := m[g.key]
	if old == nil {
		m[g.key] = g
		return
	}
	old.count += g.count
	old.first, old.last = min(old.first, g.first), max(old.last, g.last)
	for p := range g.programs {
		if len(old.programs) < maxPrograms {
			old.programs[p] = true
		}
	}
	if g.length < old.length {
		old.length = g.length
	}
}

// copies gives groups that may change without the given ones.
func copies(of []*group) []*group {
	var made []*group
	for _, g := range of {
		c := *g
		c.programs = maps.Clone(g.programs)
		made = append(made, &c)
	}
	return made
}

// count says how often a group was seen.
func (b *book) count(key string) int {
	n := 0
	for _, part := range []groups{b.settled, b.known} {
		if g := part[key]; g != nil && !b.named(g) {
			n += g.count
		}
	}
	return n
}

// named is [collector.named] by all that was found.
func (b *book) named(g *group) bool {
	if g.stage < 2 || g.stage == stageOf(G2Item, 2) {
		return false // those are told whatever else is (see search.add)
	}
	antis := 0
	for _, l := range g.links {
		if l.kind != rw {
			continue
		}
		antis++
		if b.stages[l.key(g.class)] >= g.stage {
			return false
		}
	}
	return antis > 0
}

// findings makes findings of all that is settled.
func (b *book) findings(a *Analyzer, l *Live) []*Finding {
	for _, g := range b.awaited {
		groups(b.settled).put(g)
	}
	for _, info := range l.infos {
		if !info.Ended.IsZero() {
			for _, g := range b.garbage[partGarbage+info.Run.String()] {
				groups(b.settled).put(g)
			}
		}
	}
	c := newCollector(a.order, a.opts)
	c.folded, c.tables = l.names.folded, l.names.byFolded
	for _, key := range slices.Sorted(maps.Keys(b.settled)) {
		if g := b.settled[key]; !b.named(g) {
			c.groups = append(c.groups, g)
		}
	}
	c.settle()
	names := make(map[int32]*Program)
	var findings []*Finding
	for _, g := range c.groups {
		f := *g.told.finding
		f.ID, f.Count, f.First, f.Last = a.idOf(c, g), g.count, g.first, g.last
		f.Patterns, f.ProgramSets, f.Tables, f.Programs = g.patterns, len(g.programs), c.tablesOf(g), nil
		for _, p := range g.told.programs {
			f.Programs = append(f.Programs, a.program(p, names))
		}
		findings = append(findings, &f)
	}
	return findings
}
