package analyzer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// none is the number of what there is not.
const none = -1

// maxIndex bounds whatever is numbered by an int32.
const maxIndex = math.MaxInt32

// rowNames numbers rows. It is a hash table without pointers: there may be tens of millions of rows,
// and the garbage collector should not look at each of them.
type rowNames struct {
	tables    []string
	lastTable int32
	seed      maphash.Seed
	salt      uint64
	slots     []rowSlot // a power of two of them
	rows      []rowName
	wanted    []wantedRow // scratch
	text      []byte      // the ids that are not short, one after the other
}

type rowSlot struct {
	hash uint32
	row  int32 // from 1; 0: free
}

// A rowName is a row's table and id. An id of up to shortID bytes is in head and tail themselves; of a longer one they
// say where it is: text[head:head+tail].
type rowName struct {
	head  uint64
	tail  uint32
	table int32 // and, in its lowest byte, the id's length; longID for all that are not short
}

const (
	shortID = 12
	longID  = 255
	// maxTables is how many tables have room beside the length.
	maxTables = 1 << 23
)

func newRowNames() rowNames {
	seed := maphash.MakeSeed()
	return rowNames{lastTable: none, seed: seed, salt: maphash.String(seed, "salt"), slots: make([]rowSlot, 1024)}
}

// packed returns a short id as it is in head and tail.
func packed(id string) (head uint64, tail uint32) {
	if len(id) >= 8 {
		for i := len(id) - 1; i >= 8; i-- {
			tail = tail<<8 | uint32(id[i])
		}
		return uint64(id[0]) | uint64(id[1])<<8 | uint64(id[2])<<16 | uint64(id[3])<<24 |
			uint64(id[4])<<32 | uint64(id[5])<<40 | uint64(id[6])<<48 | uint64(id[7])<<56, tail
	}
	for i := len(id) - 1; i >= 0; i-- {
		head = head<<8 | uint64(id[i])
	}
	return head, 0
}

// A wantedRow is a row on its way to its number.
type wantedRow struct {
	id   string
	name rowName
	hash uint32
	slot rowSlot // where its hash leads to at first
}

// want adds a row to those that are looked for together.
func (n *rowNames) want(r history.Row) error {
	t := n.table(r.Table)
	if t >= maxTables || len(r.ID) > math.MaxUint32 {
		return fmt.Errorf("row %.20s of table %d: more than %d tables, or an id of %d bytes", r.ID, t, maxTables,
			len(r.ID))
	}
	n.wanted = slices.Grow(n.wanted, 1)[:len(n.wanted)+1]
	w := &n.wanted[len(n.wanted)-1]
	w.id = r.ID
	if len(r.ID) <= shortID {
		w.name.head, w.name.tail = packed(r.ID)
		w.name.table = t<<8 | int32(len(r.ID))
		w.hash = mixed(w.name.head^n.salt, uint64(w.name.tail)<<32^uint64(w.name.table))
	} else {
		w.name = rowName{table: t<<8 | longID}
		w.hash = mixed(maphash.String(n.seed, r.ID), uint64(t))
	}
	return nil
}

// fetch reads the slots of all wanted rows, one right after the other: where they are in no cache, the processor waits
// for them together.
func (n *rowNames) fetch() {
	mask := uint32(len(n.slots) - 1)
	for i := range n.wanted {
		w := &n.wanted[i]
		w.slot = n.slots[w.hash&mask]
	}
	for i := range n.wanted {
		if w := &n.wanted[i]; w.slot.row > 0 && w.slot.hash == w.hash && !n.same(&n.rows[w.slot.row-1], w) {
			w.slot.row = 0
		}
	}
}

// number returns a row's number, a new one for a new row.
func (n *rowNames) number(r history.Row) (int32, error) {
	n.wanted = n.wanted[:0]
	if err := n.want(r); err != nil {
		return 0, err
	}
	return n.numberOf(&n.wanted[0])
}

// numberOf is number for a wanted row.
func (n *rowNames) numberOf(w *wantedRow) (int32, error) {
	if w.slot.row > 0 && w.slot.hash == w.hash {
		return w.slot.row - 1, nil
	}
	mask := uint32(len(n.slots) - 1)
	i := w.hash & mask
	for ; n.slots[i].row != 0; i = (i + 1) & mask {
		if s := n.slots[i]; s.hash == w.hash && n.same(&n.rows[s.row-1], w) {
			return s.row - 1, nil
		}
	}
	if len(n.rows) == maxIndex {
		return 0, fmt.Errorf("more than %d rows", maxIndex)
	}
	if len(w.id) > shortID {
		w.name.head, w.name.tail = uint64(len(n.text)), uint32(len(w.id))
		n.text = append(grown(n.text, len(w.id)), w.id...)
	}
	n.rows = append(grown(n.rows, 1), w.name)
	n.slots[i] = rowSlot{w.hash, int32(len(n.rows))}
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

// same reports whether a known row is the wanted one.
func (n *rowNames) same(known *rowName, w *wantedRow) bool {
	if known.table != w.name.table {
		return false
	}
	if len(w.id) > shortID {
		return string(n.text[known.head:known.head+uint64(known.tail)]) == w.id
	}
	return known.head == w.name.head && known.tail == w.name.tail
}

// mixed makes a hash of two numbers, by the halves of their product.
func mixed(a, b uint64) uint32 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return uint32(high ^ low)
}

// id appends a row's id.
func (n *rowNames) id(to []byte, r *rowName) []byte {
	size := r.table & longID
	if size == longID {
		return append(to, n.text[r.head:r.head+uint64(r.tail)]...)
	}
	to = binary.LittleEndian.AppendUint64(to, r.head)
	to = binary.LittleEndian.AppendUint32(to, r.tail)
	return to[:len(to)-shortID+int(size)]
}

// tableOf returns the number of a row's table.
func (n *rowNames) tableOf(row int32) int32 { return n.rows[row].table >> 8 }

// row is the inverse of number.
func (n *rowNames) row(i int32) history.Row {
	return history.Row{Table: n.tables[n.tableOf(i)], ID: string(n.id(nil, &n.rows[i]))}
}

// compare orders two rows by the names of their tables and their ids.
func (n *rowNames) compare(a, b int32) int {
	if a == b {
		return 0
	}
	if x, y := n.tableOf(a), n.tableOf(b); x != y {
		return compareTables(n.tables[x], n.tables[y])
	}
	var x, y [shortID]byte
	return bytes.Compare(n.id(x[:0], &n.rows[a]), n.id(y[:0], &n.rows[b]))
}

// compareTables orders the names of tables: the lives of one stand together, wherever they are behind other names.
func compareTables(a, b string) int {
	x, lifeX, _ := strings.Cut(a, "@")
	y, lifeY, _ := strings.Cut(b, "@")
	return cmp.Or(strings.Compare(x, y), strings.Compare(lifeX, lifeY))
}

func rowText(r history.Row) string { return fmt.Sprintf("%s row %s", r.Table, r.ID) }

// grown makes room for n more elements. It grows large slices faster than append does, which would
// copy each element four times on the way to tens of millions.
func grown[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s
	}
	return slices.Grow(s, max(n, len(s)/4))
}
