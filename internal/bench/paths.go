package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// announcement begins the line in which a proxy says where it listens.
const announcement = "isotap: clients connect to "

// The paths from the load to the server, in the order of their turns.
const (
	pathDirect    = "direct"
	pathPgBouncer = "pgbouncer"
	pathHAProxy   = "haproxy"
	pathCopy      = "copy"
	pathOff       = "off"
	pathItems     = "items"
	pathAgainst   = "against"
)

var pathOrder = []string{pathDirect, pathPgBouncer, pathHAProxy, pathCopy, pathOff, pathItems, pathAgainst}

// A path is one way from the load to the server: a proxy's process, or none for the direct one.
type path struct {
	name      string
	address   string
	recording string // of items; empty for the others
	relay     bool   // somebody else's program
	process   *exec.Cmd
	rest      io.ReadCloser // what the process says after its announcement
	said      chan string   // the same, once it has ended
}

// startPath starts a proxy and waits until it says where it listens.
func startPath(name string, command ...string) (*path, error) {
	p := &path{name: name, process: exec.Command(command[0], command[1:]...), said: make(chan string, 1)}
	var err error
	if p.rest, err = p.process.StderrPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	r := bufio.NewReader(p.rest)
	address, said := announced(r)
	if address == "" {
		p.process.Process.Kill()
		p.process.Wait()
		return nil, fmt.Errorf("start %s: it says %q", strings.Join(command, " "), said)
	}
	p.address, _, _ = strings.Cut(address, ",")
	go func() {
		rest, _ := io.ReadAll(r)
		p.said <- string(rest)
	}()
	return p, nil
}

// announced returns where a proxy says that it listens, and all that it said; empty where it ends without. What it has
// to say of tables that it does not watch comes first.
func announced(r *bufio.Reader) (address, said string) {
	for {
		line, err := r.ReadString('\n')
		said += line
		if address, ok := strings.CutPrefix(line, announcement); ok && err == nil {
			return address, said
		}
		if err != nil {
			return "", said
		}
	}
}

// pid is the proxy's process; 0 on the direct path.
func (p *path) pid() int {
	if p.process == nil {
		return 0
	}
	return p.process.Process.Pid
}

// stop ends a proxy.
func (p *path) stop() error {
	if p.process == nil {
		return nil
	}
	_ = p.process.Process.Signal(syscall.SIGTERM) // it fails when the process has ended: Wait tells how
	said := <-p.said
	// The bare copy and the relays know no other end than the signal.
	if err := p.process.Wait(); err != nil && p.name != pathCopy && !p.relay {
		return fmt.Errorf("%s: %w: %s", p.name, err, said)
	}
	return nil
}

// startPaths starts all paths, in the order of their turns. The caller stops them, also those that are
// there beside an error.
func (b *bench) startPaths() ([]*path, error) {
	var paths []*path
	for _, name := range pathOrder {
		if !b.settings.wants(name) {
			continue
		}
		p, err := b.start(name)
		if err != nil {
			return paths, err
		}
		if p != nil {
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// start starts a path; nil when the target or the machine has none of that name.
func (b *bench) start(name string) (*path, error) {
	proxy := []string{b.isotap, "proxy", "--upstream", b.target.upstream()}
	switch name {
	case pathDirect:
		return &path{name: name, address: b.target.Addr()}, nil
	case pathCopy:
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the bench itself: %w", err)
		}
		return startPath(name, self, copyCommand, b.target.Addr())
	case pathOff:
		return startPath(name, append(proxy, "--mode", "off")...)
	case pathAgainst:
		proxy[0] = b.settings.against
		fallthrough
	case pathItems:
		return b.startRecording(name, proxy)
	}
	i := slices.IndexFunc(b.target.relays(), func(r relay) bool { return r.name == name })
	if i < 0 {
		return nil, nil
	}
	return b.startRelay(b.target.relays()[i])
}

// startRecording starts an isotap that records.
func (b *bench) startRecording(name string, proxy []string) (*path, error) {
	recording, err := os.MkdirTemp(b.dir, "recording-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	p, err := startPath(name, append(proxy, "--recording", recording)...)
	if err != nil {
		return nil, err
	}
	p.recording = recording
	return p, nil
}

// build compiles isotap to file.
func build(ctx context.Context, file string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file,
		"github.com/isotap/isotap/cmd/isotap")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build isotap: %w\n%s", err, out)
	}
	return nil
}
