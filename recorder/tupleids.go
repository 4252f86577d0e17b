package recorder

import (
	"encoding/binary"

	"github.com/isotap/isotap/history"
)

// The fields of a tuple id that its first byte says to be there: the others are 0.
const (
	placeXID = 1 << iota
	placeCTID
	placeNewXID
	placeNewID
	placeLSN
	placeLeaf
	placeTagged   // which has no value
	placeSameLeaf // nor has this one: Leaf is the last one again
)

// appendTupleIDs appends the tuple ids of n accesses, each field as the difference from the last one of its kind
// that was not 0.
func appendTupleIDs(b []byte, last *history.TupleID, ids []history.TupleID, n int) []byte {
	for i := range n {
		var p history.TupleID
		if i < len(ids) {
			p = ids[i]
		}
		at, mask := len(b), byte(0)
		b = append(b, 0)
		b, mask = appendStep32(b, mask, placeXID, &last.XID, p.XID)
		b, mask = appendStep(b, mask, placeCTID, &last.CTID, p.CTID)
		b, mask = appendStep32(b, mask, placeNewXID, &last.NewXID, p.NewXID)
		b, mask = appendStep(b, mask, placeNewID, &last.NewID, p.NewID)
		b, mask = appendStep(b, mask, placeLSN, &last.LSN, p.LSN)
		if p.Leaf != 0 && p.Leaf == last.Leaf {
			mask |= placeSameLeaf
		} else {
			b, mask = appendStep32(b, mask, placeLeaf, &last.Leaf, p.Leaf)
		}
		if p.Tagged {
			mask |= placeTagged
		}
		b[at] = mask
	}
	return b
}

func appendStep(b []byte, mask, bit byte, last *uint64, n uint64) ([]byte, byte) {
	if n == 0 {
		return b, mask
	}
	b = binary.AppendVarint(b, int64(n-*last))
	*last = n
	return b, mask | bit
}

// appendStep32 is appendStep for numbers of 32 bits, whose differences wrap around there.
func appendStep32(b []byte, mask, bit byte, last *uint32, n uint32) ([]byte, byte) {
	if n == 0 {
		return b, mask
	}
	b = binary.AppendVarint(b, int64(int32(n-*last)))
	*last = n
	return b, mask | bit
}

// tupleIDs decodes what appendTupleIDs wrote for n accesses.
func (c *cursor) tupleIDs(last *history.TupleID, n int) []history.TupleID {
	ids := make([]history.TupleID, n)
	for i := range ids {
		p, mask := &ids[i], c.byte()
		p.XID = c.step32(mask&placeXID, &last.XID)
		p.CTID = c.step(mask&placeCTID, &last.CTID)
		p.NewXID = c.step32(mask&placeNewXID, &last.NewXID)
		p.NewID = c.step(mask&placeNewID, &last.NewID)
		p.LSN = c.step(mask&placeLSN, &last.LSN)
		p.Leaf = c.step32(mask&placeLeaf, &last.Leaf)
		if mask&placeSameLeaf != 0 {
			p.Leaf = last.Leaf
		}
		p.Tagged = mask&placeTagged != 0
	}
	return ids
}

func (c *cursor) step(there byte, last *uint64) uint64 {
	if there == 0 {
		return 0
	}
	*last += uint64(c.varint())
	return *last
}

func (c *cursor) step32(there byte, last *uint32) uint32 {
	if there == 0 {
		return 0
	}
	*last += uint32(c.varint())
	return *last
}
