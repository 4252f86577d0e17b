package analyzer

import (
	"maps"
	"slices"
)

// A Verdict says which levels of the theory a history satisfies, as far as it was observed and whatever its
// transactions ran at. What rests on inexact accesses, or on wide conditions, does not count.
type Verdict struct {
	// Violated are the levels that the history violates, in the order of [TheoryLevels].
	Violated []LevelViolation
	// Satisfied are the names of the others, in the same order.
	Satisfied []string
	// Strongest are the names of those satisfied levels that no stronger one among them implies.
	Strongest []string
}

// A LevelViolation is a level and a phenomenon that it forbids and that occurs.
type LevelViolation struct {
	Level string
	By    Anomaly
	// Weakest says that no weaker level is violated (Elle prints these as :not, the others as :also-not).
	Weakest bool
}

// verdict judges all levels by the phenomena that occur.
func verdict(occurs []Anomaly) Verdict {
	var v Verdict
	by := make([]int, len(TheoryLevels)) // places in occurs; -1 for none
	for i := range TheoryLevels {
		by[i] = slices.IndexFunc(occurs, TheoryLevels[i].ForbidsAnomaly)
	}
	for i := range TheoryLevels {
		name := TheoryLevels[i].Name
		if TheoryLevels[i].Moments {
			continue
		}
		if by[i] >= 0 {
			weakest := !anyLevel(func(j int) bool { return by[j] >= 0 && stronger[i][j] && !stronger[j][i] })
			v.Violated = append(v.Violated, LevelViolation{name, occurs[by[i]], weakest})
			continue
		}
		v.Satisfied = append(v.Satisfied, name)
		if !anyLevel(func(j int) bool {
			return by[j] < 0 && !TheoryLevels[j].Moments && stronger[j][i] &&
				!stronger[i][j]
		}) {
			v.Strongest = append(v.Strongest, name)
		}
	}
	return v
}

func anyLevel(ok func(i int) bool) bool {
	for i := range TheoryLevels {
		if ok(i) {
			return true
		}
	}
	return false
}

// occurring returns the phenomena that occur, the strictest first: those of findings, and those that the search
// for findings had no need to look for, since it explains every mishap once.
func (s *search) occurring() []Anomaly {
	found := maps.Clone(s.covered)
	for _, g := range s.found.groups {
		if (g.part == "" || g.part == partSettled) && s.o.provesAll(g.witness) {
			found[g.anomaly] = true
		}
	}
	if len(s.nodes) > 0 {
		s.restore(true)
		s.findVariants(found)
		s.findByPredicates(found)
		s.restore(false)
		s.findOccurring(found)
	}
	s.findByAxioms(found)
	return inOrderOfStrictness(found)
}

// provesAll reports whether [order.proves] each dependency of a witness.
func (o *order) provesAll(witness []dep) bool {
	return !slices.ContainsFunc(witness, func(d dep) bool { return !o.proves(&d) })
}

func inOrderOfStrictness(found map[Anomaly]bool) []Anomaly {
	var occurs []Anomaly
	for _, a := range slices.Concat(strictness, variants()) {
		if found[a] {
			occurs = append(occurs, a)
		}
	}
	return occurs
}

// strictness is the order in which a verdict names what violates a level.
var strictness = []Anomaly{GarbageRead, IncompatibleOrder, LostWrite, Internal, FutureRead, G0, G1a, DirtyUpdate, G1b,
	G1c,
	LostUpdate, OTV, GMonotonic, ReadSkew, NonRepeatableRead, FracturedRead, ReadWriteSkew, GSingle, GNonadjacent, WriteSkew, G2Item,
	PMP, Phantom, PhantomNonadjacent, PhantomSkew, G2}

// variants are the phenomena by the order of sessions, then those by time, the strictest first.
func variants() []Anomaly {
	list := []Anomaly{G0.Process(), G1c.Process(), OTV.Process(), FracturedRead.Process(), GCausal, GSingle.Process(),
		GNonadjacent.Process(), G2Item.Process()}
	for _, a := range cyclicPhenomena {
		list = append(list, a.Realtime())
	}
	return list
}

// restore undoes what the search for findings took out of the graph, but for the rw by predicates, unless they are to
// count, too.
func (s *search) restore(predicates bool) {
	s.setTogether(false)
	s.class = Hazard
	clear(s.told)
	clear(s.circled)
	for e := range s.gone {
		s.gone[e] = !s.o.proves(&s.edges[e]) || !predicates && s.o.byPredicate(&s.edges[e]) || s.final != nil &&
			!s.final(&s.edges[e])
	}
}

// findOccurring adds the phenomena that show as cycles. Where there is a stricter one that every level forbids that
// forbids the weaker, it does not look for the weaker.
func (s *search) findOccurring(found map[Anomaly]bool) {
	s.flow = flow
	found[G0] = s.anyCycle(ww)
	if found[G1c] = s.anyCycle(flow); found[G1c] {
		return
	}
	if !found[LostUpdate] {
		s.eachLostUpdate(func(lostUpdate) bool { found[LostUpdate] = true; return false })
	}
	s.eachSingle(anyway, func([]int32) bool { found[GSingle] = true; return false })
	if !found[GSingle] {
		found[GNonadjacent] = s.anyNonadjacent()
		found[G2Item] = s.anyCycle(flow | rw)
		return
	}
	s.eachFracture(found)
	if !found[OTV] && !found[GMonotonic] {
		s.eachSingle(s.o.earlier, func([]int32) bool { found[GMonotonic] = true; return false })
	}
}

// findByPredicates adds the phenomena of rows and predicates together, where one that goes through rows alone is not
// the cause: what forbids these forbids that.
func (s *search) findByPredicates(found map[Anomaly]bool) {
	if !slices.ContainsFunc(s.edges, func(d dep) bool { return s.o.byPredicate(&d) }) || s.anyCycle(flow) {
		return
	}
	s.flow = flow
	s.eachSingle(anyway, func([]int32) bool { found[Phantom] = true; return false })
	if !found[Phantom] {
		found[PhantomNonadjacent] = s.anyNonadjacent()
	}
}

// findVariants adds those that show as cycles by session order and by time, the strictest of each: levels that forbid
// the weaker ones forbid that.
func (s *search) findVariants(found map[Anomaly]bool) {
	s.flow = sessionFlow
	found[G0.Process()] = s.anyCycle(ww | so)
	found[G1c.Process()] = s.anyCycle(sessionFlow)
	s.eachSingle(anyway, func([]int32) bool { found[GSingle.Process()] = true; return false })
	if !found[GSingle.Process()] {
		found[GNonadjacent.Process()] = s.anyNonadjacent()
	}
	found[G2Item.Process()] = s.anyCycle(sessionFlow | rw)
	s.flow = flow
	for i, rule := range timeRules {
		s.eachInTime(rule, func(int32, []dep) bool { found[cyclicPhenomena[i].Realtime()] = true; return false })
	}
}

// cyclicPhenomena are those that [timeRules] look for.
var cyclicPhenomena = []Anomaly{G0, G1c, GSingle, GNonadjacent, G2Item}

// eachFracture looks for read skews and OTV, of two transactions and more.
func (s *search) eachFracture(found map[Anomaly]bool) {
	for i := range s.pairs {
		if found[OTV] {
			return
		}
		p := &s.pairs[i]
		for _, reader := range []int32{p.low, p.high} {
			for _, r := range s.between(p, reader, rw) {
				for _, b := range s.between(p, p.low+p.high-reader, wr) {
					found[s.o.nameSingle(s.depsOf([]int32{r, b}))] = true
				}
			}
		}
	}
	s.eachFractured(func(_ int32, cycle []dep) bool {
		found[s.o.nameOf(cycle)] = true
		return !found[OTV]
	})
}

func (s *search) anyCycle(kinds kind) bool {
	_, sizes := s.components(func(e int32) bool { return s.usable(e, kinds) })
	return slices.ContainsFunc(sizes, func(n int32) bool { return n > 1 })
}
