package analyzer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/isotap/isotap/history"
)

// A collector groups anomalies by name, class and the statements that made them.
type collector struct {
	o      *order
	judge  *judge
	groups []*group
	index  map[string]*group
	owners map[string]rwOwner // by class and the statements of an rw
	folded map[int32]int32    // tables as FoldTable sees them, by table
	tables []string           // these, by number
	// apart divides anomalies into parts, whose groups are apart too; nil but for a [Live].
	apart func(name Anomaly, witness []dep) string
}

// A group is the anomalies of one kind that the same statements made.
type group struct {
	anomaly  Anomaly
	class    Class
	links    []shapeEdge
	patterns int // sets of statements: 1, unless too many of them were made one group
	programs map[uint64]bool
	count    int
	most     int           // of them with one set of statements
	parts    [][]shapeEdge // the links of each set of statements, where there are several
	first    int64         // when the first and the last of them ended
	last     int64
	witness  []dep // the shortest
	length   int
	conflict conflict // IncompatibleOrder
	covers   []Covered

	// For a [Live]:
	key   string // what it has in common with the groups of other steps and stages
	part  string
	stage int
	told  *wording
}

// A shapeEdge is a dependency as a group knows it: by the statements at its ends, not by the transactions
// that ran them. Two transactions may run the same two statements among others that differ, and it is
// these two that a developer must change.
type shapeEdge struct {
	kind             kind
	from, to         int32 // shapes; -1 for one that is not known
	table            int32
	fromLevel, level history.Level
}

func newCollector(o *order, opts Options) *collector {
	return &collector{o: o, judge: newJudge(o, opts), index: make(map[string]*group), owners: make(map[string]rwOwner),
		folded: make(map[int32]int32)}
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

// better reports whether a witness of the given length is the best so far.
func (g *group) better(length int) bool { return g.witness == nil || length < g.length }

// group finds the group that a witness belongs to.
func (c *collector) group(name Anomaly, class Class, witness []dep) *group {
	links := c.links(witness)
	stage := stageOf(name, len(witness))
	key := []byte(class + "\x00" + Class(name) + "\x00")
	for _, l := range links {
		key = l.append(key)
	}
	part, whole := "", key
	if c.apart != nil {
		part = c.apart(name, witness)
		whole = append(append(slices.Clone(key), byte(stage)), part...)
	}
	g, ok := c.index[string(whole)]
	if !ok {
		g = &group{anomaly: name, class: class, links: links, patterns: 1, programs: make(map[uint64]bool),
			key: string(key), part: part, stage: stage}
		c.index[string(whole)] = g
		c.groups = append(c.groups, g)
	}
	if stage > 0 {
		c.own(g, stage)
	}
	if len(g.programs) < maxPrograms {
		g.programs[c.programs(witness)] = true
	}
	return g
}

// maxPrograms bounds what a group remembers of the programs in which it was found.
const maxPrograms = 10_000

// stages is how many values [stageOf] gives.
const stages = 7

// stageOf orders the cycles as the package comment does; 0 for what is no cycle.
func stageOf(name Anomaly, length int) int {
	switch {
	case length < 2:
		return 0
	case name.variant():
		return 6
	case length > 2 && name.base() == GSingle && name != LostUpdate:
		return 2
	case name.base() == GNonadjacent:
		return 3
	case length > 2 && (name == G2Item || name == G2):
		return 5
	case name.base() == G2Item:
		return 4
	default:
		return 1
	}
}

// links returns the links of a witness, each once, in an order of their own.
func (c *collector) links(witness []dep) []shapeEdge {
	var links []shapeEdge
	for i := range witness {
		l := c.link(&witness[i])
		if !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	slices.SortFunc(links, func(a, b shapeEdge) int { return bytes.Compare(a.append(nil), b.append(nil)) })
	return links
}

func (c *collector) link(d *dep) shapeEdge {
	l := shapeEdge{kind: d.kind, from: none, to: none, table: none}
	if d.version >= 0 || d.next >= 0 {
		l.table = c.table(c.o.row(d))
	}
	if d.kind == wr && d.access >= 0 && c.o.accesses[d.access].is(equal) {
		l.kind = ww // an UPDATE that happened to find its values there already is the same statement
	}
	fromStmt, toStmt := c.o.stmtsOf(d)
	if d.from >= 0 {
		l.from, l.fromLevel = c.o.shapeOf(d.from, fromStmt), c.o.txns[d.from].level
	}
	if d.to >= 0 {
		l.to, l.level = c.o.shapeOf(d.to, toStmt), c.o.txns[d.to].level
	}
	return l
}

// stmtsOf returns the numbers of the statements at the ends of a dependency; 0 for none.
func (o *order) stmtsOf(d *dep) (from, to uint32) {
	switch {
	case d.version < 0 && d.next < 0:
		return 0, 0
	case d.version < 0:
		return o.looks[look{d.from, d.next}], o.tagOf(d.next).stmt
	}
	from = o.tagOf(d.version).stmt
	if d.next >= 0 {
		to = o.tagOf(d.next).stmt
	}
	if d.access >= 0 && d.kind == rw {
		from = o.accesses[d.access].stmt
	} else if d.access >= 0 {
		to = o.accesses[d.access].stmt
	}
	return from, to
}

// table returns the number of a row's table, as FoldTable sees it.
func (c *collector) table(row int32) int32 {
	t := c.o.rows.tableOf(row)
	n, ok := c.folded[t]
	if !ok {
		name := FoldTable(c.o.rows.tables[t])
		if n = int32(slices.Index(c.tables, name)); n < 0 {
			n = int32(len(c.tables))
			c.tables = append(c.tables, name)
		}
		c.folded[t] = n
	}
	return n
}

func (l shapeEdge) append(key []byte) []byte {
	key = append(key, byte(l.kind), byte(l.fromLevel), byte(l.level))
	for _, n := range [3]int32{l.table, l.from, l.to} {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return key
}

func (l shapeEdge) key(class Class) string { return string(l.append([]byte(class[:1]))) }

// programs returns a hash of the programs that a witness's transactions ran, in any order.
func (c *collector) programs(witness []dep) uint64 {
	var programs []int32
	for i := range witness {
		for _, t := range [2]int32{witness[i].from, witness[i].to} {
			if t >= 0 && !slices.Contains(programs, c.o.txns[t].program) {
				programs = append(programs, c.o.txns[t].program)
			}
		}
	}
	slices.Sort(programs)
	h := fnv.New64a()
	for _, p := range programs {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(p)))
	}
	return h.Sum64()
}

// maxPatterns is the most groups of one name, class and set of tables that a report shows apart. A load that mixes
// many statements at random, such as sysbench, makes hundreds. Groups on other tables are never one.
const maxPatterns = 6

// settle makes one group of those that are too many to tell apart, and puts the groups in order:
// violations first, then the most frequent.
func (c *collector) settle() {
	c.coverVariants()
	c.merge()
	slices.SortStableFunc(c.groups, func(x, y *group) int {
		return cmp.Or(-cmp.Compare(x.class, y.class), -cmp.Compare(x.count, y.count), cmp.Compare(x.first, y.first),
			cmp.Compare(x.anomaly, y.anomaly))
	})
}

// tables appends the numbers of the group's tables, each once, ascending.
func (g *group) tables(key []byte) []byte {
	var tables []int32
	for _, l := range g.links {
		if l.table >= 0 {
			tables = append(tables, l.table)
		}
	}
	slices.Sort(tables)
	for _, t := range slices.Compact(tables) {
		key = binary.LittleEndian.AppendUint32(key, uint32(t))
	}
	return key
}

// merge joins the groups of one name, class and set of tables where there are more than maxPatterns of them.
func (c *collector) merge() {
	alike := make(map[string][]*group)
	keyOf := func(g *group) string {
		return string(g.tables([]byte(string(g.class) + "\x00" + string(g.anomaly) + "\x00")))
	}
	for _, g := range c.groups {
		alike[keyOf(g)] = append(alike[keyOf(g)], g)
	}
	var kept []*group
	for _, g := range c.groups {
		same := alike[keyOf(g)]
		if len(same) > maxPatterns && g != same[0] {
			same[0].join(g)
			continue
		}
		kept = append(kept, g)
	}
	c.groups = kept
}

// join adds the anomalies of another group. What the most frequent statements made is the witness.
func (g *group) join(o *group) {
	if g.patterns == 1 {
		g.most, g.parts = g.count, [][]shapeEdge{slices.Clone(g.links)}
	}
	g.parts = append(g.parts, o.links)
	if o.count > g.most {
		g.most, g.witness, g.length, g.conflict, g.told = o.count, o.witness, o.length, o.conflict, o.told
	}
	g.count += o.count
	g.patterns += o.patterns
	g.coverAll(o)
	g.first, g.last = min(g.first, o.first), max(g.last, o.last)
	for _, l := range o.links {
		if !slices.Contains(g.links, l) {
			g.links = append(g.links, l)
		}
	}
	for p := range o.programs {
		if len(g.programs) < maxPrograms {
			g.programs[p] = true
		}
	}
}

// A wording is a group in words, made while its transactions were kept.
type wording struct {
	known, settled phrase // what is known may look otherwise when more of the order is
	count          int    // how often the group was seen, as told last
}

// A phrase is a group's shortest witness in words.
type phrase struct {
	finding  *Finding
	programs []int32 // in the order in which the witness meets them
	length   int
}
