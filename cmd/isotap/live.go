package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/monitor"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/internal/sliding"
	"github.com/isotap/isotap/report"
)

// watching says how findings are told while they are made.
type watching struct {
	on     bool
	json   bool
	window time.Duration
	limit  int
	again  uint64         // how much is analyzed again at once at most: see end
	every  time.Duration  // how often that is done before the end; 0: never
	told   map[string]int // how often each finding that was told had been seen then
	scope  analyzer.Scope
	tell   func([]analyzer.News)
	begin  func(history.Info) // nil: tell need not know the runs
}

// flags adds --name, which turns it on, and what belongs to it.
func (w *watching) flags(c *cobra.Command, name, usage string) {
	f := c.Flags()
	f.BoolVar(&w.on, name, false, usage)
	w.again = defaultAgain
	f.DurationVar(&w.every, "live-every", defaultEvery, "with --"+name+": how often what conditions missed and the server's "+
		"log tells is looked for in what was recorded last, 1s or more; 0: at the end only")
	w.bounds(c)
}

// bounds adds the flags that bound what is remembered.
func (w *watching) bounds(c *cobra.Command) {
	f := c.Flags()
	f.DurationVar(&w.window, "live-window", monitor.DefaultWindow,
		"how long the live analysis remembers a transaction at least")
	f.IntVar(&w.limit, "live-limit", analyzer.DefaultLimit, "how many transactions it remembers at most")
}

func (w *watching) check() error {
	if w.window <= 0 || w.limit <= 0 {
		return fmt.Errorf("--live-window and --live-limit must be more than 0")
	}
	if w.every != 0 && w.every < time.Second {
		return fmt.Errorf("--live-every must be 1s or more, or 0")
	}
	return nil
}

// watch has what a proxy records watched, where that is asked for, and findings told to out.
func (w *watching) watch(o *proxyserver.Options, out io.Writer) error {
	if !w.on || o.Off {
		return nil
	}
	if err := w.check(); err != nil {
		return err
	}
	o.Slide = sliding.Options{Every: w.every, Limit: w.again, Scope: w.scope}
	o.Watch = w.options(out, func(err error) { o.Logger.Error("live", zap.Error(err)) })
	return nil
}

// options tells findings to out; a failure to write ends nothing, and is told to complain.
func (w *watching) options(out io.Writer, complain func(error)) *monitor.Options {
	o := &monitor.Options{LiveOptions: analyzer.LiveOptions{Window: w.window, Limit: w.limit}}
	tell := report.NewLive(out, report.TerminalOptions{Color: report.UseColor(out)}).News
	if w.json {
		lines := report.NewLiveJSON(out)
		tell = lines.News
		w.begin = lines.Run
		o.Begin = w.begin
	}
	w.told = make(map[string]int)
	w.tell = func(news []analyzer.News) {
		for i := range news {
			f := news[i].Finding
			news[i].First = w.told[f.ID] == 0
			w.told[f.ID] = max(w.told[f.ID], f.Count)
		}
		if err := tell(time.Now(), news); err != nil {
			complain(err)
		}
	}
	o.Tell = w.tell
	return o
}

// defaultAgain bounds the analysis at the end of a run that was watched to some hundred megabytes.
const defaultAgain = 500_000

// defaultEvery is how often stretches of a run that is watched are analyzed for what is known late.
const defaultEvery = 30 * time.Second

// end returns the result of a run that was watched. What predicates missed, what the server's log says and what lies
// between the transactions of a request is known later than transactions are, so the recording is analyzed once more.
// That has all of them in memory: where there is too much, the result is that of the watch, and says so.
func (w *watching) end(c *cobra.Command, srv *proxyserver.Server, dir string) (*analyzer.Result, error) {
	result, s := srv.Watched(), srv.Recorded()
	later := w.later(srv)
	if len(later) == 0 {
		return result, nil
	}
	if bounded := s.LogTxns > 0 || !srv.Predicates(); bounded && s.Analyzed() > w.again {
		result.Coverage.Log.Left = int(s.LogTxns)
		if srv.Predicates() {
			result.Coverage.Untested = result.Coverage.Conditions
		}
		fmt.Fprintf(c.ErrOrStderr(), "isotap: %d transactions, and %d of the server's log with %d writes, are too much to be "+
			"analysed once more (--live-again): %s %s, isotap analyze %s has it\n", s.Txns, s.LogTxns, s.LogWrites,
			strings.Join(later, ", "), w.missing(srv), dir)
		return result, nil
	}
	whole, err := analysis.AnalyzeRun(context.WithoutCancel(c.Context()), dir, srv.Run(), analyzer.Options{Scope: w.scope})
	if err != nil {
		return nil, err
	}
	w.rest(whole)
	return whole, nil
}

// later says what of a run is known later than its transactions are.
func (w *watching) later(srv *proxyserver.Server) (of []string) {
	if srv.Predicates() {
		of = append(of, "what predicates missed")
	}
	if srv.LogRead() {
		of = append(of, "what the log tells")
	}
	if w.scope != analyzer.NoScope {
		of = append(of, "what lies between transactions of a request")
	}
	return of
}

// slides reports whether what is known late is looked for before the end.
func (w *watching) slides() bool { return w.every > 0 && w.again > 0 }

// missing says how much was looked at of what is known late.
func (w *watching) missing(srv *proxyserver.Server) string {
	switch n := srv.LeftOut(); {
	case !w.slides():
		return "is left out"
	case n > 0:
		return fmt.Sprintf("was looked at while it came, without %d transactions of the log, for anomalies of up to %s", n, w.every)
	}
	return fmt.Sprintf("was looked at while it came, for anomalies of up to %s", w.every)
}

// rest tells, once the watch has ended, what of the whole recording's findings was not told while they were made: what
// conditions missed, and what was written past isotap or unseen, of which the server's log told. Of what was told
// before it says how often it was seen.
func (w *watching) rest(r *analyzer.Result) {
	if w.tell == nil {
		return
	}
	var news []analyzer.News
	for _, f := range r.Findings {
		if before := w.told[f.ID]; f.Count > before {
			news = append(news, analyzer.News{Finding: f, First: before == 0})
		}
	}
	if len(news) == 0 {
		return
	}
	for _, info := range r.Runs {
		if w.begin != nil {
			w.begin(info) // those of transactions past isotap were not watched
		}
	}
	w.tell(news)
}

// warn says what a live analysis may have missed, and how quick it was.
func warn(w io.Writer, s analyzer.LiveStats, d monitor.Delay) {
	if d.Findings > 0 {
		mean := (d.Sum / time.Duration(d.Findings)).Round(time.Millisecond)
		fmt.Fprintf(w, "isotap: findings were told %s after the commit that completed them on average, %s at most\n",
			mean, d.Max.Round(time.Millisecond))
	}
	if s.Cut > 0 {
		fmt.Fprintf(w, "isotap: %d transactions were let go while others that overlapped them were open: "+
			"isotap analyze finds the anomalies between them, too\n", s.Cut)
	}
}
