package mining

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A node is a part of a program: a statement, or a loop, or what is optional.
type node struct {
	shape    int
	loop     bool
	optional bool
	body     []*node // of a loop, and of what is optional
	// counts are how often a loop ran.
	counts map[int]bool
}

func leaf(shape int) *node { return &node{shape: shape} }

// isLeaf reports whether the node is a statement.
func (n *node) isLeaf() bool { return !n.loop && !n.optional }

// key is the same for nodes that run alike: it tells loops, but neither how often they ran nor what in them is
// optional.
func (n *node) key() string {
	if n.isLeaf() {
		return strconv.Itoa(n.shape)
	}
	if n.optional {
		return keys(n.body)
	}
	return "(" + keys(n.body) + ")"
}

func keys(nodes []*node) string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = n.key()
	}
	return strings.Join(parts, " ")
}

// leaves calls f for all statements in order.
func leaves(nodes []*node, f func(*node)) {
	for _, n := range nodes {
		if n.isLeaf() {
			f(n)
		}
		leaves(n.body, f)
	}
}

// clone copies nodes, so that each statement is one of its own.
func clone(nodes []*node) []*node {
	copies := make([]*node, len(nodes))
	for i, n := range nodes {
		c := *n
		c.body, c.counts = clone(n.body), maps.Clone(n.counts)
		copies[i] = &c
	}
	return copies
}

// fold makes loops of what repeats itself.
func fold(nodes []*node) []*node {
	if folded := early(nodes); folded != nil {
		return folded
	}
	for {
		folded := foldOnce(nodes)
		if folded == nil {
			return nodes
		}
		nodes = folded
	}
}

// choices counts what is optional.
func choices(nodes []*node) int {
	n := 0
	for _, c := range nodes {
		n += choices(c.body)
		if c.optional {
			n++
		}
	}
	return n
}

// foldOnce folds the first of the shortest repetitions; nil: there is none.
func foldOnce(nodes []*node) []*node {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.key()
	}
	for length := 1; length <= len(nodes)/2; length++ {
		for at := 0; at+2*length <= len(nodes); at++ {
			n := 1
			for at+(n+1)*length <= len(nodes) && slices.Equal(names[at:at+length], names[at+n*length:at+(n+1)*length]) {
				n++
			}
			if n > 1 {
				return replace(nodes, at, n*length, repeated(nodes[at:at+n*length], n))
			}
		}
	}
	return nil
}

// repeated makes a loop of n runs of a body; a loop of a loop is that loop.
func repeated(runs []*node, n int) *node {
	length := len(runs) / n
	body := clone(runs[:length])
	for at := length; at < len(runs); at += length {
		count(body, runs[at:at+length])
	}
	if length == 1 && body[0].loop {
		return body[0]
	}
	return &node{loop: true, body: body, counts: map[int]bool{n: true}}
}

func replace(nodes []*node, at, n int, by *node) []*node {
	return slices.Concat(nodes[:at], []*node{by}, nodes[at+n:])
}

// early makes a loop of all from a statement on, if it is there again and again and some iterations ended early: what
// they lack is optional. Nil: there is none.
func early(nodes []*node) []*node {
	for i, n := range nodes {
		cuts := []int{i}
		for j := i + 1; j < len(nodes); j++ {
			if nodes[j].key() == n.key() {
				cuts = append(cuts, j)
			}
		}
		cuts = append(cuts, len(nodes))
		if body := iteration(nodes, cuts); body != nil {
			return append(nodes[:i:i], &node{loop: true, body: body, counts: map[int]bool{0: true}})
		}
	}
	return nil
}

// fewRuns are too few to tell a loop that ends early from a statement that is there again.
const fewRuns = 3

// iteration returns the body whose runs, some of them ended early, stand between the cuts; nil: they are not of one
// body. The last run alone is no measure of it: something may follow the loop. Nor is a body that ends with what stands
// before the first: its loop began there.
func iteration(nodes []*node, cuts []int) []*node {
	var whole []*node
	lengths := map[int]bool{}
	for k := range len(cuts) - 1 {
		run := nodes[cuts[k]:cuts[k+1]]
		lengths[len(run)] = true
		if len(run) > len(whole) && k < len(cuts)-2 {
			whole = run
		}
	}
	if len(lengths) < 2 || len(cuts) <= fewRuns || cuts[0] > 0 && nodes[cuts[0]-1].key() == whole[len(whole)-1].key() {
		return nil
	}
	for k := range len(cuts) - 1 {
		if run := nodes[cuts[k]:cuts[k+1]]; len(run) > len(whole) || keys(run) != keys(whole[:len(run)]) {
			return nil
		}
	}
	var body []*node
	ends := slices.Sorted(maps.Keys(lengths))
	for k := len(ends) - 1; k > 0; k-- {
		body = []*node{{optional: true, body: append(clone(whole[ends[k-1]:ends[k]]), body...)}}
	}
	return append(clone(whole[:ends[0]]), body...)
}
