package recorder

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
)

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignDirectoriesAreRefused(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string]string
		create error // nil: Create makes it a recording
		open   error
		says   string // what Open's error must say
	}{
		{"empty directory", nil, nil, ErrNotRecording, "no file " + markerName},
		{"somebody's files", map[string]string{"main.go": "package main"}, ErrNotRecording, ErrNotRecording, "no file"},
		{"another Badger database", map[string]string{"MANIFEST": "Bdgr", "000001.sst": ""}, ErrNotRecording,
			ErrNotRecording, "no file"},
		{"a later format", map[string]string{markerName: markerText + "5\n"}, ErrFormat, ErrFormat,
			"format 5, this isotap reads formats 1 to 4"},
		{"a marker of something else", map[string]string{markerName: "hello"}, ErrNotRecording, ErrNotRecording,
			"does not say its format"},
		{"a marker alone", map[string]string{markerName: markerText + "1\n"}, nil, ErrCorrupt, "MANIFEST"},
		{"an interrupted Create", map[string]string{markerName + ".new": ""}, nil, ErrNotRecording, "no file"},
		{"tables without MANIFEST", map[string]string{markerName: markerText + "1\n", "000001.sst": "x"}, ErrCorrupt,
			ErrCorrupt, "MANIFEST"},
		{"a MANIFEST of something else", map[string]string{markerName: markerText + "1\n", "MANIFEST": "x"}, ErrCorrupt,
			ErrCorrupt, "MANIFEST"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Open(dir); !errors.Is(err, test.open) || !strings.Contains(err.Error(), test.says) ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("Open gave %v, want %v", err, test.open)
			}
			w, err := Create(dir, history.Info{}, Options{})
			if !errors.Is(err, test.create) {
				t.Errorf("Create gave %v, want %v", err, test.create)
			}
			if err == nil {
				closed(t, w)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNotRecording) {
		t.Errorf("Open of nothing gave %v", err)
	}
}

// TestFormat1IsReadAndAppended: recordings of format 1 are read and added to.
func TestFormat1IsReadAndAppended(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	record(t, w, plainTxn(w.Run(), 1, 1))
	closed(t, w)
	marker := filepath.Join(dir, markerName)
	if err := os.WriteFile(marker, []byte(markerText+"1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, txns := readAll(t, dir); len(txns) != 1 {
		t.Errorf("%d transactions of a recording of format 1, want 1", len(txns))
	}
	w = create(t, dir, Options{})
	record(t, w, placed(plainTxn(w.Run(), 1, 1)))
	closed(t, w)
	if _, txns := readAll(t, dir); len(txns) != 2 {
		t.Errorf("%d transactions after one more, want 2", len(txns))
	}
	if text, err := os.ReadFile(marker); err != nil || string(text) != markerText+"4\n" {
		t.Errorf("the marker says %q, %v: an older isotap would read what it does not know", text, err)
	}
}

const damagedTxns = 2000

// largeRecording makes a recording of several blocks and tables, with one long transaction in each
// run, closed in order or not.
func largeRecording(t *testing.T, clean bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for range 2 {
		w := create(t, dir, Options{})
		for seq, n := uint32(1), 1; n < damagedTxns/2; seq++ {
			if seq%longEvery != 0 {
				record(t, w, plainTxn(w.Run(), history.SessionID(seq%3+1), seq))
				n++
			}
			if seq%longEvery == 0 {
				flush(t, w)
			}
		}
		record(t, w, plainTxn(w.Run(), 1, longEvery))
		flush(t, w)
		if !clean {
			killed := t.TempDir()
			copyDir(t, dir, killed)
			defer closed(t, w)
			return killed
		}
		closed(t, w)
	}
	return dir
}

// tryRead reads what can be read. Whatever it gives must be whole.
func tryRead(t *testing.T, dir string) (read int, err error) {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		return 0, err
	}
	defer closed(t, r)
	for txn, txnErr := range r.Txns(t.Context()) {
		if txnErr != nil {
			err = errors.Join(err, txnErr)
			continue
		}
		if !reflect.DeepEqual(txn, plainTxn(txn.ID.Run(), txn.Session, txn.ID.Seq())) {
			t.Fatalf("transaction %s came back changed", txn.ID)
		}
		read++
	}
	return read, err
}

// TestDamageIsFound cuts, deletes and changes every file of a recording. A reader must then either
// say so or still give all of it; it must not end the process, which Badger does left to itself.
func TestDamageIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	whole := largeRecording(t, true)
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	flip := func(b []byte) []byte { b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255)); return b }
	damages := map[string]func(b []byte) []byte{
		"deleted":   nil,
		"emptied":   func([]byte) []byte { return nil },
		"halved":    func(b []byte) []byte { return b[:len(b)/2] },
		"shortened": func(b []byte) []byte { return b[:max(0, len(b)-1)] },
		"changed":   flip,
	}
	tableDamages := maps.Clone(damages)
	for i := range 6 {
		tableDamages[fmt.Sprint("changed again ", i)] = flip
		tableDamages[fmt.Sprint("cut ", i)] = func(b []byte) []byte { return b[:rng.IntN(len(b))] }
	}
	tables := 0
	for _, e := range entries {
		isTable := strings.HasSuffix(e.Name(), ".sst")
		list := damages
		if isTable {
			list = tableDamages
			tables++
		}
		for name, damage := range list {
			dir := t.TempDir()
			copyDir(t, whole, dir)
			path := filepath.Join(dir, e.Name())
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if damage == nil || len(b) == 0 {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, damage(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			read, err := tryRead(t, dir)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err == nil && read != damagedTxns {
				t.Errorf("%s %s: %d transactions of %d and no error", e.Name(), name, read, damagedTxns)
			}
			if isTable && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s %s: %v, want ErrCorrupt", e.Name(), name, err)
			}
		}
	}
	if tables == 0 {
		t.Fatal("the recording has no table")
	}
}

// TestCutLogHoldsWholeTransactions cuts what a killed writer left at any place: what is read is whole, and what is
// missing is told, since the marks are not in the log.
func TestCutLogHoldsWholeTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	whole := largeRecording(t, false)
	logs, err := filepath.Glob(filepath.Join(whole, "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the recording has no log: %v", err)
	}
	last := filepath.Base(logs[len(logs)-1])
	text, err := os.ReadFile(filepath.Join(whole, last))
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(text), "\x00"))
	rng := rand.New(rand.NewPCG(5, 6))
	partly := 0
	for i := range 10 {
		dir := t.TempDir()
		copyDir(t, whole, dir)
		// The last transaction takes most of the log: half of the cuts are to fall before it.
		cut := 20 + rng.IntN((used-20)/(1+i%2*20))
		if err := os.WriteFile(filepath.Join(dir, last), text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := tryRead(t, dir)
		var missing *MissingError
		switch {
		case err != nil && strings.Contains(err.Error(), "holds no run"):
		case !errors.As(err, &missing) || missing.Read != uint64(read) || missing.Written != damagedTxns/2:
			t.Errorf("log cut at %d of %d: %d transactions and %v", cut, used, read, err)
		}
		if read > 0 && read < damagedTxns/2 {
			partly++
		}
	}
	if partly == 0 {
		t.Error("no cut left a part of the transactions")
	}
}

// hurt changes one bit of a random file of a recording, or cuts it, and returns what it did. A file of zeros is cut
// only.
func hurt(t *testing.T, rng *rand.Rand, dir string) (name, what string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for {
		name = entries[rng.IntN(len(entries))].Name()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(b, "\x00"))
		if used == 0 {
			continue
		}
		at := rng.IntN(used)
		if rng.IntN(4) == 0 {
			b, what = b[:at], fmt.Sprintf("cut at %d of %d", at, used)
		} else {
			bit := byte(1) << rng.IntN(8)
			b[at] ^= bit
			what = fmt.Sprintf("bit %02x of byte %d of %d", bit, at, used)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name, what
	}
}

// TestRandomDamageIsNeverSilent damages any file of a closed recording and of one whose writer was killed: every
// transaction that a reader gives is the one that was written (tryRead), and those that it does not give it counts, or
// it refuses.
func TestRandomDamageIsNeverSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed %v", clean), func(t *testing.T) {
			whole := largeRecording(t, clean)
			total := damagedTxns
			if !clean {
				total /= 2
			}
			rng := rand.New(rand.NewPCG(*damageSeed, 1))
			said, less, refused, salvaged := 0, 0, 0, 0
			for range *damages {
				dir := t.TempDir()
				copyDir(t, whole, dir)
				name, what := hurt(t, rng, dir)
				read, err := tryRead(t, dir)
				if err != nil {
					said++
				}
				missing := 0
				for _, e := range Missing(err) {
					missing += int(e.Written - e.Read)
				}
				switch {
				case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotRecording) &&
					!errors.Is(err, ErrFormat):
					t.Errorf("%s, %s: %v", name, what, err)
				case read == 0 && err != nil:
					refused++
				case read+missing != total:
					t.Errorf("%s, %s: %d transactions of %d were read, %d are said to be missing: %v", name,
						what, read, total, missing, err)
				case read < total:
					less++
				case err != nil:
					salvaged++
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d damages: %d were noticed; all transactions were read in spite of %d, some after %d, none after %d", *damages, said, salvaged, less, refused)
		})
	}
}

var (
	damages    = flag.Int("damages", 20, "how often a recording is damaged")
	damageSeed = flag.Uint64("seed", 1, "of the damages")
)

// TestOneBitInALogCostsFewTransactions is the case that Badger answers with a shorter recording: it ends a log at the
// first entry whose checksum does not fit.
func TestOneBitInALogCostsFewTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	whole := largeRecording(t, false)
	rng := rand.New(rand.NewPCG(8, 9))
	for range 12 {
		dir := t.TempDir()
		copyDir(t, whole, dir)
		path := filepath.Join(dir, "00001.mem")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The first entries describe the run and have most of its strings.
		at := 20_000 + rng.IntN(len(bytes.TrimRight(b, "\x00"))-20_000)
		b[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := tryRead(t, dir)
		if !errors.Is(err, ErrCorrupt) || read < damagedTxns/2-1 {
			t.Errorf("a bit of byte %d: %d transactions of %d, and %v", at, read, damagedTxns/2, err)
		}
		if w, err := Create(dir, history.Info{}, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a Writer that would cut off what can be read gave %v", errors.Join(err, w.Close()))
		}
	}
}

// put changes a recording behind the package's back.
func put(t *testing.T, dir string, key, value []byte) {
	t.Helper()
	db, err := badger.Open(badgerOptions(dir, zap.NewNop()))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, db)
	err = db.Update(func(txn *badger.Txn) error {
		if value == nil {
			return txn.Delete(key)
		}
		return txn.Set(key, appendSeal(append(bytes.Clone(key), value...), 0)[len(key):])
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedValuesAreNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	id := func(w *Writer) history.TxnID { return history.MakeTxnID(w.Run(), 50) }
	tests := []struct {
		name  string
		key   func(w *Writer) []byte
		value []byte // nil: deleted
		says  string
		rest  int // the transactions that are still read, of 60
	}{
		{"transaction changed", func(w *Writer) []byte { return appendTxnKey(nil, keyTxn, id(w)+1, 1) },
			[]byte{packPlain, 1}, "transaction", 59},
		{"transaction of unknown form", func(w *Writer) []byte { return appendTxnKey(nil, keyTxn, id(w)+1, 1) },
			[]byte{77}, "unknown form 77", 59},
		{"transaction missing", func(w *Writer) []byte { return appendTxnKey(nil, keyTxn, id(w)+1, 1) }, nil,
			"59 readable transactions of 60", 59},
		{"part missing", func(w *Writer) []byte { return appendChunkKey(nil, id(w), 1, 1) }, nil, "part 2 of 4", 59},
		{"part changed", func(w *Writer) []byte { return appendChunkKey(nil, id(w), 1, 1) }, []byte{packZstd, 1},
			"decompress", 59},
		{"key too long", func(w *Writer) []byte { return append(appendTxnKey(nil, keyTxn, id(w)+1, 1), 0) }, []byte{0},
			"bytes instead of 13", 60},
		{"string missing", func(w *Writer) []byte { return appendNumberKey(nil, keyString, w.Run(), 0) }, nil,
			"string 0 is missing", 24},
		{"description changed", func(w *Writer) []byte { return appendRunKey(nil, keyRun, w.Run()) }, []byte("{"),
			"description of run", 0},
		{"count missing", func(w *Writer) []byte { return appendRunKey(nil, keyCount, w.Run()) }, nil,
			"and 0 are counted", 60},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			w := create(t, dir, Options{})
			for seq := range uint32(60) {
				record(t, w, plainTxn(w.Run(), 1, seq+1))
			}
			closed(t, w)
			put(t, dir, test.key(w), test.value)
			read, err := tryRead(t, dir)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want ErrCorrupt and %q", err, test.says)
			}
			if read != test.rest {
				t.Errorf("%d transactions were read, want %d", read, test.rest)
			}
		})
	}
}
