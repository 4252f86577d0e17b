package analyzer

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// rowNames numbers rows. It is a hash table without pointers: there may be tens of millions of rows,
// and the garbage collector should not look at each of them.
type rowNames struct {
	tables    []string
	lastTable int32
	seed      maphash.Seed
	slots     []rowSlot // a power of two of them
	rows      []rowName
	text      []byte // all ids, one after the other
}

type rowSlot struct {
	hash uint32
	row  int32 // from 1; 0: free
}

type rowName struct {
	at    uint64 // its id is text[at:at+len]
	len   uint32
	table int32
}

func newRowNames() rowNames {
	return rowNames{lastTable: none, seed: maphash.MakeSeed(), slots: make([]rowSlot, 1024)}
}

// number gives a row's number, a new one for a new row.
func (n *rowNames) number(r history.Row) (int32, error) {
	t := n.table(r.Table)
	hash := uint32(maphash.String(n.seed, r.ID)>>32) ^ uint32(t)*0x9e3779b9
	mask := uint32(len(n.slots) - 1)
	i := hash & mask
	for ; n.slots[i].row != 0; i = (i + 1) & mask {
		if s := n.slots[i]; s.hash == hash {
			if known := &n.rows[s.row-1]; known.table == t && string(n.id(known)) == r.ID {
				return s.row - 1, nil
			}
		}
	}
	if len(n.rows) == maxIndex {
		return 0, fmt.Errorf("more than %d rows", maxIndex)
	}
	n.rows = append(grown(n.rows, 1), rowName{uint64(len(n.text)), uint32(len(r.ID)), t})
	n.text = append(grown(n.text, len(r.ID)), r.ID...)
	n.slots[i] = rowSlot{hash, int32(len(n.rows))}
	if len(n.rows) > len(n.slots)/4*3 {
		n.enlarge()
	}
	return int32(len(n.rows) - 1), nil
}

func (n *rowNames) enlarge() {
	old := n.slots
	n.slots = make([]rowSlot, 2*len(old))
	mask := uint32(len(n.slots) - 1)
	for _, s := range old {
		if s.row == 0 {
			continue
		}
		i := s.hash & mask
		for n.slots[i].row != 0 {
			i = (i + 1) & mask
		}
		n.slots[i] = s
	}
}

func (n *rowNames) table(name string) int32 {
	if n.lastTable >= 0 && n.tables[n.lastTable] == name {
		return n.lastTable
	}
	n.lastTable = int32(slices.Index(n.tables, name))
	if n.lastTable < 0 {
		n.lastTable = int32(len(n.tables))
		n.tables = append(n.tables, strings.Clone(name))
	}
	return n.lastTable
}

func (n *rowNames) id(r *rowName) []byte { return n.text[r.at : r.at+uint64(r.len)] }

// row is the inverse of number.
func (n *rowNames) row(i int32) history.Row {
	return history.Row{Table: n.tables[n.rows[i].table], ID: string(n.id(&n.rows[i]))}
}

// compare orders two rows by the names of their tables and their ids.
func (n *rowNames) compare(a, b int32) int {
	x, y := &n.rows[a], &n.rows[b]
	switch {
	case a == b:
		return 0
	case x.table != y.table:
		return strings.Compare(n.tables[x.table], n.tables[y.table])
	}
	return bytes.Compare(n.id(x), n.id(y))
}
