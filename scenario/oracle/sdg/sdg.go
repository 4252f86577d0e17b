// Package sdg builds statement-dependency graphs (Jiang et al., "Detecting Transactional Bugs in Database Engines via
// Graph-Based Oracle Construction", OSDI 2023, definition 1): which statements of committed transactions have to come
// before which others, for each of them to answer as it did when it runs alone, in autocommit.
//
// sdg.go is what was seen of statements and the graph of it, place.go finds which version of each row a statement went
// by, order.go finds cycles and orders. All of it is pure, and knows no SQL.
package sdg

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/isotap/isotap/history"
)

// A Version names one of the versions of a row.
type Version string

// Rows are the versions of some tables' rows that a transaction sees.
type Rows map[history.Row]Version

// A Statement is what was seen of one statement of a transaction.
type Statement struct {
	Txn int // its place in History.Txns
	// Tables are those that the statement names or the server looks at for it. Values are those among them that give a
	// write its values alone, and do not decide on what it writes.
	Tables, Values []string
	// Before are all rows of Tables that its transaction saw right before the statement: its version sets, and of a
	// write what it found (the paper's VSR and BWR, 3.2).
	Before Rows
	// Items are the rows that it read or wrote itself; what else is in Before counts for predicates and values.
	Items map[history.Row]bool
	// After are all rows of the tables that it may have written, Written, as its transaction saw them right behind it
	// (AWR). Both are nil for a read.
	Written []string
	After   Rows
}

// A Txn is a transaction of a History.
type Txn struct {
	Committed bool
	// End is how many of the history's statements had run when it ended.
	End int
}

// A History is what was seen of statements that ran one behind the other, none of which waited for another one.
type History struct {
	Statements []Statement // in the order in which they ran
	Txns       []Txn
	// Snapshots says that a transaction reads what was committed when its first statement ran; else each statement
	// reads what was committed when it ran itself.
	Snapshots bool
}

// A Kind is one of the paper's kinds of dependencies between statements (3.1, definitions 2 to 8).
type Kind uint8

// The kinds. Of each the later statement depends on the earlier one.
const (
	ItemRead       Kind = iota // it reads a version that the other one wrote
	ItemWrite                  // it writes the version behind one that the other one wrote
	ItemAnti                   // it writes the version behind one that the other one read
	PredicateRead              // it chooses what it reads by a version that the other one wrote
	PredicateWrite             // one of them chooses what it writes by a version that the other one wrote or replaced
	PredicateAnti              // it writes the version behind one by which the other one chose what it reads
	ValueWrite                 // one of them works out what it writes of a version that the other one wrote or replaced
)

var kinds = [...]string{"item-read", "item-write", "item-anti", "predicate-read", "predicate-write", "predicate-anti",
	"value-write"}

// String returns the kind as the paper calls it, without "stmt" and "depends".
func (k Kind) String() string { return kinds[k] }

// An Edge says that statement To depends on statement From, by a row.
type Edge struct {
	From, To int // places in History.Statements
	Kind     Kind
	Row      history.Row
}

// A Graph is the statement-dependency graph of a history. It has more edges than the servers' own decisions make: a
// statement counts as going by all rows of the tables that it names. Orders that follow it follow the others, too
// (3.3).
type Graph struct {
	history *History
	rows    map[history.Row]*chain
	nodes   []int // the statements of committed transactions
	edges   []Edge
	next    map[int][]int
}

// ErrUnplaced is the error of a history in which the order of a row's versions cannot be told.
var ErrUnplaced = errors.New("the order of a row's versions cannot be told")

// An UndoneError says that a statement went by a version whose transaction was undone: no order of the others has it.
type UndoneError struct {
	Statement int
	Row       history.Row
}

func (e *UndoneError) Error() string {
	return fmt.Sprintf("statement %d saw %s %s as an undone transaction had left it", e.Statement+1, e.Row.Table, e.Row.ID)
}

// New builds the graph of a history. An error is [ErrUnplaced] or an [UndoneError].
func New(h *History) (*Graph, error) {
	g := &Graph{history: h, next: make(map[int][]int)}
	for i, s := range h.Statements {
		if h.Txns[s.Txn].Committed {
			g.nodes = append(g.nodes, i)
		}
	}
	if err := g.chains(); err != nil {
		return nil, err
	}
	for _, row := range slices.SortedFunc(maps.Keys(g.rows), compareRows) {
		if err := g.connect(row, g.rows[row]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func compareRows(a, b history.Row) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.ID, b.ID))
}

// connect adds the dependencies that come of a row.
func (g *Graph) connect(row history.Row, c *chain) error {
	for i := 2; i < len(c.links); i++ {
		g.add(c.links[i-1].writer, c.links[i].writer, ItemWrite, row)
	}
	for _, n := range g.nodes {
		s := &g.history.Statements[n]
		if !slices.Contains(s.Tables, row.Table) {
			continue
		}
		at, err := g.place(n, row)
		if err != nil {
			return err
		}
		if at > 0 {
			g.add(c.links[at].writer, n, s.by(row, ItemRead, PredicateRead), row)
		}
		if at+1 < len(c.links) {
			g.add(n, c.links[at+1].writer, s.by(row, ItemAnti, PredicateAnti), row)
		}
	}
	return nil
}

// by returns the kind of a dependency of what a statement looked at: as an item or in a predicate, or, of a write,
// for what it wrote.
func (s *Statement) by(row history.Row, item, predicate Kind) Kind {
	switch {
	case s.After == nil && s.Items[row]:
		return item
	case s.After == nil:
		return predicate
	case slices.Contains(s.Values, row.Table):
		return ValueWrite
	}
	return PredicateWrite
}

func (g *Graph) add(from, to int, kind Kind, row history.Row) {
	if from == to {
		return
	}
	g.edges = append(g.edges, Edge{From: from, To: to, Kind: kind, Row: row})
	if !slices.Contains(g.next[from], to) {
		g.next[from] = append(g.next[from], to)
	}
}

// Edges returns the dependencies, row by row.
func (g *Graph) Edges() []Edge { return g.edges }
