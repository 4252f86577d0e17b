package pglog

import (
	"slices"

	"github.com/isotap/isotap/history"
)

// writerAt returns the (sub)transaction that left a version of which a statement tells the place alone: behind a
// savepoint, a write by the parent of partitions returns no id. It had just written the place when the statement asked
// where the log ended, and nobody else could until its transaction had ended. 0: it is not known.
func (r *Resolver) writerAt(x *run, database int32, t *history.Txn, p *history.TupleID) uint32 {
	if p.NewID == 0 || p.LSN == 0 || p.Leaf == 0 || !x.covers(t) ||
		r.files[tableKey{x.server.number, database, p.Leaf}] == 0 {
		return 0
	}
	at := r.byPlace[versionKey{server: x.server.number, database: database, leaf: p.Leaf, ctid: p.NewID}]
	later, _ := slices.BinarySearchFunc(at, p.LSN, func(n int32, lsn uint64) int {
		if r.writeOf(n).TupleID.LSN <= lsn {
			return -1
		}
		return 1
	})
	if later == 0 {
		return 0
	}
	return r.nodes[at[later-1]].xid
}

// indexPlaces makes byPlace.
func (r *Resolver) indexPlaces() {
	r.byPlace = make(map[versionKey][]int32)
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.logged == none {
			continue
		}
		k := versionKey{server: n.in.server, database: n.in.database, leaf: n.leaf, ctid: n.ctid}
		r.byPlace[k] = append(r.byPlace[k], int32(i))
	}
}

// writeOf returns the write that left a version.
func (r *Resolver) writeOf(n int32) *history.LoggedWrite {
	of := &r.nodes[n]
	return &r.logged[of.logged].writes[of.write]
}

// identify gives the writes of a recorded transaction that tell the place of what they left the id that wrote it, and
// those of rows without a key what they replaced.
func (r *Resolver) identify(t *history.Txn) {
	x := r.runs[t.ID.Run()]
	if x == nil {
		return
	}
	database, ok := r.names[r.sessions[sessionKey{t.ID.Run(), t.Session}]]
	if !ok {
		return
	}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		for j := range min(len(s.Accesses), len(s.TupleIDs)) {
			if p := &s.TupleIDs[j]; p.NewXID == 0 && p.NewID != 0 {
				p.NewXID = r.writerAt(x, database, t, p)
			}
		}
		if r.tellReplaced(x, database, s) && leavesNothingOpen(s, r.whole[t.ID]) {
			s.Observation, s.Reason = history.Exact, history.Reason{}
		}
	}
}
