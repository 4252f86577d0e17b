package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// The file of marks says beside the database how much of each run was written: one record of markBytes for each run,
// which is overwritten in place after each batch. A log or table that has lost its end cannot hide it then. It is not
// synced but when the run begins and ends: what a crash of the machine takes away of it is a count that was higher.
const (
	marksName = "ISOTAP-MARKS"
	markBytes = 32
)

// totals count what was written of a run.
type totals struct {
	txns    uint64
	entries uint64 // of the database, of all kinds
}

func appendTotals(b []byte, t totals) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, t.txns), t.entries)
}

// decodeTotals reads what stands under keyCount. Until format 3 there are no entries.
func decodeTotals(b []byte) (t totals, err error) {
	in := cursor{b: b}
	t.txns = in.uvarint()
	if in.err == nil && in.at < len(b) {
		t.entries = in.uvarint()
	}
	return t, in.end()
}

// A mark is the record of a Writer's run in the file of marks.
type mark struct {
	file *os.File
	at   int64
	run  uint32
}

// openMark begins the record of a run, behind those of others.
func openMark(dir string, run uint32) (*mark, error) {
	f, err := os.OpenFile(filepath.Join(dir, marksName), os.O_RDWR|os.O_CREATE, privateFile)
	if err != nil {
		return nil, fmt.Errorf("mark recording: %w", err)
	}
	m := &mark{file: f, run: run}
	info, err := f.Stat()
	if err == nil {
		m.at = (info.Size() + markBytes - 1) / markBytes * markBytes
		err = m.write(totals{})
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mark recording: %w", err), f.Close())
	}
	return m, nil
}

func (m *mark) write(t totals) error {
	var b [markBytes]byte
	binary.BigEndian.PutUint32(b[0:], m.run)
	binary.BigEndian.PutUint64(b[4:], t.txns)
	binary.BigEndian.PutUint64(b[12:], t.entries)
	binary.BigEndian.PutUint32(b[markBytes-4:], crc32.Checksum(b[:markBytes-4], castagnoli))
	if _, err := m.file.WriteAt(b[:], m.at); err != nil {
		return fmt.Errorf("mark recording: %w", err)
	}
	return nil
}

// readMarks returns the marks that can be read, by run.
func readMarks(dir string) map[uint32]totals {
	marks, _ := checkMarks(dir)
	return marks
}

// checkMarks also returns what is wrong with them.
func checkMarks(dir string) (marks map[uint32]totals, damage []Damage) {
	b, err := os.ReadFile(filepath.Join(dir, marksName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a recording of an earlier format; or see Reader.checkMarks
	}
	if err != nil {
		return nil, []Damage{{marksName, -1, reason(err)}}
	}
	marks = make(map[uint32]totals)
	for at := 0; at < len(b); at += markBytes {
		rest := b[at:]
		if len(rest) < markBytes || crc32.Checksum(rest[:markBytes-4],
			castagnoli) != binary.BigEndian.Uint32(rest[markBytes-4:]) {
			damage = append(damage, Damage{marksName, int64(at), "the mark of a run"})
			continue
		}
		marks[binary.BigEndian.Uint32(rest)] = totals{binary.BigEndian.Uint64(rest[4:]),
			binary.BigEndian.Uint64(rest[12:])}
	}
	return marks, damage
}
