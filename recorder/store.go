package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// formatVersion is the version of FORMAT.md that this package writes.
const formatVersion = 4

// oldestVersion is the oldest version that it reads. A Writer makes its own version of what it adds to.
const oldestVersion = 1

const (
	markerName = "ISOTAP-RECORDING"
	markerText = "isotap recording, format "
)

// memTableSize is what Badger collects in memory, and in its write-ahead log, before it writes a
// table. A batch must fit within 15% of it. Readers use the same size, for Badger replays a log into
// memory of this size.
const memTableSize = 8 << 20

// tableSize is how large a table becomes at most when tables are rewritten, which is done in memory.
// Keys come in order, so that a table is never joined with others later on: a recording has as many files
// as this makes of it, and all are open and mapped while it is written. A process has 65,530 maps
// (vm.max_map_count): with tables of 1 MiB, what 60 GB need.
const tableSize = 8 << 20

// badgerOptions are the settings that writing and reading share.
//
// Everything lives in the tree, nothing in Badger's value log: values are cut to less than its
// threshold, so there is nothing for the log's garbage collection to do, and one file to sync. Blocks
// are not compressed, since the values are (FORMAT.md has the figures): a block that lies in the file
// as it is can be checked before Badger reads it. Memory stays small, for the
// database server next door needs it: about 30 MiB at rest, and 100 MiB more while tables are
// rewritten under a load of thousands of transactions a second.
func badgerOptions(dir string, log *zap.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(badgerLog{log}).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithBaseTableSize(tableSize).
		WithBaseLevelSize(32 << 20).
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithBloomFalsePositive(0). // no lookups by key while writing
		WithNumCompactors(2).      // the fewest that Badger allows
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false). // one writer
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.OnBlockRead)
}

// openBadger opens a database whose files were checked, and names the error that callers look for.
func openBadger(dir string, o badger.Options) (*badger.DB, error) {
	db, err := badger.Open(o)
	if err == nil {
		return db, nil
	}
	if strings.Contains(err.Error(), "Cannot acquire directory lock") {
		return nil, inUse(dir)
	}
	return nil, fmt.Errorf("open recording %s: %w", dir, err)
}

// InUse returns ErrInUse, with the process, where a Writer has the recording open; nil where none has. Readers may be
// beside one.
func InUse(dir string) error { return probeLock(dir, true) }

func inUse(dir string) error {
	by := ""
	if pid, err := os.ReadFile(filepath.Join(dir, "LOCK")); err == nil {
		by = " by process " + strings.TrimSpace(string(pid))
	}
	return fmt.Errorf("%w: %s is open%s; stop it first", ErrInUse, dir, by)
}

// createMarker makes dir a recording. It must not exist, be empty, or be one already.
func createMarker(dir string) error {
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, markerName)); err == nil {
		return checkMarker(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	for _, e := range entries {
		if e.Name() != markerName+".new" {
			return fmt.Errorf("%w: %s holds other files (%s); name an empty or a new directory", ErrNotRecording, dir,
				e.Name())
		}
	}
	return writeMarker(dir)
}

// writeMarker writes the marker of the present version. It is written beside and renamed: a marker is whole
// or not there.
func writeMarker(dir string) error {
	fresh := filepath.Join(dir, markerName+".new")
	if err := writeSynced(fresh, markerText+strconv.Itoa(formatVersion)+"\n"); err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	if err := os.Rename(fresh, filepath.Join(dir, markerName)); err != nil {
		return fmt.Errorf("create recording: %w", err)
	}
	return syncDir(dir)
}

// raiseMarker sees to it that an older isotap does not read what is added to an older recording.
func raiseMarker(dir string) error {
	version, err := readMarker(dir)
	if err != nil || version == formatVersion {
		return err
	}
	return writeMarker(dir)
}

func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, privateFile)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory of recording: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync directory of recording: %w", err)
	}
	return nil
}

// checkMarker reports whether dir is a recording of a version that this package knows.
func checkMarker(dir string) error {
	_, err := readMarker(dir)
	return err
}

// readMarker returns the version of the recording in dir.
func readMarker(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(dir); err != nil {
			return 0, fmt.Errorf("%w: %s does not exist", ErrNotRecording, dir)
		}
		return 0, fmt.Errorf("%w: %s has no file %s", ErrNotRecording, dir, markerName)
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrNotRecording, err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(text)), markerText)
	n, err := strconv.Atoi(version)
	switch {
	case !ok || err != nil:
		return 0, fmt.Errorf("%w: %s does not say its format", ErrNotRecording, filepath.Join(dir, markerName))
	case n < oldestVersion || n > formatVersion:
		return 0, fmt.Errorf("%w: %s has format %d, this isotap reads formats %d to %d", ErrFormat, dir, n,
			oldestVersion, formatVersion)
	}
	return n, nil
}

// badgerLog gives Badger's messages to zap.
type badgerLog struct{ log *zap.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.write(zapcore.ErrorLevel, f, a) }
func (l badgerLog) Warningf(f string, a ...any) { l.write(zapcore.DebugLevel, f, a) }
func (l badgerLog) Infof(f string, a ...any)    { l.write(zapcore.DebugLevel, f, a) }
func (l badgerLog) Debugf(f string, a ...any)   { l.write(zapcore.DebugLevel, f, a) }

func (l badgerLog) write(level zapcore.Level, format string, args []any) {
	if l.log.Core().Enabled(level) {
		l.log.Log(level, "badger: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}
