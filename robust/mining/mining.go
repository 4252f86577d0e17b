// Package mining finds the transaction programs behind recorded transactions, as far as package robust must know them.
//
// Transactions are grouped into programs by the shapes of their statements (rewrite/shape): of two runs of the same
// code the statements differ in their values only, in how often loops ran, and in what was left out.
//
//   - template.go: statements that repeat themselves are a loop, however often they did.
//   - cluster.go: a transaction belongs to a program when that runs so. One that lacks a few of a program's statements,
//     but not the last one of what writes, nor more than a third, ran without what is optional.
//   - match.go tells which statement of the program each recorded one was, and in which iterations of its loops.
//   - values.go: arguments that were equal in all calls are one value. Foreign keys are followed through these.
//   - build.go makes programs of it, by packages footprint and program.
//
// Only what was seen can be told: a program, or a way through one, that the recording does not have may be what makes
// the others unsafe. The package does no input or output.
package mining

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/programname"
	"github.com/isotap/isotap/robust"
	"github.com/isotap/isotap/robust/footprint"
)

// Options of mining.
type Options struct {
	Family dbms.Family
	Schema *footprint.Schema
	// MinCalls leaves out programs that ran fewer times: fixtures, what people typed by hand.
	MinCalls int
}

// Mined are the programs of a recording.
type Mined struct {
	Workload *robust.Workload
	Programs []Program // as those of Workload
	// LeftOut are those with too few calls; Ended the transactions that are no evidence since they were rolled back, or
	// it is not known how they ended.
	LeftOut, Ended int
	// Locks are the statements, by their shapes, that took or released locks of tables as a whole, or of names: what
	// these keep apart is told as not safe all the same.
	Locks []string
	// Unreadable are statements of which it is not known what they read and write: the verdict does not cover them.
	Unreadable []string
}

// A Program is what was seen of one.
type Program struct {
	Calls  int
	Levels map[history.Level]int // calls by isolation level
	Shapes []string              // its statements, in order
}

// maxStatements bounds the statements of a transaction that is looked at.
const maxStatements = 2000

// A call is a statement that ran.
type call struct {
	shape   int
	args    []string
	missed  bool // it found no row
	several bool // it used several rows of a table
	tables  []string
}

// A trace is a transaction that was committed.
type trace struct {
	calls  []call
	level  history.Level
	action string // that its statements name; empty: none
}

// A miner holds what was read.
type miner struct {
	o      Options
	shapes []statement
	number map[statement]int
	traces []trace
	mined  Mined
}

// A statement is known by its shape, and by what it was done to if that cannot be read.
type statement struct {
	shape string
	kind  history.Kind
}

// Mine reads transactions and makes programs of them.
func Mine(txns iter.Seq2[*history.Txn, error], o Options) (*Mined, error) {
	m := miner{o: o, number: map[statement]int{}}
	for t, err := range txns {
		if err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		m.add(t)
	}
	var clusters []*cluster
	for _, c := range m.clusters() {
		if len(c.traces) < o.MinCalls {
			m.mined.LeftOut++
			continue
		}
		clusters = append(clusters, c)
	}
	slices.SortStableFunc(clusters, func(a, b *cluster) int { return cmp.Compare(len(b.traces), len(a.traces)) })
	if err := m.build(clusters); err != nil {
		return nil, err
	}
	return &m.mined, nil
}

// add takes a transaction, if it was committed and used rows.
func (m *miner) add(t *history.Txn) {
	tr := trace{level: t.Level, action: programname.ActionOf(t)}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		switch {
		case uses(s):
			tr.calls = append(tr.calls, m.call(s))
		case (s.Kind == history.Lock || s.Kind == history.NamedLock) && !slices.Contains(m.mined.Locks, s.Shape):
			m.mined.Locks = append(m.mined.Locks, s.Shape)
		}
	}
	switch {
	case len(tr.calls) == 0:
	case t.Status != history.Committed:
		m.mined.Ended++
	case len(tr.calls) > maxStatements:
		m.unreadable(fmt.Sprintf("a transaction of %d statements", len(tr.calls)))
	default:
		m.traces = append(m.traces, tr)
	}
}

// uses reports whether a statement may have used rows. What was undone was read all the same.
func uses(s *history.Stmt) bool {
	switch s.Kind {
	case history.Select:
		return s.Error == history.Error{}
	case history.Insert, history.Update, history.Delete, history.Replace, history.Call, history.Merge, history.Copy:
		return !s.Void
	}
	return false
}

func (m *miner) call(s *history.Stmt) call {
	key := statement{s.Shape, s.Kind}
	n, known := m.number[key]
	if !known {
		n = len(m.shapes)
		m.number[key] = n
		m.shapes = append(m.shapes, key)
	}
	c := call{shape: n, args: s.Args, missed: s.Rows == 0 && s.Affected == 0 && len(s.Accesses) == 0}
	var first []string // the row of each table
	for i := range s.Accesses {
		row := &s.Accesses[i].Row
		t := tableName(row.Table)
		if at := slices.Index(c.tables, t); at < 0 {
			c.tables, first = append(c.tables, t), append(first, row.ID)
		} else if first[at] != row.ID {
			c.several = true
		}
	}
	return c
}

// tableName takes the schema and the incarnation off.
func tableName(table string) string {
	table, _, _ = strings.Cut(table, "@")
	return table[strings.LastIndexByte(table, '.')+1:]
}

func (m *miner) unreadable(what string) {
	if !slices.Contains(m.mined.Unreadable, what) {
		m.mined.Unreadable = append(m.mined.Unreadable, what)
	}
}

// writes reports whether a statement writes.
func (m *miner) writes(shape int) bool { return m.shapes[shape].kind != history.Select }
