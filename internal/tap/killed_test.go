package tap

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/recorder"
)

var kills = flag.Int("kills", 10, "how often the proxy is killed")

// killAgainAndAgain kills a proxy that is durable at every commit, under load: all that it acknowledged is recorded.
func killAgainAndAgain(t *testing.T, target catalog.Target, open opener, works []work, read func() held) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rec")
	var acks []ack
	for round := range *kills {
		d := startDoomed(t, target, open, dir, recorder.Commit)
		got, _ := loadUntilKilled(t, d, works, round, time.Duration(rand.IntN(400))*time.Millisecond)
		acks = append(acks, got...)
		recorded, runs := recordedTxns(t, dir)
		if len(runs) != round+1 {
			t.Fatalf("%d runs after %d kills", len(runs), round+1)
		}
		if !runs[round].Ended.IsZero() {
			t.Errorf("killed run %v has an end", runs[round].Run)
		}
		server := read()
		for i := range acks {
			a := &acks[i]
			txn := recorded[a.marker]
			if txn == nil {
				t.Errorf("round %d: %s %s was acknowledged and is not there", round, a.work.name, a.marker)
			} else if err := a.check(txn, server); err != nil {
				t.Errorf("round %d: %s %s: %v", round, a.work.name, a.marker, err)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d kills: %d acknowledged transactions are all there", *kills, len(acks))
	for i := range works {
		if !slices.ContainsFunc(acks, func(a ack) bool { return a.work == &works[i] }) {
			t.Errorf("no %s was ever acknowledged", works[i].name)
		}
	}
}

// killRelaxed kills a proxy that is not: what is lost is no older than the bound.
func killRelaxed(t *testing.T, target catalog.Target, open opener, works []work, read func() held) {
	t.Helper()
	// What an update replaced is known 200 ms later when its client is idle; then comes the next sync. The
	// slack is for a busy machine.
	const bound = 200*time.Millisecond + recorder.DefaultSyncEvery + time.Second
	dir := filepath.Join(t.TempDir(), "rec")
	d := startDoomed(t, target, open, dir, recorder.Relaxed)
	acks, killed := loadUntilKilled(t, d, works, 0, bound+time.Second)
	recorded, _ := recordedTxns(t, dir)
	server := read()
	safe, lost := 0, 0
	var oldest time.Duration
	for i := range acks {
		a := &acks[i]
		age := killed.Sub(a.at)
		if age > bound {
			safe++
		}
		txn := recorded[a.marker]
		if txn == nil {
			lost++
			if oldest = max(oldest, age); age > bound {
				t.Errorf("%s %s was acknowledged %v before the kill and is not there", a.work.name, a.marker, age)
			}
		} else if err := a.check(txn, server); err != nil {
			t.Errorf("%s %s: %v", a.work.name, a.marker, err)
		}
	}
	t.Logf("%d acknowledged transactions, %d lost, the oldest %v before the kill", len(acks), lost, oldest)
	if safe == 0 {
		t.Error("no transaction was acknowledged long enough before the kill")
	}
}
