package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/tail"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/report"
)

// following is analyze --follow.
type following struct {
	watching
	fromNow bool
	batch   bool // the result is that of the recording as it lies there
}

func (f *following) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "follow", false,
		"analyse one recording while it is written, and print findings as they are made; DIR may be its socket, too")
	c.Flags().BoolVar(&f.fromNow, "from-now", false, "with --follow: leave out what was recorded before")
	f.bounds(c)
}

// run follows a recording and reports.
func (f *following) run(c *cobra.Command, args []string, out *output, judge *judgement) error {
	if err := errors.Join(out.check(), f.check()); err != nil {
		return err
	}
	opts, err := judge.options()
	if err != nil {
		return err
	}
	opts.Scope = out.requests()
	f.json = out.json
	result, err := f.analyze(c, args, opts)
	if err != nil {
		return err
	}
	if err := f.write(c, out, result); err != nil {
		return err
	}
	return out.status(result)
}

// analyze follows a recording to its end, and returns the result of the whole. Where nobody writes it, that is what the
// analysis of what is there gives.
func (f *following) analyze(c *cobra.Command, args []string, opts analyzer.Options) (*analyzer.Result, error) {
	if len(args) > 1 {
		return nil, errors.New("--follow is for one recording at a time")
	}
	conn, err := tail.Dial(args[0])
	if errors.Is(err, tail.ErrNobody) && isDirectory(args[0]) {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: nobody is writing %s: it is read to its end\n", args[0])
		f.batch = true
		return analysis.Analyze(c.Context(), args, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", args[0], err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: following %s until it ends\n", args[0])
	from := tail.Beginning
	if f.fromNow {
		from = tail.Now
	}
	var clock tail.Clock
	o := f.options(c.OutOrStdout(), func(err error) { fmt.Fprintln(c.ErrOrStderr(), "isotap:", err) })
	o.Expect, o.Model, o.Clock, o.Patience = opts.Expect, opts.Model, clock.Now, followPatience
	m := monitor.Start(*o)
	infos, err := tail.Read(c.Context(), conn, from, &clock, m)
	result, failed := m.Close()
	warn(c.ErrOrStderr(), m.Stats(), m.Delay())
	switch {
	case c.Context().Err() != nil:
		return result, failed // whoever follows has seen enough
	case errors.Is(err, tail.ErrCut):
		return f.readRest(c, args[0], opts, result)
	case err != nil || failed != nil:
		return nil, fmt.Errorf("follow %s: %w", args[0], errors.Join(err, failed))
	}
	later := knownLater(infos, opts.Scope)
	if later == "" {
		return result, nil
	}
	if f.fromNow || !isDirectory(args[0]) {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: the report lacks %s: isotap analyze has it\n", later)
		return result, nil
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: %s: that is judged now that the recording has ended\n", later)
	if result, err = f.reread(c.Context(), args[0], opts); err == nil && f.json {
		f.rest(result) // a text follows that has all
	}
	return result, err
}

// knownLater says what of runs is known later than their transactions are: which versions match a predicate, what the
// server's log says, and what lies between the transactions of a request. It is empty where there is nothing of it.
func knownLater(infos []history.Info, scope analyzer.Scope) string {
	var of []string
	if slices.ContainsFunc(infos, func(i history.Info) bool { return i.Mode == "predicates" }) {
		of = append(of, "what predicates missed")
	}
	logged := func(s history.LogStretch) bool { return !s.Empty() }
	if slices.ContainsFunc(infos, func(i history.Info) bool { return slices.ContainsFunc(i.Log, logged) }) {
		of = append(of, "what the server's log tells")
	}
	if scope != analyzer.NoScope {
		of = append(of, "what lies between transactions of a request")
	}
	return strings.Join(of, ", ")
}

// followPatience is how long a finding waits for what was open when it was complete: less than in the process that
// records, for the stream takes time, too.
const followPatience = 300 * time.Millisecond

// readRest analyzes a recording that was not followed to its end, or tells that this cannot be.
func (f *following) readRest(c *cobra.Command, path string, opts analyzer.Options,
	seen *analyzer.Result) (*analyzer.Result, error) {
	if f.fromNow || !isDirectory(path) {
		fmt.Fprintf(c.ErrOrStderr(), "isotap: %v: the report is of what was seen until then\n", tail.ErrCut)
		return seen, nil
	}
	fmt.Fprintf(c.ErrOrStderr(), "isotap: %v: it is read\n", tail.ErrCut)
	f.batch = true
	return f.reread(c.Context(), path, opts)
}

// closing is how long whoever wrote a recording may take to close it.
const closing = 10 * time.Second

// reread analyzes a recording whose writer ends.
func (f *following) reread(ctx context.Context, dir string, opts analyzer.Options) (*analyzer.Result, error) {
	deadline := time.Now().Add(closing)
	for {
		if recorder.InUse(dir) == nil || time.Now().After(deadline) {
			return analysis.Analyze(ctx, []string{dir}, opts)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// write reports at the end. Whoever reads JSON has a line for each finding by now, and no document follows them.
func (f *following) write(c *cobra.Command, out *output, r *analyzer.Result) error {
	if !out.json || f.batch {
		return out.write(c, r)
	}
	if err := out.writeFiles(c, r); err != nil {
		return err
	}
	return report.Summary(c.ErrOrStderr(), r, out.html)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
