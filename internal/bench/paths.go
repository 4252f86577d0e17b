package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// announcement begins the line in which a proxy says where it listens.
const announcement = "isotap: clients connect to "

// The paths from the load to the server.
const (
	pathDirect  = "direct"
	pathHAProxy = "haproxy"
	pathCopy    = "copy"
	pathOff     = "off"
	pathItems   = "items"
	pathAgainst = "against"
)

// A path is one way from the load to the server: a proxy's process, or none for the direct one.
type path struct {
	name      string
	address   string
	recording string // of items; empty for the others
	process   *exec.Cmd
	rest      io.ReadCloser // what the process says after its announcement
	said      chan string   // the same, once it has ended
}

// startHAProxy starts HAProxy as a plain relay of TCP, and waits until it takes connections.
func (b *bench) startHAProxy(program string) (*path, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := l.Addr().String()
	l.Close()
	config := filepath.Join(b.dir, "haproxy.cfg")
	text := "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n" +
		"listen mysql\n  bind " + address + "\n  server db " + b.server.Addr() + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure HAProxy: %w", err)
	}
	p := &path{name: pathHAProxy, address: address, process: exec.Command(program, "-db", "-f", config), said: make(chan string, 1)}
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start HAProxy: %w", err)
	}
	p.said <- ""
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return p, c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("HAProxy does not listen on %s", address)
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
	line, err := r.ReadString('\n')
	address, ok := strings.CutPrefix(line, announcement)
	if err != nil || !ok {
		p.process.Process.Kill()
		rest, _ := io.ReadAll(r)
		p.process.Wait()
		return nil, fmt.Errorf("start %s: it says %q", strings.Join(command, " "), line+string(rest))
	}
	p.address, _, _ = strings.Cut(address, ",")
	go func() {
		rest, _ := io.ReadAll(r)
		p.said <- string(rest)
	}()
	return p, nil
}

// stop ends a proxy and gives the processor time that it took in all.
func (p *path) stop() (time.Duration, error) {
	if p.process == nil {
		return 0, nil
	}
	_ = p.process.Process.Signal(syscall.SIGTERM) // it fails when the process has ended: Wait tells how
	said := <-p.said
	// The bare copy and HAProxy know no other end than the signal.
	if err := p.process.Wait(); err != nil && p.name != pathCopy && p.name != pathHAProxy {
		return 0, fmt.Errorf("%s: %w: %s", p.name, err, said)
	}
	return p.process.ProcessState.UserTime() + p.process.ProcessState.SystemTime(), nil
}

// startPaths starts all paths, in the order of their turns. The caller stops them, also those that are
// there beside an error.
func (b *bench) startPaths() ([]*path, error) {
	paths := []*path{{name: pathDirect, address: b.server.Addr()}}
	self, err := os.Executable()
	if err != nil {
		return paths, fmt.Errorf("find the bench itself: %w", err)
	}
	// HAProxy stands for what a proxy in C costs; without it the rest is measured all the same.
	if program, err := exec.LookPath("haproxy"); err == nil {
		p, err := b.startHAProxy(program)
		if err != nil {
			return paths, err
		}
		paths = append(paths, p)
	}
	proxies := []struct {
		name    string
		command []string
	}{
		{pathCopy, []string{self, copyCommand, b.server.Addr()}},
		{pathOff, []string{b.isotap, "proxy", "--upstream", b.upstream(), "--mode", "off"}},
		{pathItems, []string{b.isotap, "proxy", "--upstream", b.upstream(), "--recording"}},
		{pathAgainst, []string{b.settings.against, "proxy", "--upstream", b.upstream(), "--recording"}},
	}
	if b.settings.against == "" {
		proxies = proxies[:3]
	}
	for _, proxy := range proxies {
		recording := ""
		if proxy.name == pathItems || proxy.name == pathAgainst {
			if recording, err = os.MkdirTemp(b.dir, "recording-"); err != nil {
				return paths, fmt.Errorf("make a directory: %w", err)
			}
			proxy.command = append(proxy.command, recording)
		}
		p, err := startPath(proxy.name, proxy.command...)
		if err != nil {
			return paths, err
		}
		p.recording = recording
		paths = append(paths, p)
	}
	return paths, nil
}

// build compiles isotap to file.
func build(ctx context.Context, file string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "github.com/isotap/isotap/cmd/isotap")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build isotap: %w\n%s", err, out)
	}
	return nil
}
