package recorder

import (
	"encoding/binary"
	"errors"
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

// A batch collects what goes to disk next. What cannot be written stays in it.
type batch struct {
	db          *badger.DB
	dir         string
	run         history.Run
	mark        *mark
	enc         encoder
	packer      packer
	strings     uint32 // of the dictionary, written or in the batch
	matches     uint32 // likewise
	definitions uint32 // likewise
	defined     uint32 // likewise
	gaps        uint32 // likewise
	loggeds     uint32 // likewise
	counted     totals // written

	since   time.Time // when the first that is in it was queued
	entries []entry
	done    int    // how many of them are written
	arena   []byte // the keys and values of entries
	record  []byte // the value being encoded
	packed  []byte // the same, compressed
	written uint64 // bytes of keys and values, since the run began

	dirSynced time.Time // the directory's modification time when it was last synced
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

// commit writes the batch in order and syncs it, as long as so many bytes stay free on the disk. Each piece of it
// reaches the disk whole or not at all.
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
	clear(b.entries)
	b.entries, b.arena, b.done = b.entries[:0], b.arena[:0], 0
	if cap(b.arena) > 4*batchBytes {
		b.entries, b.arena = nil, nil // what waited for room on the disk must not hold its memory for good
	}
	return nil
}

// write writes entries with the counts that are true with them.
func (b *batch) write(entries []entry) error {
	total := b.counted
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
	if err := b.syncDir(); err != nil {
		return err
	}
	b.counted = total
	return b.mark.write(total)
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
	return errors.Join(makePrivate(b.dir), syncDir(b.dir))
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
