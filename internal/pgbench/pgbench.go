// Package pgbench runs pgbench, PostgreSQL's own load generator, and reads what it measured. It is used by the
// benchmarks and by tests that need many clients at once. Every transaction is accounted for: a run in which a
// client gave up, or one transaction came to no known end, is an error.
//
// Source: PostgreSQL's documentation, reference page "pgbench". Version 15 or later is needed, which counts
// failed transactions.
package pgbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// pgbench's names of its built-in scripts.
const (
	TPCBLike     = "tpcb-like"
	SimpleUpdate = "simple-update"
	SelectOnly   = "select-only"
)

// Statements is how many statements a transaction of a built-in script has, BEGIN and END counted.
func Statements(script string) int {
	return map[string]int{TPCBLike: 7, SimpleUpdate: 5, SelectOnly: 1}[script]
}

// Protocols are the ways in which pgbench sends a statement: in a Query message; with Parse, Bind and Execute;
// with Bind and Execute alone after the first time.
var Protocols = []string{"simple", "extended", "prepared"}

// Options of a run.
type Options struct {
	Address  string // "host:port"
	User     string
	Database string
	Script   string // the name of a built-in script
	File     string // in place of Script: a file with a script of the caller's own
	Protocol string // one of Protocols
	Clients  int
	// Seconds is how long the run lasts; Transactions, in its place, how many each client makes.
	Seconds, Transactions int
	// Settings are server settings of the sessions, as in "-c default_transaction_isolation=serializable".
	Settings string
}

// A Result is what a run came to.
type Result struct {
	Transactions  int           // committed
	Serialization int           // ended by SQLSTATE 40001
	Deadlocks     int           // ended by SQLSTATE 40P01
	Rate          float64       // committed transactions per second, connecting left out
	Median        time.Duration // latency of the committed transactions
	P99           time.Duration // the 99th percentile of that
}

// Failed is how many transactions the server ended. Any other error ends a run.
func (r Result) Failed() int { return r.Serialization + r.Deadlocks }

// slack is how much longer than it was told a run may take until it counts as hanging: connecting, and the
// transactions that are under way at the end, on a machine that is busy with something else.
const slack = 2 * time.Minute

// Run runs the program at path, as [Find] gives it.
func Run(ctx context.Context, path string, o Options) (Result, error) {
	dir, err := os.MkdirTemp("", "pgbench-")
	if err != nil {
		return Result{}, fmt.Errorf("make a directory for pgbench's log: %w", err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Seconds)*time.Second+slack)
	defer cancel()
	args, err := o.args(dir)
	if err != nil {
		return Result{}, err
	}
	out, err := command(ctx, path, o, args...)
	if err != nil {
		return Result{}, err
	}
	r, err := parse(out)
	if err != nil {
		return Result{}, err
	}
	latencies, err := readLog(dir)
	if err != nil {
		return Result{}, err
	}
	if len(latencies) != r.Transactions {
		return Result{}, fmt.Errorf("pgbench logged %d committed transactions and counted %d:\n%s", len(latencies),
			r.Transactions, out)
	}
	r.Median = median(latencies)
	r.P99 = percentile99(latencies)
	return r, nil
}

// Init makes pgbench's tables in a database and fills them; a scale of 1 is 100,000 accounts. Of the options
// only those that say where count.
func Init(ctx context.Context, path string, o Options, scale int) error {
	_, err := command(ctx, path, o, "--initialize", "--quiet", "--scale="+strconv.Itoa(scale))
	return err
}

// args is the command line of a run whose log goes into dir.
func (o *Options) args(dir string) ([]string, error) {
	args := []string{"--no-vacuum", "--failures-detailed", "--log", "--log-prefix=" + logPrefix(dir),
		"--protocol=" + o.Protocol, "--client=" + strconv.Itoa(o.Clients), "--jobs=" + strconv.Itoa(min(o.Clients, 2))}
	switch {
	case o.File != "":
		args = append(args, "--file="+o.File)
	case Statements(o.Script) > 0:
		args = append(args, "--builtin="+o.Script)
	default:
		return nil, fmt.Errorf("pgbench has no script %q", o.Script)
	}
	if o.Transactions > 0 {
		return append(args, "--transactions="+strconv.Itoa(o.Transactions)), nil
	}
	return append(args, "--time="+strconv.Itoa(o.Seconds)), nil
}

// command runs pgbench to its end and returns what it printed.
func command(ctx context.Context, path string, o Options, args ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("run pgbench: %w", err)
	}
	args = append(args, "--host="+host, "--port="+port, "--username="+o.User, o.Database)
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PGOPTIONS="+o.Settings)
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("pgbench %q did not come to its end in time\n%s", args, out.Bytes())
	}
	if err != nil {
		return nil, fmt.Errorf("pgbench %q: %w\n%s", args, err, out.Bytes())
	}
	return out.Bytes(), nil
}
