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
		"--time="+strconv.Itoa(seconds), "--percentile=50")
	if err != nil {
		return roundResult{}, err
	}
	return parseTurn(out)
}

var (
	queriesLine = regexp.MustCompile(`(?m)^\s*queries:\s+(\d+)\s+\(([\d.]+) per sec\.\)`)
	medianLine  = regexp.MustCompile(`(?m)^\s*50th percentile:\s+([\d.]+)`)
)

// parseTurn reads sysbench's summary. Its latencies are in milliseconds.
func parseTurn(out []byte) (roundResult, error) {
	queries, median := queriesLine.FindSubmatch(out), medianLine.FindSubmatch(out)
	if queries == nil || median == nil {
		return roundResult{}, fmt.Errorf("sysbench printed no summary:\n%s", out)
	}
	var t roundResult
	var errs [3]error
	var ms float64
	t.statements, errs[0] = strconv.Atoi(string(queries[1]))
	t.rate, errs[1] = strconv.ParseFloat(string(queries[2]), 64)
	ms, errs[2] = strconv.ParseFloat(string(median[1]), 64)
	t.latency = time.Duration(ms * float64(time.Millisecond))
	if err := errors.Join(errs[:]...); err != nil {
		return roundResult{}, fmt.Errorf("read sysbench's summary: %w", err)
	}
	return t, nil
}
