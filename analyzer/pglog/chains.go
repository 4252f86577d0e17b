package pglog

import (
	"cmp"
	"slices"

	"github.com/isotap/isotap/history"
)

// A versionKey names a version: its table by the oid, its place, and the (sub)transaction that wrote it.
type versionKey struct {
	server, database int32
	leaf, xid        uint32
	ctid             uint64
}

// A rootKey names a place of a table at the time when the reading of the log began.
type rootKey struct {
	run      history.Run
	database int32
	leaf     uint32
	ctid     uint64
}

// A node is a version of a row.
type node struct {
	logged int32  // the transaction that wrote it; none: it was there before the log was read
	write  int32  // and which of its writes
	xid    uint32 // 0: of one that was there before, not known
	ctid   uint64
	leaf   uint32
	in     inDatabase
	until  uint64 // the last position in the log at which it was replaced or deleted, for good or not; 0: it was not
	table  string // as the log has it
	before int32  // the version that it replaced; none
	after  int32  // the one that replaced it for good; none
	// row is what recorded accesses call its row, where hasRow says that one was seen of it. One without a key has no
	// ID, and first, the number of the first of its versions, tells it from others.
	row    history.Row
	hasRow bool
	first  int32
	// seen reports whether a recorded access names the version's row; torn, whether the name is in doubt.
	seen, torn bool
	// left reports whether a recorded write left the version. deletedBy is the last recorded transaction that was seen
	// to delete it; 0: none.
	left      bool
	deletedBy history.TxnID
}

// A deletion is a version with a recorded transaction that was seen to delete it.
type deletion struct {
	node int32
	by   history.TxnID
}

// A filePlace is a place in a file.
type filePlace struct {
	server, database int32
	storage          uint32
	ctid             uint64
}

// Link puts the versions of the log in chains, once all of the log was added.
func (r *Resolver) Link() {
	type write struct {
		lsn       uint64
		logged, n int32
	}
	var all []write
	for i := range r.logged {
		l := &r.logged[i]
		l.nodes = slices.Repeat([]int32{none}, len(l.writes))
		for n := range l.writes {
			all = append(all, write{l.writes[n].TupleID.LSN, int32(i), int32(n)})
		}
	}
	slices.SortStableFunc(all, func(a, b write) int {
		x, y := &r.logged[a.logged], &r.logged[b.logged]
		return cmp.Or(cmp.Compare(x.run.server.number, y.run.server.number), cmp.Compare(a.lsn, b.lsn))
	})
	at := make(map[filePlace]int32)
	var last *logged
	for _, w := range all {
		l := &r.logged[w.logged]
		if last != nil && (last.run.server != l.run.server || last.run != l.run || last.stretch != l.stretch) {
			clear(at) // behind a gap a place may have become another version's
		}
		last = l
		r.link(at, w.logged, w.n)
	}
}

// link adds a write to the chains. At has the version that was left last at each place.
func (r *Resolver) link(at map[filePlace]int32, logged, n int32) {
	l := &r.logged[logged]
	w := &l.writes[n]
	p := &w.TupleID
	place := filePlace{l.run.server.number, l.database, w.Storage, p.CTID}
	table := tableKey{l.run.server.number, l.database, p.Leaf}
	if file, ok := r.files[table]; ok && file != w.Storage || p.Leaf == 0 {
		r.files[table] = 0
	} else {
		r.files[table] = w.Storage
	}
	old := int32(none)
	if w.Op != history.InsertRow {
		var ok bool
		if old, ok = at[place]; !ok {
			old = r.root(l, w)
			at[place] = old
		}
	}
	if old != none {
		r.nodes[old].until = p.LSN
	}
	if w.Op == history.DeleteRow {
		l.nodes[n] = old
		return
	}
	fresh := int32(len(r.nodes))
	r.nodes = append(r.nodes, node{logged: logged, write: n, xid: p.NewXID, ctid: p.NewID, leaf: p.Leaf, table: w.Row.Table,
		in: inDatabase{l.run.server.number, l.database}, before: old, after: none})
	if old != none && l.committed {
		r.nodes[old].after = fresh
	}
	l.nodes[n] = fresh
	place.ctid = p.NewID
	at[place] = fresh
	k := versionKey{l.run.server.number, l.database, p.Leaf, p.NewXID, p.NewID}
	if other, ok := r.byID[k]; ok {
		// A transaction that emptied the table used the place twice.
		r.nodes[other].torn, r.nodes[fresh].torn = true, true
	}
	r.byID[k] = fresh
}

// root adds the version that was at a place when the reading of the log began.
func (r *Resolver) root(l *logged, w *history.LoggedWrite) int32 {
	n := int32(len(r.nodes))
	r.nodes = append(r.nodes, node{logged: none, ctid: w.TupleID.CTID, leaf: w.TupleID.Leaf, table: w.Row.Table,
		in: inDatabase{l.run.server.number, l.database}, before: none, after: none})
	// Only of the first stretch it is certain that what a client saw at the place since the run began is this.
	if l.stretch == l.run.firstStretch() {
		k := rootKey{l.run.info.Run, l.database, w.TupleID.Leaf, w.TupleID.CTID}
		if other, ok := r.roots[k]; ok { // in another file, or behind a part of the log that another run has
			r.nodes[other].torn, r.nodes[n].torn = true, true
		}
		r.roots[k] = n
	}
	return n
}

// firstStretch returns the number of the first stretch of the run's log.
func (x *run) firstStretch() int {
	return slices.IndexFunc(x.info.Log, func(s history.LogStretch) bool { return !s.Empty() })
}

// firstXID is the first xid of a transaction: those below stand for what was there from the beginning.
const firstXID = 3

// preceded reports whether a transaction had its id when the run began. Any other whose end the log does not have (it
// was prepared, say) may have left its version where one was that has gone.
func (x *run) preceded(xid uint32) bool {
	first := uint32(x.info.Recent.To)
	if x.info.Recent.To == 0 {
		first = uint32(x.info.Horizon)
	}
	return xid < firstXID || int32(xid-first) < 0
}

// find returns the node of a version that an access of a run shows at a time; none.
func (r *Resolver) find(x *run, database int32, leaf, xid uint32, ctid uint64, at int64) int32 {
	if n, ok := r.version(x, database, leaf, xid, ctid); ok {
		return n
	}
	if at < x.info.Log[max(x.firstStretch(), 0)].From || !x.preceded(xid) {
		r.misplace(x, database, leaf, ctid)
		return none
	}
	n, ok := r.roots[rootKey{x.info.Run, database, leaf, ctid}]
	if !ok {
		return none
	}
	root := &r.nodes[n]
	if root.xid == 0 {
		root.xid = xid
	}
	if root.xid != xid {
		root.torn = true
		return none
	}
	return n
}

// see takes in that an access calls a version's row so.
func (r *Resolver) see(n *node, row history.Row) {
	if n.seen && n.row.ID != row.ID {
		n.torn = true
	}
	n.seen, n.hasRow, n.row = true, true, row
}

// nameRows names the rows of versions that nobody saw after the versions around them.
func (r *Resolver) nameRows() { r.eachChain(r.nameChain) }

// eachChain calls f with the versions of each row, in order. The slice is valid for the call.
func (r *Resolver) eachChain(f func(chain []int32)) {
	var chain []int32
	for i := range r.nodes {
		if n := &r.nodes[i]; n.before != none && r.nodes[n.before].after == int32(i) {
			continue // not the first
		}
		chain = chain[:0]
		for at := int32(i); at != none; at = r.nodes[at].after {
			chain = append(chain, at)
		}
		f(chain)
	}
}

// nameChain names the versions of one row. Between two that are called differently the key changed, nobody knows where.
func (r *Resolver) nameChain(chain []int32) {
	known := int32(none) // the last that is seen
	for i, at := range chain {
		n := &r.nodes[at]
		n.first = chain[0]
		if !n.seen || n.torn {
			continue
		}
		from := 0
		if known != none {
			from = int(known) + 1
		}
		if known == none || r.nodes[chain[known]].row.ID == n.row.ID {
			for _, between := range chain[from:i] {
				r.nodes[between].row, r.nodes[between].hasRow = n.row, true
			}
		}
		known = int32(i)
	}
	if known != none {
		for _, behind := range chain[known+1:] {
			r.nodes[behind].row, r.nodes[behind].hasRow = r.nodes[chain[known]].row, true
		}
	}
}
