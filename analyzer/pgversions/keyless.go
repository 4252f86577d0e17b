package pgversions

import (
	"fmt"

	"github.com/isotap/isotap/history"
)

// A versionKey names a version by itself, within its server.
type versionKey struct {
	server int32
	table  int32
	leaf   uint32
	xid    uint32
	ctid   uint64
}

// keyless names the rows of tables without a primary key.
type keyless struct {
	tables map[string]int32
	steps  []step
	left   map[versionKey]int32 // the step that left a version
}

// A step is a write: it replaced one version and left another.
type step struct {
	write     int32
	old, left versionKey // without the server before settle; xid 0: not known
	first     versionKey // the first version of its row that is known
	state     state
}

type state uint8

const (
	unnamed state = iota
	naming
	named
)

// leaf returns the oid that tells a table from others of its name; 0 for the first of that name, so that the ids of its
// rows are as those of older recordings.
func (t *table) leaf(p *history.TupleID) uint32 {
	if t.first {
		return 0
	}
	return p.Leaf
}

func (k *keyless) collect(write int32, of table, p *history.TupleID) {
	if k.tables == nil {
		k.tables = make(map[string]int32)
	}
	t, ok := k.tables[of.name]
	if !ok {
		t = int32(len(k.tables))
		k.tables[of.name] = t
	}
	leaf := of.leaf(p)
	k.steps = append(k.steps, step{write: write,
		old:  versionKey{table: t, leaf: leaf, xid: p.XID, ctid: p.CTID},
		left: versionKey{table: t, leaf: leaf, xid: p.NewXID, ctid: p.NewID}})
}

// settle finds the first version of every row.
func (k *keyless) settle(r *Resolver) {
	k.left = make(map[versionKey]int32)
	for i := range k.steps {
		s := &k.steps[i]
		s.old.server = r.serverOf(&r.writes[s.write])
		s.left.server = s.old.server
		if s.left.xid != 0 {
			k.left[s.left] = int32(i)
		}
	}
	for i := range k.steps {
		k.name(int32(i))
	}
}

// name follows a step's row down to its first version.
func (k *keyless) name(i int32) {
	var path []int32
	var first versionKey
	for {
		s := &k.steps[i]
		if s.state == named {
			first = s.first
			break
		}
		if s.state == naming { // a circle, which no server makes
			first = s.left
			break
		}
		s.state = naming
		path = append(path, i)
		if s.old.xid == 0 {
			first = s.left
			break
		}
		below, ok := k.left[s.old]
		if !ok {
			first = s.old
			break
		}
		i = below
	}
	for _, i := range path {
		k.steps[i].first, k.steps[i].state = first, named
	}
}

// version finds the name of the row that a version is of, and the write that left it (none).
func (k *keyless) version(p versionKey) (id string, write int32) {
	if i, ok := k.left[p]; ok {
		return k.steps[i].first.String(), k.steps[i].write
	}
	return p.String(), none
}

func (p versionKey) String() string {
	if p.leaf != 0 {
		return fmt.Sprintf("%d (%d,%d) %d", p.leaf, p.ctid>>16, p.ctid&0xffff, p.xid)
	}
	return fmt.Sprintf("(%d,%d) %d", p.ctid>>16, p.ctid&0xffff, p.xid)
}
