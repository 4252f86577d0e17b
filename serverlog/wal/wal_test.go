package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/isotap/isotap/internal/mutate"
)

// A logWriter makes a log as a server does: pages with headers, records at multiples of eight with checksums.
type logWriter struct {
	magic   uint16
	segment uint64
	start   uint64
	b       []byte
}

func (w *logWriter) pos() uint64 { return w.start + uint64(len(w.b)) }

func (w *logWriter) page(flags uint16, rest int) {
	size := shortHeader
	if w.pos()%w.segment == 0 {
		flags |= pageLong
		size = longHeader
	}
	h := make([]byte, size)
	le.PutUint16(h, w.magic)
	le.PutUint16(h[2:], flags)
	le.PutUint64(h[8:], w.pos())
	le.PutUint32(h[16:], uint32(rest))
	w.b = append(w.b, h...)
}

func (w *logWriter) record(xid uint32, manager, info byte, body []byte) {
	r := make([]byte, recordHeader, recordHeader+len(body))
	le.PutUint32(r, uint32(recordHeader+len(body)))
	le.PutUint32(r[4:], xid)
	r[16], r[17] = info, manager
	sum := crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, r[:20])
	le.PutUint32(r[20:], sum)
	r = append(r, body...)
	for begun := false; len(r) > 0; begun = true {
		if w.pos()%PageBytes == 0 {
			flags := uint16(0)
			if begun {
				flags = pageContinues
			}
			w.page(flags, map[bool]int{true: len(r)}[begun])
		}
		n := min(len(r), int(PageBytes-w.pos()%PageBytes))
		w.b, r = append(w.b, r[:n]...), r[n:]
	}
	for w.pos()%align != 0 {
		w.b = append(w.b, 0)
	}
}

// rows is the body of a record of one page, with an image of so many bytes.
func rows(file File, number uint32, image int, main []byte) []byte {
	b := []byte{0, 0, 0, 0}
	if image > 0 {
		b[1] = blockImg
		b = binary.LittleEndian.AppendUint16(b, uint16(image))
		b = append(b, 0, 0, 0)
	}
	for _, n := range []uint32{file.Space, file.Database, file.Node, number} {
		b = le.AppendUint32(b, n)
	}
	b = append(b, idShort, byte(len(main)))
	b = append(b, make([]byte, image)...)
	return append(b, main...)
}

func events(t *testing.T, w *logWriter, cut func(n int) int) []Event {
	t.Helper()
	var all []Event
	d, err := NewDecoder(15, w.start, w.segment, func(e *Event) error { all = append(all, *e); return nil })
	require.NoError(t, err)
	for b := w.b; len(b) > 0; {
		n := cut(len(b))
		require.NoError(t, d.Feed(b[:n]))
		b = b[n:]
	}
	require.Equal(t, w.pos(), d.Position())
	return all
}

func TestRecordsAreFoundHoweverTheyAreCut(t *testing.T) {
	file := File{1663, 5, 16384}
	w := &logWriter{magic: 0xD110, segment: 16 << 20, start: 16<<20 - 2*PageBytes}
	w.page(pageContinues, 100) // of a record that began before
	w.b = append(w.b, make([]byte, 104)...)
	w.record(700, managerHeap, heapInsert, rows(file, 3, 0, []byte{7, 0, 0}))
	w.record(0, 11, 0, make([]byte, 3*PageBytes)) // of an index: over pages and the end of a segment
	w.record(701, managerHeap, heapDelete, rows(file, 4, 8000, []byte{1, 0, 0, 0, 9, 0, 0, 0}))
	w.record(701, managerHeap2, heap2Multi|heapInit, rows(file, 5, 0, []byte{0, 0, 2, 0}))
	commit := le.AppendUint64(nil, 42)
	commit = le.AppendUint32(commit, xinfoSubs)
	commit = le.AppendUint32(le.AppendUint32(commit, 1), 701)
	w.record(700, managerXact, xactCommit|xactHasInfo, append([]byte{idShort, byte(len(commit))}, commit...))
	w.record(0, managerLog, logSwitch, nil)
	for w.pos()%w.segment != 0 {
		w.b = append(w.b, 0)
	}
	w.page(0, 0)
	w.record(702, managerXact, xactAbort, append([]byte{idShort, 8}, le.AppendUint64(nil, 43)...))

	at := func(e Event) Event { e.End = 0; return e }
	want := []Event{
		{Kind: Insert, XID: 700, File: file, New: 3<<16 | 7},
		{Kind: Delete, XID: 701, File: file, Old: 4<<16 | 9},
		{Kind: Insert, XID: 701, File: file, New: 5<<16 | 1},
		{Kind: Insert, XID: 701, File: file, New: 5<<16 | 2},
		{Kind: Commit, XID: 700, Subs: []uint32{701}, Time: 42},
		{Kind: Abort, XID: 702, Time: 43},
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cut := range []func(int) int{func(n int) int { return n }, func(int) int { return 1 },
		func(n int) int { return 1 + rng.IntN(min(n, 9000)) }} {
		var got []Event
		for _, e := range events(t, w, cut) {
			got = append(got, at(e))
		}
		require.Equal(t, want, got)
	}
}

func TestDamagedLogIsRefused(t *testing.T) {
	w := &logWriter{magic: 0xD110, segment: 16 << 20}
	w.page(0, 0)
	w.record(700, managerHeap, heapInsert, rows(File{1, 2, 3}, 3, 0, []byte{7, 0, 0}))
	for i := range w.b {
		if i >= longHeader+recordHeader+25 || i >= 4 && i < 8 || i >= 16 && i < longHeader || i >= longHeader+18 && i < longHeader+20 {
			continue // bytes that say nothing
		}
		b := append([]byte(nil), w.b...)
		b[i] ^= 0x10
		told := 0
		d, err := NewDecoder(15, 0, w.segment, func(*Event) error { told++; return nil })
		require.NoError(t, err)
		err = d.Feed(b)
		var format *FormatError
		require.True(t, told == 0 && (err == nil || errors.As(err, &format)), "byte %d: %d events, %v", i, told, err)
	}
	for _, major := range []int{11, 19} {
		_, err := NewDecoder(major, 0, w.segment, nil)
		require.ErrorContains(t, err, "does not know")
	}
}

// FuzzRecords has records of all kinds decoded whose checksums fit, cut anywhere.
func FuzzRecords(f *testing.F) {
	f.Add(15, byte(managerHeap), byte(heapInsert), 5, rows(File{1, 2, 3}, 3, 0, []byte{7, 0, 0}))
	f.Add(18, byte(managerHeap), byte(heapUpdate), 100, rows(File{1, 2, 3}, 3, 60, make([]byte, updateBytes)))
	f.Add(12, byte(managerHeap2), byte(heap2Multi), 9, rows(File{1, 2, 3}, 3, 0, []byte{0, 0, 1, 0, 4, 0}))
	f.Add(17, byte(managerXact), byte(xactCommit|xactHasInfo), 1, []byte{idShort, 16, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 1, 0, 0, 1, 0, 0, 0})
	mutate.Fuzz(f, func(t *testing.T, major int, manager, info byte, cut int, body []byte) {
		if !Known(major) || len(body) > 5*PageBytes || cut <= 0 {
			return
		}
		w := &logWriter{magic: formats[major].magic, segment: 1 << 20}
		w.page(0, 0)
		w.record(7, manager, info, body)
		w.record(8, managerXact, xactAbort, append([]byte{idShort, 8}, make([]byte, 8)...))
		last := Event{}
		d, err := NewDecoder(major, 0, w.segment, func(e *Event) error { last = *e; return nil })
		require.NoError(t, err)
		err = nil
		for b := w.b; len(b) > 0 && err == nil; {
			n := min(cut, len(b))
			err = d.Feed(b[:n])
			b = b[n:]
		}
		var format *FormatError
		switched := manager == managerLog && info&0xF0 == logSwitch
		if err != nil && !errors.As(err, &format) {
			t.Fatal(err)
		}
		if err == nil && !switched && last.XID != 8 {
			t.Fatalf("what follows the record was not found: %+v", last)
		}
	})
}

// TestAPageWithTheEndOfARecordIsNotReachedBeforeThat has a record's last bytes behind the header of a page, where the
// pages before it were read.
func TestAPageWithTheEndOfARecordIsNotReachedBeforeThat(t *testing.T) {
	const segment = 16 << 20
	for at, header := range map[uint64]uint64{segment: 40, segment + PageBytes: 24, 3*segment - PageBytes: 24} {
		d, err := NewDecoder(14, at, segment, nil)
		require.NoError(t, err)
		require.True(t, d.Reached(at))
		require.True(t, d.Reached(at+header))
		require.False(t, d.Reached(at+header+8))
	}
}
