//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// chaos is the campaign whose clients and whose server are reached over networks that break.
type chaos struct {
	*stand
	mu            sync.Mutex
	broke, worked int // conversations that ended with an error, and without one
}

func runChaos(ctx context.Context, j *job) (err error) {
	s, err := j.newStand(ctx, j.network)
	if err != nil {
		return err
	}
	c := &chaos{stand: s}
	defer func() { err = errors.Join(err, c.close(ctx, c.look)) }()
	for random, ok := j.next(ctx); ok && !j.row.bad(); random, ok = j.next(ctx) {
		if err := c.ready(ctx, nil, nil, c.look); err != nil {
			return err
		}
		if err := c.round(ctx, random); err != nil {
			return err
		}
	}
	j.row.note("%d conversations broke, %d did not", c.broke, c.worked)
	return nil
}

func (c *chaos) look(ctx context.Context) error {
	return errors.Join(c.compareRecording(ctx), c.findNothing(ctx, c.recording))
}

// round has clients work over networks that break, has these heal, and looks at what is left.
func (c *chaos) round(ctx context.Context, random *rand.Rand) error {
	where, near, far := random.IntN(3), random.Uint64(), random.Uint64()
	if where != 0 {
		c.near.harm(rand.New(rand.NewPCG(near, 0)))
	}
	if where != 1 {
		c.far.harm(rand.New(rand.NewPCG(far, 0)))
	}
	c.work(ctx, random)
	return c.heal(ctx)
}

// How long clients work in a round, and wait for an answer: what a kernel lost it sends again after some time, and
// after twice that.
const (
	relayedWork, relayedLimit = 2 * time.Second, 1500 * time.Millisecond
	cabledWork, cabledLimit   = 6 * time.Second, 4 * time.Second
)

// work has clients connect and ask for a while.
func (c *chaos) work(ctx context.Context, random *rand.Rand) {
	duration, limit := relayedWork, relayedLimit
	if c.over == namespaces {
		duration, limit = cabledWork, cabledLimit
	}
	working, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 8 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		clients.Go(func() {
			for n := 0; working.Err() == nil; n++ {
				asks := &client{c.truth, c.family, "token", fmt.Sprintf("m%d-%d-%d", c.row.rounds, i, n), own, limit}
				c.converse(working, asks, 1+own.IntN(40))
			}
		})
	}
	clients.Wait()
}

func (c *chaos) converse(ctx context.Context, asks *client, questions int) {
	err := asks.ask(ctx, c.near.address(), questions)
	if err != nil && ctx.Err() == nil && !broken(err) {
		c.wrong("client %s: %T: %v", asks.name, errors.Unwrap(err), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.broke++
	} else {
		c.worked++
	}
}
