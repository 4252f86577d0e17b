package wal

import (
	"encoding/binary"
	"fmt"
)

var le = binary.LittleEndian

const (
	shortHeader = 24
	longHeader  = 40
	// align is what records begin at multiples of.
	align = 8

	pageContinues  = 0x0001 // the page begins with the rest of a record
	pageLong       = 0x0002
	pageOverwrites = 0x0008 // the record that was to continue here was given up when the server crashed
	pageFlags      = 0x000F // all that there are
)

// A Decoder takes the log apart. It is used by one goroutine.
type Decoder struct {
	format  format
	segment uint64 // bytes
	pos     uint64 // of the first byte of pending
	pending []byte // what is too little to go on with
	started bool
	skip    uint64 // bytes, without page headers, that belong to a record that began earlier, or are not looked at
	jump    uint64 // the position up to which there is nothing: after a switch to the next segment
	begin   uint64 // where the record in hand began
	need    int    // its length; 0: there is none in hand
	record  []byte // what there is of it
	events  func(*Event) error
}

// NewDecoder returns a Decoder of the log of a major version, which begins at a position that a page begins at. Segment
// is the size of the server's segments in bytes.
func NewDecoder(major int, start, segment uint64, events func(*Event) error) (*Decoder, error) {
	f, ok := formats[major]
	switch {
	case !ok:
		return nil, fmt.Errorf("isotap does not know the write-ahead log of PostgreSQL %d", major)
	case start%PageBytes != 0:
		return nil, fmt.Errorf("position %X is not the beginning of a page", start)
	case segment < PageBytes || segment%PageBytes != 0:
		return nil, fmt.Errorf("segments of %d bytes are not of whole pages", segment)
	}
	return &Decoder{format: f, segment: segment, pos: start, events: events}, nil
}

// Position is the position of the first byte that was not given yet.
func (d *Decoder) Position() uint64 { return d.pos + uint64(len(d.pending)) }

// Reached reports whether all before a position was given. It may be behind the header of a page that has nothing else
// yet: the server writes the pages before that first.
func (d *Decoder) Reached(at uint64) bool {
	over, header := at%PageBytes, uint64(shortHeader)
	if (at-over)%d.segment == 0 {
		header = longHeader
	}
	if over <= header {
		at -= over
	}
	return d.Position() >= at
}

// Feed takes in the bytes that follow, and calls the Decoder's function with what they say, until that or the log is at
// fault.
func (d *Decoder) Feed(b []byte) error {
	in := b
	if len(d.pending) > 0 {
		d.pending = append(d.pending, b...)
		in = d.pending
	}
	for len(in) > 0 {
		n, err := d.step(in)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		in = in[n:]
		d.pos += uint64(n)
	}
	d.pending = append(d.pending[:0], in...)
	return nil
}

// step takes in what comes next, and returns how much that was; 0: there is too little of it.
func (d *Decoder) step(in []byte) (int, error) {
	if d.pos < d.jump {
		return int(min(uint64(len(in)), d.jump-d.pos)), nil
	}
	if d.pos%PageBytes == 0 {
		return d.page(in)
	}
	in = in[:min(uint64(len(in)), PageBytes-d.pos%PageBytes)]
	switch {
	case d.skip > 0:
		n := min(uint64(len(in)), d.skip)
		d.skip -= n
		return int(n), nil
	case d.need == 0:
		return d.first(in)
	}
	n := min(len(in), d.need-len(d.record))
	d.record = append(d.record, in[:n]...)
	return n, d.grown(d.pos + uint64(n))
}

// page takes in the header of a page.
func (d *Decoder) page(in []byte) (int, error) {
	if len(in) < shortHeader {
		return 0, nil
	}
	info := le.Uint16(in[2:])
	size := shortHeader
	if info&pageLong != 0 {
		size = longHeader
	}
	if len(in) < size {
		return 0, nil
	}
	if magic := le.Uint16(in); magic != d.format.magic {
		return 0, d.wrong(d.pos, "a page begins with %04X instead of %04X", magic, d.format.magic)
	}
	if info&^pageFlags != 0 {
		return 0, d.wrong(d.pos, "a page has the flags %04X", info)
	}
	if at := le.Uint64(in[8:]); at != d.pos {
		return 0, d.wrong(d.pos, "a page says that it is the one at %X/%X", at>>32, uint32(at))
	}
	return size, d.continues(info, uint64(le.Uint32(in[16:])))
}

// continues sees whether the rest of a record that the page begins with is that of the record in hand.
func (d *Decoder) continues(info uint16, rest uint64) error {
	missing := d.skip
	if d.need > 0 {
		missing = uint64(d.need - len(d.record))
	}
	first := !d.started
	d.started = true
	switch {
	case first && info&pageContinues != 0:
		d.skip = aligned(rest)
	case first:
	case info&pageOverwrites != 0:
		d.need, d.skip = 0, 0
	case info&pageContinues == 0 && missing > 0:
		return d.wrong(d.pos, "a page does not go on with a record that has %d bytes left", missing)
	case info&pageContinues != 0 && aligned(rest) != aligned(missing):
		return d.wrong(d.pos, "a page goes on with %d bytes of a record that has %d left", rest, missing)
	}
	return nil
}

func aligned(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// first takes in the beginning of a record, whose length is always on one page.
func (d *Decoder) first(in []byte) (int, error) {
	if over := d.pos % align; over != 0 {
		return int(min(uint64(len(in)), align-over)), nil
	}
	if len(in) < 4 {
		return 0, nil
	}
	length := le.Uint32(in)
	if length < recordHeader || length > maxRecord {
		return 0, d.wrong(d.pos, "a record has %d bytes", length)
	}
	d.begin, d.need = d.pos, int(length)
	d.record = d.record[:0]
	n := min(len(in), d.need)
	d.record = append(d.record, in[:n]...)
	return n, d.grown(d.pos + uint64(n))
}

// grown looks at the record in hand, whose bytes are there up to a position.
func (d *Decoder) grown(end uint64) error {
	if len(d.record) < recordHeader {
		return nil
	}
	if !d.wanted() {
		d.skip = uint64(d.need - len(d.record))
		d.need = 0
		return nil
	}
	if len(d.record) < d.need {
		return nil
	}
	d.need = 0
	return d.whole(end)
}

func (d *Decoder) wrong(at uint64, format string, args ...any) error {
	return &FormatError{at, fmt.Sprintf(format, args...)}
}
