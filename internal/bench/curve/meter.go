package main

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// A meter measures what stands between start and stop, several times in sum.
type meter struct {
	wall  time.Duration
	cpu   time.Duration // of all processors, the garbage collector's included
	bytes float64       // by how much the heap grew at most, dead objects included
	begun time.Time
	burnt time.Duration
}

func (m *meter) start() (err error) {
	m.begun = time.Now()
	m.burnt, err = processorTime()
	return err
}

func (m *meter) stop() error {
	burnt, err := processorTime()
	m.wall += time.Since(m.begun)
	m.cpu += burnt - m.burnt
	return err
}

// processorTime is what the process has used.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// heapBytes is the size of the objects in the heap, dead ones included.
func heapBytes() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// watch looks at the heap until the function that it gives is called.
func (m *meter) watch() (stop func()) {
	runtime.GC()
	before, done, most := heapBytes(), make(chan struct{}), make(chan float64)
	go func() {
		peak := before
		for {
			peak = max(peak, heapBytes())
			select {
			case <-done:
				most <- peak - before
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() { close(done); m.bytes = <-most }
}
