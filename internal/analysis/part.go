package analysis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// A Part is some of a run that is being recorded: the transactions that ended in a stretch of time, and the server's
// log of a stretch within that. Times are in nanoseconds since the run's start.
type Part struct {
	recorder.Part
	// From and To are when the stretch of time begins and ends.
	From, To int64
	// LogFrom and LogTo are when the reading of the log began and ended that counts. All that the log has of that time
	// stands behind the Part's Mark. Whose transactions these are is known if From comes before LogFrom by more than
	// the log is behind, and LogTo before To by more than a reply takes.
	LogFrom, LogTo int64
}

// AnalyzePart returns what is found in a part of the recording that r reads, and closes r. What is not in the part
// counts as not recorded: it makes no finding, and takes the proof away from none.
func AnalyzePart(ctx context.Context, r *recorder.Reader, dir string, p Part, o analyzer.Options) (*analyzer.Result,
	error) {
	return analyzePart(ctx, r, dir, p, o, nil)
}

// PartDependencies returns what AnalyzePart does, and the dependencies that it rests on.
func PartDependencies(ctx context.Context, r *recorder.Reader, dir string, p Part, o analyzer.Options) (
	found *analyzer.Result, all []analyzer.Edge, err error) {
	found, err = analyzePart(ctx, r, dir, p, o, collectEdges(&all))
	return found, all, err
}

// analyzePart analyzes a part. Then asks the analyzer more, while the recording is open; it may be nil.
func analyzePart(ctx context.Context, r *recorder.Reader, dir string, p Part, o analyzer.Options,
	then func(*analyzer.Analyzer) error) (_ *analyzer.Result, err error) {
	part, err := r.Part(p.Part)
	if err != nil {
		return nil, fmt.Errorf("analyze a part of %s: %w", dir, err)
	}
	s := sources{byRun: make(map[history.Run]*recorder.Lookup),
		wanted: func(r history.Run) bool { return r == p.Run }}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.take(dir, part); err != nil {
		return nil, fmt.Errorf("analyze a part of %s: %w", dir, err)
	}
	x := &s.list[0]
	x.part = &p
	for i := range x.runs {
		if err := x.bound(ctx, &x.runs[i]); err != nil {
			return nil, fmt.Errorf("analyze a part of %s: %w", dir, err)
		}
	}
	return s.analyze(ctx, o, then)
}

// bound describes a run as if no more had been recorded than the part: beside it are gaps, and of the log what proves
// that something was not written.
func (x *source) bound(ctx context.Context, info *history.Info) error {
	info.Gaps = append(info.Gaps, history.Gap{From: math.MinInt64, To: x.part.From},
		history.Gap{From: x.part.To, To: math.MaxInt64})
	last := &history.LogStretch{}
	for i := range info.Log {
		if !info.Log[i].Empty() {
			last = &info.Log[i]
		}
	}
	if last.Empty() || last.From > x.part.LogTo || last.To != 0 && last.To < x.part.LogTo {
		info.Log = nil // it ended meanwhile
		return nil
	}
	x.part.LogFrom = max(x.part.LogFrom, last.From)
	to := x.part.LogFrom
	for t, err := range x.logged(ctx, info.Run) {
		if err != nil {
			return err
		}
		to = max(to, t.From) // who had ended before that stands before it
	}
	info.Log = []history.LogStretch{{From: x.part.LogFrom, To: to}}
	return nil
}

// logged streams the transactions of the server's log that count.
func (x *source) logged(ctx context.Context, run history.Run) iter.Seq2[*history.LoggedTxn, error] {
	if x.part == nil {
		return x.reader.Logged(ctx, run)
	}
	return func(yield func(*history.LoggedTxn, error) bool) {
		for t, err := range x.reader.Logged(ctx, run) {
			if err == nil && (t.To <= x.part.LogFrom || t.To > x.part.LogTo) {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// KnownLater returns those findings of a part that rest on what is known later than transactions are: on conditions, on
// writes that the server's log tells of, or on which transactions are of one request. Of a row that somebody put back
// as it had been, past isotap, a part does not have what shows that. So what rows alone show is left to who sees the
// whole run.
func KnownLater(r *analyzer.Result) (later []*analyzer.Finding) {
	restored := slices.ContainsFunc(r.Runs, func(i history.Info) bool { return i.PutBack })
	for _, f := range r.Findings {
		if (f.Class == analyzer.Unprotected || slices.ContainsFunc(f.Witness, restsOnLater)) && !(restored && f.Class == analyzer.Violation) {
			later = append(later, f)
		}
	}
	return later
}

func restsOnLater(e analyzer.Edge) bool {
	unseen := func(t *history.Txn, s *history.Stmt) bool {
		return t != nil && t.ID.Run() >= history.FirstPast || s != nil && s.Unseen
	}
	return e.NotFound || unseen(e.From, e.FromStmt) || unseen(e.To, e.ToStmt)
}
