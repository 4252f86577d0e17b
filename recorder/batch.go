package recorder

import (
	"encoding/binary"
	"fmt"
	"os"
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

// A batch collects what goes to disk at once, all or nothing.
type batch struct {
	db          *badger.DB
	dir         string
	run         history.Run
	minFree     int64
	enc         encoder
	packer      packer
	strings     uint32 // of the dictionary, written or in the batch
	matches     uint32 // likewise
	definitions uint32 // likewise
	counted     uint64 // transactions written or in the batch

	entries []entry
	arena   []byte // the keys and values of entries
	record  []byte // the value being encoded
	packed  []byte // the same, compressed
	written uint64 // bytes of keys and values, since the run began

	dirSynced time.Time // the directory's modification time when it was last synced
}

type entry struct{ key, value []byte }

func (b *batch) empty() bool { return len(b.entries) == 0 }
func (b *batch) full() bool  { return len(b.arena) >= batchBytes || len(b.entries) >= batchEntries }

// put adds an entry. The key is what appendKey appends; the value is copied.
func (b *batch) put(appendKey func([]byte) []byte, value []byte) {
	// The arena may move when it grows; entries made before go on in the old one.
	at := len(b.arena)
	b.arena = appendKey(b.arena)
	end := len(b.arena)
	b.arena = append(b.arena, value...)
	b.entries = append(b.entries, entry{b.arena[at:end:end], b.arena[end:len(b.arena):len(b.arena)]})
	b.written += uint64(len(b.arena) - at)
}

func (b *batch) info(info *history.Info) error {
	value, err := encodeInfo(info)
	if err != nil {
		return err
	}
	b.put(func(k []byte) []byte { return appendRunKey(k, keyRun, b.run) }, value)
	return nil
}

func (b *batch) session(s *history.Session) {
	b.record = b.enc.session(b.record[:0], s)
	b.put(func(k []byte) []byte { return appendSessionKey(k, keySession, b.run, s.ID) }, b.record)
}

// txn adds a transaction. The strings and the parts that it needs come before it, in this batch or
// in one that txn writes itself.
func (b *batch) txn(t *history.Txn) error {
	b.record = b.enc.txn(b.record[:0], t)
	if err := b.addStrings(); err != nil {
		return err
	}
	if len(b.record) <= chunkBytes {
		b.packed = b.packer.pack(b.packed[:0], b.record)
	} else {
		parts, err := b.parts(t)
		if err != nil {
			return err
		}
		b.packed = binary.AppendUvarint(append(b.packed[:0], packParts), uint64(parts))
		b.packed = binary.AppendUvarint(b.packed, uint64(len(b.record)))
	}
	b.put(func(k []byte) []byte { return appendTxnKey(k, keyTxn, t.ID, t.Session) }, b.packed)
	b.counted++
	if cap(b.record) > batchBytes {
		b.record = nil // one huge transaction must not hold its memory for good
	}
	return nil
}

func (b *batch) addStrings() error {
	for _, s := range b.enc.dict.fresh {
		b.put(func(k []byte) []byte { return appendNumberKey(k, keyString, b.run, b.strings) }, []byte(s))
		b.strings++
		if err := b.commitIfFull(); err != nil {
			return err
		}
	}
	b.enc.dict.fresh = b.enc.dict.fresh[:0]
	return nil
}

// parts adds the record in parts.
func (b *batch) parts(t *history.Txn) (n int, err error) {
	for rest := b.record; len(rest) > 0; n++ {
		part := rest[:min(len(rest), chunkBytes)]
		rest = rest[len(part):]
		b.packed = b.packer.pack(b.packed[:0], part)
		b.put(func(k []byte) []byte { return appendChunkKey(k, t.ID, t.Session, n) }, b.packed)
		if err := b.commitIfFull(); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (b *batch) commitIfFull() error {
	if b.full() {
		return b.commit()
	}
	return nil
}

// commit writes the batch and syncs it.
func (b *batch) commit() error {
	if err := b.checkSpace(); err != nil {
		return err
	}
	b.put(func(k []byte) []byte { return appendRunKey(k, keyCount, b.run) }, binary.AppendUvarint(nil, b.counted))
	txn := b.db.NewTransaction(true)
	defer txn.Discard()
	for _, e := range b.entries {
		if err := txn.Set(e.key, e.value); err != nil {
			return fmt.Errorf("write to recording %s: %w", b.dir, err)
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("write to recording %s: %w", b.dir, err)
	}
	if err := b.syncDir(); err != nil {
		return err
	}
	clear(b.entries)
	b.entries, b.arena = b.entries[:0], b.arena[:0]
	return nil
}

// dirClock is more than the steps in which file systems keep modification times.
const dirClock = 50 * time.Millisecond

// syncDir syncs the directory if a file came or went since it was last synced: Badger syncs a new
// write-ahead log, but not the entry by which the directory knows it.
func (b *batch) syncDir() error {
	now := time.Now()
	info, err := os.Stat(b.dir)
	if err != nil {
		return fmt.Errorf("write to recording: %w", err)
	}
	if info.ModTime().Equal(b.dirSynced) {
		return nil
	}
	// A file that comes in the same step of the clock would leave the time as it is.
	if now.Sub(info.ModTime()) > dirClock {
		b.dirSynced = info.ModTime()
	}
	return syncDir(b.dir)
}

// checkSpace stops before the disk is full.
func (b *batch) checkSpace() error {
	free, err := freeBytes(b.dir)
	if err != nil {
		return fmt.Errorf("write to recording: %w", err)
	}
	if need := b.minFree + int64(len(b.arena)); free < need {
		return fmt.Errorf("write to recording %s: %w: %d MiB are free, at least %d must be", b.dir, ErrDiskFull, free>>20, need>>20)
	}
	return nil
}
