//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/recorder"
)

// A diskHarm is what happens to the disk that a recording is on.
type diskHarm int

const (
	diskFull  diskHarm = iota // less is free than isotap leaves, and then enough again
	diskStill                 // nothing is written for a while, and then everything
	diskSlow                  // it takes something for a fifth of the time only
	diskFails                 // it turns read-only, as after an error of the device, and stays so
	diskHarms
)

func (h diskHarm) String() string { return [...]string{"full", "still", "slow", "failed"}[h] }

// late reports whether all is written, only later: no client is told anything then.
func (h diskHarm) late() bool { return h == diskStill || h == diskSlow }

// disks is the campaign whose recordings are on a disk of their own, an ext4 in a file, to which things happen.
type disks struct {
	*job
	site  *site
	mount string // where the disk is mounted
	image string // the file that it is in
	harms [diskHarms]int

	synced time.Duration // the round's longest sync before something happens

	mu      sync.Mutex
	refused int // statements that were refused in words
}

func runDisk(ctx context.Context, j *job) (err error) {
	if os.Geteuid() != 0 {
		j.row.note("not run: it mounts a disk, and needs root for that")
		return nil
	}
	d := &disks{job: j, mount: filepath.Join(j.dir, "disk"), image: filepath.Join(j.dir, "disk.ext4")}
	if d.site, err = j.family.newSite(ctx, 200, relays); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.site.close()) }()
	for random, ok := j.next(ctx); ok && !j.row.bad(); random, ok = j.next(ctx) {
		if err := errors.Join(d.site.run(ctx, "DROP TABLE IF EXISTS "+tokenTables, makeTokens),
			d.site.makeTables(ctx)); err != nil {
			return err
		}
		if err := d.onDisk(ctx, func() error { return d.round(ctx, random) }); err != nil {
			return err
		}
	}
	j.row.note("the disk was full %d times, stood still %d times, was slow %d times, failed %d times; "+
		"%s statements were refused in words", d.harms[diskFull], d.harms[diskStill], d.harms[diskSlow],
		d.harms[diskFails], thousands(int64(d.refused)))
	return nil
}

// command runs a program of the system's.
func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// diskSize is enough for a recording beside what isotap leaves free.
const diskSize = 900 << 20

// onDisk does something while a new disk is mounted.
func (d *disks) onDisk(ctx context.Context, do func() error) error {
	// A new file: a loop device that still has the last one in its cache is not taken for this one's.
	if err := os.Remove(d.image); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make a disk: %w", err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(diskSize), f.Close(), os.MkdirAll(d.mount, 0o700))
	}
	if err != nil {
		return fmt.Errorf("make a disk: %w", err)
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", d.image); err != nil {
		return err
	}
	if err := d.attach(ctx); err != nil {
		return err
	}
	return errors.Join(do(), d.detach())
}

func (d *disks) attach(ctx context.Context) error {
	return command(ctx, "mount", "-o", "loop,errors=remount-ro", d.image, d.mount)
}

// detach takes the disk away, also when the campaign was interrupted.
func (d *disks) detach() error { return command(context.Background(), "umount", d.mount) }

// round has clients work while something happens to the disk, and looks at what was recorded.
func (d *disks) round(ctx context.Context, random *rand.Rand) error {
	h, pass := diskHarm(random.IntN(int(diskHarms))), random.IntN(2) == 0
	d.harms[h]++
	recording, log := filepath.Join(d.mount, "recording"), filepath.Join(d.dir, "proxy.log")
	args := []string{"--upstream", d.family.upstream(d.site.Addr()), "--recording", recording, "--durability",
		d.durability.String()}
	whenFull := recorder.Refuse
	if pass {
		whenFull = recorder.Pass
	}
	args = append(args, "--when-full", whenFull.String()) // the default goes by the durability
	p, err := startProxy(ctx, d.isotap, log, args...)
	if err != nil {
		return err
	}
	defer p.end(syscall.SIGKILL, patience)
	t := newTruth(d.job)
	began, err := d.work(ctx, p, t, random, h, pass)
	if err != nil {
		return err
	}
	if err := p.stop(patience); err != nil && h != diskFails {
		d.wrong("the proxy at its end: %v", err)
	}
	if h == diskFails {
		if err := errors.Join(d.detach(), d.attach(ctx)); err != nil {
			return err
		}
	}
	found, err := panics(log)
	d.count(func(r *row) { r.panics += found; r.faults++ })
	if err != nil {
		return err
	}
	sure := func(at time.Time) bool {
		switch {
		case d.durability == recorder.Relaxed && (h == diskFails || pass && h == diskFull):
			// Later ones may have seen the disk as it was then.
			return began.Sub(at) > recorder.RelaxedLoss+d.synced+d.slack
		case at.After(began):
			return !pass || h.late()
		}
		return true
	}
	if err := t.compare(ctx, d.site); err != nil {
		return err
	}
	if err := t.compareRecording(ctx, recording, sure); err != nil {
		d.wrong("%v, %v: %v", h, args, err)
	} else if err := d.findNothing(ctx, recording); err != nil {
		d.wrong("%v", err)
	}
	if d.row.bad() {
		// The disk is taken away.
		return keepFiles(filepath.Join(d.dir, "recording"), recording)
	}
	return os.Remove(log)
}

// keepFiles copies the files of a directory into a new one, and leaves out what is none, as the socket on which a proxy
// is followed.
func keepFiles(to, from string) error {
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	for _, e := range entries {
		if err != nil || !e.Type().IsRegular() {
			continue
		}
		var text []byte
		if text, err = os.ReadFile(filepath.Join(from, e.Name())); err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("keep a recording: %w", err)
	}
	return nil
}

// work has clients work while something happens to the disk, and returns when that began.
func (d *disks) work(ctx context.Context, p *proxy, t *truth, random *rand.Rand, h diskHarm,
	pass bool) (began time.Time, err error) {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 5 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		clients.Go(func() {
			for n := 0; working.Err() == nil; n++ {
				asks := &client{t, d.family, "token", fmt.Sprintf("m%d-%d-%d", d.row.rounds, i, n), own, patience}
				d.met(working, asks.askWhile(working, p.address, func() bool { return true }), h, pass)
			}
		})
	}
	defer clients.Wait()
	defer cancel()
	time.Sleep(recorder.RelaxedLoss + 300*time.Millisecond + d.slack)
	refused := d.refusals()
	if d.synced, err = p.longestSync(ctx); err != nil {
		return began, err
	}
	began = time.Now()
	lasts := time.Duration(500+random.IntN(2000)) * time.Millisecond
	switch h {
	case diskStill:
		err = d.stand(ctx, lasts)
	case diskSlow:
		for err == nil && time.Since(began) < lasts {
			err = d.stand(ctx, 80*time.Millisecond)
			time.Sleep(20 * time.Millisecond)
		}
	case diskFails:
		err = d.fail()
		d.last(lasts, refused, pass)
	case diskFull:
		err = d.fill(ctx, p, 50<<20+random.Int64N(150<<20), func() { d.last(lasts, refused, pass) }, pass)
	}
	if err != nil {
		return began, err
	}
	if !h.late() && !pass && d.refusals() == refused {
		d.wrong("the disk was %v for %v, and no statement was refused", h, time.Since(began))
	}
	if h != diskFails {
		time.Sleep(300 * time.Millisecond)
	}
	return began, nil
}

// stand has the disk stand still for so long.
func (d *disks) stand(ctx context.Context, lasts time.Duration) error {
	if err := command(ctx, "fsfreeze", "-f", d.mount); err != nil {
		return err
	}
	time.Sleep(lasts)
	return command(context.Background(), "fsfreeze", "-u", d.mount)
}

// last lets what happened to the disk last so long, and where statements are refused then, until one was that had not
// been: on a busy machine none may have been sent in that time.
func (d *disks) last(lasts time.Duration, refused int, pass bool) {
	time.Sleep(lasts)
	for began := time.Now(); !pass && d.refusals() == refused && time.Since(began) < patience; {
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *disks) refusals() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// met judges an error of a client's.
func (d *disks) met(ctx context.Context, err error, h diskHarm, pass bool) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !inWords(err) {
		d.wrong("the disk is %v, when full passing is %t: a client was told nothing but: %v", h, pass, err)
		return
	}
	if h.late() || pass {
		d.wrong("the disk is %v, when full passing is %t: a client was refused: %v", h, pass, err)
		return
	}
	d.mu.Lock()
	d.refused++
	d.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
}

// inWords reports whether an error is one that isotap sent in words, about its recording.
func inWords(err error) bool {
	var mine *mysql.MySQLError
	var theirs *pgconn.PgError
	return (errors.As(err, &mine) || errors.As(err, &theirs)) && strings.Contains(err.Error(), "record")
}

// fail makes the disk read-only, as the kernel does when it finds an error.
func (d *disks) fail() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("look for the disk: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == d.mount {
			if err := os.WriteFile(filepath.Join("/sys/fs/ext4", filepath.Base(f[0]), "trigger_fs_error"), []byte("1"),
				0o200); err != nil {
				return fmt.Errorf("have the disk fail: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("have the disk fail: %s is no mount", d.mount)
}

// fill leaves so much free until last returns. The proxy says that it is not ready meanwhile, and works again
// afterwards.
func (d *disks) fill(ctx context.Context, p *proxy, leave int64, last func(), pass bool) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.mount, &s); err != nil {
		return fmt.Errorf("look for free space: %w", err)
	}
	filler := filepath.Join(d.mount, "filler")
	f, err := os.Create(filler)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	err = syscall.Fallocate(int(f.Fd()), 0, 0, max(1, int64(s.Bavail)*s.Bsize-leave))
	if err := errors.Join(err, f.Close()); err != nil { // while it is open, removing it frees nothing
		return fmt.Errorf("fill the disk: %w", err)
	}
	last()
	ready, _, err := p.status(ctx, "/readyz")
	if err != nil {
		return err
	}
	if ready == http.StatusOK {
		d.wrong("the disk is full, and /readyz says %d", ready)
	}
	if health, why, err := p.status(ctx, "/healthz"); err != nil || pass && !fit(health, why) {
		d.wrong("the disk is full, transactions pass, and /healthz says %d, %s, %v", health, why, err)
	}
	if err := os.Remove(filler); err != nil {
		return fmt.Errorf("empty the disk: %w", err)
	}
	return d.recovers(ctx, p)
}

// fit reports whether a proxy is healthy by its answer, or has a server that needs too long for one: the disk is not to
// blame for that.
func fit(health int, why string) bool {
	return health == http.StatusOK || strings.Contains(why, "the server does not answer: "+
		context.DeadlineExceeded.Error())
}

// recovers waits until the proxy is ready again.
func (d *disks) recovers(ctx context.Context, p *proxy) error {
	const limit = 10 * time.Second
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ready, why, err := p.status(ctx, "/readyz")
		if err != nil || ready == http.StatusOK {
			return err
		}
		if time.Since(began) > limit {
			d.wrong("%v after there is room again /readyz says %d, %s", limit, ready, why)
			return nil
		}
	}
}

// status asks the proxy's admin address, and returns what it said.
func (p *proxy) status(ctx context.Context, path string) (code int, said string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.metrics, "/metrics")+path, nil)
	if err != nil {
		return 0, "", fmt.Errorf("ask the proxy how it is: %w", err)
	}
	request.Close = true
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask the proxy how it is: %w", err)
	}
	body, err := io.ReadAll(reply.Body)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		return 0, "", fmt.Errorf("ask the proxy how it is: %w", err)
	}
	return reply.StatusCode, strings.TrimSpace(string(body)), nil
}
