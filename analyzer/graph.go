package analyzer

// A dep is a dependency between two transactions, by index, and what it rests on.
type dep struct {
	from, to int32
	kind     kind
	inexact  bool
	access   int32 // wr, rw: the read
	version  int32 // wr, rw: the version that was read; ww: the one that was overwritten
	next     int32 // rw, ww: the version that overwrote it
}

// A kind is the kind of a dependency, one bit; several are a set.
type kind uint8

const (
	so kind = 1 << iota
	wr
	ww
	rw
	rt
	rq
)

// The kinds of dependencies that order commits, with the order of sessions and without.
const (
	flow        = ww | wr
	sessionFlow = flow | so
)

var kindNames = map[kind]DepKind{so: SO, wr: WR, ww: WW, rw: RW, rt: RT, rq: RQ}

// components finds the strongly connected components of a graph of n nodes by Tarjan's algorithm,
// without recursion. The edges of node v are off[v] to off[v+1]; target gives where one leads, -1 to
// leave it out. Components are numbered against the direction of the edges: where a path leads from
// u to v, comp[u] >= comp[v].
func components(n int, off []uint32, target func(edge uint32) int32) (comp []int32, count int32) {
	t := tarjan{off: off, target: target, comp: make([]int32, n), index: make([]int32, n), low: make([]int32, n)}
	for i := range t.comp {
		t.comp[i] = none
	}
	for v := range int32(n) {
		if t.index[v] == 0 {
			t.visit(v)
		}
	}
	return t.comp, t.components
}

type tarjan struct {
	off        []uint32
	target     func(uint32) int32
	comp       []int32
	index, low []int32 // from 1; 0: not visited
	visited    int32
	components int32
	open       []int32 // visited, without a component yet
	path       []frame // from the root to the node in hand
}

type frame struct {
	node int32
	edge uint32 // the next one to look at
}

func (t *tarjan) enter(v int32) {
	t.visited++
	t.index[v], t.low[v] = t.visited, t.visited
	t.open = append(t.open, v)
	t.path = append(t.path, frame{v, t.off[v]})
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	for len(t.path) > 0 {
		f := &t.path[len(t.path)-1]
		if f.edge == t.off[f.node+1] {
			t.leave(f.node)
			continue
		}
		w := t.target(f.edge)
		f.edge++
		switch {
		case w < 0:
		case t.index[w] == 0:
			t.enter(w)
		case t.comp[w] < 0:
			t.low[f.node] = min(t.low[f.node], t.index[w])
		}
	}
}

func (t *tarjan) leave(v int32) {
	t.path = t.path[:len(t.path)-1]
	if t.low[v] == t.index[v] {
		for {
			w := t.open[len(t.open)-1]
			t.open = t.open[:len(t.open)-1]
			t.comp[w] = t.components
			if w == v {
				break
			}
		}
		t.components++
	}
	if len(t.path) > 0 {
		parent := t.path[len(t.path)-1].node
		t.low[parent] = min(t.low[parent], t.low[v])
	}
}

// offsets turns counts, where counts[i+1] is the number of edges of node i, into where they begin.
func offsets(counts []uint32) {
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
}
