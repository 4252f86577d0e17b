package recorder

import (
	"hash/maphash"
	"math/bits"

	"github.com/isotap/isotap/history"
)

// An interner gives equal strings for equal row ids without allocating where it can: they repeat. It
// forgets by overwriting, so its memory is bounded. Ids that are stored as numbers are found by these, which
// touches no text.
type interner struct {
	seed     maphash.Seed
	slots    []string
	numbered []internedID
	shift    int // of a hash, to give a place in numbered
}

// A numberedID is an id of a form other than raw: its number, with the tag before it in formTag.
type numberedID struct {
	form idForm
	tag  history.Tag
	n    uint64
}

type internedID struct {
	numberedID
	text string // empty: it is to be put together yet
}

// internedIDs is how many row ids a reader remembers, a few megabytes. It is a power of two.
const internedIDs = 1 << 17

func newInterner(slots int) *interner {
	return &interner{seed: maphash.MakeSeed(), slots: make([]string, slots), numbered: make([]internedID, slots),
		shift: 64 - bits.TrailingZeros(uint(slots))}
}

func (t *interner) string(b []byte) string {
	slot := &t.slots[maphash.Bytes(t.seed, b)%uint64(len(t.slots))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// number returns the place of an id, in which the caller puts its text if there is none.
func (t *interner) number(id numberedID) *internedID {
	// Fibonacci hashing: numbers that follow each other get places of their own.
	const golden = 0x9e3779b97f4a7c15
	h := (id.n ^ uint64(id.tag.Txn)*golden ^ uint64(id.tag.Stmt)<<40 ^ uint64(id.form)<<56) * golden
	slot := &t.numbered[h>>t.shift]
	if slot.numberedID != id {
		*slot = internedID{numberedID: id}
	}
	return slot
}
