// Command curve measures how the analyzer's time and memory grow with the history, and prints a table.
//
//	go run ./internal/bench/curve [-quick] [-cores n] [-cpuprofile file]
//
// The histories are of 10,000 to 10,000,000 serial transactions of two reads and two updates, over a table of a row for
// every hundred of them and over one of a row for each: in memory, and from recordings on disk. Then come histories of
// 100,000 transactions that are one strongly connected component. Time is the processor's, too, since that holds on a
// machine that others use; it is that of the analysis alone, with the garbage collector's and without the making of the
// history.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
)

// settings are what the command line says.
type settings struct {
	sizes   []int // of histories in memory
	disk    []int // of recordings
	cores   int
	profile string
}

func main() {
	s := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "curve:", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	quick := flag.Bool("quick", false, "a minute: up to 1,000,000 transactions in memory, 100,000 on disk")
	flag.IntVar(&s.cores, "cores", 1, "how many processors to use")
	flag.StringVar(&s.profile, "cpuprofile", "", "write a profile of the processor time to this file")
	flag.Parse()
	s.sizes, s.disk = []int{10_000, 100_000, 1_000_000, 10_000_000}, []int{10_000, 100_000, 1_000_000}
	if *quick {
		s.sizes, s.disk = s.sizes[:3], s.disk[:2]
	}
	return s
}

// run measures everything and prints it as it comes.
func run(ctx context.Context, s settings) error {
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GOMAXPROCS(s.cores)
	fmt.Printf("| history, on %d of %d processors | rows | seconds | of processor | transactions per second of "+
		"it | bytes each, at most |\n"+
		"| --- | --- | --- | --- | --- | --- |\n", s.cores, runtime.NumCPU())
	for _, n := range s.sizes {
		for _, rows := range []int{n / 100, n} {
			if err := show(n, "in memory", rows, func(m *meter) error { return inMemory(m, n, rows) }); err != nil {
				return err
			}
		}
	}
	for _, n := range s.disk {
		for _, rows := range []int{n / 100, n} {
			if err := show(n, "on disk", rows, func(m *meter) error { return onDisk(ctx, m, n, rows) }); err != nil {
				return err
			}
		}
	}
	return components()
}

// show measures one history and prints its line.
func show(n int, name string, rows int, analyse func(*meter) error) error {
	var m meter
	if err := analyse(&m); err != nil {
		return fmt.Errorf("%d transactions %s: %w", n, name, err)
	}
	fmt.Printf("| %s %s | %s | %.2f | %.2f | %s | %.0f |\n", thousands(n), name, thousands(rows), m.wall.Seconds(),
		m.cpu.Seconds(),
		thousands(int(float64(n)/m.cpu.Seconds())/1000*1000), m.bytes/float64(n))
	return nil
}

// thousands prints a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
