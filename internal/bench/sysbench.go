package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"
)

var errNoSysbench = errors.New(`sysbench is not installed:
  Debian, Ubuntu:  sudo apt-get install --no-install-recommends sysbench
  Fedora, RHEL:    sudo dnf install sysbench
  Arch:            sudo pacman -S sysbench
  macOS:           brew install sysbench`)

// sysbench's own names of the scripts.
const (
	pointSelect = "oltp_point_select"
	readWrite   = "oltp_read_write"
)

const (
	tables    = 4
	tableRows = 10_000
)

// A sysbenchLoad is what sysbench does in a turn.
type sysbenchLoad struct {
	script   string
	words    string
	prepared bool
	clients  int
}

func (l sysbenchLoad) String() string {
	how := "text"
	if l.prepared {
		how = "prepared"
	}
	return loadName(l.words, how, l.clients)
}

func (l sysbenchLoad) concurrency() int { return l.clients }

func (l sysbenchLoad) analysed() bool { return l.script == readWrite }

func (l sysbenchLoad) quick() bool { return true }

// sysbenchLoads are all loads of sysbench, for these numbers of clients.
func sysbenchLoads(clients []int) []load {
	var all []load
	for _, l := range []sysbenchLoad{{script: pointSelect, words: "point select"},
		{script: readWrite, words: "read-write"}} {
		for _, l.prepared = range []bool{false, true} {
			for _, l.clients = range clients {
				all = append(all, l)
			}
		}
	}
	return all
}

// sysbench runs one of its scripts against a MySQL server at an address.
func sysbench(ctx context.Context, address, script, command string, args ...string) ([]byte, error) {
	return runSysbench(ctx, "mysql", "root", address, script, command, args...)
}

// runSysbench runs one of its scripts with one of its drivers, mysql or pgsql.
func runSysbench(ctx context.Context, driver, user, address, script, command string, args ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("run sysbench: %w", err)
	}
	at := "--" + driver + "-"
	all := slices.Concat([]string{script, "--db-driver=" + driver, at + "host=" + host, at + "port=" + port, at +
		"user=" + user, at + "db=" + database,
		"--tables=" + strconv.Itoa(tables), "--table-size=" + strconv.Itoa(tableRows)}, args, []string{command})
	out, err := exec.CommandContext(ctx, "sysbench", all...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("sysbench %s %s: %w\n%s", script, command, err, out)
	}
	return out, nil
}

func (l sysbenchLoad) turn(ctx context.Context, address string, seconds int) (roundResult, error) {
	mode := "disable"
	if l.prepared {
		mode = "auto"
	}
	out, err := sysbench(ctx, address, l.script, "run", "--db-ps-mode="+mode, "--threads="+strconv.Itoa(l.clients),
		"--time="+strconv.Itoa(seconds), "--percentile=50", "--histogram=on")
	if err != nil {
		return roundResult{}, err
	}
	return parseTurn(out)
}

var (
	queriesLine = regexp.MustCompile(`(?m)^\s*queries:\s+(\d+)\s+\(([\d.]+) per sec\.\)`)
	medianLine  = regexp.MustCompile(`(?m)^\s*50th percentile:\s+([\d.]+)`)
	bucketLine  = regexp.MustCompile(`(?m)^\s*([\d.]+) \|\**\s*(\d+)$`)
)

// parseTurn reads sysbench's summary. Its latencies are in milliseconds.
func parseTurn(out []byte) (t roundResult, err error) {
	queries, median := queriesLine.FindSubmatch(out), medianLine.FindSubmatch(out)
	if queries == nil || median == nil {
		return t, fmt.Errorf("sysbench printed no summary:\n%s", out)
	}
	var errs [4]error
	t.statements, errs[0] = strconv.Atoi(string(queries[1]))
	t.rate, errs[1] = strconv.ParseFloat(string(queries[2]), 64)
	t.latency, errs[2] = parseMilliseconds(median[1])
	t.tail, errs[3] = parseTail(out)
	if err := errors.Join(errs[:]...); err != nil {
		return roundResult{}, fmt.Errorf("read sysbench's summary: %w", err)
	}
	return t, nil
}

func parseMilliseconds(text []byte) (time.Duration, error) {
	ms, err := strconv.ParseFloat(string(text), 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}

// parseTail reads the 99th percentile of the latencies off sysbench's histogram.
func parseTail(out []byte) (time.Duration, error) {
	var counts []int
	buckets, sum := bucketLine.FindAllSubmatch(out, -1), 0
	for _, b := range buckets {
		n, err := strconv.Atoi(string(b[2]))
		if err != nil {
			return 0, fmt.Errorf("read its histogram: %w", err)
		}
		counts = append(counts, n)
		sum += n
	}
	above := sum / 100 // which may take longer
	for i := len(counts) - 1; i >= 0; i-- {
		if above -= counts[i]; above < 0 {
			return parseMilliseconds(buckets[i][1])
		}
	}
	return 0, errors.New("its histogram is empty")
}
