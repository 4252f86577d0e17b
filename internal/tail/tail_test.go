package tail

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/histgen"
	"github.com/isotap/isotap/recorder"
)

// A recording is one that is being written and served.
type recording struct {
	t      *testing.T
	dir    string
	writer *recorder.Writer
	server *Server

	followers int
}

func record(t *testing.T, dir string) *recording {
	t.Helper()
	info := histgen.Config{}.Info()
	w, err := recorder.Create(dir, info, recorder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(dir, w, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Hour
	return &recording{t: t, dir: dir, writer: w, server: s}
}

// add records and shows transactions, in the run's name.
func (r *recording) add(from, n int) {
	r.t.Helper()
	rng := rand.New(rand.NewPCG(uint64(from), 3))
	txns := histgen.Generate(rng, histgen.Config{Engine: histgen.Snapshot, Txns: n, Rows: 4, Ops: 4, Open: 3})
	for _, txn := range txns {
		txn.ID = history.MakeTxnID(r.writer.Run(), uint32(from)+txn.ID.Seq())
		if err := r.writer.Txn(r.t.Context(), txn); err != nil {
			r.t.Error(err)
			return
		}
		r.server.Txn(txn)
	}
}

// end ends the recording.
func (r *recording) end() {
	r.t.Helper()
	r.server.Drain()
	if err := r.writer.Close(); err != nil {
		r.t.Fatal(err)
	}
	info := r.writer.Info()
	if err := r.server.Close(&info); err != nil {
		r.t.Fatal(err)
	}
}

// A heap keeps what it is given.
type heap struct {
	runs []history.Info
	seqs []uint32
	upTo history.TxnID
	hold chan struct{} // it takes no transaction before that is closed; may be nil
}

func (h *heap) Run(_ context.Context, info history.Info) error {
	h.runs = append(h.runs, info)
	return nil
}

func (h *heap) Session(context.Context, history.Session) error { return nil }

func (h *heap) Skip(_ context.Context, upTo history.TxnID) error {
	h.upTo = upTo
	return nil
}

func (h *heap) Txn(_ context.Context, t *history.Txn) error {
	if h.hold != nil {
		<-h.hold
	}
	h.seqs = append(h.seqs, t.ID.Seq())
	return nil
}

// all checks that it was given a run's transactions from the one to the other, each once.
func (h *heap) all(t *testing.T, from, to uint32) {
	t.Helper()
	slices.Sort(h.seqs)
	if uint32(len(h.seqs)) != to-from+1 || len(h.seqs) > 0 && (h.seqs[0] != from || h.seqs[len(h.seqs)-1] != to) ||
		len(slices.Compact(slices.Clone(h.seqs))) != len(h.seqs) {
		t.Errorf("%d transactions were followed, of %d to %d", len(h.seqs), from, to)
	}
	if len(h.runs) == 0 || h.runs[len(h.runs)-1].Ended.IsZero() {
		t.Error("the run's end was not told")
	}
}

func (r *recording) follow(from From, to *heap, wg *sync.WaitGroup) {
	r.t.Helper()
	conn, err := Dial(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	r.followers++
	defer r.admits(r.followers)
	wg.Go(func() {
		if _, err := Read(r.t.Context(), conn, from, new(Clock), to); err != nil {
			r.t.Error(err)
		}
	})
}

// admits waits until so many follow.
func (r *recording) admits(n int) {
	for admitted := 0; admitted < n; time.Sleep(time.Millisecond) {
		r.server.mu.Lock()
		admitted = len(r.server.followers)
		r.server.mu.Unlock()
	}
}

func TestFollowersGetEachTransactionOnce(t *testing.T) {
	r := record(t, filepath.Join(t.TempDir(), "rec"))
	r.server.limit = 500 // whoever does not keep up reads the recording
	var reading, writing sync.WaitGroup
	first, later, slow := &heap{}, &heap{}, &heap{hold: make(chan struct{})}
	r.follow(Beginning, first, &reading)
	r.follow(Beginning, slow, &reading)
	for i := range 4 {
		writing.Go(func() { r.add(200*i, 200) })
	}
	writing.Wait()
	r.follow(Beginning, later, &reading)
	r.add(800, 200)
	close(slow.hold)
	r.end()
	reading.Wait()
	for _, h := range []*heap{first, slow, later} {
		h.all(t, 1, 1000)
	}
}

func TestFollowerFromNowIsToldWhatItMissed(t *testing.T) {
	r := record(t, filepath.Join(t.TempDir(), "rec"))
	r.add(0, 100)
	var reading sync.WaitGroup
	h := &heap{}
	r.follow(Now, h, &reading)
	r.add(100, 100)
	r.end()
	reading.Wait()
	h.all(t, 101, 200)
	if h.upTo != history.MakeTxnID(r.writer.Run(), 100) {
		t.Errorf("it was told that it misses what came up to %s", h.upTo)
	}
}

func TestEarlierRunsAreFollowedToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	r := record(t, dir)
	r.add(0, 50)
	r.end()
	r = record(t, dir)
	r.add(0, 50)
	var reading sync.WaitGroup
	h := &heap{}
	r.follow(Beginning, h, &reading)
	r.end()
	reading.Wait()
	if len(h.seqs) != 100 || len(h.runs) != 3 {
		t.Errorf("%d transactions of %d runs were followed", len(h.seqs), len(h.runs))
	}
}

func TestRunWithoutAnEndIsCut(t *testing.T) {
	r := record(t, filepath.Join(t.TempDir(), "rec"))
	conn, err := Dial(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		if _, err := Read(t.Context(), conn, Beginning, new(Clock), &heap{}); !errors.Is(err, ErrCut) {
			t.Errorf("the error is %v", err)
		}
	})
	r.admits(1)
	r.server.Drain()
	if err := errors.Join(r.writer.Close(), r.server.Close(nil)); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
}

func TestDirectoriesOfAnyLengthCanBeFollowed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "rec")
	r := record(t, dir)
	var reading sync.WaitGroup
	h := &heap{}
	r.follow(Beginning, h, &reading)
	r.add(0, 10)
	r.end()
	reading.Wait()
	h.all(t, 1, 10)
	if _, err := Dial(dir); !errors.Is(err, ErrNobody) {
		t.Errorf("when the run has ended, the error is %v", err)
	}
}
