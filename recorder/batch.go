package recorder

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/isotap/isotap/history"
)

const (
	// batchBytes and batchEntries fill a batch. With one more value they stay within 15% of
	// memTableSize, and 13,000 entries, which are Badger's bounds for what it writes at once.
	batchBytes   = 512 << 10
	batchEntries = 8 << 10
)

// A batch collects what is written next, and keeps what was written until it is synced. What cannot be written stays in
// it.
type batch struct {
	db          *badger.DB
	dir         string
	run         history.Run
	enc         encoder
	packer      packer
	strings     uint32   // of the dictionary, written or in the batch
	matches     uint32   // likewise
	definitions uint32   // likewise
	defined     uint32   // likewise
	gaps        uint32   // likewise
	loggeds     uint32   // likewise
	at          position // written

	since   time.Time // when the first that is in it was queued
	entries []entry
	done    int    // how many of them are written
	arena   []byte // the keys and values of entries
	record  []byte // the value being encoded
	packed  []byte // the same, compressed
	written uint64 // bytes of keys and values, since the run began

	unsynced []unsynced // what was written and may not be synced, by position
	spare    unsynced   // one that is synced, whose memory is used again
}

// unsynced are entries that were written and may not be synced yet.
type unsynced struct {
	batch   uint64
	entries []entry
	arena   []byte // of most of them
}

type entry struct{ key, value []byte }

func (b *batch) empty() bool { return len(b.entries) == b.done }

func (b *batch) full() bool { return len(b.arena) >= batchBytes || len(b.entries) >= batchEntries }

// put adds an entry. The key is what appendKey appends; the value is copied, and sealed.
func (b *batch) put(appendKey func([]byte) []byte, value []byte) {
	// The arena may move when it grows; entries made before go on in the old one.
	at := len(b.arena)
	b.arena = appendKey(b.arena)
	end := len(b.arena)
	b.arena = appendSeal(append(b.arena, value...), at)
	b.entries = append(b.entries, entry{b.arena[at:end:end], b.arena[end:len(b.arena):len(b.arena)]})
	b.written += uint64(len(b.arena) - at)
}

func (b *batch) info(info *history.Info) error {
	value, err := encodeInfo(info)
	if err != nil {
		return err
	}
	b.put(func(k []byte) []byte { return appendRunKey(k, keyRun, b.run) }, append([]byte{sealedRun}, value...))
	return nil
}

func (b *batch) session(s *history.Session) {
	b.record = b.enc.session(b.record[:0], s)
	b.put(func(k []byte) []byte { return appendSessionKey(k, keySession, b.run, s.ID) }, b.record)
}

// txn adds a transaction, behind the strings and the parts that it needs.
func (b *batch) txn(t *history.Txn) {
	b.record = b.enc.txn(b.record[:0], t)
	b.addStrings()
	if len(b.record) <= chunkBytes {
		b.packed = b.packer.pack(b.packed[:0], b.record)
	} else {
		parts := b.parts(t)
		b.packed = binary.AppendUvarint(append(b.packed[:0], packParts), uint64(parts))
		b.packed = binary.AppendUvarint(b.packed, uint64(len(b.record)))
	}
	b.put(func(k []byte) []byte { return appendTxnKey(k, keyTxn, t.ID, t.Session) }, b.packed)
	b.texts(t)
	if cap(b.record) > batchBytes {
		b.record = nil // one huge transaction must not hold its memory for good
	}
}

func (b *batch) addStrings() {
	for _, s := range b.enc.dict.fresh {
		b.put(func(k []byte) []byte { return appendNumberKey(k, keyString, b.run, b.strings) }, []byte(s))
		b.strings++
	}
	b.enc.dict.fresh = b.enc.dict.fresh[:0]
}

// parts adds the record in parts.
func (b *batch) parts(t *history.Txn) (n int) {
	for rest := b.record; len(rest) > 0; n++ {
		part := rest[:min(len(rest), chunkBytes)]
		rest = rest[len(part):]
		b.packed = b.packer.pack(b.packed[:0], part)
		b.put(func(k []byte) []byte { return appendChunkKey(k, t.ID, t.Session, n) }, b.packed)
	}
	return n
}

// commit writes the batch in order, as long as so many bytes stay free on the disk. Each piece of it is written whole
// or not at all.
func (b *batch) commit(minFree int64) error {
	if err := b.checkSpace(minFree); err != nil {
		return err
	}
	for b.done < len(b.entries) {
		n, size := b.done, 0
		for n < len(b.entries) && n-b.done < batchEntries &&
			(n == b.done || size+len(b.entries[n].value) <= batchBytes+chunkBytes) {
			size += len(b.entries[n].value)
			n++
		}
		if err := b.write(b.entries[b.done:n]); err != nil {
			return err
		}
		b.done = n
	}
	b.at.batch++
	b.unsynced = append(b.unsynced, unsynced{b.at.batch, b.entries, b.arena})
	b.entries, b.arena, b.done = b.spare.entries, b.spare.arena, 0
	b.spare = unsynced{}
	return nil
}

// synced lets go of what is synced, up to that batch.
func (b *batch) synced(batch uint64) {
	n := 0
	for n < len(b.unsynced) && b.unsynced[n].batch <= batch {
		n++
	}
	// What waited for room on the disk must not hold its memory for good.
	if n > 0 && cap(b.unsynced[n-1].arena) <= 4*batchBytes {
		u := b.unsynced[n-1]
		clear(u.entries)
		b.spare = unsynced{entries: u.entries[:0], arena: u.arena[:0]}
	}
	b.unsynced = slices.Delete(b.unsynced, 0, n)
}

// unsyncedBytes is how much memory waits to be synced.
func (b *batch) unsyncedBytes() (n int) {
	for _, u := range b.unsynced {
		n += len(u.arena)
	}
	return n
}

// again has what is not known to be synced written once more, before all else: nobody knows how much of it the disk
// has. The counts are those of what is synced.
func (b *batch) again(synced totals) {
	var entries []entry
	for _, u := range b.unsynced {
		entries = append(entries, u.entries...)
	}
	b.entries, b.done = append(entries, b.entries...), 0
	b.unsynced, b.at.total = nil, synced
}

// write writes entries with the counts that are true with them.
func (b *batch) write(entries []entry) error {
	total := b.at.total
	total.entries += uint64(len(entries))
	for _, e := range entries {
		if e.key[0] == keyTxn {
			total.txns++
		}
	}
	txn := b.db.NewTransaction(true)
	defer txn.Discard()
	key := appendRunKey(nil, keyCount, b.run)
	count := appendTotals(append(make([]byte, 0, 64), key...), total)
	var err error
	for i := 0; i < len(entries) && err == nil; i++ {
		err = txn.Set(entries[i].key, entries[i].value)
	}
	if err == nil {
		err = txn.Set(key, appendSeal(count, 0)[len(key):])
	}
	if err == nil {
		err = txn.Commit()
	}
	if err != nil {
		return fmt.Errorf("write to recording %s: %w", b.dir, err)
	}
	b.at.total = total
	return nil
}

// checkSpace fails where less than so much would stay free on the disk, or the disk takes nothing at all.
func (b *batch) checkSpace(minFree int64) error {
	free, readOnly, err := diskSpace(b.dir)
	if err != nil {
		return fmt.Errorf("write to recording: %w", err)
	}
	if readOnly {
		return fmt.Errorf("write to recording %s: the file system is read-only", b.dir)
	}
	if need := minFree + int64(len(b.arena)); free < need {
		return fmt.Errorf("write to recording %s: %w: %d MiB are free, at least %d must be", b.dir, ErrDiskFull,
			free>>20, need>>20)
	}
	return nil
}
