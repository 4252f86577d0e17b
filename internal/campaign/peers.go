//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// peers is the campaign of hostile clients and hostile servers: real conversations with changed bytes, in every state,
// before and after the login. Meanwhile other clients work, who must not notice.
type peers struct {
	*stand
	conversations [][][]byte // what clients said, in pieces
	peak          int64      // the most memory that a proxy had beyond what it began with
}

func runPeers(ctx context.Context, j *job) (err error) {
	s, err := j.newStand(ctx, relays)
	if err != nil {
		return err
	}
	p := &peers{stand: s}
	defer func() { err = errors.Join(err, p.close(ctx, p.compareRecording)) }()
	for random, ok := j.next(ctx); ok && !j.row.bad(); random, ok = j.next(ctx) {
		if err := p.ready(ctx, j.family.hostile(false), j.family.hostile(true), p.compareRecording); err != nil {
			return err
		}
		if err := p.listen(ctx); err != nil {
			return err
		}
		if err := p.round(ctx, random); err != nil {
			return err
		}
	}
	j.row.note("%d MiB of memory at most beyond what the proxy began with", p.peak>>20)
	return nil
}

// round has bystanders work, and hostile peers beside them.
func (p *peers) round(ctx context.Context, random *rand.Rand) error {
	const clients, duration = 6, 3 * time.Second
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	var bystanders sync.WaitGroup
	for i := range 3 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		connected := make(chan struct{})
		bystanders.Go(func() { p.bystander(working, fmt.Sprintf("m%d-%d", p.row.rounds, i), own, connected) })
		<-connected // before the harm begins
	}
	side, near, far := random.IntN(3), random.Uint64(), random.Uint64()
	if side != 0 {
		p.near.harm(rand.New(rand.NewPCG(near, 0)))
	}
	if side != 1 {
		p.far.harm(rand.New(rand.NewPCG(far, 0)))
	}
	hostile, end := context.WithTimeout(ctx, duration)
	defer end()
	var others sync.WaitGroup
	for range clients {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		others.Go(func() {
			for hostile.Err() == nil && p.proxy.alive() {
				if own.IntN(4) == 0 {
					p.intrude(hostile, own)
				} else {
					p.say(own)
				}
			}
		})
	}
	others.Go(func() { p.watchMemory(hostile) })
	others.Wait()
	cancel()
	bystanders.Wait()
	return p.heal(ctx)
}

// heardName is the name of the clients that listen hears: those who say it again have names of the same length.
const heardName = "h00000000"

// listen hears what clients of every kind say, once for a proxy.
func (p *peers) listen(ctx context.Context) error {
	if p.first != p.row.rounds {
		return nil
	}
	p.conversations = nil
	for n := range 2 * len(p.family.works) {
		var said [][]byte
		ear, err := newRelay(p.proxy.address, func(_ uint64, down bool) func([]byte) []byte {
			if down {
				return nil
			}
			return func(piece []byte) []byte { said = append(said, bytes.Clone(piece)); return piece }
		})
		if err != nil {
			return err
		}
		ear.harm(rand.New(rand.NewPCG(0, 0)))
		c := &client{newTruth(p.job), p.family, "prey", heardName, rand.New(rand.NewPCG(uint64(n), 0)), patience}
		err = c.ask(ctx, ear.address(), 12)
		if err := errors.Join(err, ear.close()); err != nil {
			return fmt.Errorf("hear a conversation: %w", err)
		}
		p.conversations = append(p.conversations, said)
		if err := p.site.run(ctx, "DELETE FROM prey"); err != nil {
			return err
		}
	}
	return nil
}

// say says what a client said, through the relay that changes it or what comes back. What becomes of it is its own
// affair. Drivers do not do for this: bytes that lie make them panic with a lock held.
func (p *peers) say(random *rand.Rand) {
	c, err := net.Dial("tcp", p.near.address())
	if err != nil {
		return
	}
	defer c.Close()
	name := fmt.Appendf(nil, "h%08d", random.IntN(100_000_000))
	answer := make([]byte, 64<<10)
	hear := func() error {
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Read(answer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		return err
	}
	if p.family.mysql() && hear() != nil {
		return
	}
	for _, piece := range p.conversations[random.IntN(len(p.conversations))] {
		p.count(func(r *row) { r.operations++ })
		c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.Write(bytes.ReplaceAll(piece, []byte(heardName), name)); err != nil || hear() != nil {
			return
		}
	}
}

// bystander works on one connection, to which nothing is done, until ctx ends.
func (p *peers) bystander(ctx context.Context, name string, random *rand.Rand, connected chan<- struct{}) {
	b := &client{p.truth, p.family, "token", name, random, patience}
	asked := false
	err := b.askWhile(ctx, p.proxy.address, func() bool {
		if !asked {
			close(connected)
		}
		asked = true
		return true
	})
	if !asked {
		close(connected)
	}
	if ctx.Err() == nil {
		p.wrong("a client that nobody harmed: %v", err)
	}
}

// intrude sends nonsense to the proxy in place of a login.
func (p *peers) intrude(ctx context.Context, random *rand.Rand) {
	c, err := net.Dial("tcp", p.proxy.address)
	if err != nil {
		if ctx.Err() == nil && p.proxy.alive() {
			p.wrong("the proxy takes no connection: %v", err)
		}
		return
	}
	defer c.Close()
	p.count(func(r *row) { r.faults++ })
	c.SetDeadline(time.Now().Add(time.Second))
	// That it does not listen, or ends the connection, is well.
	if _, err := c.Write(p.family.intruder(random)); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

// watchMemory looks at the proxy's memory until ctx ends.
func (p *peers) watchMemory(ctx context.Context) {
	for ctx.Err() == nil {
		s, err := p.proxy.sample(ctx)
		if err == nil {
			p.peak = max(p.peak, s.memory-p.before.memory)
			if p.peak > p.memory<<20 {
				p.wrong("the proxy has %d MiB more than it began with: heap.pprof says what", p.peak>>20)
				if err := p.saveHeap(ctx); err != nil && ctx.Err() == nil {
					p.wrong("%v", err)
				}
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// saveHeap leaves a profile of the proxy's memory among the job's files.
func (p *peers) saveHeap(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.proxy.metrics, "/metrics")+
		"/debug/pprof/heap", nil)
	if err != nil {
		return fmt.Errorf("ask for a heap profile: %w", err)
	}
	request.Close = true
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for a heap profile: %w", err)
	}
	defer reply.Body.Close()
	f, err := os.Create(filepath.Join(p.dir, "heap.pprof"))
	if err != nil {
		return fmt.Errorf("keep a heap profile: %w", err)
	}
	_, err = io.Copy(f, reply.Body)
	return errors.Join(err, f.Close())
}
