package wal

import "hash/crc32"

const (
	recordHeader = 24
	// maxRecord is the longest record that a server writes (XLogRecordMaxSize).
	maxRecord = 1020 << 20
	// maxUsed is the longest that is looked at: a row with its pages, or the end of a transaction with many
	// subtransactions.
	maxUsed = 64 << 20
)

// The managers of records that matter here.
const (
	managerLog   = 0
	managerXact  = 1
	managerHeap2 = 9
	managerHeap  = 10
	// lastManager is the last of the server's own; extensions have theirs from 128 on.
	lastManager   = 21
	firstExtended = 128
)

// logSwitch is the kind of record behind which the rest of the segment is empty.
const logSwitch = 0x40

// wanted reports whether the record in hand, of which the header is there, is one that matters.
func (d *Decoder) wanted() bool {
	switch m := d.record[17]; m {
	case managerXact, managerHeap, managerHeap2:
		return true
	case managerLog:
		return d.record[16]&0xF0 == logSwitch
	default:
		return m > lastManager && m < firstExtended // to be refused
	}
}

// A block is what a record says of a page of a file.
type block struct {
	file   File
	fork   byte
	number uint64
	init   bool
	image  int // bytes
	data   int
}

// A record is one whose parts are known.
type record struct {
	xid     uint32
	info    byte
	manager byte
	blocks  []block
	main    []byte
	end     uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// whole takes in the record in hand, all of which is there.
func (d *Decoder) whole(end uint64) error {
	b := d.record
	if len(b) > maxUsed {
		return d.wrong(d.begin, "a record of a row or a transaction has %d bytes", len(b))
	}
	const summed = recordHeader - 4
	if sum := crc32.Update(crc32.Checksum(b[recordHeader:], castagnoli), castagnoli, b[:summed]); sum !=
		le.Uint32(b[summed:]) {
		return d.wrong(d.begin, "the checksum of a record does not fit")
	}
	r := record{xid: le.Uint32(b[4:]), info: b[16], manager: b[17], end: aligned(end)}
	switch r.manager {
	case managerLog:
		d.jump = (end + d.segment - 1) / d.segment * d.segment
		return nil
	case managerXact, managerHeap, managerHeap2:
	default:
		return d.wrong(d.begin, "a record is of a kind (%d) that no version has", r.manager)
	}
	if err := d.parts(&r); err != nil {
		return err
	}
	if r.manager == managerXact {
		return d.xact(&r)
	}
	return d.heap(&r)
}

// The ids that stand in the place of a block's number.
const (
	maxBlock  = 32
	idTopXID  = 252
	idOrigin  = 253
	idLong    = 254
	idShort   = 255
	blockFork = 0x0F
	blockImg  = 0x10
	blockInit = 0x40
	blockSame = 0x80

	imageHole = 0x01
)

// parts finds a record's blocks and its main data.
func (d *Decoder) parts(r *record) error {
	in := cursor{b: d.record[recordHeader:]}
	main, pages := -1, 0
	for main < 0 && !in.short && len(in.b) > pages {
		switch id := in.byte(); {
		case id == idShort:
			main = int(in.byte())
		case id == idLong:
			main = int(in.uint32())
		case id == idOrigin:
			in.take(2)
		case id == idTopXID && d.format.topXID:
			in.take(4)
		case id <= maxBlock:
			if !d.block(r, &in) {
				return d.wrong(d.begin, "a record repeats a file that it did not name")
			}
			last := &r.blocks[len(r.blocks)-1]
			pages += last.image + last.data
		default:
			return d.wrong(d.begin, "a record has a part (%d) that this version does not have", id)
		}
	}
	in.take(pages)
	main = max(main, 0)
	if in.short || len(in.b) != main {
		return d.wrong(d.begin, "the parts of a record do not make up its length")
	}
	r.main = in.b
	return nil
}

// block reads what is said of a block; false where it is of the same file as none.
func (d *Decoder) block(r *record, in *cursor) bool {
	flags := in.byte()
	b := block{fork: flags & blockFork, init: flags&blockInit != 0, data: int(in.uint16())}
	if flags&blockImg != 0 {
		b.image = int(in.uint16())
		in.take(2)
		if info := in.byte(); info&imageHole != 0 && info&d.format.compressed != 0 {
			in.take(2)
		}
	}
	switch {
	case flags&blockSame == 0:
		b.file = File{Space: in.uint32(), Database: in.uint32(), Node: in.uint32()}
	case len(r.blocks) == 0:
		return false
	default:
		b.file = r.blocks[len(r.blocks)-1].file
	}
	b.number = uint64(in.uint32())
	r.blocks = append(r.blocks, b)
	return true
}

// A cursor reads numbers one after the other; short says that there were not enough bytes.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return make([]byte, min(max(n, 0), 8))
	}
	taken := c.b[:n]
	c.b = c.b[n:]
	return taken
}

func (c *cursor) byte() byte     { return c.take(1)[0] }
func (c *cursor) uint16() uint16 { return le.Uint16(c.take(2)) }
func (c *cursor) uint32() uint32 { return le.Uint32(c.take(4)) }
func (c *cursor) uint64() uint64 { return le.Uint64(c.take(8)) }
