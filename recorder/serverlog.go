package recorder

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/isotap/isotap/history"
)

// Logged queues a transaction of the server's own log, and waits while the queue is full. They are kept in the order of
// the calls.
func (w *Writer) Logged(ctx context.Context, t *history.LoggedTxn) error {
	const txnBytes, writeBytes = 160, 128
	return w.queue.put(ctx, item{logged: t, size: int64(txnBytes + writeBytes*len(t.Writes))})
}

// LogStretch queues a stretch of the server's log. Number is its place among those of the run, from 0: a later call
// replaces what an earlier one said of it.
func (w *Writer) LogStretch(ctx context.Context, number int, s history.LogStretch) error {
	return w.queue.put(ctx, item{stretch: &numberedStretch{uint32(number), s}, size: int64(64 + len(s.Reason))})
}

// A numberedStretch waits to be written.
type numberedStretch struct {
	number  uint32
	stretch history.LogStretch
}

// maxLoggedWrites is how many writes one value holds, so that it fits into a batch. A transaction of more takes several
// values.
const maxLoggedWrites = 2048

// The flags of a logged transaction's value.
const (
	loggedCut  = 1 << iota
	loggedMore // the next value goes on with the same transaction
)

// addLogged adds a transaction of the server's log.
func (b *batch) addLogged(t *history.LoggedTxn) {
	writes := t.Writes
	for {
		part := writes[:min(len(writes), maxLoggedWrites)]
		writes = writes[len(part):]
		b.record = b.enc.logged(b.record[:0], t, part, len(writes) > 0)
		b.addStrings()
		b.packed = b.packer.pack(b.packed[:0], b.record)
		b.put(func(k []byte) []byte { return appendNumberKey(k, keyLogged, b.run, b.loggeds) }, b.packed)
		b.loggeds++
		if len(writes) == 0 {
			return
		}
	}
}

// addStretch adds a stretch of the server's log.
func (b *batch) addStretch(s *numberedStretch) {
	value := binary.AppendVarint(nil, s.stretch.From)
	value = binary.AppendVarint(value, s.stretch.To)
	value = appendText(value, s.stretch.Reason)
	b.put(func(k []byte) []byte { return appendNumberKey(k, keyStretch, b.run, s.number) }, value)
}

// logged encodes a transaction of the server's log with some of its writes.
func (e *encoder) logged(b []byte, t *history.LoggedTxn, writes []history.LoggedWrite, more bool) []byte {
	flags := byte(0)
	if t.Cut {
		flags |= loggedCut
	}
	if more {
		flags |= loggedMore
	}
	b = append(b, byte(t.Status), flags)
	b = binary.AppendUvarint(b, t.Position)
	b = e.dict.append(b, t.File)
	b = binary.AppendVarint(b, t.From)
	b = binary.AppendVarint(b, t.To)
	b = binary.AppendVarint(b, t.Seen)
	b = e.dict.append(b, t.Database)
	b = binary.AppendUvarint(b, uint64(len(t.XIDs)))
	for _, xid := range t.XIDs {
		b = binary.AppendUvarint(b, uint64(xid))
	}
	b = binary.AppendUvarint(b, t.Thread)
	b = appendText(b, t.GTID)
	b = binary.AppendUvarint(b, uint64(len(t.Unlogged)))
	for _, table := range t.Unlogged {
		b = e.dict.append(b, table)
	}
	b = binary.AppendUvarint(b, uint64(len(writes)))
	for i := range writes {
		b = e.loggedWrite(b, &writes[i])
	}
	return b
}

func (e *encoder) loggedWrite(b []byte, w *history.LoggedWrite) []byte {
	b = append(b, byte(w.Op))
	b = e.dict.append(b, w.Row.Table)
	b = appendText(b, w.Row.ID)
	for _, n := range loggedNumbers(w) {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

const loggedNumberCount = 11

// loggedNumbers returns the numbers of a write in the order in which they are stored.
func loggedNumbers(w *history.LoggedWrite) [loggedNumberCount]uint64 {
	p := &w.TupleID
	return [...]uint64{uint64(p.XID), p.CTID, uint64(p.NewXID), p.NewID, p.LSN, uint64(p.Leaf), uint64(w.Storage),
		uint64(w.Old.Txn), uint64(w.Old.Stmt), uint64(w.New.Txn), uint64(w.New.Stmt)}
}

// Logged streams the transactions of the server's log, in the log's order. Recordings of earlier versions, and of
// servers whose log was not read, have none.
func (r *Reader) Logged(ctx context.Context, run history.Run) iter.Seq2[*history.LoggedTxn, error] {
	return func(yield func(*history.LoggedTxn, error) bool) {
		u, err := newUnpacker()
		if err != nil {
			yield(nil, err)
			return
		}
		defer u.close()
		d := decoder{unpacker: u}
		if d.dict, err = r.dictionary(ctx, run); err != nil && !yield(nil, err) {
			return
		}
		var whole *history.LoggedTxn
		for key, value := range r.values(ctx, appendRunKey(nil, keyLogged, run)) {
			t, more, err := d.logged(value)
			if err != nil {
				whole = nil
				if !yield(nil, r.corrupt(key, err)) {
					return
				}
				continue
			}
			if whole != nil {
				whole.Writes = append(whole.Writes, t.Writes...)
			} else {
				whole = t
			}
			if !more {
				t, whole = whole, nil
				if numbers, err := keyNumbers(key, 2); err == nil {
					t.Number = numbers[1] + 1
				}
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// minLoggedBytes is the fewest bytes that a write takes.
const minLoggedBytes = 14

// logged decodes a transaction of the server's log, or a part of one that more follows.
func (d *decoder) logged(v value) (t *history.LoggedTxn, more bool, err error) {
	if v.err != nil {
		return nil, false, v.err
	}
	record, err := d.unpacker.unpack(v.bytes)
	if err != nil {
		return nil, false, err
	}
	d.in = cursor{b: record}
	in := &d.in
	t = &history.LoggedTxn{Status: history.Status(in.byte())}
	flags := in.byte()
	t.Cut, more = flags&loggedCut != 0, flags&loggedMore != 0
	t.Position = in.uvarint()
	t.File = d.ref()
	t.From, t.To, t.Seen = in.varint(), in.varint(), in.varint()
	t.Database = d.ref()
	for range in.count(1) {
		t.XIDs = append(t.XIDs, uint32(in.uvarint()))
	}
	t.Thread = in.uvarint()
	t.GTID = string(in.text())
	for range in.count(1) {
		t.Unlogged = append(t.Unlogged, d.ref())
	}
	if n := in.count(minLoggedBytes); n > 0 {
		t.Writes = make([]history.LoggedWrite, n)
	}
	for i := range t.Writes {
		d.loggedWrite(&t.Writes[i])
	}
	return t, more, in.end()
}

func (d *decoder) loggedWrite(w *history.LoggedWrite) {
	w.Op = history.Op(d.in.byte())
	w.Row.Table = d.ref()
	w.Row.ID = string(d.in.text())
	var n [loggedNumberCount]uint64
	for i := range n {
		n[i] = d.in.uvarint()
	}
	w.TupleID = history.TupleID{XID: uint32(n[0]), CTID: n[1], NewXID: uint32(n[2]), NewID: n[3], LSN: n[4],
		Leaf: uint32(n[5])}
	w.Storage = uint32(n[6])
	w.Old = history.Tag{Txn: history.TxnID(n[7]), Stmt: uint32(n[8])}
	w.New = history.Tag{Txn: history.TxnID(n[9]), Stmt: uint32(n[10])}
}

// loadLog completes the description of a run.
func (r *Reader) loadLog(info *history.Info) {
	for key, value := range r.values(context.Background(), appendRunKey(nil, keyStretch, info.Run)) {
		s, err := decodeStretch(value)
		if err != nil {
			r.own = append(r.own, Damage{keyName(key), -1, err.Error()})
			continue
		}
		info.Log = append(info.Log, s)
	}
}

func decodeStretch(v value) (s history.LogStretch, err error) {
	if v.err != nil {
		return s, v.err
	}
	in := cursor{b: v.bytes}
	s.From, s.To = in.varint(), in.varint()
	s.Reason = string(in.text())
	return s, in.end()
}
