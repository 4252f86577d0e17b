package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// checkFiles finds the damage that Badger would end the process for, or repair by deleting what is
// left: a table that is cut or missing, a MANIFEST that is lost. It reports whether the last writer
// closed the database: it left no write-ahead log.
func checkFiles(dir string, o badger.Options) (clean bool, err error) {
	tables, logs, err := listFiles(dir)
	if err != nil {
		return false, err
	}
	clean = len(logs) == 0
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		if len(tables) > 0 || !clean {
			return clean, fmt.Errorf("%w: %s has lost its %s", ErrCorrupt, dir, badger.ManifestFilename)
		}
		return clean, nil
	}
	if err != nil {
		return clean, fmt.Errorf("check recording: %w", err)
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, 0, o)
	if err != nil {
		return clean, fmt.Errorf("%w: %s: %w", ErrCorrupt, f.Name(), err)
	}
	for id := range manifest.Tables {
		path := table.NewFilename(id, dir)
		if err := checkTable(path); err != nil {
			return clean, fmt.Errorf("%w: table %s: %w", ErrCorrupt, path, err)
		}
		delete(tables, id)
	}
	// After a crash a half-written table may lie around, for the log still has its contents.
	for id := range tables {
		if clean {
			return clean, fmt.Errorf("%w: %s does not name table %s", ErrCorrupt, f.Name(), table.NewFilename(id, dir))
		}
	}
	return clean, nil
}

// checkLogs refuses a recording whose write-ahead logs are damaged: Badger would go on and cut off what stands behind
// the damage.
func checkLogs(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, badger.ManifestFilename)); errors.Is(err, os.ErrNotExist) {
		return nil // there is no run yet, or checkFiles will say so
	}
	r, err := Open(dir)
	if errors.Is(err, ErrCorrupt) {
		return nil // the first run was never written; or checkFiles says so
	}
	if err != nil {
		return err
	}
	for _, d := range r.Damage() {
		if d.isLog() {
			err = fmt.Errorf("%w: %s: %s: isotap recordings --check says what can be read; nothing is added",
				ErrCorrupt, dir, d)
		}
	}
	return errors.Join(err, r.Close())
}

// isLog reports whether the damage is in a write-ahead log.
func (d Damage) isLog() bool { return strings.HasSuffix(d.File, logSuffix) }

// logSuffix ends the names of write-ahead logs.
const logSuffix = ".mem"

// listFiles returns the numbers of the tables and the names of the write-ahead logs.
func listFiles(dir string) (tables map[uint64]bool, logs []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("check recording: %w", err)
	}
	tables = make(map[uint64]bool)
	for _, e := range entries {
		if id, ok := table.ParseFileID(e.Name()); ok {
			tables[id] = true
		}
		if strings.HasSuffix(e.Name(), logSuffix) {
			logs = append(logs, e.Name())
		}
	}
	return tables, logs, nil
}

// checkTable checks a table's index, and its last block, which Badger reads when it opens the table.
// A table ends with its index, the index's length, a checksum of the index and the checksum's length.
// The other blocks are checked when they are read.
func checkTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	sum, err := sectionBefore(f, &end)
	if err != nil {
		return err
	}
	index, err := sectionBefore(f, &end)
	if err != nil {
		return err
	}
	if err := verify(index, sum); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	var last fb.BlockOffset
	blocks := fb.GetRootAsTableIndex(index, 0)
	if n := blocks.OffsetsLength(); n == 0 || !blocks.Offsets(&last, n-1) {
		return errors.New("index is empty")
	}
	if int64(last.Offset())+int64(last.Len()) != end {
		return fmt.Errorf("blocks end at byte %d instead of %d", int64(last.Offset())+int64(last.Len()), end)
	}
	// A block, too, ends with its checksum and the checksum's length.
	if sum, err = sectionBefore(f, &end); err != nil {
		return err
	}
	if end < int64(last.Offset()) {
		return errors.New("last block is cut")
	}
	block := make([]byte, end-int64(last.Offset()))
	if _, err := f.ReadAt(block, int64(last.Offset())); err != nil {
		return err
	}
	if err := verify(block, sum); err != nil {
		return fmt.Errorf("last block: %w", err)
	}
	return nil
}

// sectionBefore reads a section that is followed by its length, the two ending at end, and moves end
// to the section's start.
func sectionBefore(f *os.File, end *int64) ([]byte, error) {
	var length [4]byte
	if *end < int64(len(length)) {
		return nil, errors.New("file is cut")
	}
	*end -= int64(len(length))
	if _, err := f.ReadAt(length[:], *end); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > *end {
		return nil, errors.New("file is cut")
	}
	*end -= n
	section := make([]byte, n)
	_, err := f.ReadAt(section, *end)
	return section, err
}

func verify(data, sum []byte) error {
	var want pb.Checksum
	if err := proto.Unmarshal(sum, &want); err != nil {
		return fmt.Errorf("checksum: %w", err)
	}
	if want.Algo != pb.Checksum_CRC32C {
		return fmt.Errorf("checksum of unknown kind %d", want.Algo)
	}
	return y.VerifyChecksum(data, &want)
}
