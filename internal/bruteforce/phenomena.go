package bruteforce

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// A Kind is the kind of a dependency, as a bit.
type Kind uint8

// The dependencies between two transactions (Adya, chapter 3).
const (
	WR Kind = 1 << iota // the second read what the first wrote
	WW                  // the second wrote the next version of a row after the first's
	RW                  // the second wrote the next version of a row after the one that the first read
)

// An Edge is a dependency through a row: To depends on From.
type Edge struct {
	From, To history.TxnID
	Kind     Kind
	Row      history.Row
}

// Graph returns Adya's direct serialization graph, by comparing every access with every other one, with the
// dependencies of the given predicate reads. It is not ok where two installed versions replaced the same one: then the
// rows have no version order.
func Graph(txns []*history.Txn, reads ...PredicateRead) (graph map[Edge]bool, ok bool) {
	ws := writesOf(txns)
	installed, last := installedVersions(txns)
	graph = make(map[Edge]bool)
	replaced := make(map[versionOf]bool)
	for _, w := range ws {
		below, exists := w.below(ws, installed)
		if !exists || !w.installed {
			continue
		}
		if replaced[below] {
			return nil, false
		}
		replaced[below] = true
		add(graph, below.tag.Txn, w.own.Txn, WW, w.access.Row)
	}
	for _, t := range committedOf(txns) {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				if a.Op == history.Read && !a.Absent && !a.Gone {
					readEdges(graph, t.ID, versionOf{a.Row, a.Version}, ws, installed, last)
				}
			}
		}
	}
	for _, e := range looksOf(txns, reads).edges() {
		graph[e] = true
	}
	return graph, true
}

func readEdges(graph map[Edge]bool, reader history.TxnID, saw versionOf, ws []write, installed map[versionOf]bool,
	last map[versionsOf]history.Tag) {
	if !saw.tag.Initial() && (!installed[saw] || last[versionsOf{saw.row, saw.tag.Txn}] != saw.tag) {
		return // aborted or intermediate: nothing depends on what was never installed
	}
	add(graph, saw.tag.Txn, reader, WR, saw.row)
	for _, w := range ws {
		if below, exists := w.below(ws, installed); exists && w.installed && below == saw {
			add(graph, reader, w.own.Txn, RW, saw.row)
		}
	}
}

func add(graph map[Edge]bool, from, to history.TxnID, kind Kind, row history.Row) {
	if from != 0 && from != to {
		graph[Edge{from, to, kind, row}] = true
	}
}

// A write is an access that wrote, undone ones included.
type write struct {
	own       history.Tag
	access    history.Access
	installed bool
}

func writesOf(txns []*history.Txn) []write {
	var ws []write
	for _, t := range txns {
		for _, s := range t.Stmts {
			for _, a := range s.Accesses {
				if a.Op != history.Read {
					ws = append(ws, write{history.Tag{Txn: t.ID, Stmt: s.Num}, a, t.Status == history.Committed &&
						!s.Void})
				}
			}
		}
	}
	return ws
}

// below returns the installed version, or the initial one, that a write directly or by way of undone
// ones replaced; false for a row that did not exist before.
func (w write) below(ws []write, installed map[versionOf]bool) (versionOf, bool) {
	if w.access.Op == history.InsertRow && w.access.Version.Initial() {
		return versionOf{}, false
	}
	v := versionOf{w.access.Row, w.access.Version}
	if v.tag.Initial() || installed[v] {
		return v, true
	}
	for _, other := range ws {
		if other.own == v.tag && other.access.Row == v.row && other.own != w.own {
			return other.below(ws, installed)
		}
	}
	return versionOf{}, false
}

// Cycles says which phenomena show as a cycle of the graph through each transaction once.
type Cycles struct{ G0, G1c, GSingle, GNonadjacent, G2Item bool }

// CyclesOf tries every cycle, and on it every choice among the dependencies between two transactions.
func CyclesOf(graph map[Edge]bool) Cycles {
	kinds := make(map[[2]history.TxnID]Kind)
	var txns []history.TxnID
	for e := range graph {
		kinds[[2]history.TxnID{e.From, e.To}] |= e.Kind
		for _, t := range []history.TxnID{e.From, e.To} {
			if !slices.Contains(txns, t) {
				txns = append(txns, t)
			}
		}
	}
	var found Cycles
	for _, first := range txns {
		extend([]history.TxnID{first}, nil, txns, kinds, &found)
	}
	return found
}

// extend lengthens a path by every transaction that is not on it, and closes it where it can. The
// first transaction of a path is its smallest, so that each cycle comes about once.
func extend(path []history.TxnID, masks []Kind, txns []history.TxnID, kinds map[[2]history.TxnID]Kind, found *Cycles) {
	end := path[len(path)-1]
	if m := kinds[[2]history.TxnID{end, path[0]}]; m != 0 && len(path) > 1 {
		found.choose(nil, append(slices.Clone(masks), m))
	}
	for _, t := range txns {
		if m := kinds[[2]history.TxnID{end, t}]; m != 0 && t > path[0] && !slices.Contains(path, t) {
			extend(append(slices.Clone(path), t), append(slices.Clone(masks), m), txns, kinds, found)
		}
	}
}

func (c *Cycles) choose(chosen, left []Kind) {
	if len(left) == 0 {
		c.count(chosen)
		return
	}
	for _, k := range []Kind{WR, WW, RW} {
		if left[0]&k != 0 {
			c.choose(append(slices.Clone(chosen), k), left[1:])
		}
	}
}

// count names a cycle by the kinds of its dependencies.
func (c *Cycles) count(cycle []Kind) {
	reads, antis, adjacent := 0, 0, false
	for i, k := range cycle {
		switch k {
		case WR:
			reads++
		case RW:
			antis++
			adjacent = adjacent || cycle[(i+1)%len(cycle)] == RW
		}
	}
	switch {
	case antis == 0 && reads == 0:
		c.G0 = true
	case antis == 0:
		c.G1c = true
	case antis == 1:
		c.GSingle = true
	case !adjacent:
		c.GNonadjacent = true
	default:
		c.G2Item = true
	}
}
