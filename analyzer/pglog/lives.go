package pglog

import (
	"cmp"
	"slices"
)

// A tableRow names a row by the table that holds it, whatever that is called.
type tableRow struct {
	in   inDatabase
	leaf uint32
	id   string
	// first is the row's first version, where it has no key; none.
	first int32
}

func (n *node) tableRow() tableRow {
	k := tableRow{n.in, n.leaf, n.row.ID, none}
	if k.id == "" {
		k.first = n.first
	}
	return k
}

// A life is of those versions of a chain that bear one row's name: from the first write to where the last of them was
// there still, as writes that replaced or deleted it tell.
type life struct {
	first    int32 // the chain's first version
	from, to uint64
}

// leaveOutTaken takes the names away that versions have only from those around them, where the writes of two chains
// of one name come between each other: no two rows have one key at once, so the key of one changed where nobody saw it,
// and from there on its versions are of a row of another name. Where a chain ends before another begins, a row was
// deleted and made again.
func (r *Resolver) leaveOutTaken() {
	lives := make(map[tableRow][]life)
	r.eachChain(func(chain []int32) {
		for _, at := range chain {
			r.live(lives, chain[0], at)
		}
	})
	taken := make(map[int32][]string) // keys, by the chain's first version
	for k, of := range lives {
		for _, l := range overlapping(of) {
			taken[l.first] = append(taken[l.first], k.id)
		}
	}
	r.eachChain(func(chain []int32) {
		rows := taken[chain[0]]
		if len(rows) == 0 {
			return
		}
		for _, at := range chain {
			n := &r.nodes[at]
			n.torn = n.torn || !n.seen && slices.Contains(rows, n.row.ID)
		}
	})
}

// live adds a version of a chain to its row's lives.
func (r *Resolver) live(lives map[tableRow][]life, first, at int32) {
	n := &r.nodes[at]
	if !n.named() || n.logged != none && !r.logged[n.logged].committed {
		return
	}
	k := n.tableRow()
	written := uint64(0)
	if n.logged != none {
		written = r.logged[n.logged].writes[n.write].TupleID.LSN
	}
	of := lives[k]
	if last := len(of) - 1; last < 0 || of[last].first != first {
		of = append(of, life{first: first, from: written})
	}
	l := &of[len(of)-1]
	l.to = max(l.to, written, n.until)
	lives[k] = of
}

// overlapping returns those lives of a row that others come into.
func overlapping(lives []life) (found []life) {
	slices.SortFunc(lives, func(a, b life) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.first, b.first))
	})
	for from := 0; from < len(lives); {
		to, end := from+1, lives[from].to
		for to < len(lives) && lives[to].from < end {
			end = max(end, lives[to].to)
			to++
		}
		if to-from > 1 {
			found = append(found, lives[from:to]...)
		}
		from = to
	}
	return found
}
