package pgbench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	processedLine     = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)`)
	failedLine        = regexp.MustCompile(`(?m)^number of failed transactions: (\d+)`)
	serializationLine = regexp.MustCompile(`(?m)^number of serialization failures: (\d+)`)
	deadlockLine      = regexp.MustCompile(`(?m)^number of deadlock failures: (\d+)`)
	rateLine          = regexp.MustCompile(`(?m)^tps = ([\d.]+) \(without initial connection time\)`)
)

// parse reads pgbench's summary.
func parse(out []byte) (Result, error) {
	var r Result
	var failed int
	var errs []error
	number := func(line *regexp.Regexp, into *int) {
		found := line.FindSubmatch(out)
		if found == nil {
			errs = append(errs, fmt.Errorf("no line like %q", line))
			return
		}
		var err error
		*into, err = strconv.Atoi(string(found[1]))
		errs = append(errs, err)
	}
	number(processedLine, &r.Transactions)
	number(failedLine, &failed)
	number(serializationLine, &r.Serialization)
	number(deadlockLine, &r.Deadlocks)
	if found := rateLine.FindSubmatch(out); found != nil {
		var err error
		r.Rate, err = strconv.ParseFloat(string(found[1]), 64)
		errs = append(errs, err)
	} else if r.Transactions > 0 { // without any there is no rate to print
		errs = append(errs, errors.New("no line with the rate"))
	}
	if failed != r.Failed() {
		errs = append(errs, fmt.Errorf("%d transactions failed, %d of them for known reasons", failed, r.Failed()))
	}
	// A client that gave up is an error in the exit status too, but not of every version.
	if strings.Contains(string(out), "aborted in") {
		errs = append(errs, errors.New("a client gave up"))
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, fmt.Errorf("read pgbench's summary: %w\n%s", err, out)
	}
	return r, nil
}

func logPrefix(dir string) string { return filepath.Join(dir, "log") }

// readLog returns the latencies of the committed transactions out of a run's log files, one for each thread.
func readLog(dir string) ([]time.Duration, error) {
	files, err := filepath.Glob(logPrefix(dir) + ".*")
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for _, name := range files {
		if all, err = readLogFile(all, name); err != nil {
			return nil, fmt.Errorf("read pgbench's log: %w", err)
		}
	}
	return all, nil
}

// readLogFile adds a file's latencies to all. In a line of the log, the third field is the transaction's time
// in microseconds, or a word that says how it failed.
func readLogFile(all []time.Duration, name string) (_ []time.Duration, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s: a line %q", name, lines.Text())
		}
		switch fields[2] {
		case "failed", "serialization", "deadlock":
			continue
		}
		us, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, time.Duration(us)*time.Microsecond)
	}
	return all, lines.Err()
}

// median sorts its argument.
func median(v []time.Duration) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// percentile99 returns the 99th percentile of latencies that median has sorted.
func percentile99(v []time.Duration) time.Duration {
	if len(v) == 0 {
		return 0
	}
	return v[(len(v)-1)*99/100]
}
