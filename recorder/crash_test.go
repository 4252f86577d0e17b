package recorder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
)

// childDir names the recording to a process of this test binary that is there to be killed.
const childDir = "RECORDER_TEST_CHILD"

// longEvery is how often plainTxn makes a transaction that is too long for one value.
const longEvery = 50

// plainTxn makes a transaction that anyone can make again from its numbers. Its accesses have no
// lists.
func plainTxn(run history.Run, session history.SessionID, seq uint32) *history.Txn {
	rng := rand.New(rand.NewPCG(uint64(session), uint64(seq)))
	t := &history.Txn{
		ID: history.MakeTxnID(run, seq), Session: session, Status: history.Committed, Level: history.RepeatableRead,
		Start: int64(seq) * 1000, End: int64(seq)*1000 + rng.Int64N(900),
	}
	for num := range 1 + rng.Uint32N(4) {
		s := history.Stmt{Num: num + 1, Kind: history.Update, Observation: history.Exact,
			Shape: fmt.Sprintf("UPDATE t%d SET v = ?", rng.IntN(5))}
		s.Args = []string{fmt.Sprint(rng.IntN(1000))}
		for range rng.IntN(6) {
			s.Accesses = append(s.Accesses, history.Access{
				Row:     history.Row{Table: "shop.t", ID: fmt.Sprint(rng.IntN(100))},
				Op:      history.UpdateRow,
				Version: history.Tag{Txn: history.MakeTxnID(run, 1+rng.Uint32N(seq)), Stmt: 1},
			})
			if session%2 == 0 {
				s.TupleIDs = append(s.TupleIDs, history.TupleID{XID: rng.Uint32N(seq), CTID: rng.Uint64N(1 << 20),
					NewXID: seq, NewID: rng.Uint64N(1 << 20), LSN: uint64(seq) << 8})
			}
		}
		t.Stmts = append(t.Stmts, s)
	}
	if seq%longEvery == 0 {
		t.Stmts[0].Args = append(t.Stmts[0].Args, noise(3*chunkBytes))
	}
	return t
}

// recordUntilKilled records from several sessions and prints each transaction when it is durable.
// Odd sessions rely on durability commit, even ones flush on their own.
func recordUntilKilled(dir string) int {
	w, err := Create(dir, history.Info{}, Options{Durability: Commit})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	var ids struct {
		sync.Mutex
		last uint32
	}
	var wg sync.WaitGroup
	for session := history.SessionID(1); session <= 4; session++ {
		wg.Go(func() {
			for {
				ids.Lock()
				ids.last++
				seq := ids.last
				ids.Unlock()
				t := plainTxn(w.Run(), session, seq)
				if session%2 == 0 {
					t.Implicit = true
				}
				err := w.Txn(context.Background(), t)
				if session%2 == 0 {
					err = errors.Join(err, w.Flush(context.Background()))
				}
				if err != nil {
					fmt.Println("error:", err)
					return
				}
				// One write a line: a killed process does not leave half of it.
				fmt.Printf("%d %d %d\n", w.Run(), session, seq)
			}
		})
	}
	wg.Wait()
	return 1
}

type acknowledged struct {
	run     history.Run
	session history.SessionID
	seq     uint32
}

// killChild runs recordUntilKilled, kills it with SIGKILL after some time and some transactions, and
// returns what it acknowledged.
func killChild(t *testing.T, dir string, after time.Duration) map[acknowledged]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acks := make(map[acknowledged]bool)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var a acknowledged
		if strings.HasPrefix(lines.Text(), "error:") {
			t.Fatal(lines.Text())
		}
		if n, _ := fmt.Sscan(lines.Text(), &a.run, &a.session, &a.seq); n != 3 {
			t.Fatalf("the child said %q", lines.Text())
		}
		acks[a] = true
		if len(acks) == 20 {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended before it was killed")
	}
	return acks
}

func TestKilledWriterLosesNothingThatItAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	dir := t.TempDir()
	acks := make(map[acknowledged]bool)
	const kills = 10
	for i := range kills {
		for a := range killChild(t, dir, time.Duration(10+rand.IntN(300))*time.Millisecond) {
			acks[a] = true
		}
		if i%2 == 0 {
			continue // the next run opens what the killed one left, not a reader
		}
		infos, txns := readAll(t, dir)
		if len(infos) != i+1 {
			t.Fatalf("%d runs after %d kills", len(infos), i+1)
		}
		found := make(map[acknowledged]bool)
		for _, txn := range txns {
			want := plainTxn(txn.ID.Run(), txn.Session, txn.ID.Seq())
			want.Implicit = txn.Session%2 == 0
			if !reflect.DeepEqual(txn, want) {
				t.Fatalf("%s is not whole: %+v", txn.ID, txn)
			}
			found[acknowledged{txn.ID.Run(), txn.Session, txn.ID.Seq()}] = true
		}
		for a := range acks {
			if !found[a] {
				t.Errorf("%+v was acknowledged and is not there", a)
			}
		}
		for _, info := range infos {
			if !info.Ended.IsZero() {
				t.Errorf("killed run %s has an end", info.Run)
			}
		}
		t.Logf("after %d kills: %d transactions, %d of them acknowledged", i+1, len(found), len(acks))
	}
}

func TestRelaxedWriterSyncsWithinItsBound(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	w := create(t, dir, Options{SyncEvery: 20 * time.Millisecond})
	defer closed(t, w)
	before := w.Stats().Syncs
	record(t, w, plainTxn(w.Run(), 1, 1))
	deadline := time.Now().Add(10 * time.Second)
	for w.Stats().Syncs == before {
		if time.Now().After(deadline) {
			t.Fatal("a transaction was not written without a Flush")
		}
		time.Sleep(time.Millisecond)
	}
	// The next batch cannot begin before this one is written.
	flush(t, w)
	if syncs := w.Stats().Syncs - before; syncs != 1 {
		t.Errorf("%d syncs for one transaction", syncs)
	}
	copyDir(t, dir, copied)
	if _, txns := readAll(t, copied); len(txns) != 1 {
		t.Errorf("%d transactions were on disk, want 1", len(txns))
	}
}
