//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A cable joins two interfaces of the kernel's, whose packets it carries from one to the other. While it is told to do
// harm it treats them as a bad network does: the kernels at its ends see packets lost and late, where those of a relay
// see none of it. Its methods may be called from several goroutines.
type cable struct {
	at      string // where clients find who they look for at its other end
	ends    [2]*os.File
	names   [2]string // of the interfaces
	turn    func(ctx context.Context, end int, on bool) error
	serving sync.WaitGroup // the two directions, and packets that are late

	mu      sync.Mutex
	random  *rand.Rand
	weather weather
	free    [2]time.Time // when a direction has room for another packet
	faults  int64
	failed  error
	storm   func() // ends what comes and goes, nil where nothing does
}

// weather is what a cable does to packets.
type weather struct {
	lost, twice, flipped float64 // how probable it is that a packet is lost, comes twice, or has a bit that is another
	delay, jitter        time.Duration
	rate                 int     // bytes a second; 0: no bound
	cut                  [2]bool // no packet passes in this direction
}

// A stormKind is what a cable does for the time of a harm.
type stormKind int

const (
	losing    stormKind = iota // packets are lost
	dirty                      // packets are damaged, and come twice
	late                       // packets are late, and not in order
	thin                       // so many bytes pass a second, and what waits too long is lost
	pulled                     // from time to time nothing passes
	oneWay                     // from time to time nothing passes in one direction
	hereDown                   // from time to time the interface is down on the side of clients, or of the server
	thereDown                  // from time to time the proxy's is
	stormKinds
)

// openEnd makes an interface of this name whose packets are read from a file and written to it. It is gone when the
// file is closed.
func openEnd(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the interface %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// newCable makes a cable between new interfaces of these names, which are down. turn turns an end's interface on and
// off.
func newCable(names [2]string, turn func(ctx context.Context, end int, on bool) error) (*cable, error) {
	c := &cable{names: names, turn: turn}
	for i, name := range names {
		end, err := openEnd(name)
		if err != nil {
			c.close()
			return nil, err
		}
		c.ends[i] = end
	}
	for i := range c.ends {
		c.serving.Go(func() { c.carry(i) })
	}
	return c, nil
}

func (c *cable) address() string { return c.at }

// harm begins to do harm, as random has it.
func (c *cable) harm(random *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := stormKind(random.IntN(int(stormKinds)))
	c.random, c.weather = random, drawWeather(random, kind)
	if kind < pulled {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var storm sync.WaitGroup
	own := rand.New(rand.NewPCG(random.Uint64(), 0))
	storm.Go(func() { c.comeAndGo(ctx, own, kind) })
	c.storm = func() { cancel(); storm.Wait() }
}

// drawWeather draws what happens to packets all the time.
func drawWeather(random *rand.Rand, kind stormKind) (w weather) {
	switch kind {
	case losing:
		w.lost = 0.01 + 0.4*random.Float64()*random.Float64()
	case dirty:
		w.flipped, w.twice = 0.2*random.Float64(), 0.5*random.Float64()
	case late:
		w.delay, w.jitter = time.Duration(random.IntN(60))*time.Millisecond,
			time.Duration(1+random.IntN(60))*time.Millisecond
	case thin:
		w.rate = 20_000 + random.IntN(200_000)
	}
	return w
}

// comeAndGo has the cable fail and work in turn until ctx ends, and leaves it as it was.
func (c *cable) comeAndGo(ctx context.Context, random *rand.Rand, kind stormKind) {
	direction := random.IntN(2)
	for on := true; ctx.Err() == nil; on = !on {
		c.fail(c.set(kind, direction, on))
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(50+random.IntN(1200)) * time.Millisecond):
		}
	}
	c.fail(c.set(kind, direction, true))
}

// set has the cable work or not, in the way of its kind.
func (c *cable) set(kind stormKind, direction int, on bool) error {
	switch kind {
	case hereDown:
		return c.turn(context.Background(), 0, on)
	case thereDown:
		return c.turn(context.Background(), 1, on)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.weather.cut[direction] = !on
	if kind == pulled {
		c.weather.cut[1-direction] = !on
	}
	return nil
}

// calm ends the harm, and returns the number of packets that it struck. Connections go on.
func (c *cable) calm() (faults int64) {
	c.mu.Lock()
	storm := c.storm
	c.storm = nil
	c.mu.Unlock()
	if storm != nil {
		storm()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.random, c.weather, c.free = nil, weather{}, [2]time.Time{}
	faults, c.faults = c.faults, 0
	return faults
}

// close ends the cable, with its interfaces.
func (c *cable) close() error {
	c.calm()
	for _, end := range c.ends {
		if end != nil {
			c.fail(end.Close())
		}
	}
	c.serving.Wait()
	return c.failed
}

// fail keeps the first error.
func (c *cable) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil && err != nil && !errors.Is(err, os.ErrClosed) {
		c.failed = fmt.Errorf("the cable between %s and %s: %w", c.names[0], c.names[1], err)
	}
}

// carry carries the packets that come out of one end.
func (c *cable) carry(from int) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.ends[from].Read(buffer)
		if err != nil {
			c.fail(err)
			return
		}
		for _, p := range c.treat(from, buffer[:n]) {
			if p.late <= 0 {
				c.deliver(from, p.bytes)
				continue
			}
			c.serving.Add(1)
			time.AfterFunc(p.late, func() {
				defer c.serving.Done()
				c.deliver(from, p.bytes)
			})
		}
	}
}

// A packet is one that leaves the cable some time after it came.
type packet struct {
	bytes []byte
	late  time.Duration
}

// maxQueue is how long a packet waits at most for room on a thin cable.
const maxQueue = 500 * time.Millisecond

// treat returns what becomes of a packet: none, one or two.
func (c *cable) treat(from int, bytes []byte) []packet {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.weather
	if c.random == nil {
		return []packet{{bytes: bytes}}
	}
	p := packet{bytes: append([]byte(nil), bytes...), late: w.delay}
	if w.jitter > 0 {
		p.late += time.Duration(c.random.Int64N(int64(w.jitter)))
	}
	if w.rate > 0 {
		now := time.Now()
		if c.free[from].Before(now) {
			c.free[from] = now
		}
		p.late = c.free[from].Sub(now)
		if p.late <= maxQueue {
			c.free[from] = c.free[from].Add(time.Duration(len(bytes)) * time.Second / time.Duration(w.rate))
		}
	}
	lost := w.cut[from] || p.late > maxQueue || c.random.Float64() < w.lost
	flipped, twice := c.random.Float64() < w.flipped, c.random.Float64() < w.twice
	if lost || flipped || twice || p.late > 0 {
		c.faults++
	}
	switch {
	case lost:
		return nil
	case flipped: // one bit: no check sum misses that
		p.bytes[c.random.IntN(len(p.bytes))] ^= 1 << c.random.IntN(8)
	case twice:
		return []packet{p, p}
	}
	return []packet{p}
}

// deliver puts a packet into the other end.
func (c *cable) deliver(from int, bytes []byte) {
	_, err := c.ends[1-from].Write(bytes)
	switch {
	case errors.Is(err, syscall.EIO): // it is down
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults++
	case errors.Is(err, syscall.EINVAL): // the bit that was flipped says that it is no packet
	default:
		c.fail(err)
	}
}
