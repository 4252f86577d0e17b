package main

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// A usage is what was used of the machine's processors, up to a moment or between two.
type usage struct {
	proxy, server time.Duration // and by their children
	// others is what all other processes used, and the kernel for nobody. The load's tool is none of them.
	others time.Duration
	wall   time.Duration
}

// A meter reads what the processes of a path have used. Linux alone tells it (proc(5)).
type meter struct {
	fs     procfs.FS
	proxy  int // process; 0: there is none
	server int
}

func newMeter(proxy, server int) (*meter, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("look for the processes' times: %w", err)
	}
	return &meter{fs: fs, proxy: proxy, server: server}, nil
}

// during returns what was used while work was done. What the work starts it has to wait for: that is the load's.
func (m *meter) during(work func() error) (used usage, err error) {
	before, err := m.read()
	if err != nil {
		return used, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return used, err
	}
	wall := time.Since(began)
	after, err := m.read()
	if err != nil {
		return used, err
	}
	return usage{proxy: after.proxy - before.proxy, server: after.server - before.server,
		others: max(0, after.others-before.others), wall: wall}, nil
}

func (m *meter) read() (u usage, err error) {
	all, err := m.fs.Stat()
	if err != nil {
		return u, fmt.Errorf("read the machine's times: %w", err)
	}
	own, err := m.stat(os.Getpid()) // the load's tools are children that have ended
	if err == nil {
		u.server, err = m.family(m.server)
	}
	if err == nil && m.proxy > 0 {
		u.proxy, err = m.family(m.proxy)
	}
	c := all.CPUTotal
	u.others = seconds(c.User+c.Nice+c.System+c.IRQ+c.SoftIRQ+c.Steal) - used(own) - u.server - u.proxy
	return u, err
}

func (m *meter) stat(pid int) (s procfs.ProcStat, err error) {
	p, err := m.fs.Proc(pid)
	if err == nil {
		s, err = p.Stat()
	}
	if err != nil {
		return s, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	return s, nil
}

// family returns the processor time of a process, of its children, and of those of them that have ended.
func (m *meter) family(pid int) (time.Duration, error) {
	own, err := m.stat(pid)
	if err != nil {
		return 0, err
	}
	all, err := m.fs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("list the processes: %w", err)
	}
	sum := used(own)
	for _, p := range all {
		// One that has ended since it was listed is counted as its parent's.
		if child, err := p.Stat(); err == nil && child.PPID == pid {
			sum += used(child)
		}
	}
	return sum, nil
}

// used is the processor time of a process, and of its children that it has waited for.
func used(s procfs.ProcStat) time.Duration {
	return seconds(s.CPUTime()) + time.Duration(s.CUTime+s.CSTime)*time.Second/userHZ
}

// userHZ is the unit of /proc's times on Linux, whatever the kernel's own is.
const userHZ = 100

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
