package mining

// An occurrence is a recorded statement, and in which iterations of the loops around it it ran.
type occurrence struct {
	call *call
	path []int
}

// A matching assigns a trace's statements to a program's.
type matching struct {
	calls []call
	found map[*node]occurrences
	steps int
}

// occurrences of one statement in one trace, in order.
type occurrences []occurrence

// maxSteps bounds the search for a way through a program.
const maxSteps = 200_000

// match finds a way through the nodes that the calls take; nil: there is none.
func match(nodes []*node, calls []call) map[*node]occurrences {
	m := &matching{calls: calls, found: map[*node]occurrences{}}
	if !m.nodes(nodes, 0, nil, func(at int) bool { return at == len(calls) }) {
		return nil
	}
	return m.found
}

// nodes matches nodes from call at on, and then what follows.
func (m *matching) nodes(nodes []*node, at int, path []int, follows func(at int) bool) bool {
	if m.steps++; m.steps > maxSteps {
		return false
	}
	if len(nodes) == 0 {
		return follows(at)
	}
	n, rest := nodes[0], func(at int) bool { return m.nodes(nodes[1:], at, path, follows) }
	switch {
	case n.loop:
		return m.loop(n, at, path, 0, rest)
	case n.optional:
		return m.nodes(n.body, at, path, rest) || rest(at)
	case at >= len(m.calls) || m.calls[at].shape != n.shape:
		return false
	}
	before := m.found[n]
	m.found[n] = append(before[:len(before):len(before)], occurrence{&m.calls[at], path})
	if rest(at + 1) {
		return true
	}
	m.found[n] = before
	return false
}

// loop runs the body as often as it can.
func (m *matching) loop(n *node, at int, path []int, iteration int, rest func(at int) bool) bool {
	inner := append(path[:len(path):len(path)], iteration)
	again := func(end int) bool { return end > at && m.loop(n, end, path, iteration+1, rest) }
	return m.nodes(n.body, at, inner, again) || rest(at)
}
