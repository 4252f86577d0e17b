package wal

// What a record of a transaction's says, by the bits of its info.
const (
	xactOp             = 0x70
	xactHasInfo        = 0x80
	xactCommit         = 0x00
	xactAbort          = 0x20
	xactCommitPrepared = 0x30
	xactAbortPrepared  = 0x40
)

// What the end of a transaction tells of it, by the bits of its xinfo, in the order in which it stands there.
const (
	xinfoDatabase = 1 << 0
	xinfoSubs     = 1 << 1
	xinfoFiles    = 1 << 2
	xinfoStats    = 1 << 8
	xinfoInvals   = 1 << 3
	xinfoTwoPhase = 1 << 4
)

const (
	fileBytes  = 12
	invalBytes = 16
)

// xact says what a record of a transaction means. Of PREPARE nothing is to be told: the transaction has not ended.
func (d *Decoder) xact(r *record) error {
	e := Event{Kind: Commit}
	switch r.info & xactOp {
	case xactCommit, xactCommitPrepared:
	case xactAbort, xactAbortPrepared:
		e.Kind = Abort
	default:
		return nil
	}
	in := cursor{b: r.main}
	e.Time = int64(in.uint64())
	xid := r.xid
	if r.info&xactHasInfo != 0 {
		xid = d.xinfo(&in, &e, xid)
	}
	if in.short {
		return d.wrong(d.begin, "the end of a transaction has %d bytes", len(r.main))
	}
	e.XID, e.End = xid, r.end
	return d.events(&e)
}

// xinfo reads what the end of a transaction tells of it, and returns whose end it is.
func (d *Decoder) xinfo(in *cursor, e *Event, xid uint32) uint32 {
	has := in.uint32()
	if has&xinfoDatabase != 0 {
		in.take(8)
	}
	if has&xinfoSubs != 0 {
		subs := in.list(4)
		for len(subs) > 0 {
			e.Subs = append(e.Subs, le.Uint32(subs))
			subs = subs[4:]
		}
	}
	if has&xinfoFiles != 0 {
		in.list(fileBytes)
	}
	if has&xinfoStats != 0 && d.format.droppedStats > 0 {
		in.list(d.format.droppedStats)
	}
	if has&xinfoInvals != 0 && e.Kind == Commit {
		in.list(invalBytes)
	}
	if has&xinfoTwoPhase != 0 {
		xid = in.uint32()
	}
	return xid
}

// list reads a count and so many pieces of a size.
func (c *cursor) list(size int) []byte {
	n := int(int32(c.uint32()))
	if n < 0 || n > len(c.b)/size {
		c.short, c.b = true, nil
		return nil
	}
	return c.take(n * size)
}
