package mining

import (
	"cmp"
	"maps"
	"slices"
)

// A cluster is a program: the transactions that ran it.
type cluster struct {
	nodes  []*node
	traces []int
	// lacks are, by way through the program that was seen, which of the nodes it did without.
	lacks [][]bool
}

// clusters groups the traces. The longest come first, so that what is optional is seen before its lack.
func (m *miner) clusters() []*cluster {
	forms := m.forms()
	for _, f := range forms {
		f.nodes = unroll(f.nodes)
	}
	sorted := slices.SortedFunc(maps.Keys(forms), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(forms[b].nodes), size(forms[a].nodes)), cmp.Compare(len(b), len(a)),
			cmp.Compare(a, b))
	})
	var all []*cluster
	for _, key := range sorted {
		f := forms[key]
		if !slices.ContainsFunc(all, func(c *cluster) bool { return m.joins(f, c) }) {
			all = append(all, f)
		}
	}
	for _, c := range all {
		c.settle()
	}
	return all
}

// forms groups the traces that run alike but for how often loops do, by their keys.
func (m *miner) forms() map[string]*cluster {
	forms, known := map[string]*cluster{}, map[string]*cluster{}
	for i := range m.traces {
		var nodes []*node
		for _, c := range m.traces[i].calls {
			nodes = append(nodes, leaf(c.shape))
		}
		unfolded := keys(nodes)
		if f := known[unfolded]; f != nil {
			f.traces = append(f.traces, i)
			continue
		}
		nodes = fold(nodes)
		key := keys(nodes)
		f := forms[key]
		if f == nil {
			f = &cluster{nodes: nodes}
			forms[key] = f
		}
		known[unfolded] = f
		f.traces = append(f.traces, i)
		if choices(nodes) > choices(f.nodes) {
			nodes, f.nodes = f.nodes, nodes
		}
		count(f.nodes, nodes)
	}
	return forms
}

// size counts statements.
func size(nodes []*node) int {
	n := 0
	leaves(nodes, func(*node) { n++ })
	return n
}

// count takes over how often loops ran; the nodes have equal keys.
func count(into, from []*node) {
	for i, n := range from {
		if i < len(into) && n.loop && into[i].loop {
			maps.Copy(into[i].counts, n.counts)
			count(into[i].body, n.body)
		}
	}
}

// joins adds a form to a program if it is a way through it.
func (m *miner) joins(f, c *cluster) bool {
	lacks, ok := m.within(f.nodes, c)
	if !ok {
		return false
	}
	c.traces = append(c.traces, f.traces...)
	c.lacks = append(c.lacks, lacks)
	return true
}

// within returns which of the program's nodes a form lacks, and whether it is a way through the program. The rules
// beside the order keep programs apart of which one is the beginning or a small part of the other; what only reads may
// end early.
func (m *miner) within(nodes []*node, c *cluster) (lacks []bool, ok bool) {
	lacks = make([]bool, len(c.nodes))
	at, missing := 0, 0
	for i, n := range c.nodes {
		if at < len(nodes) && alike(nodes[at], n) {
			at++
			if n.loop && nodes[at-1].loop {
				maps.Copy(n.counts, nodes[at-1].counts)
			} else if n.loop {
				n.counts[1] = true
			}
			continue
		}
		// A loop may have run once: its body stands there as it is.
		if n.loop && at+len(n.body) <= len(nodes) && keys(nodes[at:at+len(n.body)]) == keys(n.body) {
			at += len(n.body)
			n.counts[1] = true
			continue
		}
		lacks[i] = true
		missing++
	}
	last := len(c.nodes) - 1
	writes := m.writing(c.nodes)
	return lacks, at == len(nodes) && !(lacks[last] && writes) && 3*missing <= len(c.nodes) &&
		m.writing(nodes) == writes
}

// alike reports whether a form's node is one of the program's, or one run of it.
func alike(form, n *node) bool {
	return form.key() == n.key() || n.loop && len(n.body) == 1 && form.key() == n.body[0].key()
}

func (m *miner) writing(nodes []*node) bool {
	writes := false
	leaves(nodes, func(n *node) { writes = writes || m.writes(n.shape) })
	return writes
}

// settle makes optional what some ways lack: what the same ones lack, together.
func (c *cluster) settle() {
	var nodes []*node
	for i, n := range c.nodes {
		lacked := slices.ContainsFunc(c.lacks, func(l []bool) bool { return l[i] })
		together := i > 0 && !slices.ContainsFunc(c.lacks, func(l []bool) bool { return l[i] != l[i-1] })
		switch {
		case !lacked:
			nodes = append(nodes, n)
		case together && len(nodes) > 0 && nodes[len(nodes)-1].optional:
			before := nodes[len(nodes)-1]
			before.body = append(before.body, n)
		default:
			nodes = append(nodes, &node{optional: true, body: []*node{n}})
		}
	}
	c.nodes = nodes
}

// unroll writes out the loops that always ran twice: no loops, as far as one can see.
func unroll(nodes []*node) []*node {
	var all []*node
	for _, n := range nodes {
		n.body = unroll(n.body)
		if n.loop && len(n.counts) == 1 && n.counts[2] {
			all = append(append(all, clone(n.body)...), clone(n.body)...)
		} else {
			all = append(all, n)
		}
	}
	return all
}
