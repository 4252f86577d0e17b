package recorder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// A tableFile is one of Badger's tables: blocks of entries in the order of their keys, an index of the blocks, the
// index's length, its checksum and the checksum's length.
type tableFile struct {
	file   *os.File
	name   string
	blocks []block
	level  int
	alone  bool // it may overlap with others of its level
	// unsorted says that the index is damaged: what it says of the blocks' first keys may be wrong.
	unsorted bool
}

// A block is a stretch of a table with a checksum of its own.
type block struct {
	first  []byte // its first key
	offset int64
	length int
}

// maxBlock bounds the length of a block that a damaged index may claim.
const maxBlock = 64 << 20

// openTable opens a table and reads its index. A damaged index is used as far as it goes, for each block has its own
// checksum.
func (f *files) openTable(id uint64) (t *tableFile, err error) {
	path := table.NewFilename(id, f.dir)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t = &tableFile{file: file, name: filepath.Base(path)}
	if err := t.readIndex(f); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return t, nil
}

func (t *tableFile) readIndex(f *files) error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	sum, err := sectionBefore(t.file, &end)
	if err != nil {
		return err
	}
	index, err := sectionBefore(t.file, &end)
	if err != nil {
		return err
	}
	if err := verify(index, sum); err != nil {
		f.damaged(Damage{t.name, end, "index: " + err.Error()})
		t.unsorted = true
	}
	t.blocks = blocksOf(index, end)
	if len(t.blocks) == 0 {
		return errors.New("its index names no block")
	}
	return nil
}

// blocksOf returns the blocks that an index names, as far as they can lie before end.
func blocksOf(index []byte, end int64) (blocks []block) {
	defer func() { _ = recover() }() // a damaged index leads anywhere
	root := fb.GetRootAsTableIndex(index, 0)
	var b fb.BlockOffset
	for i := range min(root.OffsetsLength(), len(index)) {
		if !root.Offsets(&b, i) {
			break
		}
		if at, n := int64(b.Offset()), int(b.Len()); n <= maxBlock && at+int64(n) <= end &&
			len(b.KeyBytes()) > versionBytes {
			blocks = append(blocks, block{bytes.Clone(b.KeyBytes()), at, n})
		}
	}
	return blocks
}

// tableEntries streams the entries of tables that do not overlap.
type tableEntries struct {
	f      *files
	tables []*tableFile
	table  int
	block  int    // the one to be read next
	text   []byte // what was read ahead
	textAt int64
	list   blockEntries
	here   entryAt
}

// readAhead is how much of a table is read at once when its entries are streamed, in bytes; the first time it is less,
// for most keys that are looked up are alone.
const readAhead = 128 << 10

// newTableEntries returns the entries from a key on.
func newTableEntries(f *files, tables []*tableFile, from []byte) *tableEntries {
	s := &tableEntries{f: f, tables: tables}
	if len(tables) > 1 {
		s.table = max(0, sort.Search(len(tables),
			func(i int) bool { return bytes.Compare(unversioned(tables[i].blocks[0].first), from) >= 0 })-1)
	}
	if t := tables[s.table]; !t.unsorted {
		s.block = max(0, sort.Search(len(t.blocks),
			func(i int) bool { return bytes.Compare(unversioned(t.blocks[i].first), from) >= 0 })-1)
	}
	for s.next(); s.here.key != nil && bytes.Compare(unversioned(s.here.key), from) < 0; {
		s.next()
	}
	return s
}

func (s *tableEntries) entry() *entryAt { return &s.here }

func (s *tableEntries) next() {
	for !s.list.next(&s.here) {
		if !s.nextBlock() {
			s.here = entryAt{}
			return
		}
	}
}

// nextBlock goes on to the next block, and reports whether there is one.
func (s *tableEntries) nextBlock() bool {
	for s.block >= len(s.tables[s.table].blocks) {
		if s.table++; s.table >= len(s.tables) {
			s.table--
			return false
		}
		s.block, s.text, s.textAt = 0, nil, 0
	}
	t := s.tables[s.table]
	b := &t.blocks[s.block]
	s.block++
	text, err := s.read(t, b)
	if err == nil {
		err = s.list.open(text)
	}
	if err != nil {
		s.f.damaged(Damage{t.name, b.offset, "block: " + err.Error()})
	}
	return true
}

// read returns the bytes of a block, valid until the next call.
func (s *tableEntries) read(t *tableFile, b *block) ([]byte, error) {
	if b.offset < s.textAt || b.offset+int64(b.length) > s.textAt+int64(len(s.text)) {
		ahead := b.length
		if s.text != nil {
			ahead = max(ahead, readAhead)
		}
		if cap(s.text) < ahead {
			s.text = make([]byte, ahead)
		}
		n, err := t.file.ReadAt(s.text[:ahead], b.offset)
		s.text, s.textAt = s.text[:n], b.offset
		if n < b.length {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	at := int(b.offset - s.textAt)
	return s.text[at : at+b.length], nil
}

// blockEntries are the entries of a block, which ends with their offsets, the number of these, a checksum and its
// length.
type blockEntries struct {
	data    []byte // the entries
	offsets []byte // four bytes each
	at      int
	base    []byte // the first key, of which the others leave out what they begin with
	key     []byte
	// doubtful says that the block's checksum does not fit: entries count that have a seal of their own.
	doubtful bool
}

// open begins to read a block. The error is of a block that is damaged; what of it can be trusted is streamed all the
// same.
func (l *blockEntries) open(text []byte) error {
	*l = blockEntries{key: l.key[:0]}
	rest := text
	sum, ok := cutSection(&rest)
	if !ok {
		return errors.New("it is cut")
	}
	failed := verify(rest, sum)
	l.doubtful = failed != nil
	if len(rest) < 4 {
		return errors.Join(failed, errors.New("it is cut"))
	}
	n := int(binary.BigEndian.Uint32(rest[len(rest)-4:]))
	rest = rest[:len(rest)-4]
	if n > len(rest)/4 {
		return errors.Join(failed, fmt.Errorf("it says that it has %d entries", n))
	}
	l.data, l.offsets = rest[:len(rest)-4*n], rest[len(rest)-4*n:]
	if _, base, _, ok := l.parse(0, len(l.data)); ok {
		l.base = base
	}
	return failed
}

// cutSection takes a section and its length off the end of b.
func cutSection(b *[]byte) (section []byte, ok bool) {
	if len(*b) < 4 {
		return nil, false
	}
	rest := (*b)[:len(*b)-4]
	n := int(binary.BigEndian.Uint32((*b)[len(rest):]))
	if n > len(rest) {
		return nil, false
	}
	*b = rest[:len(rest)-n]
	return rest[len(rest)-n:], true
}

// entryHeader is how long the two lengths are that an entry of a block begins with.
const entryHeader = 4

// parse takes an entry apart: how much of its key is the base's, the rest of the key, and the value.
func (l *blockEntries) parse(from, to int) (overlap int, diff, value []byte, ok bool) {
	if from < 0 || to > len(l.data) || to-from < entryHeader {
		return 0, nil, nil, false
	}
	e := l.data[from:to]
	overlap, n := int(binary.LittleEndian.Uint16(e)), int(binary.LittleEndian.Uint16(e[2:]))
	if entryHeader+n > len(e) {
		return 0, nil, nil, false
	}
	return overlap, e[entryHeader : entryHeader+n], e[entryHeader+n:], true
}

// next reads the next entry that can be trusted.
func (l *blockEntries) next(e *entryAt) bool {
	for ; l.at < len(l.offsets)/4; l.at++ {
		if l.read(e) {
			l.at++
			return true
		}
	}
	return false
}

func (l *blockEntries) read(e *entryAt) bool {
	offset := func(i int) int {
		if 4*i >= len(l.offsets) {
			return len(l.data)
		}
		return int(binary.LittleEndian.Uint32(l.offsets[4*i:]))
	}
	overlap, diff, value, ok := l.parse(offset(l.at), offset(l.at+1))
	if !ok || overlap > len(l.base) {
		return false
	}
	key := append(append(l.key[:0:cap(l.key)], l.base[:overlap]...), diff...)
	if len(key) <= versionBytes || len(value) < 2 {
		return false
	}
	_, n := binary.Uvarint(value[2:]) // when it expires
	if n <= 0 || value[0]&metaPointer != 0 {
		return false
	}
	body := value[2+n:]
	if l.doubtful && (!sealed(unversioned(key), body) || e.key != nil && y.CompareKeys(e.key, key) >= 0) {
		return false
	}
	// The entry before lives on until here; the two keys take turns.
	l.key, e.key = e.key, key
	e.value, e.deleted = body, value[0]&metaDeleted != 0
	return true
}
