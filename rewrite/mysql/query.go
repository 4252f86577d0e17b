package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
)

// A block is one SELECT whose rows show what was read: the statement itself, a derived table, or the
// body of a common table expression.
type block struct {
	n       *ast.SelectStmt
	srcs    sources
	list    []item
	grouped bool
	limit   int // of its arrays
}

// A nesting is what the planner of a statement with queries in its FROM clause keeps in mind.
type nesting struct {
	columns int // identity columns that got a name so far
	with    *withScope
	// joined says that the query being looked at is joined with something: an array of its rows would be
	// repeated for every row of that.
	joined bool
	// observed are the blocks whose identities are passed outwards.
	observed []*ast.SelectStmt
	ctes     []*cte // that are used
	// bodies are the queries of FROM clauses whose sources are known.
	bodies map[*ast.SelectStmt]*block
}

// A cte is a common table expression. It is looked at when a FROM clause first names it, and changed
// once however often it is named: one that nothing names is not read.
type cte struct {
	def    *ast.CommonTableExpression
	scope  *withScope // what its own query sees
	known  bool
	shows  []identity
	reason history.Reason // why it shows nothing, or not everything
	edits  []edit
}

// A withScope is what the names of tables may mean beside tables: the expressions of a WITH clause, as far
// as a query sees them, and those around it.
type withScope struct {
	up   *withScope
	ctes []*cte
}

// A source is one table of a FROM clause.
type source struct {
	node *ast.TableSource
	name string // by which the statement refers to it
	// table is the instrumented base table; nil when the source cannot be observed, for the reason, or
	// need not be: the server's own tables have no reason.
	table  *Table
	reason history.Reason
	outer  bool // rows of it may be missing: the inner side of an outer join
	// shows is what the source has of identities: those of its own rows, or what a query in its place
	// passes outwards.
	shows []identity
}

type sources []*source

// An identity is what a source shows of the rows of one base table: two columns, or one with an array.
type identity struct {
	rowID, wList string // the columns' names; an array has one
	source       Source
	outer        bool // it may be NULL
}

// An item of a select list: its first and last token.
type item struct{ first, last int }
