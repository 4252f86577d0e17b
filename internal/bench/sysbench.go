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
	database  = "sbtest"
	tables    = 4
	tableRows = 10_000
)

// A load is what sysbench does in a turn.
type load struct {
	script   string
	words    string
	prepared bool
	clients  int
}

// String names the load for people.
func (l load) String() string {
	how, s := "text", "s"
	if l.prepared {
		how = "prepared"
	}
	if l.clients == 1 {
		s = ""
	}
	return fmt.Sprintf("%s, %s, %d client%s", l.words, how, l.clients, s)
}

// loads are all loads, for these numbers of clients.
func loads(clients []int) []load {
	var all []load
	for _, l := range []load{{script: pointSelect, words: "point select"}, {script: readWrite, words: "read-write"}} {
		for _, l.prepared = range []bool{false, true} {
			for _, l.clients = range clients {
				all = append(all, l)
			}
		}
	}
	return all
}

// A turn is what sysbench measured in one slice of time.
type turn struct {
	statements int
	rate       float64       // statements per second
	latency    time.Duration // median: of a statement in point selects, of a transaction in read-write
}

// sysbench runs one of its scripts against an address.
func sysbench(ctx context.Context, address, script, command string, args ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("run sysbench: %w", err)
	}
	all := slices.Concat([]string{script, "--mysql-host=" + host, "--mysql-port=" + port, "--mysql-user=root", "--mysql-db=" + database,
		"--tables=" + strconv.Itoa(tables), "--table-size=" + strconv.Itoa(tableRows)}, args, []string{command})
	out, err := exec.CommandContext(ctx, "sysbench", all...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("sysbench %s %s: %w\n%s", script, command, err, out)
	}
	return out, nil
}

// turn gives an address one slice of the load.
func (l load) turn(ctx context.Context, address string, seconds int) (turn, error) {
	mode := "disable"
	if l.prepared {
		mode = "auto"
	}
	out, err := sysbench(ctx, address, l.script, "run", "--db-ps-mode="+mode, "--threads="+strconv.Itoa(l.clients),
		"--time="+strconv.Itoa(seconds), "--percentile=50")
	if err != nil {
		return turn{}, err
	}
	return parseTurn(out)
}

var (
	queriesLine = regexp.MustCompile(`(?m)^\s*queries:\s+(\d+)\s+\(([\d.]+) per sec\.\)`)
	medianLine  = regexp.MustCompile(`(?m)^\s*50th percentile:\s+([\d.]+)`)
)

// parseTurn reads sysbench's summary. Its latencies are in milliseconds.
func parseTurn(out []byte) (turn, error) {
	queries, median := queriesLine.FindSubmatch(out), medianLine.FindSubmatch(out)
	if queries == nil || median == nil {
		return turn{}, fmt.Errorf("sysbench printed no summary:\n%s", out)
	}
	var t turn
	var errs [3]error
	var ms float64
	t.statements, errs[0] = strconv.Atoi(string(queries[1]))
	t.rate, errs[1] = strconv.ParseFloat(string(queries[2]), 64)
	ms, errs[2] = strconv.ParseFloat(string(median[1]), 64)
	t.latency = time.Duration(ms * float64(time.Millisecond))
	if err := errors.Join(errs[:]...); err != nil {
		return turn{}, fmt.Errorf("read sysbench's summary: %w", err)
	}
	return t, nil
}
