package rewrite

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// A Statement is what the plans of both families say of their statement: what it is, and how exactly it is observed.
type Statement struct {
	Kind    history.Kind
	Locking history.Locking
	// Observation is what the plan promises (Nothing, Exact, Inexact, Opaque) and Reason why it is not Exact. The
	// session downgrades it when the reply contradicts the plan.
	Observation history.Observation
	Reason      history.Reason
	// Shape is the statement with its literals replaced by ?, and Args are the literals that Shape leaves out, cut to a
	// few bytes each; on PostgreSQL its parameters, too, as $1.
	Shape string
	Args  []string
	// Text is the statement as the client wrote it; empty where it may carry a password, and where it is one of several
	// that the server gets as one.
	Text   string
	Sender history.Sender // see [SenderOf]
	// NamedLocks says that the statement touches no row, and takes or releases locks that have a name: see package
	// namedlock.
	NamedLocks bool
	// Params is the number of placeholders in the client's own text.
	Params int
	// Target is the history.Row.Table that an INSERT, UPDATE or DELETE writes; empty when not known.
	Target string
	// Predicates are the conditions by which the statement chooses the rows of a table that it tells, all of them, in
	// mode predicates.
	Predicates []Predicate
}

// RecordedKind returns what recordings say that the statement is.
func (s *Statement) RecordedKind() history.Kind {
	if s.NamedLocks {
		return history.NamedLock
	}
	return s.Kind
}

// A Predicate is a [history.Predicate] whose parameters are open: parameter Params[i], counted from 0, stands
// between Where[i] and Where[i+1]; [Moment], [User] and [Within] are others.
//
// Where the statement showed as many rows as its Limit lets it, it may have left out others that match: then the
// predicate holds for those alone that stand before the last one shown, in its Order.
type Predicate struct {
	Table, Of, As string
	Where         []string
	Params        []int
	Limit         *Limit // nil: there is none
	Wide          bool   // see history.Predicate
	// Instead says that the predicate counts only where the one before it cannot be closed: it is what is left of that
	// one where what it asks for is not known.
	Instead bool
	// Order is what the statement orders its rows by before all else, as far as that is of the table. Its rows show the
	// values.
	Order []SortKey
}

// A Limit is the most rows that a statement shows: a number, or a parameter.
type Limit struct {
	Rows  uint64
	Param int  // counted from 0; -1: it is Rows
	Open  bool // it is an expression, and not known
}

// Bound returns the most rows that a statement shows, with literals in the places of its parameters. Without a limit,
// of which NULL is one form, that is the greatest number. It reports whether the bound is known.
func (l *Limit) Bound(literals []string) (rows uint64, known bool) {
	switch {
	case l == nil:
		return math.MaxUint64, true
	case l.Open:
		return 0, false
	case l.Param < 0:
		return l.Rows, true
	case l.Param >= len(literals):
		return 0, false
	case literals[l.Param] == "NULL":
		return math.MaxUint64, true
	}
	rows, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(literals[l.Param], "E"), "'"), 10, 64)
	return rows, err == nil
}

// Closed gives those of some predicates that can be closed, in order, each with its condition, as
// [Predicate.CloseFor] does.
func Closed(all []Predicate, with Literals, rows uint64, last []string) iter.Seq2[*Predicate, string] {
	return func(yield func(*Predicate, string) bool) {
		closed := false
		for i := range all {
			p := &all[i]
			if p.Instead && closed {
				continue
			}
			var where string
			if where, closed = p.CloseFor(with, rows, last); closed && !yield(p, where) {
				return
			}
		}
	}
}

// Asks returns what functions in Where ask for.
func (p *Predicate) Asks() (all history.Asked) {
	for _, param := range p.Params {
		switch param {
		case Moment, Within:
			all |= history.AskedTime
		case User:
			all |= history.AskedUser
		}
	}
	return all
}

// AsksForTime reports whether one of some predicates asks for the time.
func AsksForTime(all []Predicate) bool {
	return slices.ContainsFunc(all, func(p Predicate) bool { return p.Asks().Has(history.AskedTime) })
}

// AsksWithin reports whether one of some predicates asks for a moment [Within] the statement.
func AsksWithin(all []Predicate) bool {
	return slices.ContainsFunc(all, func(p Predicate) bool { return slices.Contains(p.Params, Within) })
}

// Literals are what stands in the places of parameters: the client's own, empty where a value is not known, and of what
// a statement asks for the moment and its user.
type Literals struct {
	Params       []string
	Moment, User string // empty: not known
	// Since and Until are moments that the statement ran between.
	Since, Until string // empty: not known

	within string // what stands for Within
}

// Parameters beside the client's, in [Predicate].Params.
const (
	Moment = -2
	User   = -3
	// Within is a moment while the statement ran, and perhaps another one for each row. Plans have it only where a
	// condition that holds at both ends of that time holds all the while.
	Within = -4
)

// of returns the literal for a parameter; empty where it is not known.
func (l *Literals) of(param int) string {
	switch {
	case param == Moment:
		return l.Moment
	case param == User:
		return l.User
	case param == Within:
		return l.within
	case param < 0 || param >= len(l.Params):
		return ""
	}
	return l.Params[param]
}

// CloseFor returns the condition of a statement that showed so many rows, the last of them with some values of Order,
// with literals in the places of its parameters. It reports whether it is known, and whether there is one.
func (p *Predicate) CloseFor(with Literals, rows uint64, last []string) (string, bool) {
	where, ok := p.Close(with)
	if bound, known := p.Limit.Bound(with.Params); !ok || known && rows < bound {
		return where, ok && (where != "" || !p.Wide)
	}
	before := p.Before(last)
	if before == "" {
		return "", false
	}
	if where == "" {
		return before, true
	}
	return "(" + where + "\n) AND (" + before + ")", true // it may end with a comment
}

// Close returns the condition with literals in the places of its parameters, as [OpenText.Close] does. One that asks
// for a moment [Within] the statement becomes narrower: it holds where it does whichever of the moments that is.
func (p *Predicate) Close(with Literals) (string, bool) {
	text := &OpenText{p.Where, p.Params}
	if !slices.Contains(p.Params, Within) {
		return text.Close(with)
	}
	with.within = with.Since
	first, known := text.Close(with)
	with.within = with.Until
	last, alsoKnown := text.Close(with)
	return "(" + first + "\n) AND (" + last + "\n)", known && alsoKnown // a comment may end it
}

// An OpenText is SQL whose parameters are open: parameter Params[i], counted from 0, stands between Texts[i] and
// Texts[i+1].
type OpenText struct {
	Texts  []string
	Params []int
}

// Close returns the text with literals in the places of its parameters; false where one of them is empty or not there:
// its value is not known.
func (t *OpenText) Close(with Literals) (string, bool) {
	if len(t.Params) == 0 {
		return t.Texts[0], true
	}
	var b strings.Builder
	for i, n := range t.Params {
		literal := with.of(n)
		if literal == "" {
			return "", false
		}
		b.WriteString(t.Texts[i])
		b.WriteString(literal)
	}
	b.WriteString(t.Texts[len(t.Params)])
	return b.String(), true
}

// Reply says how the reply to the rewritten statement becomes the reply the client expects.
type Reply uint8

const (
	// Unchanged: the reply goes to the client as it is.
	Unchanged Reply = iota
	// Trimmed: the result set's last columns are the identities, as many as the plan's HiddenColumns; the client does
	// not see them.
	Trimmed
	// Returning: the result set holds only identities; the client gets what it would without RETURNING: the number of
	// rows.
	Returning
	// Listing: each row describes a column of a table (SHOW COLUMNS, information_schema.COLUMNS). The client does not
	// see those in which a value is the name of a column of isotap's. The statement itself stays as it is. MySQL's
	// family only.
	Listing
	// Definition: the second value of the row is a CREATE TABLE statement (SHOW CREATE TABLE), out of which isotap's
	// columns are cut. The statement itself stays as it is. MySQL's family only.
	Definition
)

// HiddenColumns returns the number of columns that a plan adds to the result set, by what it does with the reply and
// the columns that each of its sources takes.
func HiddenColumns[S interface{ Columns() int }](reply Reply, sources []S) int {
	if reply != Trimmed && reply != Returning {
		return 0
	}
	n := 0
	for i := range sources {
		n += sources[i].Columns()
	}
	return n
}
