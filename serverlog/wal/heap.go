package wal

// What a record of the heap's says, by the bits of its info.
const (
	heapOp      = 0x70
	heapInit    = 0x80
	heapInsert  = 0x00
	heapDelete  = 0x10
	heapUpdate  = 0x20
	heapHot     = 0x40
	heap2Multi  = 0x50
	deleteSuper = 0x08
)

// The sizes of what the records of rows begin with.
const (
	insertBytes = 3
	deleteBytes = 8
	updateBytes = 14
	multiBytes  = 4
)

// heap says what a record of rows means. Those of locks, of pages that are cleaned, and of other forks leave rows as
// they are.
func (d *Decoder) heap(r *record) error {
	if r.manager == managerHeap2 {
		if r.info&heapOp == heap2Multi {
			return d.multi(r)
		}
		return nil
	}
	switch r.info & heapOp {
	case heapInsert:
		return d.insert(r)
	case heapDelete:
		return d.delete(r)
	case heapUpdate, heapHot:
		return d.update(r)
	}
	return nil
}

// rowsPage returns the i-th block of a record that has its main data; an error where it is not there.
func (d *Decoder) rowsPage(r *record, i, mainBytes int) (*block, error) {
	if len(r.blocks) <= i || len(r.main) < mainBytes {
		return nil, d.wrong(d.begin, "a record of a row has %d blocks and %d bytes", len(r.blocks), len(r.main))
	}
	return &r.blocks[i], nil
}

// place is that of a row on a page.
func (b *block) place(offset uint16) uint64 { return b.number<<16 | uint64(offset) }

func (d *Decoder) tell(r *record, e Event) error {
	e.XID, e.End = r.xid, r.end
	return d.events(&e)
}

func (d *Decoder) insert(r *record) error {
	b, err := d.rowsPage(r, 0, insertBytes)
	if err != nil {
		return err
	}
	return d.tell(r, Event{Kind: Insert, File: b.file, New: b.place(le.Uint16(r.main))})
}

func (d *Decoder) delete(r *record) error {
	b, err := d.rowsPage(r, 0, deleteBytes)
	if err != nil {
		return err
	}
	e := Event{Kind: Delete, File: b.file, Old: b.place(le.Uint16(r.main[4:]))}
	if r.main[7]&deleteSuper != 0 {
		e.Kind = Retract
	}
	return d.tell(r, e)
}

func (d *Decoder) update(r *record) error {
	b, err := d.rowsPage(r, 0, updateBytes)
	if err != nil {
		return err
	}
	old := b
	if len(r.blocks) > 1 {
		old = &r.blocks[1]
	}
	return d.tell(r, Event{Kind: Update, File: b.file, Old: old.place(le.Uint16(r.main[4:])),
		New: b.place(le.Uint16(r.main[12:]))})
}

// multi says what a record of several rows means, which were inserted into one page.
func (d *Decoder) multi(r *record) error {
	b, err := d.rowsPage(r, 0, multiBytes)
	if err != nil {
		return err
	}
	n := int(le.Uint16(r.main[2:]))
	offsets := r.main[multiBytes:]
	if r.info&heapInit == 0 && len(offsets) < 2*n {
		return d.wrong(d.begin, "a record of %d rows has %d bytes of places", n, len(offsets))
	}
	for i := range n {
		offset := uint16(i + 1) // a new page is filled from the first place on
		if r.info&heapInit == 0 {
			offset = le.Uint16(offsets[2*i:])
		}
		if err := d.tell(r, Event{Kind: Insert, File: b.file, New: b.place(offset)}); err != nil {
			return err
		}
	}
	return nil
}
