package analyzer

import (
	"cmp"
	"slices"
)

// Covered are anomalies that a finding counts and that no finding of their own tells: cycles whose every rw has
// the statements of the finding's, or that lie in the component of the finding's cycle.
type Covered struct {
	Class   Class
	Anomaly Anomaly
	Count   int
}

// An rwOwner is the group that first had an rw, as a pair of statements, on a cycle, and how early in the search.
type rwOwner struct {
	group *group
	stage int
}

// own notes whose the rw of a group's cycles are, which were found at a stage.
func (c *collector) own(g *group, stage int) {
	for _, l := range g.links {
		key := l.key(g.class)
		if old, ok := c.owners[key]; l.kind == rw && (!ok || stage < old.stage) {
			c.owners[key] = rwOwner{g, stage}
		}
	}
}

// owner returns the group that has the rw of a witness already: every one of them, as a pair of statements, at an
// earlier stage of the search. Whoever changes those statements changes this cycle, too. It is the first rw's
// group; nil where one of them is new.
func (c *collector) owner(name Anomaly, class Class, witness []dep) *group {
	if c.apart != nil {
		return nil // what is not seen yet may own it (see settledFindings.named)
	}
	return c.ownerOf(class, c.links(witness), stageOf(name, len(witness)))
}

// ownerOf returns the group that has the rw among the links at an earlier stage.
func (c *collector) ownerOf(class Class, links []shapeEdge, stage int) *group {
	var owner *group
	for _, l := range links {
		if l.kind != rw {
			continue
		}
		o, ok := c.owners[l.key(class)]
		if !ok || o.stage >= stage {
			return nil
		}
		if owner == nil {
			owner = o.group
		}
	}
	return owner
}

// coverVariants takes out the groups of variants whose rw were found on a cycle without orders after all: a violation
// that only the search for hazards came across.
func (c *collector) coverVariants() {
	c.groups = slices.DeleteFunc(c.groups, func(g *group) bool {
		if c.apart != nil || !g.anomaly.variant() {
			return false
		}
		owner := c.ownerOf(g.class, g.links, g.stage)
		if owner != nil {
			owner.cover(g.class, g.anomaly, g.count)
			owner.coverAll(g)
		}
		return owner != nil
	})
}

// cover adds to what a group covers.
func (g *group) cover(class Class, name Anomaly, count int) {
	if count == 0 {
		return
	}
	same := func(c Covered) bool { return c.Class == class && c.Anomaly == name }
	if i := slices.IndexFunc(g.covers, same); i >= 0 {
		g.covers[i].Count += count
		return
	}
	g.covers = append(g.covers, Covered{class, name, count})
}

// coverAll adds what another group covers.
func (g *group) coverAll(o *group) {
	for _, c := range o.covers {
		g.cover(c.Class, c.Anomaly, c.Count)
	}
}

// covered returns what a group covers: violations first, then the most frequent.
func (g *group) covered() []Covered {
	covers := slices.Clone(g.covers)
	slices.SortFunc(covers, func(a, b Covered) int {
		return cmp.Or(-cmp.Compare(a.Class, b.Class), -cmp.Compare(a.Count, b.Count), cmp.Compare(a.Anomaly, b.Anomaly))
	})
	return covers
}

// passedOver reports whether the group's cycles are of those that are not counted where others explain them (see
// [Finding.AtLeast]). Of write skews, the shortest cycles of several rw, only hazards are, for violations.
func (g *group) passedOver() bool {
	if g.anomaly == WriteSkew && g.class == Violation {
		return false
	}
	switch g.anomaly.base() {
	case GNonadjacent, G2Item, GSIa:
		return true
	}
	return g.anomaly.variant()
}
