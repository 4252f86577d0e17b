//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// A victim is what a round of kills kills.
type victim int

const (
	killProxy victim = iota
	killServer
	killBoth
)

// String is the word of the command line.
func (v victim) String() string { return [...]string{"proxy", "server", "both"}[v] }

// roundsPerRecording is how many proxies in turn add to one recording before it is put aside: each begins on what a
// killed one left.
const roundsPerRecording = 5

// kills is the campaign that kills the proxy, the server, or both while clients work, and then looks for what these
// were told.
type kills struct {
	*job
	site      *site
	recording string
	first     int // round of the recording
	acks      []ack
	oldest    time.Duration // of what a relaxed recording lost, before the kill
	missing   int64         // transactions that it lost as it may
	killed    [3]int
	struck    map[int]victim // what was killed in which round
	promised  time.Duration  // what was acknowledged so long before the kill is in the recording
	longest   time.Duration  // the longest sync of all rounds
	// unseen says that sessions of the round went unobserved: the server needed too long to tell its tables. Nothing is
	// then promised of what is recorded of them.
	unseen       bool
	unseenRounds int
}

func runKills(ctx context.Context, j *job) (err error) {
	k := kills{job: j, struck: make(map[int]victim)}
	if j.durability == recorder.Relaxed {
		k.promised = recorder.RelaxedLoss + j.slack
	}
	if k.site, err = j.family.newSite(ctx, 200, relays); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.site.close()) }()
	for random, ok := j.next(ctx); ok; random, ok = j.next(ctx) {
		if k.recording == "" || j.row.rounds-k.first >= roundsPerRecording {
			if err := k.begin(ctx); err != nil {
				return err
			}
		}
		if err := k.round(ctx, random); err != nil {
			return err
		}
		if j.row.bad() {
			break // what it was done to is left as it is
		}
	}
	k.note()
	return nil
}

// note says what the numbers of the row do not.
func (k *kills) note() {
	k.row.note("killed: %d times the proxy, %d the server, %d both", k.killed[killProxy], k.killed[killServer],
		k.killed[killBoth])
	if k.unseenRounds > 0 {
		k.row.note("in %d rounds the server needed more than 5 s to tell its tables, and sessions went unobserved",
			k.unseenRounds)
	}
	if k.durability == recorder.Relaxed {
		k.row.note("%s unrecorded at a kill, the oldest acknowledged %d ms before it; the longest sync took %d ms",
			thousands(k.missing),
			k.oldest.Milliseconds(), k.longest.Milliseconds())
	}
}

// begin makes the tables anew, and a recording for the proxies to come.
func (k *kills) begin(ctx context.Context) error {
	if k.recording != "" {
		if err := os.RemoveAll(k.recording); err != nil {
			return fmt.Errorf("remove a recording: %w", err)
		}
	}
	k.first, k.acks = k.row.rounds, nil
	k.recording = filepath.Join(k.dir, fmt.Sprintf("recording-%d", k.first))
	return k.site.makeTables(ctx)
}

// round has clients work through a proxy, kills, and looks at what is left.
func (k *kills) round(ctx context.Context, random *rand.Rand) error {
	victim := k.victims[random.IntN(len(k.victims))]
	log := k.recording + ".log"
	p, err := startProxy(ctx, k.isotap, log, "--upstream", k.family.upstream(k.site.Addr()), "--recording", k.recording,
		"--durability", k.durability.String())
	if err != nil {
		return err
	}
	defer p.end(syscall.SIGKILL, patience)
	acks, at, err := k.load(ctx, p, random, victim)
	if err != nil {
		return err
	}
	if err := k.recover(ctx, p, victim); err != nil {
		return err
	}
	found, err := panics(log)
	if err != nil {
		return err
	}
	k.count(func(r *row) {
		r.panics += found
		r.faults++
		r.acknowledged += int64(len(acks))
		for _, a := range acks {
			r.operations += int64(len(a.work.stmts))
		}
	})
	k.killed[victim]++
	k.struck[k.row.rounds] = victim
	if k.unseen, err = wentUnobserved(log); err != nil {
		return err
	}
	if k.unseen {
		k.unseenRounds++
	}
	if err := k.verify(ctx, acks, at, victim); err != nil {
		k.wrong("%v", err)
	}
	if k.row.bad() {
		return nil // the log stays
	}
	if err := os.Truncate(log, 0); err != nil {
		return fmt.Errorf("empty the proxy's log: %w", err)
	}
	return nil
}

// An ack is a transaction whose client was told that it committed.
type ack struct {
	marker string
	work   *work
	slot   int
	at     time.Time
}

// load has one client for each work, kills some time after the first transaction, and returns what was acknowledged
// until then, and when the kill was.
func (k *kills) load(ctx context.Context, p *proxy, random *rand.Rand,
	v victim) (acks []ack, killed time.Time, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var clients sync.WaitGroup
	var mu sync.Mutex
	first := make(chan struct{})
	for i := range k.family.works {
		w, slot := &k.family.works[i], i+1
		clients.Go(func() {
			err := k.family.load(limited, p.address, w, k.row.rounds, slot, func(marker string) {
				now := time.Now()
				mu.Lock()
				defer mu.Unlock()
				if acks = append(acks, ack{marker, w, slot, now}); len(acks) == 1 {
					close(first)
				}
			})
			if errors.Is(limited.Err(), context.DeadlineExceeded) {
				k.wrong("%s: the client did not notice the kill of %v: %v", w.name, v, err)
			}
		})
	}
	select {
	case <-first:
	case <-limited.Done():
		k.wrong("no transaction committed")
	}
	time.Sleep(time.Duration(random.Int64N(int64(k.loadFor()))))
	synced, err := p.longestSync(limited)
	if err != nil {
		cancel()
		clients.Wait()
		return nil, killed, err
	}
	k.longest = max(k.longest, synced)
	killed = time.Now()
	if err = k.kill(ctx, p, random, v); err != nil {
		cancel()
	}
	clients.Wait()
	return acks, killed, err
}

// loadFor is how long clients work at most before the kill.
func (k *kills) loadFor() time.Duration { return 400*time.Millisecond + 2*k.promised }

func (k *kills) kill(ctx context.Context, p *proxy, random *rand.Rand, v victim) error {
	if v != killProxy {
		if err := k.killServer(ctx, random); err != nil {
			return err
		}
	}
	if v == killServer {
		return nil
	}
	if err := p.kill(); err != nil {
		if !errors.Is(err, errEndedByItself) {
			return err
		}
		k.wrong("%v", err)
	}
	return nil
}

// killServer kills the server or, where each session is a process, half of the time one of these, at which the others
// end too.
func (k *kills) killServer(ctx context.Context, random *rand.Rand) error {
	if k.family.session == "" || random.IntN(2) == 0 {
		k.site.Signal(syscall.SIGKILL)
		<-k.site.Done()
		return nil
	}
	var conns [2]*sql.Conn // the one that is killed, and a witness: the server ends it when it notices
	for i := range conns {
		c, err := k.site.db.Conn(ctx)
		if err != nil {
			return fmt.Errorf("begin a session on the server: %w", err)
		}
		defer c.Close()
		conns[i] = c
	}
	var pid int
	if err := conns[0].QueryRowContext(ctx, k.family.session).Scan(&pid); err != nil {
		return fmt.Errorf("ask for the process of a session: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill a session of the server's: %w", err)
	}
	for conns[1].PingContext(ctx) == nil {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// recover has everything run again that was killed. A proxy that lost its server serves clients once this is back; then
// it is ended in order, at which it records all.
func (k *kills) recover(ctx context.Context, p *proxy, v victim) error {
	if v != killProxy {
		select {
		case <-k.site.Done():
			if err := k.site.Restart(ctx); err != nil {
				return err
			}
		default:
		}
		if err := k.family.answers(ctx, k.site.Addr(), patience); err != nil {
			return fmt.Errorf("the server after its kill: %w", err)
		}
	}
	if v != killServer {
		return nil
	}
	if !p.alive() {
		k.wrong("the proxy ended with the server: %v", p.err)
		return nil
	}
	if err := k.family.answers(ctx, p.address, patience); err != nil {
		k.wrong("the proxy after the kill of its server: %v", err)
	}
	if err := p.stop(patience); err != nil {
		k.wrong("the proxy at SIGTERM, after the kill of its server: %v", err)
	}
	return nil
}

// verify holds what clients were told against the database and the recording, and has the recording analyzed. Its error
// says that something could not be read.
func (k *kills) verify(ctx context.Context, acks []ack, killed time.Time, v victim) error {
	recorded, runs, err := recordedTxns(ctx, k.recording)
	if err != nil {
		return err
	}
	if want := k.row.rounds - k.first + 1; len(runs) != want {
		k.wrong("%d runs of %d are in the recording", len(runs), want)
	} else if last := runs[len(runs)-1]; last.Ended.IsZero() == (v == killServer) {
		k.wrong("run %v, %v killed, has the end %v", last.Run, v, last.Ended)
	}
	server, err := readStored(ctx, k.site.db, k.family.slots, k.family.entries)
	if err != nil {
		return err
	}
	k.checkLosses(acks, recorded, server, killed, v)
	// What earlier rounds recorded is still there.
	for i := range k.acks {
		if a := &k.acks[i]; recorded[a.marker] == nil {
			k.lost("%s %s was recorded, and is not any more", a.work.name, a.marker)
		}
	}
	for i := range acks {
		if recorded[acks[i].marker] != nil {
			k.acks = append(k.acks, acks[i])
		}
	}
	k.checkRecord(recorded, server)
	return k.findNothing(ctx, k.recording)
}

// checkLosses looks for each acknowledged transaction in the database and, where that is promised, in the recording.
func (k *kills) checkLosses(acks []ack, recorded map[string]*history.Txn, server *stored, killed time.Time, v victim) {
	newest := make(map[int]string) // the last acknowledged marker of each slot
	for i := range acks {
		a := &acks[i]
		if got := server.markers[a.marker]; got != a.work.inserts() {
			k.lost("%s %s was acknowledged, and the database has %d of its %d entries", a.work.name, a.marker, got,
				a.work.inserts())
		}
		if len(a.work.stmts) == 1 && a.work.inserts() == 0 {
			newest[a.slot] = a.marker
		}
		if recorded[a.marker] != nil || k.unseen {
			continue
		}
		age := killed.Sub(a.at)
		if k.durability == recorder.Commit || v == killServer || age > k.promised {
			k.lost("%s %s was acknowledged %v before the kill of %v, and is not in the recording",
				a.work.name, a.marker, age, v)
			continue
		}
		k.missing++
		k.oldest = max(k.oldest, age)
	}
	for slot, marker := range newest {
		if got := server.slots[slot].marker; older(got, marker) {
			k.lost("the update of slot %d to %s was acknowledged, and the database has %s", slot, marker, got)
		}
	}
}

// parseMarker takes a marker apart.
func parseMarker(marker string) (round, slot, n int, err error) {
	_, err = fmt.Sscanf(marker, "m%d-%d-%d", &round, &slot, &n)
	return round, slot, n, err
}

// older reports whether a marker is of an earlier transaction than another of the same client.
func older(a, b string) bool {
	roundA, _, numberA, err := parseMarker(a)
	roundB, _, numberB, _ := parseMarker(b)
	return err != nil || roundA < roundB || roundA == roundB && numberA < numberB
}

// checkRecord looks at everything that is recorded: committed transactions are whole and in the database, aborted ones
// are not there.
func (k *kills) checkRecord(recorded map[string]*history.Txn, server *stored) {
	for marker, txn := range recorded {
		round, slot, _, err := parseMarker(marker)
		if err != nil || slot < 1 || slot > len(k.family.works) {
			k.wrong("a transaction with the marker %s is recorded, which nobody sent", marker)
			continue
		}
		a := ack{marker: marker, work: &k.family.works[slot-1], slot: slot}
		switch txn.Status {
		case history.Committed:
			// The server is asked afterwards what a write replaced.
			if err := a.check(txn, server, k.struck[round] == killProxy); err != nil {
				k.wrong("%s %s: %v", a.work.name, marker, err)
			}
		case history.Aborted:
			if server.markers[marker] > 0 {
				k.wrong("%s %s is recorded as aborted, and is in the database", a.work.name, marker)
			}
		}
	}
}
