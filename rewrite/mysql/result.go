package mysql

import "github.com/isotap/isotap/rewrite"

// Result says how the reply becomes the client's, and which identities it carries.
type Result struct {
	Reply rewrite.Reply
	// Sources are the tables behind the identity columns, in their order, or those that captured entries are of.
	Sources []Source
	// Carried is the number of columns, beside those of Sources, that stars carry into the result set: their names
	// begin with rewrite.CarriedPrefix, and the client does not see them.
	Carried int
	// Collects says that the rows show no identities: an empty text stands in the place of all of them, which collects
	// them in session variables as the rows are made. Of each row there is an entry for each of Sources that its query
	// has, or, where it has none, for one behind them.
	Collects bool
	// Limit is that of a statement that Collects; nil: it has none. Where it is reached, what was collected may be of
	// rows that it left out.
	Limit *rewrite.Limit
	// Variables is the number of session variables in which a SELECT ... INTO leaves the identities of its row: those
	// of Sources, in their order. Isotap asks for them right after a statement that found one.
	Variables int
}

// Shown returns the sources whose identities stand in the rows.
func (r *Result) Shown() []Source {
	if r.Collects {
		return nil
	}
	return r.Sources
}

// A Source is a base table whose identities a result set carries.
type Source struct {
	Table string // history.Row.Table
	// Array says that a row carries the identities of many rows of the table, in one column: a JSON array of texts
	// "rowid=wlist", NULLs among them, or NULL. The wlist is the end of the row's. Otherwise it carries one identity,
	// in two columns: rowid and wlist.
	Array bool
	// Limit is the most identities that an array can hold: one that is full may lack some. 0: no bound.
	Limit int
	// Beside says that the array is of the rows that a subquery read beside a row of the result, NULL where there were
	// none. Whole says, too, that it is the same beside all of them: without a row it is not known.
	Beside, Whole bool
	// Grouped says that the array is of what a subquery read beside each row of a group: in the place of an identity it
	// has a text for a row, which [EachOfGroup] reads, NULL where there was nothing to read.
	Grouped bool
	// Rows is the most such texts that the array can hold, 0: no bound.
	Rows int
	// Apart says that other rows of the result are none of those beside which it stands, and have NULL; these have an
	// array in any case.
	Apart bool
	// Returned says that a row is one that an INSERT returns, and carries its id and the number that the server gave it
	// (AUTO_INCREMENT): no identity of a row that was read.
	Returned bool
	// Order says, if it is not 0, that the source is no table but so many columns: literals for what the rows are
	// ordered by ([rewrite.Predicate].Order), or empty texts.
	Order int
	// Always says that each row has a row of the table: where both columns are NULL, that one was written without
	// isotap's columns. Otherwise it may be the inner side of an outer join, or another arm of a UNION.
	Always bool
}

// Columns is the number of columns that the source takes of a row.
func (s Source) Columns() int {
	switch {
	case s.Order > 0:
		return s.Order
	case s.Array:
		return 1
	}
	return 2
}
