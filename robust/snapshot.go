package robust

import "slices"

// This file says which rw-antidependencies are vulnerable under SNAPSHOT ISOLATION: can be between concurrent
// transactions (Fekete, Liarokapis, O'Neil, O'Neil and Shasha, TODS 2005). What a transaction wrote that committed
// after the snapshot of another, that one cannot write any more (the first committer wins). So an antidependency is not
// vulnerable where both transactions certainly write a tuple in common.

// vulnerable reports whether q_i can read what a concurrent transaction overwrites with q_j. The transaction of q_j has
// a snapshot, or commits first; that of q_i runs at the level given.
//
// Locks count for nothing here: a transaction that only locked a tuple and has committed does not keep another from
// writing it, whose snapshot is older. They count where q_j's transaction commits first, see [rules.leaves].
func (r *rules) vulnerable(g *SummaryGraph, e Edge, at Level) bool {
	from, to := g.Ends(e)
	// A locked read is a read here, and no table needs to know of it.
	switch r.cDep[from.Type][to.rule()] {
	case never:
		return false
	case bySets:
		if !anyMatches(r.cSets, from, to, g.Setting) {
			return false
		}
	}
	return !g.Setting.ForeignKeys || !from.Type.ByKey() || !r.collide(g, e, at)
}

// collide reports whether where both statements use the same tuple, both transactions write another one in common. At
// READ COMMITTED the one that reads must have written before it reads.
func (r *rules) collide(g *SummaryGraph, e Edge, at Level) bool {
	from, to := g.Nodes[e.From], g.Nodes[e.To]
	for i := range from.Statements {
		if at == ReadCommitted && i > int(e.FromAt) || !from.Statements[i].writesOne() {
			continue
		}
		for j := range to.Statements {
			if to.Statements[j].writesOne() && sameTuple(from, int(e.FromAt), i, to, int(e.ToAt), j) {
				return true
			}
		}
	}
	return false
}

// writesOne reports whether the statement writes exactly one tuple.
func (q *Statement) writesOne() bool {
	return q.Type == KeyUpd || q.Type == KeyDel || q.Type == Ins
}

// sameTuple reports whether whenever the statements at i in one program and at j in the other use the same tuple, those
// at x and y do: both are what a foreign key maps that tuple to, or their keys are made of its key in the same way.
func sameTuple(a *LTP, i, x int, b *LTP, j, y int) bool {
	for _, k := range a.Statements[i].Parents {
		for _, l := range b.Statements[j].Parents {
			if k.ForeignKey == l.ForeignKey && k.At == x && l.At == y {
				return true
			}
		}
	}
	p, q := keyFrom(a.Statements[i], a.Statements[x]), keyFrom(b.Statements[j], b.Statements[y])
	return p != nil && slices.Equal(p, q) && a.Statements[x].Relation == b.Statements[y].Relation
}

// keyFrom returns which part of one statement's key each part of another's is; nil when it is not made of it.
func keyFrom(of, key Occurrence) []int {
	if len(of.Key) == 0 || len(key.Key) == 0 || !within(of.in, key.in) || !within(key.in, of.in) {
		return nil
	}
	parts := make([]int, len(key.Key))
	for k, expression := range key.Key {
		if parts[k] = slices.Index(of.Key, expression); parts[k] < 0 {
			return nil
		}
	}
	return parts
}

// leaves reports whether q_i can read with a snapshot what a transaction overwrites with q_j that commits first. A lock
// on what it reads keeps that from happening: it waits for others' writes, and is refused what they wrote after the
// snapshot.
func (r *rules) leaves(g *SummaryGraph, e Edge) bool {
	from, _ := g.Ends(e)
	return r.readers[from.rule()] && r.vulnerable(g, e, SnapshotIsolation)
}
