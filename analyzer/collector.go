package analyzer

import (
	"encoding/binary"
	"slices"
)

// A collector groups anomalies by name, class and programs.
type collector struct {
	o      *order
	judge  *judge
	groups []*group
	index  map[string]*group
	// stages are, by class and programs, how early in the search the first cycle between them was
	// found.
	stages map[string]int
	key    []byte
}

// A group is the anomalies of one kind between the same programs.
type group struct {
	anomaly  Anomaly
	class    Class
	programs []int32 // each once, ascending
	count    int
	first    int64 // when the first and the last of them ended
	last     int64
	witness  []dep // the shortest
	length   int
	conflict conflict // IncompatibleOrder
}

func newCollector(o *order) *collector {
	return &collector{o: o, judge: newJudge(o), index: make(map[string]*group), stages: make(map[string]int)}
}

// add takes in one anomaly.
func (c *collector) add(name Anomaly, class Class, witness []dep) *group {
	g := c.group(name, class, witness)
	end := int64(0)
	for i := range witness {
		for _, t := range [2]int32{witness[i].from, witness[i].to} {
			if t >= 0 {
				end = max(end, c.o.txns[t].end)
			}
		}
	}
	g.saw(end)
	if g.better(len(witness)) {
		g.witness, g.length = witness, len(witness)
	}
	return g
}

// saw counts an anomaly that ended at the given time.
func (g *group) saw(end int64) {
	g.count++
	if g.count == 1 {
		g.first, g.last = end, end
	}
	g.first, g.last = min(g.first, end), max(g.last, end)
}

// better says whether a witness of the given length is the best so far.
func (g *group) better(length int) bool { return g.witness == nil || length < g.length }

// group finds the group that a witness belongs to.
func (c *collector) group(name Anomaly, class Class, witness []dep) *group {
	programs := c.programs(witness)
	scope := c.scope(class, programs)
	stage := stageOf(name, len(witness))
	if old, ok := c.stages[string(scope)]; stage > 0 && (!ok || stage < old) {
		c.stages[string(scope)] = stage
	}
	c.key = append(scope, name...)
	g, ok := c.index[string(c.key)]
	if !ok {
		g = &group{anomaly: name, class: class, programs: programs}
		c.index[string(c.key)] = g
		c.groups = append(c.groups, g)
	}
	return g
}

// named says whether an earlier stage of the search found a cycle between just the programs of this
// one.
func (c *collector) named(name Anomaly, class Class, witness []dep) bool {
	stage, ok := c.stages[string(c.scope(class, c.programs(witness)))]
	return ok && stage < stageOf(name, len(witness))
}

// stageOf orders the cycles as the package comment does; 0 for what is no cycle.
func stageOf(name Anomaly, length int) int {
	switch {
	case length < 2 && name != LostUpdate:
		return 0
	case length > 2 && name == GSingle:
		return 2
	case length > 2 && name == G2Item:
		return 3
	default:
		return 1
	}
}

// scope makes a key of a class and programs. It is valid until the next call.
func (c *collector) scope(class Class, programs []int32) []byte {
	c.key = append(c.key[:0], class[0])
	for _, p := range programs {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(p))
	}
	return c.key
}

// programs gives the programs of a witness's transactions, each once, ascending.
func (c *collector) programs(witness []dep) []int32 {
	var programs []int32
	for i := range witness {
		for _, t := range [2]int32{witness[i].from, witness[i].to} {
			if t >= 0 && !slices.Contains(programs, c.o.txns[t].program) {
				programs = append(programs, c.o.txns[t].program)
			}
		}
	}
	slices.Sort(programs)
	return programs
}
