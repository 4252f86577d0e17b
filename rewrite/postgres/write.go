package postgres

import (
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"
)

// A write is a statement that writes rows of one table, on its way to a RETURNING clause that tells which.
type write struct {
	*planner
	target source
	id     identity // of the target's rows
	client []ast.Node
	// both says that RETURNING tells old and new versions apart.
	both bool
	// read are the tables that the statement reads beside its target, and tells too.
	read []source
	// sights are what queries and views tell that it reads beside, joined the reading that found them in the FROM or
	// USING clause and changed its queries, provenAs the statement that these are in. Nil: there are none.
	sights     []*sight
	joined     *reading
	provenAs   ast.Stmt
	rels       []*relation   // of that clause, if it was looked at
	looked     bool          // subqueries tell what they read
	from       *ast.NodeList // that clause, if there is one
	toldBeside ast.Node      // a clause whose subqueries are told otherwise
	// columns are what else the statement shows.
	columns []column
	// others is how many items the FROM or USING clause has that are tables, or stand for several; merges says that
	// RETURNING has their columns first.
	others int
	merges bool
	// values says that the statement ends with the rows of VALUES.
	values bool
	// inserted is the query of an INSERT whose rows are told, with the WITH clause before it, around the queries of
	// the WITH clause that the statement is a part of.
	inserted *ast.SelectStmt
	with     *clause
	around   []string
}

// A column is one that a RETURNING clause gets beside the identities of the rows written: text that holds parts of
// the client's, and the sources that it tells.
type column struct {
	edits   []edit
	text    string
	sources []Source
}

// missing is what a column of so many sources shows in the place of identities that are not shown.
func (w *write) missing(sources int) string {
	switch {
	case w.part == nil:
		return lacking
	case sources == 1:
		return "'" + Lacking + "'"
	}
	return "ARRAY['" + Lacking + "'" + strings.Repeat(", NULL", sources-1) + "]::pg_catalog.text[]"
}
