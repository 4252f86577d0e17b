package analyzer

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
)

// A Result is what an analysis found: coverage first, then the findings, violations before hazards,
// the most frequent first.
type Result struct {
	Runs     []history.Info
	Coverage Coverage
	Findings []*Finding
	Baseline string     // the baseline that Findings were compared with (package baseline); empty for none
	Gone     []*Finding // what only the baseline has; these have no more than ID, Class, Anomaly and Tables
	// Levels says which levels of the theory the history satisfies, whatever its transactions ran at.
	Levels Verdict
	// Provoked says which statements isotap held back; nil where it was not to.
	Provoked *Provoked
}

// A Provoked says which statements isotap held back in a run, so that transactions crossed which might have missed each
// other. What these did happened all the same.
type Provoked struct {
	Seed      uint64        // chose them
	Max       time.Duration // how long one was held back at most
	Held, Met int           // how many were, and how many of them until another client's came
	For       time.Duration // how long in all
}

// Anomalies returns how many anomalies the findings count, with what they cover. Where it is more than one, there may
// be more of those that are AtLeast, and others of their kinds.
func (r *Result) Anomalies() int {
	n := 0
	for _, f := range r.Findings {
		n += f.Count
		for _, c := range f.Covers {
			n += c.Count
		}
	}
	return n
}

// Finish analyzes what was added. It fails when a transaction of a witness cannot be loaded.
func (a *Analyzer) Finish() (*Result, error) {
	if a.order != nil {
		return nil, fmt.Errorf("the analysis has finished already")
	}
	if err := a.store.separateLives(); err != nil {
		return nil, err
	}
	a.order = newOrder(&a.store)
	if err := a.order.build(); err != nil {
		return nil, err
	}
	c := newCollector(a.order, a.opts)
	a.findReads(c)
	s := newSearch(a.order, c, a.opts)
	s.run()
	levels := verdict(slices.Concat(a.opts.Known, s.occurring()))
	if err := a.findRequests(c); err != nil {
		return nil, err
	}
	a.edges, a.steps = len(s.edges), s.steps
	findings, err := a.describe(c)
	if err != nil {
		return nil, err
	}
	a.coverageCount.Sessions, a.coverageCount.PutBack = a.store.clients(), a.store.putBack
	return &Result{Runs: a.store.infos(), Coverage: a.coverageCount.coverage(a.store.infos()), Findings: findings,
		Levels: levels}, nil
}

// build puts the versions of each row in order, stage by stage.
func (o *order) build() error {
	o.first = make([]int32, len(o.rows.rows))
	for i := range o.first {
		o.first[i] = none
	}
	if err := o.resolve(); err != nil {
		return err
	}
	if err := o.separatePutBack(); err != nil {
		return err
	}
	o.witnessCommits()
	if err := o.readLists(); err != nil {
		return err
	}
	if err := o.relate(); err != nil {
		return err
	}
	o.fixStates()
	o.link()
	return nil
}

// run looks for cycles: violations first, those by the orders of sessions and of time, too, then hazards.
func (s *search) run() {
	s.local, s.nodes = s.o.cyclic(s.opts.Inexact)
	if len(s.nodes) > 0 {
		s.orderNodes()
		s.collectEdges()
		s.groupPairs()
		s.walk = newWalk(len(s.nodes))
	}
	s.interference()
	if len(s.nodes) == 0 {
		return
	}
	if s.judge.anyTogether() {
		s.setTogether(true)
		s.pass(Violation)
	}
	s.setTogether(false)
	s.pass(Violation)
	s.byOrders()
	s.again = s.reopen()
	s.pass(Hazard)
}

// reopen takes back that cycles of several rw explain theirs, for a search for those of one rw. It returns the edges
// that were explained until then.
func (s *search) reopen() []bool {
	gone := slices.Clone(s.gone)
	for e := range s.gone {
		s.gone[e] = s.gone[e] && !s.several[e]
	}
	return gone
}

// close explains again what reopen took back.
func (s *search) close(gone []bool) {
	for e := range gone {
		s.gone[e] = s.gone[e] || gone[e]
	}
}

// reopened reports whether a hazard of one rw, which is e, is counted by the violation of several rw that explains e:
// one that was there before the violation came into being does not vanish.
func (s *search) reopened(e int32, name Anomaly, cycle []dep) bool {
	if s.class != Hazard || s.again == nil || !s.again[e] || s.by[e] == nil {
		return false
	}
	s.cover(s.by[e], name, Hazard, cycle)
	return true
}

// pass looks for the cycles of one class.
func (s *search) pass(class Class) {
	s.class, s.flow = class, flow
	s.circular(ww)
	s.circular(flow)
	s.lostUpdates()
	s.collisions()
	s.singles()
	s.fractured()
	s.longGSingle()
	s.close(s.again)
	s.rowsFirst(s.longNonadjacent)
	s.skews()
	s.forget()
	s.rowsFirst(s.longG2Item)
}

// Analyze analyzes a history that is in memory. The transactions of a session are in order. Where a
// statement has places, package pgversions finds the versions; txns stay as they are.
func Analyze(infos []history.Info, txns []*history.Txn) (*Result, error) {
	return analyzeBy(Options{}, infos, txns)
}

func analyzeBy(opts Options, infos []history.Info, txns []*history.Txn) (*Result, error) {
	versions := pgversions.New()
	txns, err := versions.Translate(infos, nil, txns)
	if err != nil {
		return nil, err
	}
	a := New(opts)
	for _, info := range infos {
		if err := a.Add(info); err != nil {
			return nil, err
		}
	}
	a.Grow(len(txns))
	for _, t := range txns {
		if err := a.AddTxn(t); err != nil {
			return nil, err
		}
	}
	if err := a.addOrders(versions); err != nil {
		return nil, err
	}
	for _, t := range txns {
		if !a.Doubtful() {
			break
		}
		if err := a.Recount(t); err != nil {
			return nil, err
		}
	}
	return a.Finish()
}

// addOrders adds what the reads of PostgreSQL's versions tell of those that nobody was seen to write.
func (a *Analyzer) addOrders(versions *pgversions.Resolver) error {
	for _, o := range versions.Orders() {
		if err := a.AddOrder(o.Row, o.Before, o.After); err != nil {
			return err
		}
	}
	return nil
}

// Edges returns all dependencies between the transactions that committed, session order (adjacent
// transactions) included, once [Analyzer.Finish] has run. A transaction that cannot be loaded ends
// the sequence with its error.
func (a *Analyzer) Edges() iter.Seq2[Edge, error] {
	return func(yield func(Edge, error) bool) {
		if a.order == nil {
			return
		}
		for _, d := range a.allDeps() {
			e, err := a.edge(d)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (a *Analyzer) allDeps() []dep {
	var all []dep
	o := a.order
	var installed []int32
	for t := range o.txns {
		if o.txns[t].installed {
			installed = append(installed, int32(t))
		}
		o.deps(int32(t), func(d dep) { all = append(all, d) })
	}
	o.sessions(installed, func(from, to int32) {
		all = append(all, dep{from: from, to: to, kind: so, access: none, version: none, next: none})
	})
	o.extraDeps(func(d dep) { all = append(all, d) })
	return all
}
