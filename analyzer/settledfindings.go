package analyzer

import (
	"cmp"
	"maps"
	"slices"
)

// settledFindings hold the groups of anomalies that a [Live] has found: those of transactions that are gone
// add up, those of the others each step finds anew.
type settledFindings struct {
	settled groups
	known   groups            // by the last step
	awaited groups            // see partAwaited; settled at the end
	garbage map[string]groups // settled, by run, for as long as that has not ended
	stages  map[string]int    // by class and the statements of an rw: the first stage with it
	occurs  map[Anomaly]bool  // the phenomena that occur among what is settled (see search.occurring)
}

// groups are groups by their keys and the stages of the search at which they were found: one that a group of an
// earlier stage explains is left out.
type groups map[groupKey]*group

type groupKey struct {
	key   string
	stage int
}

func newSettledFindings() *settledFindings {
	return &settledFindings{settled: make(groups), awaited: make(groups), garbage: make(map[string]groups),
		occurs: make(map[Anomaly]bool)}
}

// take takes in what a step found, and the phenomena that occur among what is settled.
func (b *settledFindings) take(a *Analyzer, c *collector, occurring []Anomaly, told map[string]*wording) error {
	c.groups = slices.DeleteFunc(c.groups, func(g *group) bool { return g.part == partOpen })
	for _, anomaly := range occurring {
		b.occurs[anomaly] = true
	}
	b.known = make(groups)
	for _, g := range c.groups {
		if told[g.key] == nil {
			told[g.key] = &wording{}
		}
		g.told = told[g.key]
		p := &g.told.settled
		if g.part == partKnown {
			p = &g.told.known
		}
		if err := p.improve(a, c, g); err != nil {
			return err
		}
		b.part(g.part).put(g)
	}
	b.stage()
	return nil
}

// improve words a group, where it has a shorter witness.
func (p *phrase) improve(a *Analyzer, c *collector, g *group) (err error) {
	if p.finding != nil && p.length <= g.length {
		return nil
	}
	p.programs, p.length = a.inOrder(g), g.length
	p.finding, err = a.finding(c, g, newNamedPrograms(a))
	return err
}

// stage works out stages.
func (b *settledFindings) stage() {
	b.stages = make(map[string]int)
	for _, part := range []groups{b.settled, b.known, b.awaited} {
		for _, g := range part {
			for _, l := range g.links {
				if key := l.key(g.class); l.kind == rw && g.stage > 0 &&
					(b.stages[key] == 0 || g.stage < b.stages[key]) {
					b.stages[key] = g.stage
				}
			}
		}
	}
}

// part returns where the groups of a part are.
func (b *settledFindings) part(part string) groups {
	switch part {
	case partSettled:
		return b.settled
	case partKnown:
		return b.known
	case partAwaited:
		return b.awaited
	}
	if b.garbage[part] == nil {
		b.garbage[part] = make(groups)
	}
	return b.garbage[part]
}

// put adds what a step found of a group to what is there.
func (m groups) put(g *group) {
	k := groupKey{g.key, g.stage}
	if old := m[k]; old != nil {
		old.more(g)
		return
	}
	m[k] = g
}

// more adds what another step, or another stage of the search, found of the group.
func (g *group) more(o *group) {
	g.count += o.count
	g.first, g.last = min(g.first, o.first), max(g.last, o.last)
	for p := range o.programs {
		if len(g.programs) < maxPrograms {
			g.programs[p] = true
		}
	}
	g.length = min(g.length, o.length)
	g.coverAll(o)
}

// copies returns groups that may change without the given ones.
func copies(of []*group) []*group {
	var made []*group
	for _, g := range of {
		c := *g
		c.programs, c.covers = maps.Clone(g.programs), slices.Clone(g.covers)
		made = append(made, &c)
	}
	return made
}

// seen returns how often a group was seen, and when for the first and the last time.
func (b *settledFindings) seen(key string) (s group) {
	for _, part := range [2]groups{b.settled, b.known} {
		for stage := range stages {
			g := part[groupKey{key, stage}]
			if g == nil || b.named(g) {
				continue
			}
			if s.count == 0 {
				s.first, s.last = g.first, g.last
			}
			s.count, s.first, s.last = s.count+g.count, min(s.first, g.first), max(s.last, g.last)
		}
	}
	return s
}

// named reports what [collector.owner] does by all that was found.
func (b *settledFindings) named(g *group) bool {
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

// close settles what waited for the end.
func (b *settledFindings) close(l *Live) {
	late := []groups{b.awaited}
	for _, info := range l.infos {
		if !info.Ended.IsZero() {
			late = append(late, b.garbage[partGarbage+info.Run.String()])
		}
	}
	for _, part := range late {
		for _, g := range part {
			b.occurs[g.anomaly] = true
			b.settled.put(g)
		}
	}
}

// groups returns all that is settled and that no other group explains, those of a key as one, with what they cover.
func (b *settledFindings) groups() []*group {
	keys := slices.SortedFunc(maps.Keys(b.settled), func(x, y groupKey) int {
		return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.stage, y.stage))
	})
	var list, named []*group
	for _, k := range keys {
		g := b.settled[k]
		if b.named(g) {
			named = append(named, g)
			continue
		}
		if n := len(list); n > 0 && list[n-1].key == k.key {
			list[n-1].more(g)
			continue
		}
		list = append(list, g)
	}
	for _, g := range named {
		if owner := b.owner(g, list); owner != nil {
			owner.cover(g.class, g.anomaly, g.count)
			owner.coverAll(g)
		}
	}
	return list
}

// owner returns the first of the groups that has the first rw of one that is named.
func (b *settledFindings) owner(g *group, groups []*group) *group {
	i := slices.IndexFunc(g.links, func(l shapeEdge) bool { return l.kind == rw })
	first := b.stages[g.links[i].key(g.class)]
	for _, o := range groups {
		if o.class == g.class && o.stage == first && slices.Contains(o.links, g.links[i]) {
			return o
		}
	}
	return nil
}

// findings makes findings of all that is settled.
func (b *settledFindings) findings(a *Analyzer, l *Live) []*Finding {
	c := newCollector(a.order, a.opts)
	c.folded, c.tables = l.names.folded, l.names.byFolded
	c.groups = b.groups()
	c.settle()
	programs := newNamedPrograms(a)
	var findings []*Finding
	for _, g := range c.groups {
		said := &g.told.settled
		f := *said.finding
		f.ID, f.Count, f.First, f.Last = a.idOf(c, g), g.count, g.first, g.last
		f.Patterns, f.ProgramSets, f.Tables, f.Programs = g.patterns, len(g.programs), c.tablesOf(g), nil
		f.Covers, f.Parts, f.AtLeast = g.covered(), a.partsOf(c, g), g.passedOver()
		for _, p := range said.programs {
			f.Programs = append(f.Programs, programs.program(f.Family, p))
		}
		findings = append(findings, &f)
	}
	slightLast(findings)
	return findings
}
