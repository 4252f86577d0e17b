// Package analysis reads recordings and has the analyzer judge them: [Analyze] all runs of any number of directories
// together, [AnalyzeRun] one of them, [AnalyzePart] some of one. It knows neither the proxy nor SQL.
package analysis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/analyzer/foreign"
	"github.com/isotap/isotap/analyzer/pglog"
	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/analyzer/predicate"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
)

// Analyze reads recordings and returns what it found in all of them together. Transactions are read
// one after the other, and those of a finding's witness once more, so that recordings may be larger
// than memory. PostgreSQL's are read twice.
func Analyze(ctx context.Context, dirs []string, o analyzer.Options) (*analyzer.Result, error) {
	return analyze(ctx, dirs, o, func(history.Run) bool { return true }, nil)
}

// Explain reads recordings and returns how two of their transactions are ordered.
func Explain(ctx context.Context, dirs []string, x, y history.TxnID, o analyzer.Options) (w *analyzer.Why, err error) {
	_, err = analyze(ctx, dirs, o, func(history.Run) bool { return true }, func(a *analyzer.Analyzer) (err error) {
		w, err = a.Why(x, y)
		return err
	})
	return w, err
}

// Dependencies reads recordings and returns all dependencies between their transactions, and those past isotap that the
// server's log tells of, beside what Analyze returns. All of it is in memory: it is for small recordings.
func Dependencies(ctx context.Context, dirs []string, o analyzer.Options) (r *analyzer.Result, all []analyzer.Edge,
	err error) {
	r, err = analyze(ctx, dirs, o, func(history.Run) bool { return true }, collectEdges(&all))
	return r, all, err
}

// collectEdges returns what adds an analyzer's dependencies to others.
func collectEdges(to *[]analyzer.Edge) func(*analyzer.Analyzer) error {
	return func(a *analyzer.Analyzer) error {
		for e, err := range a.Edges() {
			if err != nil {
				return err
			}
			*to = append(*to, e)
		}
		return nil
	}
}

// AnalyzeRun reads one run of a recording and returns what it found in it alone.
func AnalyzeRun(ctx context.Context, dir string, run history.Run, o analyzer.Options) (*analyzer.Result, error) {
	return analyze(ctx, []string{dir}, o, func(r history.Run) bool { return r == run }, nil)
}

// analyze analyzes the runs that are wanted. Then asks the analyzer more, while the recordings are open; it may
// be nil.
func analyze(ctx context.Context, dirs []string, o analyzer.Options, wanted func(history.Run) bool,
	then func(*analyzer.Analyzer) error) (_ *analyzer.Result, err error) {
	s := sources{byRun: make(map[history.Run]*recorder.Lookup), wanted: wanted}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.openAll(dirs); err != nil {
		return nil, fmt.Errorf("analyze %w", err)
	}
	return s.analyze(ctx, o, then)
}

// analyze analyzes recordings that are open.
func (s *sources) analyze(ctx context.Context, o analyzer.Options, then func(*analyzer.Analyzer) error) (*analyzer.Result,
	error) {
	if err := s.findVersions(ctx); err != nil {
		return nil, fmt.Errorf("analyze %w", err)
	}
	if err := s.findForeign(ctx); err != nil {
		return nil, fmt.Errorf("analyze %w", err)
	}
	if err := s.findPredicates(ctx); err != nil {
		return nil, fmt.Errorf("analyze %w", err)
	}
	o.Load = func(id history.TxnID, session history.SessionID) (*history.Txn, error) {
		if t := s.resolvedPast[id]; t != nil {
			return t, nil
		}
		t, err := s.byRun[id.Run()].Txn(ctx, id, session)
		if err == nil {
			s.resolve(t)
		}
		return t, err
	}
	a := analyzer.New(o)
	for i := range s.list {
		if err := s.add(ctx, a, &s.list[i]); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", s.list[i].dir, err)
		}
	}
	for i := range s.list {
		if !a.Doubtful() {
			break
		}
		if err := s.each(ctx, &s.list[i], s.resolve, a.Recount); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", s.list[i].dir, err)
		}
	}
	if err := s.addWriters(a); err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	if err := s.addForeign(a); err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	if err := s.addOrders(a); err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	for i := range s.list {
		x := &s.list[i]
		if err := x.tell(a.Damaged); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", x.dir, err)
		}
	}
	result, err := a.Finish()
	if err == nil && then != nil {
		err = then(a)
	}
	return result, err
}

// Each reads recordings, and calls run with each of their runs and then txn with each of their transactions:
// those of a session in order, their statements without texts, and their versions under their tags. A transaction is
// valid until txn returns.
func Each(ctx context.Context, dirs []string, run func(history.Info) error, txn func(*history.Txn) error) (err error) {
	s := sources{byRun: make(map[history.Run]*recorder.Lookup), wanted: func(history.Run) bool { return true }}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.prepare(ctx, dirs); err != nil {
		return err
	}
	for i := range s.list {
		for _, info := range s.list[i].runs {
			if err := run(info); err != nil {
				return err
			}
		}
	}
	for i := range s.list {
		if err := s.each(ctx, &s.list[i], s.name, txn); err != nil {
			return fmt.Errorf("%s: %w", s.list[i].dir, err)
		}
	}
	return nil
}

// Resolved returns a recording's runs and all of its transactions, as an analysis sees them: row versions under their
// tags, and with what predicates did not find. All of it is in memory: it is for small recordings.
func Resolved(ctx context.Context, dir string) (runs []history.Info, txns []*history.Txn, err error) {
	s := sources{byRun: make(map[history.Run]*recorder.Lookup), wanted: func(history.Run) bool { return true }}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.prepare(ctx, []string{dir}); err != nil {
		return nil, nil, err
	}
	if err := s.findForeign(ctx); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := s.findPredicates(ctx); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	for txn, err := range s.list[0].reader.Txns(ctx) {
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dir, err)
		}
		s.resolve(txn)
		txns = append(txns, txn)
	}
	return s.list[0].reader.Runs(), txns, nil
}

// sources are the recordings of an analysis, open until it ends.
type sources struct {
	list   []source
	byRun  map[history.Run]*recorder.Lookup
	wanted func(history.Run) bool
	// versions names the row versions of PostgreSQL's runs; nil where there are none.
	versions *pgversions.Resolver
	// writers knows what PostgreSQL's logs say of writes; nil where none was read. foreign knows what the MySQL
	// family's say was written without a tag. resolvedPast are the transactions of the logs that went past isotap, with
	// their versions' names.
	writers      *pglog.Resolver
	foreign      *foreign.Resolver
	resolvedPast map[history.TxnID]*history.Txn
	// predicates knows what statements did not find; nil where there are no predicates.
	predicates *predicate.Resolver
}

// name gives a transaction's versions their tags.
func (s *sources) name(t *history.Txn) {
	s.complete(t)
	if s.versions != nil {
		s.versions.Resolve(t)
	}
}

// addOrders gives the analyzer what reads tell of the order of versions that nobody was seen to write.
func (s *sources) addOrders(a *analyzer.Analyzer) error {
	if s.versions == nil {
		return nil
	}
	for _, o := range s.versions.Orders() {
		if err := a.AddOrder(o.Row, o.Before, o.After); err != nil {
			return err
		}
	}
	return nil
}

// resolve completes a transaction as far as that hangs on others.
func (s *sources) resolve(t *history.Txn) {
	s.name(t)
	if s.foreign != nil {
		s.foreign.Resolve(t)
	}
	if s.predicates != nil {
		s.predicates.Resolve(t)
	}
}

// findPredicates reads the transactions once more where versions are known to match predicates.
func (s *sources) findPredicates(ctx context.Context) error {
	found := predicate.New()
	for i := range s.list {
		for _, run := range s.list[i].runs {
			found.AddRun(run)
			for m, err := range s.list[i].reader.Matches(ctx, run.Run) {
				if s.list[i].damaged(err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s: %w", s.list[i].dir, err)
				}
				found.AddMatches(run.Run, m)
			}
		}
	}
	if found.Empty() {
		return nil
	}
	for i := range s.list {
		x := &s.list[i]
		for session, err := range x.reader.Sessions(ctx) {
			if x.damaged(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.dir, err)
			}
			found.AddSession(session)
		}
		if err := s.each(ctx, x, s.resolve, found.Collect); err != nil {
			return fmt.Errorf("%s: %w", x.dir, err)
		}
		for _, run := range x.runs {
			if run.Damaged = x.hurt; run.Damaged {
				found.AddRun(run)
			}
		}
	}
	found.Settle()
	s.predicates = found
	return nil
}

type source struct {
	dir    string
	reader *recorder.Reader
	lookup *recorder.Lookup
	runs   []history.Info // those that are wanted
	part   *Part          // of the recording, which is all there is of it; nil: the recording is whole
	// hurt says that something of it could not be read, and missing how many transactions of its runs.
	hurt    bool
	missing map[history.Run]uint64
}

// damaged reports whether an error is of what cannot be read, and takes note of it. What can be is analyzed.
func (x *source) damaged(err error) bool {
	if !errors.Is(err, recorder.ErrCorrupt) {
		return false
	}
	x.hurt = true
	for _, m := range recorder.Missing(err) {
		if x.missing == nil {
			x.missing = make(map[history.Run]uint64)
		}
		x.missing[m.Run] = m.Written - m.Read
	}
	return true
}

// tell returns what is missing of the runs that are analyzed.
func (x *source) tell(damaged func(run history.Run, unreadable uint64) error) error {
	if !x.hurt {
		return nil
	}
	for i, run := range x.runs {
		unreadable := x.missing[run.Run]
		if i == 0 {
			// Nothing else is known of runs whose description is damaged.
			for other, n := range x.missing {
				if !slices.ContainsFunc(x.reader.Runs(), func(r history.Info) bool { return r.Run == other }) {
					unreadable += n
				}
			}
		}
		if err := damaged(run.Run, unreadable); err != nil {
			return err
		}
	}
	return nil
}

// prepare opens the recordings, and finds what their versions are called.
func (s *sources) prepare(ctx context.Context, dirs []string) error {
	if err := s.openAll(dirs); err != nil {
		return err
	}
	return s.findVersions(ctx)
}

func (s *sources) openAll(dirs []string) error {
	for _, dir := range dirs {
		r, err := recorder.Open(dir)
		if err == nil {
			err = s.take(dir, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

func (s *sources) close() error {
	var errs []error
	for _, x := range s.list {
		if x.lookup != nil {
			x.lookup.Close()
		}
		errs = append(errs, x.reader.Close())
	}
	return errors.Join(errs...)
}

// take adds a recording that is open, which close closes.
func (s *sources) take(dir string, r *recorder.Reader) (err error) {
	s.list = append(s.list, source{dir: dir, reader: r})
	x := &s.list[len(s.list)-1]
	if x.lookup, err = r.Lookup(); err != nil {
		return err
	}
	for _, run := range r.Runs() {
		if s.wanted(run.Run) {
			x.runs = append(x.runs, run)
			s.byRun[run.Run] = x.lookup
		}
	}
	return nil
}

// findVersions reads all transactions a first time where there are PostgreSQL's among them: what a row
// version is called shows only when all writes are known.
func (s *sources) findVersions(ctx context.Context) error {
	if err := s.findWriters(ctx); err != nil {
		return err
	}
	found := pgversions.New()
	for i := range s.list {
		x := &s.list[i]
		if !slices.ContainsFunc(x.runs, func(r history.Info) bool { return r.Server.Engine == dbms.PostgreSQL }) {
			continue
		}
		if err := s.collect(ctx, x, found); err != nil {
			return fmt.Errorf("%s: %w", x.dir, err)
		}
		s.versions = found
	}
	if err := s.collectPast(found); err != nil {
		return err
	}
	found.Settle()
	return nil
}

func (s *sources) collect(ctx context.Context, x *source, v *pgversions.Resolver) error {
	for _, run := range x.runs {
		v.Add(run)
	}
	for session, err := range x.reader.Sessions(ctx) {
		if x.damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		if s.wanted(session.Run) {
			v.AddSession(session)
		}
	}
	return s.each(ctx, x, s.complete, v.Collect)
}

// add gives the analyzer the runs of a recording that are wanted.
func (s *sources) add(ctx context.Context, a *analyzer.Analyzer, x *source) error {
	txns := 0
	for _, run := range x.runs {
		if err := a.Add(run); err != nil {
			return err
		}
		n, err := x.reader.Count(run.Run)
		if err != nil && !x.damaged(err) {
			return err
		}
		txns += int(min(n, math.MaxInt32))
	}
	a.Grow(txns)
	for session, err := range x.reader.Sessions(ctx) {
		if x.damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !s.wanted(session.Run) {
			continue
		}
		if err := a.AddSession(session); err != nil {
			return err
		}
	}
	return s.each(ctx, x, s.resolve, a.AddTxn)
}

// A batch is the transactions that go from the reading goroutine to the analyzing one at once.
type batch struct {
	read  int // transactions, wanted or not
	txns  []*history.Txn
	arena recorder.Arena
}

const (
	batchTxns = 256
	batches   = 4
)

// each calls do with the transactions of a recording that are wanted, resolved. Each is valid until do returns. It
// decodes them in a goroutine of its own, while the ones before them are worked on.
func (s *sources) each(ctx context.Context, x *source, resolve func(*history.Txn), do func(*history.Txn) error) error {
	ctx, stop := context.WithCancel(ctx)
	read, free := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		free <- new(batch)
	}
	var unread error
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(read)
		unread = s.read(ctx, x, resolve, free, read)
	})
	defer reading.Wait() // the reader is not closed under it
	defer stop()
	for b := range read {
		for _, t := range b.txns {
			if err := do(t); err != nil {
				return err
			}
		}
		free <- b
	}
	return unread
}

// read fills batches that are free with the transactions that are wanted, until the context ends.
func (s *sources) read(ctx context.Context, x *source, resolve func(*history.Txn), free <-chan *batch,
	read chan<- *batch) error {
	b := <-free
	send := func() error {
		read <- b // there is room for all
		select {
		case b = <-free:
			b.read, b.txns = 0, b.txns[:0]
			b.arena.Reset()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for t, err := range x.reader.Outlines(ctx, func() *recorder.Arena { return &b.arena }) {
		if x.damaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		if s.wanted(t.ID.Run()) {
			resolve(t)
			b.txns = append(b.txns, t)
		}
		if b.read++; b.read == batchTxns {
			if err := send(); err != nil {
				return err
			}
		}
	}
	read <- b
	return nil
}
