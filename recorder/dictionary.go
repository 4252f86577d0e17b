package recorder

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/isotap/isotap/history"
)

// The bounds of a run's dictionary: past them, and for long strings, text stands in the records.
const (
	maxDictEntries = 1 << 16
	maxDictBytes   = 16 << 20
	maxDictString  = 16 << 10
)

// The words that begin a string which may be in the dictionary.
const (
	refEmpty  = 0
	refInline = 1 // its length and bytes follow
	refFirst  = 2 // the word less this is the string's number in the dictionary
)

// A dictionary numbers the strings of a run that repeat: shapes, tables, reasons, SQLSTATEs.
type dictionary struct {
	numbers map[string]uint32
	bytes   int
	// fresh are the strings numbered since the caller last wrote them out, in order of their
	// numbers; the last one has the highest number given so far.
	fresh []string
}

// append appends a reference to s.
func (d *dictionary) append(b []byte, s string) []byte {
	if s == "" {
		return append(b, refEmpty)
	}
	if n, ok := d.number(s); ok {
		return binary.AppendUvarint(b, refFirst+uint64(n))
	}
	return appendText(append(b, refInline), s)
}

func (d *dictionary) number(s string) (uint32, bool) {
	if n, ok := d.numbers[s]; ok {
		return n, true
	}
	if len(s) > maxDictString || len(d.numbers) >= maxDictEntries || d.bytes+len(s) > maxDictBytes {
		return 0, false
	}
	if d.numbers == nil {
		d.numbers = make(map[string]uint32)
	}
	n := uint32(len(d.numbers))
	d.numbers[s] = n
	d.bytes += len(s)
	d.fresh = append(d.fresh, s)
	return n, true
}

// A priorSet remembers, within a fixed amount of memory, which lists of tags the recording holds
// already. It keeps 64-bit fingerprints of (row, version, list), seeded at random, so a list is left
// out only where the very same one was written with the same version of the row; a list that
// contradicts an earlier one is always written. What it forgot is written again.
type priorSet struct {
	seed  maphash.Seed
	slots []uint64 // buckets of priorWays, the youngest fingerprint first
	text  []byte
}

const (
	priorSlots = 1 << 20 // 8 MiB; a power of two
	priorWays  = 4
)

func newPriorSet() *priorSet {
	return &priorSet{seed: maphash.MakeSeed(), slots: make([]uint64, priorSlots)}
}

// add remembers an access's list and reports whether it was known.
func (s *priorSet) add(a *history.Access) bool {
	b := append(s.text[:0], a.Row.Table...)
	b = append(append(b, 0), a.Row.ID...)
	b = appendFixedTag(append(b, 0), a.Version)
	for _, t := range a.Prior {
		b = appendFixedTag(b, t)
	}
	s.text = b
	fingerprint := maphash.Bytes(s.seed, b)
	at := int(fingerprint%uint64(len(s.slots)/priorWays)) * priorWays
	bucket := s.slots[at : at+priorWays]
	for _, known := range bucket {
		if known == fingerprint {
			return true
		}
	}
	copy(bucket[1:], bucket)
	bucket[0] = fingerprint
	return false
}

func appendFixedTag(b []byte, t history.Tag) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Txn))
	return binary.LittleEndian.AppendUint32(b, t.Stmt)
}
