package analyzer

// ways are the edges into each node by what may follow them: after all edges of a way the same edges may. So what
// looks for paths takes time for each edge and way, and not for each pair of edges that meet, of which a row that all
// transactions read and write makes the square. They hold for one class of findings, and for what the judge goes by
// in it.
type ways struct {
	of []int32 // by edge: its way
	at []int32 // by way: one of its edges
}

func (s *search) waysIn() *ways {
	type key struct {
		node int32
		by   arrival
	}
	w := &ways{of: make([]int32, len(s.edges))}
	known := make(map[key]int32)
	for e := range int32(len(s.edges)) {
		k := key{s.to(e), arrival{anti: s.edges[e].kind == rw}}
		if s.class != Hazard {
			k.by = s.judge.arrivalOf(&s.edges[e])
		}
		way, ok := known[k]
		if !ok {
			way = int32(len(w.at))
			known[k] = way
			w.at = append(w.at, e)
		}
		w.of[e] = way
	}
	return w
}
