//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// crowd is the campaign of many clients: first those that stay and are quiet, then those that come and go while others
// work. At the end memory, goroutines and descriptors are judged by how they grew.
type crowd struct {
	*job
	site    *site
	proxies []*proxy // as many as the quiet ones need, for a process may have so many files open; the rest is the first's
	truth   *truth
}

func runCrowd(ctx context.Context, j *job) (err error) {
	clients := j.clients
	if clients == 0 {
		clients = j.family.crowd
	}
	// The proxy has two for each client.
	const others = 1000
	files, err := raiseFiles(uint64(2*clients + others))
	if err != nil {
		return err
	}
	if most := int(files - others); clients > most { // this process has one for each
		j.row.note("no more than %d files may be open here", files)
		clients = most
	}
	c := &crowd{job: j, truth: newTruth(j)}
	if c.site, err = j.family.newSite(ctx, clients+500, relays); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.site.close()) }()
	if err := errors.Join(c.site.run(ctx, makeTokens), c.site.makeTables(ctx)); err != nil {
		return err
	}
	most := int(files-others) / 2
	for range (clients + most - 1) / most {
		if err := c.startProxy(ctx); err != nil {
			return err
		}
		defer c.proxies[len(c.proxies)-1].end(syscall.SIGKILL, patience)
	}
	random, ok := j.next(ctx)
	if !ok {
		return nil
	}
	if err := c.gather(ctx, clients); err != nil {
		return err
	}
	if err := c.soak(ctx, random); err != nil {
		return err
	}
	for i, p := range c.proxies {
		if err := p.stop(patience); err != nil {
			j.wrong("the proxy at its end: %v", err)
		}
		found, err := panics(c.log(i))
		j.count(func(r *row) { r.panics += found })
		if err != nil || j.row.bad() {
			return err
		}
		if err := j.findNothing(ctx, c.recording(i)); err != nil {
			return err
		}
	}
	return c.truth.compare(ctx, c.site)
}

// startProxy starts one more proxy, with a recording of its own.
func (c *crowd) startProxy(ctx context.Context) error {
	i := len(c.proxies)
	p, err := startProxy(ctx, c.isotap, c.log(i), "--upstream", c.family.upstream(c.site.Addr()), "--recording",
		c.recording(i), "--durability", c.durability.String(), "--log-level", "error")
	if err != nil {
		return err
	}
	c.proxies = append(c.proxies, p)
	return nil
}

func (c *crowd) recording(proxy int) string {
	return filepath.Join(c.dir, fmt.Sprintf("recording-%d", proxy))
}
func (c *crowd) log(proxy int) string { return c.recording(proxy) + ".log" }

// raiseFiles lets this process, and those that it starts, have so many files open, and returns how many they may have
// where the system does not allow as many.
func raiseFiles(n uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("ask how many files may be open: %w", err)
	}
	raised := syscall.Rlimit{Cur: max(limit.Cur, n), Max: max(limit.Max, n)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
		return n, nil
	}
	limit.Cur = min(n, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("have %d files open: %w", limit.Cur, err)
	}
	return limit.Cur, nil
}

// gather has many clients connect, the same number to each proxy, stay quiet, and ask once.
func (c *crowd) gather(ctx context.Context, clients int) error {
	pools := make([]*sql.DB, len(c.proxies))
	before := make([]sample, len(c.proxies))
	for i, p := range c.proxies {
		if err := c.family.answers(ctx, p.address, patience); err != nil {
			return err
		}
		var err error
		if before[i], err = p.sample(ctx); err != nil {
			return err
		}
		if pools[i], err = c.family.open(p.address, ""); err != nil {
			return err
		}
		defer pools[i].Close()
	}
	conns := make([]*sql.Conn, clients)
	began := time.Now()
	c.each(clients, func(i int) (err error) { conns[i], err = pools[i%len(pools)].Conn(ctx); return err })
	if c.row.bad() {
		return nil
	}
	if err := c.weigh(ctx, clients, time.Since(began), before); err != nil {
		return err
	}
	c.each(clients, func(i int) error {
		asks := &client{c.truth, c.family, "token", fmt.Sprintf("mi%d", i), nil, patience}
		return asks.echo(ctx, conns[i], asks.name)
	})
	c.each(clients, func(i int) error { return conns[i].Close() })
	for i, p := range c.proxies {
		if err := pools[i].Close(); err != nil {
			return fmt.Errorf("close idle clients: %w", err)
		}
		if err := p.returnsTo(ctx, before[i], 4, patience); err != nil {
			c.wrong("%v", err)
		}
	}
	return nil
}

// weigh looks at the proxies while all clients are connected.
func (c *crowd) weigh(ctx context.Context, clients int, connected time.Duration, before []sample) error {
	var have, private int64
	for i, p := range c.proxies {
		full, err := p.sample(ctx)
		if err != nil {
			return err
		}
		have += full.clients
		private += full.private - before[i].private
	}
	if have != int64(clients) {
		c.wrong("the proxies have %d clients, not %d", have, clients)
	}
	over := ""
	if n := len(c.proxies); n > 1 {
		over = fmt.Sprintf(" over %d proxies, for no process may have more files open here,", n)
	}
	c.row.note("%s idle clients,%s connected in %s, %d KiB each", thousands(int64(clients)), over, spell(connected),
		private>>10/int64(clients))
	return nil
}

// each does something for each of n clients, many at a time. An error is wrong.
func (c *crowd) each(n int, do func(i int) error) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range 50 {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				c.count(func(r *row) { r.operations++ })
				if err := do(i); err != nil {
					c.wrong("client %d of %d: %v", i+1, n, err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// soakFor is how long clients come and go where -duration does not say.
const soakFor = 10 * time.Second

// soak has clients come and go while others work, looks at the proxy each second, and judges.
func (c *crowd) soak(ctx context.Context, random *rand.Rand) error {
	duration := soakFor
	if c.duration > 0 {
		duration = max(soakFor, c.duration-time.Since(c.begun))
	}
	soaking, cancel := context.WithCancel(ctx) // a deadline would end a client's dialing before it ends soaking
	defer cancel()
	time.AfterFunc(duration, cancel)
	var clients sync.WaitGroup
	var came atomic.Int64
	began := time.Now()
	for range 48 {
		clients.Go(func() { c.comeAndGo(soaking, began, &came) })
	}
	for i := range 4 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		clients.Go(func() {
			asks := &client{c.truth, c.family, "token", fmt.Sprintf("ms%d", i), own, patience}
			if err := asks.askWhile(soaking, c.proxies[0].address, func() bool { return true }); err != nil &&
				soaking.Err() == nil {
				c.wrong("a client that works: %v", err)
			}
		})
	}
	var samples []sample
	for soaking.Err() == nil {
		s, err := c.proxies[0].sample(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, s)
		select {
		case <-soaking.Done():
		case <-time.After(time.Second):
		}
	}
	clients.Wait()
	c.row.note("%.0f connections a second for %s", float64(came.Load())/time.Since(began).Seconds(), spell(duration))
	c.judge(samples)
	return nil
}

// comeAndGo connects, asks and leaves again and again, as often as all who do so together may.
func (c *crowd) comeAndGo(ctx context.Context, began time.Time, came *atomic.Int64) {
	for {
		n := came.Add(1)
		due := began.Add(time.Duration(n) * time.Second / time.Duration(c.rate))
		select {
		case <-ctx.Done():
			came.Add(-1)
			return
		case <-time.After(time.Until(due)):
		}
		asks := &client{c.truth, c.family, "token", fmt.Sprintf("mc%d", n), nil, patience}
		if err := asks.visit(ctx, c.proxies[0].address); err != nil && ctx.Err() == nil {
			c.wrong("client %d that comes and goes: %v", n, err)
			return
		}
	}
}

// visit connects, asks once and leaves.
func (c *client) visit(ctx context.Context, address string) error {
	db, err := c.family.open(address, "")
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.job.count(func(r *row) { r.operations++ })
	return c.echo(ctx, conn, c.name)
}

// judge reports whether what the proxy holds grew over the samples but for the first third, in which buffers find their
// size: by the median of the slopes between all pairs of samples (Theil and Sen), which no single one can bend.
func (c *crowd) judge(samples []sample) {
	samples = samples[len(samples)/3:]
	for _, g := range []struct {
		what  string
		of    func(*sample) int64
		slack float64 // that it may grow by
		unit  int64
	}{
		{"MiB of memory", func(s *sample) int64 { return s.private }, 32 << 20, 1 << 20},
		{"goroutines", func(s *sample) int64 { return s.goroutines }, 100, 1},
		{"descriptors", func(s *sample) int64 { return s.files }, 100, 1},
	} {
		values := make([]float64, len(samples))
		for i := range samples {
			values[i] = float64(g.of(&samples[i]))
		}
		middle, grown := median(slices.Clone(values)), slope(values)*float64(len(values))
		c.row.note("%.0f %s, %+.1f over the last %d s", middle/float64(g.unit), g.what, grown/float64(g.unit),
			len(values))
		if grown > g.slack+middle/10 {
			c.wrong("the proxy grows: %.0f %s, %+.1f in %d s", middle/float64(g.unit), g.what, grown/float64(g.unit),
				len(values))
		}
	}
}

// slope is the median growth between two values that follow each other, over all pairs.
func slope(values []float64) float64 {
	step := 1 + len(values)/500 // pairs enough
	var slopes []float64
	for i := 0; i < len(values); i += step {
		for k := i + step; k < len(values); k += step {
			slopes = append(slopes, (values[k]-values[i])/float64(k-i))
		}
	}
	return median(slopes)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
