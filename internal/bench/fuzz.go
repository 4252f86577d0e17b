package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/fuzz"
	"github.com/isotap/isotap/scenario/runner"
)

// fuzzLoad is the value of -load for the random generator beside sysbench.
const fuzzLoad = "fuzz"

// fuzzLanes are the numbers of rounds at the same time that hunts are measured with; two is what isotap fuzz has.
var fuzzLanes = []int{1, 2}

// A speed is how fast clients were.
type speed struct {
	what         string
	transactions float64 // per second
	statements   float64 // per second, with those that begin and end a transaction
}

// runFuzz measures sysbench and hunts on each engine's server, one after the other, all through isotap that records,
// and prints a table for each.
func runFuzz(ctx context.Context, s settings, out, progress io.Writer) (err error) {
	if s.profile != "" {
		file, err := os.Create(s.profile)
		if err != nil {
			return fmt.Errorf("-cpuprofile: %w", err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return errors.Join(fmt.Errorf("-cpuprofile: %w", err), file.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, file.Close())
		}()
	}
	for _, e := range s.engines {
		text, err := fuzzEngine(ctx, s, e, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// fuzzEngine returns one engine's table.
func fuzzEngine(ctx context.Context, s settings, e engine, progress io.Writer) (text string, err error) {
	b, err := newBench(ctx, s, e.start, progress)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var all []speed
	for _, clients := range s.clients {
		fmt.Fprintf(progress, "sysbench, %d clients ...\n", clients)
		v, err := b.sysbenchSpeed(ctx, clients)
		if err != nil {
			return "", err
		}
		all = append(all, v)
	}
	for _, lanes := range fuzzLanes {
		fmt.Fprintf(progress, "hunt, %d lanes ...\n", lanes)
		v, err := b.fuzzSpeeds(ctx, lanes)
		if err != nil {
			return "", err
		}
		all = append(all, v...)
	}
	return fuzzTable(b.target.product(), s.seconds, all), nil
}

// sysbenchSpeed measures oltp_read_write through isotap that records.
func (b *bench) sysbenchSpeed(ctx context.Context, clients int) (v speed, err error) {
	p, err := b.start(pathItems)
	if err != nil {
		return v, err
	}
	defer func() {
		stopErr := p.stop()
		err = errors.Join(err, stopErr)
	}()
	out, err := b.target.readWrite(ctx, p.address, "run", "--db-ps-mode=disable", "--threads="+strconv.Itoa(clients),
		"--time="+strconv.Itoa(b.settings.seconds), "--percentile=50")
	if err != nil {
		return v, err
	}
	t, err := parseTurn(out)
	if err != nil {
		return v, err
	}
	found := transactionsLine.FindSubmatch(out)
	if found == nil {
		return v, fmt.Errorf("sysbench printed no transactions:\n%s", out)
	}
	v = speed{what: "sysbench oltp_read_write, clients: " + strconv.Itoa(clients), statements: t.rate}
	v.transactions, err = strconv.ParseFloat(string(found[1]), 64)
	return v, err
}

var transactionsLine = regexp.MustCompile(`(?m)^\s*transactions:\s+\d+\s+\(([\d.]+) per sec\.\)`)

// fuzzSpeeds measures a hunt at all levels in turn: the whole of it, and for one lane, too, while its sessions work.
func (b *bench) fuzzSpeeds(ctx context.Context, lanes int) ([]speed, error) {
	target, err := dsn.Parse(b.target.upstream())
	if err != nil {
		return nil, err
	}
	s, err := runner.Open(ctx, target, runner.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t, err := fuzz.Run(ctx, s, fuzz.Options{Duration: time.Duration(b.settings.seconds) * time.Second, Seed: 1,
		Lanes: lanes})
	if err != nil {
		return nil, err
	}
	if t.Rounds == 0 {
		return nil, fmt.Errorf("the hunt ended no round in %d s: give it more -seconds", b.settings.seconds)
	}
	r := &t.Random
	// Each transaction has its BEGIN and its end.
	each := 2 + float64(r.Statements)/float64(r.Transactions)
	whole := float64(r.Transactions) / t.Hunted.Seconds()
	all := []speed{{fmt.Sprintf("isotap fuzz, lanes: %d", lanes), whole, whole * each}}
	if lanes == 1 {
		alone := t.TransactionsPerSecond()
		all = append(all, speed{"  without set-up and analysis", alone, alone * each})
	}
	return all, nil
}

// fuzzTable prints speeds for people, each beside the first.
func fuzzTable(product string, seconds int, all []speed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, through isotap in items; %d s each\n\n  %-40s%8s%8s%14s\n", product, seconds, "", "txn/s",
		"stmt/s", "stmt/s : 1st")
	for _, v := range all {
		fmt.Fprintf(&b, "  %-40s%8.0f%8.0f%14.2f\n", v.what, v.transactions, v.statements,
			v.statements/all[0].statements)
	}
	return b.String() + "\n"
}
