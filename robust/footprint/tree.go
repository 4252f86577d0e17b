package footprint

import "github.com/isotap/isotap/robust"

// A verb is what a query does.
type verb uint8

const (
	reads verb = iota
	inserts
	updates
	deletes
	merges // any of these, of rows of its target
)

// A query is a statement, or a part of one that reads for itself, as far as both families have it.
type query struct {
	verb   verb
	target *source  // of a write, or the only one
	from   []source // what is read; for a write beside its target
	// where are the conditions that every chosen row meets (WHERE, inner joins' ON), cut at their ANDs; others are
	// conditions of other kinds (outer joins, HAVING).
	where, others []expr
	outputs       []expr // the select list, or RETURNING
	returns       bool   // outputs are RETURNING's
	computed      []expr // ORDER BY, GROUP BY and their like
	aggregates    bool
	lock          robust.Lock
	skips         bool // SKIP LOCKED
	limited       bool // LIMIT
	sets          []assignment
	targets       []source // all tables of a DELETE of several
	columns       []string // of an INSERT; nil: all
	rows          [][]expr
	removes       bool // WHEN … THEN DELETE of MERGE
	conflict      conflict
	// inner is what is read beside: the parts of a UNION, WITH, the source of INSERT … SELECT, subqueries outside of
	// expressions.
	inner []*query
	with  []named
}

// named is a query that WITH names.
type named struct {
	name  string
	query *query
}

// A source is a table or a query in FROM.
type source struct {
	schema, table string
	alias         string
	query         *query // nil for a table
}

// name is how columns refer to it.
func (s *source) name() string {
	if s.alias != "" {
		return s.alias
	}
	return s.table
}

// An assignment of UPDATE.
type assignment struct {
	qualifier, column string
	value             expr
}

// conflict says what becomes of a row to insert whose key is there.
type conflict struct {
	kind    conflictKind
	columns []string     // of the key, so far as the statement names one
	sets    []assignment // what is written instead
	where   []expr
}

type conflictKind uint8

const (
	fails conflictKind = iota
	passes
	updatesInstead
	replaces
)

// An exprKind says what is known of an expression.
type exprKind uint8

const (
	computed exprKind = iota // made of its arguments, in a way that is of no concern
	column
	star
	value    // the same for all rows: a parameter, a constant, or arithmetic of these
	equal    // of its two arguments
	subquery // its query
)

// An expr is an expression, as far as it tells what is read.
type expr struct {
	kind            exprKind
	qualifier, name string // of a column or star
	// symbol is the same for equal values: "$n" for parameter n, "=" and a constant; empty for one of which nothing is
	// known.
	symbol  string
	numeric bool // a constant that is a number
	// op says what is made of args where package footprint tells it on, see [Values]: a comparison (<, <=, >, >=, <>,
	// like, in, any, null), or + and - of values.
	op    string
	args  []expr
	query *query
	old   bool // a column of the row as it was before
}

// fold returns the value that arithmetic has.
func fold(op string, args []expr) expr {
	for _, a := range args {
		if a.kind != value {
			return expr{kind: computed, op: op, args: args}
		}
	}
	return expr{kind: value, op: op, args: args}
}

// between returns the two conditions that BETWEEN is.
func between(of, low, high expr) []expr {
	return []expr{{kind: computed, op: ">=", args: []expr{of, low}}, {kind: computed, op: "<=", args: []expr{of, high}}}
}

// each calls f for an expression and all that it is made of, but for what is in subqueries.
func (e *expr) each(f func(*expr)) {
	f(e)
	for i := range e.args {
		e.args[i].each(f)
	}
}
