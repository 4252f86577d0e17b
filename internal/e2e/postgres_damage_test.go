package e2e

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/serverlog"
)

// TestDamagedLogAccusesNobody has one client write seen and unseen, and damages the recording: what is left of it, and
// of the server's log, accuses nobody, and nothing is said to have gone past isotap. Nobody was there.
func TestDamagedLogAccusesNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newLoggedBench(t, serverlog.Require, effectTables...)
	c := b.connect(b.through(), pgx.QueryExecModeSimpleProtocol)
	b.effects(c, rand.New(rand.NewPCG(3, 3)), 4*(*tokenTxns), false)
	if r := b.undisputed(); len(r.Findings) > 0 || r.Coverage.Log.Told == 0 || r.Coverage.Log.Past > 0 {
		t.Fatalf("whole: %d findings, %+v", len(r.Findings), r.Coverage.Log)
	}
	r := rand.New(rand.NewPCG(4, 4))
	refused := 0
	for range 25 {
		dir := filepath.Join(t.TempDir(), "rec")
		if err := os.CopyFS(dir, os.DirFS(b.recording)); err != nil {
			t.Fatal(err)
		}
		name, at := damage(t, r, dir)
		result, err := analysis.Analyze(t.Context(), []string{dir}, analyzer.Options{})
		if err != nil {
			if refused++; !errors.Is(err, recorder.ErrCorrupt) && !errors.Is(err, recorder.ErrNotRecording) &&
				!errors.Is(err, recorder.ErrFormat) {
				t.Errorf("byte %d of %s: %v", at, name, err)
			}
			continue
		}
		l := &result.Coverage.Log
		for _, f := range result.Findings {
			t.Errorf("byte %d of %s: %s %s of %s", at, name, f.Class, f.Anomaly, transactionsOf(f))
		}
		if l.Past > 0 || l.Disputed > 0 || l.Txns > 0 && (result.Coverage.Damaged || result.Coverage.Unreadable > 0) {
			t.Errorf("byte %d of %s: %+v", at, name, l)
		}
	}
	t.Logf("%d of 25 damages were refused", refused)
}

// damage changes a bit of a random table of a recording.
func damage(t *testing.T, r *rand.Rand, dir string) (name string, at int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for {
		name = entries[r.IntN(len(entries))].Name()
		path := filepath.Join(dir, name)
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(p, "\x00"))
		if used == 0 || filepath.Ext(name) != ".sst" {
			continue
		}
		at = r.IntN(used)
		p[at] ^= 1 << r.IntN(8)
		if err := os.WriteFile(path, p, 0o600); err != nil {
			t.Fatal(err)
		}
		return name, at
	}
}
