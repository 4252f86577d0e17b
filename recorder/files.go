package recorder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// A Damage is something in a recording's files that cannot be read.
type Damage struct {
	File   string // its name in the recording's directory
	Offset int64  // where in the file; -1: all of it
	What   string
}

// String returns the damage as a line for people to read.
func (d Damage) String() string {
	if d.Offset < 0 {
		return d.File + ": " + d.What
	}
	return fmt.Sprintf("%s, byte %d: %s", d.File, d.Offset, d.What)
}

// files are a recording's files as they lie there: Badger's tables and write-ahead logs, read without Badger.
// Nothing is written and no lock is taken, so the directory may be read-only, its writer killed, or still
// writing: then what had reached the files when they were opened is read.
//
// Badger itself would replay the logs into tables, cut a log at its first damaged entry, and give up on a
// table for one damaged block. Here what is damaged is left out and noted.
type files struct {
	dir  string
	logs []entryAt
	// tables holds lists of tables, each list sorted and without overlaps.
	tables [][]*tableFile

	// torn are the ends of logs that are no entries. A batch that was not written to its end when the writer was killed
	// leaves them; they are damage where the marks tell that more was written than is there.
	torn []Damage

	mu     sync.Mutex
	damage []Damage
}

// An entryAt is an entry of a write-ahead log. Its key ends with Badger's version of the entry.
type entryAt struct {
	key     []byte
	value   []byte
	deleted bool
}

// versionBytes is how long the version is that ends each of Badger's keys. Later versions sort first.
const versionBytes = 8

// unversioned is a key of Badger's without its version.
func unversioned(key []byte) []byte { return key[:len(key)-versionBytes] }

// maxOpenTries bounds how often the files are listed anew because their writer merged tables meanwhile.
const maxOpenTries = 10

// openFiles opens the files of a recording.
func openFiles(dir string) (*files, error) {
	for try := 1; ; try++ {
		f := &files{dir: dir}
		moved, err := f.open(try == maxOpenTries)
		if err == nil && !moved {
			return f, nil
		}
		if err := errors.Join(err, f.close()); err != nil {
			return nil, err
		}
	}
}

// open lists and opens the files. It reports whether a table has gone that the MANIFEST named, as it does
// while a writer merges tables; the last try takes such a table for lost.
func (f *files) open(last bool) (moved bool, err error) {
	// The logs come first: what they lose to tables meanwhile is found in these.
	tables, logs, err := listFiles(f.dir)
	if err != nil {
		return false, err
	}
	slices.Sort(logs)
	for _, name := range logs {
		if err := f.readLog(name); err != nil {
			return false, err
		}
	}
	slices.SortStableFunc(f.logs, func(a, b entryAt) int { return y.CompareKeys(a.key, b.key) })
	levels, err := f.manifest(len(tables) > 0 || len(logs) > 0)
	if err != nil {
		return false, err
	}
	if tables, logs, err = listFiles(f.dir); err != nil {
		return false, err
	}
	for id, level := range levels {
		t, err := f.openTable(id)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !last:
			return true, nil
		case err != nil:
			f.damaged(Damage{filepath.Base(table.NewFilename(id, f.dir)), -1, reason(err)})
		default:
			f.add(level, t)
		}
		delete(tables, id)
	}
	// Tables that the MANIFEST does not name were half written when the writer was killed, or were merged. What they
	// hold is elsewhere, too, unless the MANIFEST has lost a part.
	for id := range tables {
		t, err := f.openTable(id)
		if err == nil {
			f.add(0, t)
		}
		if len(logs) == 0 && levels != nil {
			f.damaged(Damage{badger.ManifestFilename, -1, "does not name table " +
				filepath.Base(table.NewFilename(id, f.dir))})
		}
	}
	f.arrange()
	return false, nil
}

// reason is an error without the path that [Damage] names already.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// manifest returns the tables that the MANIFEST names with their levels; nil when it cannot be read.
func (f *files) manifest(needed bool) (levels map[uint64]int, err error) {
	m, err := os.Open(filepath.Join(f.dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		if needed {
			f.damaged(Damage{badger.ManifestFilename, -1, "is missing"})
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	defer m.Close()
	manifest, _, err := badger.ReplayManifestFile(m, 0, badger.DefaultOptions(f.dir))
	if err != nil {
		f.damaged(Damage{badger.ManifestFilename, -1, err.Error()})
		return nil, nil
	}
	levels = make(map[uint64]int)
	for id, t := range manifest.Tables {
		levels[id] = int(t.Level)
	}
	return levels, nil
}

// add puts a table into the list of its level. Those of level 0 overlap: each has a list of its own.
func (f *files) add(level int, t *tableFile) {
	if level == 0 || t.unsorted {
		f.tables = append(f.tables, []*tableFile{t})
		t.alone = true
		return
	}
	t.level = level
	f.tables = append(f.tables, []*tableFile{t})
}

// arrange joins the lists of one level.
func (f *files) arrange() {
	byLevel := make(map[int][]*tableFile)
	var lists [][]*tableFile
	for _, list := range f.tables {
		if t := list[0]; t.alone {
			lists = append(lists, list)
		} else {
			byLevel[t.level] = append(byLevel[t.level], t)
		}
	}
	for _, list := range byLevel {
		slices.SortFunc(list, func(a, b *tableFile) int { return y.CompareKeys(a.blocks[0].first, b.blocks[0].first) })
		lists = append(lists, list)
	}
	f.tables = lists
}

// damaged notes what cannot be read, once.
func (f *files) damaged(d Damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.damage, d) {
		f.damage = append(f.damage, d)
	}
}

// found returns the damage that was noted so far, in the order of files and places.
func (f *files) found() []Damage {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := slices.Clone(f.damage)
	slices.SortFunc(found, func(a, b Damage) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset), strings.Compare(a.What, b.What))
	})
	return found
}

func (f *files) close() error {
	var errs []error
	for _, list := range f.tables {
		for _, t := range list {
			errs = append(errs, t.file.Close())
		}
	}
	return errors.Join(errs...)
}

// The marks that Badger gives to the entries of its write-ahead log.
const (
	metaDeleted = 1 << 0
	metaPointer = 1 << 1 // the value stands in the value log, which no recording uses
	metaTxn     = 1 << 6 // one of several that are written together
	metaFinTxn  = 1 << 7 // the end of these
)

// logHeader is how many bytes of a log stand before its entries.
const logHeader = 20

// minLogEntry is the fewest bytes that an entry takes: two of marks, three lengths, a version and a checksum.
const minLogEntry = 5 + versionBytes + crc32.Size

// maxKey bounds the length of a key with its version.
const maxKey = 64

// readLog takes in the entries of a write-ahead log. Those of a batch count once its end is there, too, or a
// later batch is: what a writer had in hand when it was killed was acknowledged to nobody.
func (f *files) readLog(name string) error {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has become a table
	}
	if err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	b = bytes.TrimRight(b, "\x00")
	l := logReader{text: b, at: logHeader}
	l.ends = func(from, at int) bool { return hasUnwrittenPage(b, from, at) && f.reachesMark(l.whole) }
	for l.next() {
		if l.skipped > 0 {
			f.damaged(Damage{name, l.entryAt - l.skipped, fmt.Sprintf("%d bytes of the write-ahead log", l.skipped)})
		}
	}
	if l.broken {
		f.torn = append(f.torn, Damage{name, l.entryAt, "the write-ahead log's end"})
	}
	f.logs = append(f.logs, l.whole...)
	f.logs = append(f.logs, l.acknowledged(f.dir)...)
	return nil
}

// pageBytes is the smallest page in which systems write files.
const pageBytes = 4096

// hasUnwrittenPage reports whether a page of zeros lies between two places of a log. A machine that crashed before the
// log was synced leaves some: its pages reach the disk in any order.
func hasUnwrittenPage(b []byte, from, to int) bool {
	var zeros [pageBytes]byte
	for at := (from + pageBytes - 1) / pageBytes * pageBytes; at+pageBytes <= to; at += pageBytes {
		if bytes.Equal(b[at:at+pageBytes], zeros[:]) {
			return true
		}
	}
	return false
}

// reachesMark reports whether the entries of the logs up to here are all that were synced of their last run, by its
// mark: what stands behind them nobody was promised.
func (f *files) reachesMark(more []entryAt) bool {
	for _, entries := range [][]entryAt{more, f.logs} {
		for _, e := range slices.Backward(entries) {
			key := unversioned(e.key)
			numbers, err := keyNumbers(key, 1)
			if err != nil || key[0] != keyCount || !sealed(key, e.value) {
				continue
			}
			total, err := decodeTotals(e.value[:len(e.value)-sealBytes])
			mark, ok := readMarks(f.dir)[numbers[0]]
			return err == nil && ok && total.entries >= mark.entries
		}
	}
	return false
}

// A logReader walks through the entries of a write-ahead log.
type logReader struct {
	text    []byte
	at      int
	entryAt int64 // where the entry begins that was read last
	skipped int64 // how many bytes before it are none
	broken  bool  // bytes are left at the end that are no entry
	// ends reports whether the log ends with what lies between two places and is no entry, though entries stand behind.
	ends    func(from, at int) bool
	whole   []entryAt
	pending []entryAt // of the batch whose end has not come yet
	batch   uint64    // its version
}

// next reads an entry, and reports whether there was one.
func (l *logReader) next() bool {
	from := l.at
	if l.tryAt(from, from) || l.tryAt(from, from+claimedLength(l.text[min(from, len(l.text)):])) {
		return true
	}
	for at := from + 1; at+minLogEntry <= len(l.text)+crc32.Size; at++ {
		if l.tryAt(from, at) {
			return true
		}
	}
	l.entryAt, l.broken = int64(from), from < len(l.text)
	return false
}

// tryAt reads the entry at a place, if there is one; what stands from there on is skipped.
func (l *logReader) tryAt(from, at int) bool {
	if at < from || at >= len(l.text) {
		return false
	}
	e, meta, n := parseLogEntry(l.text[at:])
	if n == 0 {
		return false
	}
	if at > from && l.ends(from, at) {
		l.text = l.text[:at]
		return false
	}
	l.entryAt, l.skipped = int64(at), int64(at-from)
	l.at = at + n
	l.take(e, meta)
	return true
}

// claimedLength is how long an entry says it is, whether or not its checksum fits.
func claimedLength(b []byte) int {
	at, n := 2, crc32.Size
	for i := range 3 {
		v, size := binary.Uvarint(b[min(at, len(b)):])
		if size <= 0 || v > memTableSize {
			return -1
		}
		at += size
		if i < 2 {
			n += int(v)
		}
	}
	return at + n
}

func (l *logReader) take(e entryAt, meta byte) {
	version := binary.BigEndian.Uint64(e.key[len(e.key)-versionBytes:])
	if version != l.batch {
		l.whole, l.pending, l.batch = append(l.whole, l.pending...), l.pending[:0], version
	}
	if meta&metaFinTxn == 0 {
		l.pending = append(l.pending, e)
		return
	}
	l.whole, l.pending = append(l.whole, l.pending...), l.pending[:0]
}

// acknowledged returns the entries of the last batch if only its end is missing: the recording's marks then say that
// it was written as a whole.
func (l *logReader) acknowledged(dir string) []entryAt {
	for _, e := range l.pending {
		key := unversioned(e.key)
		numbers, err := keyNumbers(key, 1)
		if err != nil || key[0] != keyCount || !sealed(key, e.value) {
			continue
		}
		total, err := decodeTotals(e.value[:len(e.value)-sealBytes])
		if mark, ok := readMarks(dir)[numbers[0]]; err == nil && ok && total.entries <= mark.entries {
			return l.pending
		}
	}
	return nil
}

// parseLogEntry reads an entry: meta, user meta, the lengths of key and value, the time when it expires, key, value,
// and a checksum of all of that. n is 0 where there is none.
func parseLogEntry(b []byte) (e entryAt, meta byte, n int) {
	if len(b) < minLogEntry-crc32.Size || b[0]&^(metaDeleted|metaTxn|metaFinTxn) != 0 ||
		b[0]&(metaTxn|metaFinTxn) == 0 || b[1] != 0 {
		return e, 0, 0
	}
	at := 2
	var lengths [3]uint64
	for i := range lengths {
		v, size := binary.Uvarint(b[at:])
		if size <= 0 || v > memTableSize {
			return e, 0, 0
		}
		lengths[i] = v
		at += size
	}
	keyEnd := at + int(lengths[0])
	end := keyEnd + int(lengths[1])
	if lengths[0] <= versionBytes || lengths[0] > maxKey || lengths[2] != 0 || end > len(b) {
		return e, 0, 0
	}
	// Zeros at the log's end were cut off; they may have been of the last checksum.
	var sum [crc32.Size]byte
	copy(sum[:], b[end:])
	if crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(sum[:]) {
		return e, 0, 0
	}
	e = entryAt{key: b[at:keyEnd:keyEnd], value: b[keyEnd:end:end], deleted: b[0]&metaDeleted != 0}
	return e, b[0], min(end+crc32.Size, len(b))
}

// entries streams what stands under a prefix, in the order of the keys: of each key what was written last. Keys come
// without their versions. Key and value are valid until the next ones are asked for.
func (f *files) entries(prefix, from []byte, yield func(key, value []byte) bool) error {
	m := merger{}
	first, _ := slices.BinarySearchFunc(f.logs, from, func(e entryAt, p []byte) int {
		if bytes.Compare(unversioned(e.key), p) < 0 {
			return -1
		}
		return 1
	})
	m.add(&logEntries{rest: f.logs[first:]}, prefix)
	for _, list := range f.tables {
		m.add(newTableEntries(f, list, from), prefix)
	}
	var last []byte
	for len(m.sources) > 0 {
		e := m.sources[0].entry()
		if key := unversioned(e.key); last == nil || !bytes.Equal(key, last) {
			last = append(last[:0], key...)
			if !e.deleted && !yield(last, e.value) {
				return nil
			}
		}
		m.advance(prefix)
	}
	return nil
}

// find returns the value of a key as it was written last.
func (f *files) find(key []byte) (value []byte, err error) {
	err = errNoKey
	failed := f.entries(key, key, func(k, v []byte) bool {
		if len(k) == len(key) {
			value, err = bytes.Clone(v), nil
		}
		return false // a longer key sorts behind
	})
	return value, errors.Join(failed, err)
}

// errNoKey is the error of a key that the recording does not have.
var errNoKey = errors.New("not found")

// A sorted is a source of entries in the order of their keys.
type sorted interface {
	// entry returns the present entry, valid until the next call of next; its key is nil at the end.
	entry() *entryAt
	next()
}

type logEntries struct{ rest []entryAt }

var noEntry entryAt

func (l *logEntries) entry() *entryAt {
	if len(l.rest) == 0 {
		return &noEntry
	}
	return &l.rest[0]
}

func (l *logEntries) next() { l.rest = l.rest[1:] }

// A merger merges sources. They are in the order of their present entries.
type merger struct{ sources []sorted }

func (m *merger) add(s sorted, prefix []byte) {
	if !under(s, prefix) {
		return
	}
	m.sources = append(m.sources, nil)
	copy(m.sources[1:], m.sources)
	m.sources[0] = s
	m.sink()
}

// under reports whether a source's present entry stands under a prefix.
func under(s sorted, prefix []byte) bool {
	key := s.entry().key
	return key != nil && bytes.HasPrefix(unversioned(key), prefix)
}

// advance goes on to the next entry.
func (m *merger) advance(prefix []byte) {
	s := m.sources[0]
	s.next()
	if !under(s, prefix) {
		m.sources = m.sources[1:]
		return
	}
	m.sink()
}

// sink brings the first source to its place.
func (m *merger) sink() {
	s := m.sources
	for i := 1; i < len(s) && y.CompareKeys(s[i].entry().key, s[i-1].entry().key) < 0; i++ {
		s[i], s[i-1] = s[i-1], s[i]
	}
}
