package recorder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(recordUntilKilled(dir))
	}
	os.Exit(m.Run())
}

func create(t testing.TB, dir string, opts Options) *Writer {
	t.Helper()
	w, err := Create(dir, history.Info{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closed(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func record(t testing.TB, w *Writer, txns ...*history.Txn) {
	t.Helper()
	for _, txn := range txns {
		if err := w.Txn(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// readAll opens a recording and reads its transactions in order.
func readAll(t testing.TB, dir string) ([]history.Info, []*history.Txn) {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	var txns []*history.Txn
	for txn, err := range r.Txns(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
	}
	return r.Runs(), txns
}

func TestRecordingGivesBackRunsSessionsAndTransactions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := filepath.Join(t.TempDir(), "new", "recording")
	started := time.Date(2026, 5, 4, 3, 2, 1, 7, time.UTC)
	info := history.Info{
		Run: 99, Started: started, Isotap: "1.2", Mode: "items",
		Server:  history.Server{Engine: "mariadb", Version: "10.11.19", SnapshotIsolation: true, System: 1<<63 + 5},
		Horizon: 1<<33 + 740, Recent: history.Recent{From: 1<<33 + 740, To: 1<<33 + 760,
			Running: []uint64{1<<33 + 740, 1<<33 + 751}},
	}
	w, err := Create(dir, info, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sessions := []history.Session{{Run: w.Run(), ID: 1, Client: "127.0.0.1:5", User: "u", Start: 4, End: 9},
		{Run: w.Run(), ID: 2, Start: 5}}
	open := sessions[0]
	open.End = 0
	for _, s := range []history.Session{open, sessions[1], sessions[0]} {
		if err := w.Session(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	var want []*history.Txn
	for seq := uint32(1); seq <= 40; seq++ {
		want = append(want, plainTxn(w.Run(), history.SessionID(seq%2+1), seq))
		record(t, w, plainTxn(w.Run(), history.SessionID(seq%2+1), seq))
	}
	w.Rewritten([]string{"public.t@shop"})
	w.Untested(3, 2)
	closed(t, w)

	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	info.Run, info.Ended, info.Rewritten = w.Run(), r.Runs()[0].Ended, []string{"public.t@shop"}
	info.Untested, info.BeyondBound = 3, 2
	if got := r.Runs(); len(got) != 1 || !reflect.DeepEqual(got[0], info) || got[0].Ended.IsZero() {
		t.Errorf("runs are %+v, want %+v", got, info)
	}
	var gotSessions []history.Session
	for s, err := range r.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		gotSessions = append(gotSessions, s)
	}
	if !slices.Equal(gotSessions, sessions) {
		t.Errorf("sessions are %+v, want %+v", gotSessions, sessions)
	}
	closed(t, r)
	slices.SortStableFunc(want, func(a, b *history.Txn) int { return int(a.Session) - int(b.Session) })
	if _, got := readAll(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("got %d transactions, want %d, in order of session and time", len(got), len(want))
	}
}

func TestAnyTransactionsComeBackFromDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		w := create(t, dir, Options{})
		var want []*history.Txn
		for seq := range uint32(4) {
			txn := drawTxn(rt, history.MakeTxnID(w.Run(), seq+1))
			txn.Session = 7
			// Which lists come back is TestListsAreStoredOnce's matter.
			for i := range txn.Stmts {
				for j := range txn.Stmts[i].Accesses {
					txn.Stmts[i].Accesses[j].Prior = nil
				}
			}
			want = append(want, txn)
			record(t, w, txn)
		}
		closed(t, w)
		if _, got := readAll(t, dir); !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// TestListsAreStoredOnce checks history.Access.Prior's promise: a list is left out only where an
// earlier access of the recording has the same one with the same version of the row.
func TestListsAreStoredOnce(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	s := newSysbench(w.Run(), 1, 500)
	var want []*history.Txn
	for range 300 {
		want = append(want, s.txn(1))
	}
	// The same version with another list: what a broken engine would show.
	odd := plainTxn(w.Run(), 1, 301)
	contradiction := want[299].Stmts[1].Accesses[0]
	contradiction.Prior = []history.Tag{{Txn: history.MakeTxnID(3, 3), Stmt: 3}}
	odd.Stmts[0].Accesses = []history.Access{contradiction}
	want = append(want, odd)
	record(t, w, want...)
	closed(t, w)

	type version struct {
		row history.Row
		tag history.Tag
	}
	stored := make(map[version][][]history.Tag)
	full, left := 0, 0
	_, got := readAll(t, dir)
	for i, txn := range got {
		for j := range txn.Stmts {
			for k, a := range txn.Stmts[j].Accesses {
				prior := want[i].Stmts[j].Accesses[k].Prior
				at := version{a.Row, a.Version}
				switch {
				case len(prior) == 0 && a.Prior == nil:
				case slices.Equal(a.Prior, prior):
					stored[at] = append(stored[at], prior)
					full++
				case a.Prior == nil && slices.ContainsFunc(stored[at],
					func(l []history.Tag) bool { return slices.Equal(l, prior) }):
					left++
				default:
					t.Fatalf("%s: list %v of %v came back as %v", txn.ID, prior, at, a.Prior)
				}
			}
		}
	}
	if n := len(got); n != 301 || !slices.Equal(got[n-1].Stmts[0].Accesses[0].Prior, contradiction.Prior) {
		t.Error("the contradicting list is lost")
	}
	if left < 10*full {
		t.Errorf("%d lists were stored and %d left out: few for rows that are read again and again", full, left)
	}
}

func TestForgottenListsAreStoredAgain(t *testing.T) {
	s := &priorSet{seed: newPriorSet().seed, slots: make([]uint64, priorWays)}
	a := history.Access{Row: history.Row{Table: "t", ID: "1"},
		Version: history.Tag{Txn: 5, Stmt: 1}, Prior: []history.Tag{{}}}
	if s.add(&a) {
		t.Fatal("a list is known that was never added")
	}
	if !s.add(&a) {
		t.Fatal("a list is forgotten at once")
	}
	for i := range uint32(priorWays) {
		b := a
		b.Version.Stmt = i + 2
		s.add(&b)
	}
	if s.add(&a) {
		t.Fatalf("one bucket holds more than %d lists", priorWays)
	}
}

func TestSecondRunIsAddedToTheRecording(t *testing.T) {
	dir := t.TempDir()
	var runs []history.Run
	for i := range 3 {
		w, err := Create(dir, history.Info{Started: time.Unix(int64(1000+i), 0)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, w.Run())
		record(t, w, plainTxn(w.Run(), 1, 1), plainTxn(w.Run(), 1, 2))
		closed(t, w)
	}
	infos, txns := readAll(t, dir)
	if len(infos) != 3 || len(txns) != 6 {
		t.Fatalf("%d runs and %d transactions, want 3 and 6", len(infos), len(txns))
	}
	for i, info := range infos {
		if info.Run != runs[i] || info.Ended.IsZero() {
			t.Errorf("run %d is %+v, want %s, ended", i, info, runs[i])
		}
	}
	slices.Sort(runs)
	for i, txn := range txns {
		if want := plainTxn(runs[i/2], 1, uint32(i%2+1)); !reflect.DeepEqual(txn, want) {
			t.Errorf("transaction %d is %s, want %s", i, txn.ID, want.ID)
		}
	}
}

func TestTransactionOfAnotherRunIsRefused(t *testing.T) {
	w := create(t, t.TempDir(), Options{})
	defer closed(t, w)
	for _, id := range []history.TxnID{0, history.MakeTxnID(w.Run()+1, 1), history.MakeTxnID(w.Run(), 0)} {
		if err := w.Txn(t.Context(), &history.Txn{ID: id}); err == nil {
			t.Errorf("transaction %s was taken", id)
		}
	}
}

func TestManySessionsRecordAtOnce(t *testing.T) {
	for _, durability := range []Durability{Relaxed, Commit} {
		t.Run(durability.String(), func(t *testing.T) {
			dir := t.TempDir()
			// A queue of one byte holds one transaction: everyone waits for everyone.
			w := create(t, dir, Options{Durability: durability, QueueBytes: 1})
			const sessions, each = 8, 40
			var wg sync.WaitGroup
			for s := range uint32(sessions) {
				wg.Go(func() {
					for i := range uint32(each) {
						if err := w.Txn(t.Context(), plainTxn(w.Run(), history.SessionID(s+1),
							i*sessions+s+1)); err != nil {
							t.Error(err)
						}
						if i%10 == 0 {
							if err := w.Flush(t.Context()); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			stats := w.Stats()
			closed(t, w)
			_, txns := readAll(t, dir)
			if len(txns) != sessions*each {
				t.Fatalf("%d transactions came back of %d", len(txns), sessions*each)
			}
			for _, txn := range txns {
				if want := plainTxn(w.Run(), txn.Session, txn.ID.Seq()); !reflect.DeepEqual(txn, want) {
					t.Fatalf("got %+v, want %+v", txn, want)
				}
			}
			if stats.Stalls == 0 || stats.Stalled == 0 {
				t.Errorf("no call found the queue full: %+v", stats)
			}
		})
	}
}

func TestFullQueueBlocksUntilThereIsRoom(t *testing.T) {
	q := newQueue(100)
	ctx := t.Context()
	if err := q.put(ctx, item{size: 60}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := q.put(short, item{size: 60}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a full queue took an item: %v", err)
	}
	if err := q.put(ctx, item{size: 40}); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- q.put(ctx, item{size: 1000}) }()
	for stalls := uint64(0); stalls < 2; time.Sleep(time.Millisecond) {
		q.mu.Lock()
		stalls = q.stalls
		q.mu.Unlock()
	}
	if items, _ := q.take(nil); len(items) != 2 {
		t.Fatalf("%d items were queued, want 2", len(items))
	}
	select {
	case err := <-waited:
		t.Fatalf("a call got in (%v) before the items that filled the queue were done with", err)
	case <-time.After(10 * time.Millisecond):
	}
	q.release(100)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	go func() { waited <- q.put(ctx, item{size: 1}) }()
	q.stop(ErrClosed)
	if err := <-waited; !errors.Is(err, ErrClosed) {
		t.Fatalf("a waiting call got %v from a stopped queue", err)
	}
}

func TestClosedWriterSaysSo(t *testing.T) {
	w := create(t, t.TempDir(), Options{})
	closed(t, w)
	closed(t, w)
	if err := w.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush gave %v", err)
	}
	if err := w.Err(); err != nil {
		t.Errorf("Err gave %v", err)
	}
}

func TestTransactionsOfAnySizeAreRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	dir := t.TempDir()
	w := create(t, dir, Options{QueueBytes: 1 << 20})
	huge := func(seq uint32, n int) *history.Txn {
		txn := plainTxn(w.Run(), 1, seq)
		text := noise(n)
		for len(text) > 0 {
			part := text[:min(len(text), 3000)]
			text = text[len(part):]
			txn.Stmts[0].Args = append(txn.Stmts[0].Args, part)
		}
		return txn
	}
	sizes := []int{chunkBytes - 4000, chunkBytes + 1, 5 << 20, 10, 9 << 20}
	for i, n := range sizes {
		record(t, w, huge(uint32(i+1), n))
	}
	closed(t, w)
	_, txns := readAll(t, dir)
	if len(txns) != len(sizes) {
		t.Fatalf("%d transactions of %d", len(txns), len(sizes))
	}
	for i, n := range sizes {
		if !reflect.DeepEqual(txns[i], huge(uint32(i+1), n)) {
			t.Errorf("the transaction of %d bytes came back changed", n)
		}
	}
}

// TestSyncEveryCountsFromTheQueue gives the Writer something that waited there as long as it may, as behind a long
// sync.
func TestSyncEveryCountsFromTheQueue(t *testing.T) {
	w := create(t, t.TempDir(), Options{SyncEvery: time.Hour})
	defer closed(t, w)
	err := w.queue.put(t.Context(), item{session: &history.Session{ID: 1}, size: 1, queued: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "what has waited is written at once", func() bool { return w.Stats().Syncs > 0 })
	if s := w.Stats(); s.Longest <= 0 || s.Syncing <= 0 {
		t.Errorf("syncs took %v, the longest %v", s.Syncing, s.Longest)
	}
}

func TestManySmallValuesAreRecorded(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{SyncEvery: time.Hour})
	const sessions = 3*batchEntries + 1
	for id := range history.SessionID(sessions) {
		if err := w.Session(t.Context(), history.Session{ID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, w)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	read := history.SessionID(0)
	for s, err := range r.Sessions(t.Context()) {
		if read++; err != nil || s.ID != read || s.Run != w.Run() {
			t.Fatalf("session %d is %+v, %v", read, s, err)
		}
	}
	if read != sessions {
		t.Errorf("%d sessions came back of %d", read, sessions)
	}
}

func TestRecordingInUseIsReadButNotWritten(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	if err := InUse(dir); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "process") {
		t.Errorf("InUse beside a Writer gave %v", err)
	}
	record(t, w, plainTxn(w.Run(), 1, 1))
	flush(t, w)
	if infos, txns := readAll(t, dir); len(txns) != 1 || !infos[0].Ended.IsZero() {
		t.Errorf("a Reader beside a Writer gave %d transactions, ended %v", len(txns), infos[0].Ended)
	}
	if _, err := Create(dir, history.Info{}, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("Create beside a Writer gave %v", err)
	}
	closed(t, w)
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err != nil {
		t.Fatalf("a second Reader: %v", err)
	}
	closed(t, create(t, dir, Options{}))
	for _, err := range a.Txns(t.Context()) {
		if err != nil {
			t.Errorf("a Reader beside whom a run was added: %v", err)
		}
	}
	if err := InUse(dir); err != nil {
		t.Errorf("InUse of a closed recording gave %v", err)
	}
	closed(t, a)
	closed(t, b)
}

func TestReadingStopsWhenAskedTo(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	for seq := range uint32(10) {
		record(t, w, plainTxn(w.Run(), 1, seq+1))
	}
	closed(t, w)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	for range r.Txns(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	for _, err := range r.Txns(ctx) {
		if read++; read == 3 {
			cancel()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if read > 4 {
		t.Errorf("%d transactions were read, cancelled at 3", read)
	}
}

func TestDurabilityReadsItsWords(t *testing.T) {
	for _, d := range []Durability{Relaxed, Commit} {
		if got, err := ParseDurability(d.String()); got != d || err != nil {
			t.Errorf("%s: %v, %v", d, got, err)
		}
	}
	if _, err := ParseDurability("always"); err == nil {
		t.Error("a third durability is known")
	}
}

// Only of what cannot have written does nobody wait for the disk.
func TestAutocommittedReadIsHarmlessIfObserved(t *testing.T) {
	read := func(o history.Observation) history.Stmt { return history.Stmt{Kind: history.Select, Observation: o} }
	for _, c := range []struct {
		name     string
		implicit bool
		stmt     history.Stmt
		want     bool
	}{
		{"a read", true, read(history.Exact), true},
		{"SELECT 1", true, read(history.Nothing), true},
		{"a read that may call what writes", true, read(history.Opaque), false},
		{"a read of which a part was not observed", true, read(history.Inexact), false},
		{"a read in a transaction", false, read(history.Exact), false},
		{"a write", true, history.Stmt{Kind: history.Update, Observation: history.Exact}, false},
		{"CALL", true, history.Stmt{Observation: history.Opaque}, false},
		{"SET", true, history.Stmt{Kind: history.Set}, true},
		{"SET @a = f()", true, history.Stmt{Kind: history.Set, Observation: history.Opaque}, false},
	} {
		if got := harmless(&history.Txn{Implicit: c.implicit, Stmts: []history.Stmt{c.stmt}}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
