// Package analyzer turns a history into findings: it orders the versions of every row, links the
// transactions that wrote and read them into Adya's direct serialization graph, and names the
// anomalies in that graph.
//
// The definitions are Adya's ("Weak Consistency", 1999, chapters 3 and 4) and, for the names of
// special cases, IsoRel's (ISSTA 2025, section 2.4), corrected where that paper departs from Adya.
//
//   - G1a: a committed transaction saw a version whose writer aborted, or undid it.
//   - G1b: a committed transaction read a version that is not its writer's last of that row.
//   - dirty update: a G1a by a write: a committed transaction overwrote a version whose writer aborted.
//   - G0: a cycle of ww. G1c: a cycle of ww and wr. G-single: a cycle with exactly one rw.
//     G-nonadjacent: a cycle with two or more rw, no two of which follow each other (Elle's name).
//     G2-item: a cycle with two or more rw.
//   - lost update: a G-single whose reader overwrote the row that it had read, over another's
//     version: rw and ww through the same row, directly or along the row's chain of versions.
//   - non-repeatable read: a G-single through one row only, whose reader saw the row again as another
//     left it.
//   - read skew: a G-single of rw and wr through different rows, where the versions of the row that was read lead from
//     the one that was missed to the writer of the other row: fractured reads (Bailis). OTV, observed transaction
//     vanishes, is the same where the transaction had seen the other's write in an earlier statement.
//   - G-monotonic: a G-single whose reader saw what came of another's write in an earlier statement than it
//     read the row without that write.
//   - read-write skew: a G-single of two transactions, rw and ww through different rows.
//   - write skew: a G2-item of two transactions, two rw through different rows.
//
// G1b is also called intermediate read. An UPDATE or DELETE reads the version that it replaces, which is a ww and no
// second edge; it counts as a read for G1a.
//
// A transaction that does not see what it wrote before is an internal inconsistency, one that sees what it writes later
// a future read. One that depends on a transaction which committed after its snapshot had been taken, by the proxy's
// clock, is Adya's interference, G-SIa (interference.go).
//
// Between the transactions of one request (requests.go), where [Options.Scope] asks for it:
//
//   - stale overwrite: a request reads a row in one transaction and sets its columns to constants in a later one, over
//     what another request did to these columns in between (collisions.go), or over a row that it had asked for before
//     another inserted it (overlooked.go);
//   - stale decision: it takes an amount from what it read, of which another request has left less in between;
//   - double insert, double set: two requests look for one thing, find none, and each inserts it or sets a row to it
//     (doubleinserts.go);
//   - silent revert: between two requests, a column is set back to what it was before the other's change, with another
//     change (reverts.go).
//
// # Minimal explanations
//
// One mishap between two transactions closes many longer cycles through their neighbors. So that
// each mishap is reported once, cycles are searched shortest and strictest first, and what a
// finding explains is taken out of the graph before the search goes on:
//
//  1. components of ww (G0), then of ww and wr (G1c): all edges inside them are explained;
//  2. lost updates, then all cycles of two transactions with one rw: every rw between the two in the
//     direction of the cycle's rw is explained; one rw is reported under one name, the strictest;
//  3. longer G-single (read skews over others' writes first, and G-monotonic), then G-nonadjacent: only out of edges
//     that are not explained yet;
//  4. cycles of two transactions with two rw, whatever 3 found: they are the easier ones to understand;
//  5. longer G2-item, as under 3.
//
// The search runs first over cycles that are violations, then over the rest, so that a hazard never
// hides a violation. Between the two come the cycles that go by the order of sessions, too, and by time: variants,
// which are reported where they are violations only, and which explain no hazard.
// (Where a level promises serializability among its own transactions only,
// cycles of these alone come before all.) A history with any cycle has at least one finding, and one at a single level
// has a finding other than G2-item (with its write skew) if and only if it is not snapshot isolated.
//
// Nothing is left out in silence. A cycle under 3, 5 or a variant may have rw all of which are, as pairs of statements,
// on an earlier finding's cycle of the same class. That finding counts it among what it covers (covers.go), and so does
// a G0 or G1c with the rw inside of its component. A violation of several rw counts the hazards of one rw that go
// through these. So a longer history tells no kind of anomaly less; only a graver one, or a cycle with fewer rw, takes
// the place of another.
//
// Whatever was explained, the verdict on the levels of the theory ([Verdict]) counts every cycle.
//
// Findings are groups: the same anomaly made by the same statements, whatever else the transactions did.
// Statements that differ only in the number at the end of a table's name are one, and so are too many
// sets of statements on the same tables.
//
// # Certainty
//
// Inexact accesses fill gaps in the order of versions until an exact one says better, and take no
// part in a finding unless [Options.Inexact] asks for it. Versions of runs that are not analyzed,
// and of a run that did not end cleanly, have no writer here: the order passes through them.
//
// A row is its table's incarnation and its row id. A row created again under the same primary key is
// a new row here, since recordings hold no keys, unless its INSERT names the version that it continues.
//
// # The files
//
// options.go has what an analysis is told, and finish.go its stages: begin there.
//
// ingest.go takes transactions in, into the flat arrays of store.go, with numbers for rows (rows.go) and programs
// (program.go, tables.go); coverage.go counts what was observed, unseenwrites.go knows the statements that may have
// written without a trace, lives.go tells the rows of a table's lives apart. order.go, lists.go and partial.go put
// each row's versions in order; reads.go and internal.go find what is wrong with a single read, edges.go the
// dependencies, sessions.go the orders of sessions and of time.
// suspects.go leaves out the transactions that cannot be on a cycle, and search.go has what looks at the rest: the
// components of graph.go, cycles of two (pairs.go, with chains.go), longer ones (fractured.go, longer.go,
// nonadjacent.go), those by sessions (orders.go) and time (times.go); names.go names them. judge.go tells
// violations from hazards by what servers document (promises.go, with its sources in grounds.go) or by the levels
// of theory (levels.go), on which verdict.go gives the verdict; commitorder.go decides those that are defined by
// axioms. collector.go groups what was found, covers.go counts what needs no group of its own, describe.go makes
// findings (finding.go) of the groups with their edges (witness.go), explain.go, advice.go and fixes.go put them
// into words, and checks.go reports whether what they advise would have helped. requests.go finds what is between the
// transactions of one request, and unprotected.go puts it into words.
//
// Files refer to each other in the order of [Analyzer.Finish]'s stages: no cycle of them has more than two.
package analyzer

import (
	"cmp"
	"fmt"

	"github.com/isotap/isotap/history"
)

// An Analyzer collects the transactions of one or more runs. It is used by one goroutine; when all
// is added, call [Analyzer.Finish] once.
type Analyzer struct {
	opts          Options
	store         store
	order         *order // nil before Finish
	coverageCount *coverageCount
	txns          []*history.Txn // where there is no Options.Load, as store.txns
	edges, steps  int            // of the graph of cycles, and how often the search looked at one
}

// New returns an empty analyzer.
func New(opts Options) *Analyzer {
	if opts.Work == 0 {
		opts.Work = DefaultWork
	}
	return &Analyzer{opts: opts, store: newStore(), coverageCount: newCoverageCount()}
}

// Add adds a run. Tags of runs that are neither added nor have a transaction added are those of
// initial versions. It fails when the run was added before.
func (a *Analyzer) Add(info history.Info) error {
	r, err := a.store.run(info.Run)
	if err != nil {
		return err
	}
	if a.store.runs[r].given {
		return fmt.Errorf("run %s is given twice", info.Run)
	}
	a.store.runs[r].given = true
	a.store.runs[r].analysed = true
	a.store.runs[r].info = info
	a.coverageCount.began(&info)
	return nil
}

// Damaged says that a run's recording is damaged, and so many of its transactions cannot be read, as far as that is
// known.
func (a *Analyzer) Damaged(run history.Run, unreadable uint64) error {
	r, err := a.store.run(run)
	if err == nil {
		a.store.runs[r].info.Damaged, a.store.runs[r].info.Unreadable = true, unreadable
	}
	return err
}

// AddSession adds a session. Sessions without a transaction count in the coverage only; a session
// need not be added for its transactions to be.
func (a *Analyzer) AddSession(s history.Session) error {
	_, err := a.store.session(s.Run, s.ID)
	return err
}

// Logged adds what the server's own log told, for the coverage.
func (a *Analyzer) Logged(l LogCoverage) {
	to := &a.coverageCount.Log
	to.Told, to.Ends, to.Unlogged = to.Told+l.Told, to.Ends+l.Ends, to.Unlogged+l.Unlogged
	to.Either += l.Either
	to.Txns, to.Past, to.Effects, to.Disputed = to.Txns+l.Txns, to.Past+l.Past, to.Effects+l.Effects,
		to.Disputed+l.Disputed
	to.Example = cmp.Or(to.Example, l.Example)
}

// Grow says that n more transactions will be added, as far as the caller knows: memory is then taken as it will be
// needed.
func (a *Analyzer) Grow(n int) { a.store.expected = len(a.store.txns) + n }

// AddTxn adds a transaction: those of one session in order, the sessions in any order. It keeps t
// unless there is an [Options.Load]. It fails on an id that is zero or was added before, and past
// 2^31 row accesses.
func (a *Analyzer) AddTxn(t *history.Txn) error {
	if a.order != nil {
		return fmt.Errorf("transaction %s comes after the analysis has finished", t.ID)
	}
	if err := a.store.add(t); err != nil {
		return fmt.Errorf("adding transaction %s: %w", t.ID, err)
	}
	if t.ID.Run().Past() {
		a.coverageCount.countImageless(t)
	} else {
		a.coverageCount.note(t)
		a.coverageCount.count(t)
	}
	if a.opts.Load == nil {
		a.txns = append(a.txns, t)
	}
	return nil
}

// load returns the whole transaction behind an index of the store.
func (a *Analyzer) load(i int32) (*history.Txn, error) {
	if a.opts.Load == nil {
		return a.txns[i], nil
	}
	id := a.store.id(i)
	t, err := a.opts.Load(id, a.store.sessions[a.store.txns[i].session].id)
	if err != nil {
		return nil, fmt.Errorf("loading transaction %s of a witness: %w", id, err)
	}
	if t == nil {
		return nil, fmt.Errorf("loading transaction %s of a witness: it is not there", id)
	}
	return t, nil
}

// AddOrder says that of two versions of a row one was installed before the other, where no transaction
// tells what it replaced: in other checkers' histories, whose orders are inferred, and of PostgreSQL's versions
// that nobody was seen to write. The order of a row's
// versions may stay partial; between versions that it leaves open there is no dependency. The initial tag
// comes before all others. It fails after [Analyzer.Finish].
func (a *Analyzer) AddOrder(row history.Row, before, after history.Tag) error {
	if a.order != nil {
		return fmt.Errorf("an order of %s comes after the analysis has finished", rowText(row))
	}
	r, err := a.store.rows.number(row)
	if err != nil {
		return err
	}
	b, err := a.store.tag(before)
	if err != nil {
		return err
	}
	s, err := a.store.tag(after)
	if err != nil {
		return err
	}
	a.store.relations = append(grown(a.store.relations, 1), relation{r, b, s})
	return nil
}
