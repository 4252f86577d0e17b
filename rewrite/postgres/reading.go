package postgres

import (
	"errors"
	"reflect"
	"slices"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
)

// A reading is one attempt to have a SELECT tell which versions its rows are made of.
type reading struct {
	*planner
	places  placer
	tree    *ast.SelectStmt
	barred  map[ast.Node]history.Reason // queries that must stay as they are, and why
	unseen  history.Reason              // why not all that is read is seen; the first reason stays
	columns int                         // names given to columns that queries pass outwards
	lateral int                         // LATERAL queries around the one that is looked at
	outer   []*relation                 // what these may name of the blocks around, innermost first
	atOnce  bool                        // all rows must be fetched at once
	// uses are the names in FROM clauses that were taken for common table expressions, stars those of select lists that
	// were taken into account, known the queries that were.
	uses  map[*ast.RangeVar]*common
	stars map[*ast.ColumnRef]bool
	known map[*ast.SelectStmt]bool
	// asked are the columns that are surely asked of queries in FROM clauses.
	asked map[*ast.SelectStmt]map[string]bool
	// wide are the names of the queries in FROM clauses that have more columns than the client's.
	wide []wideName
	// changes make the tree what the text with its edits is to be read as.
	changes []func()
}

// A wideName is the name by which a block refers to a query that shows identities.
type wideName struct {
	*relation
	bars ast.Node
}

// maxBars is how many queries of a statement are given up, one after the other.
const maxBars = 8

// selectRows makes a SELECT tell which versions its rows are made of: the identities of the rows of every base
// table stand behind the client's columns, and the client does not see them. Where a query in its FROM clause turns
// out to be in the way, the statement is looked at anew without it.
func (pl *planner) selectRows(n *ast.SelectStmt) error {
	if n.IntoClause != nil {
		return refusal(history.ReasonSelectInto)
	}
	barred := pl.kept(n.WithClause)
	for {
		pl.edits = nil
		r := &reading{planner: pl, tree: n, barred: barred, uses: make(map[*ast.RangeVar]*common),
			stars: make(map[*ast.ColumnRef]bool),
			known: make(map[*ast.SelectStmt]bool), asked: make(map[*ast.SelectStmt]map[string]bool)}
		err := r.statement()
		var b *bar
		if !errors.As(err, &b) {
			return err
		}
		if barred[b.node] = b.reason; len(barred) > maxBars {
			return refusal(b.reason)
		}
	}
}

// statement plans the whole statement.
func (r *reading) statement() error {
	r.places = placer{statement: r.st, queries: make(map[*ast.SelectStmt]place)}
	if err := r.places.place(r.tree, 0, len(r.st.toks)); err != nil {
		return err
	}
	blocks, err := r.query(r.tree, nil)
	if err != nil {
		return err
	}
	shown := all(blocks)
	switch {
	case len(shown) == 0 && !r.unseen.IsZero():
		return refusal(r.unseen)
	case len(shown) == 0:
		r.nothing()
		return nil
	}
	if err := r.checkNames(); err != nil {
		return err
	}
	if err := r.append(blocks, shown); err != nil {
		return err
	}
	r.plan.Result.AtOnce = r.atOnce
	if !r.unseen.IsZero() {
		r.downgrade(r.unseen)
	} else {
		r.chooses(blocks)
	}
	return r.prove()
}

// miss takes note that something that is read is not seen.
func (r *reading) miss(reason history.Reason) {
	if r.unseen.IsZero() {
		r.unseen = reason
	}
}

// checkNames refuses what could mean a column of isotap's, and bars the queries whose whole rows are used: they
// would show the columns added to them.
func (r *reading) checkNames() (err error) {
	if err := r.st.reserved(); err != nil || len(r.wide) == 0 {
		return err
	}
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ColumnRef:
			if b := r.wholeRow(n); b != nil && err == nil {
				err = b
			}
		case *ast.SelectStmt:
			if b := r.stranger(n); b != nil && err == nil {
				err = b
			}
		}
		return true
	}, r.tree)
	if !whole {
		return refusal(history.ReasonUnparsable)
	}
	return err
}

// wholeRow returns a bar where a reference may be to all columns of a query that has more of them than the client's.
func (r *reading) wholeRow(n *ast.ColumnRef) error {
	names := fields(n)
	if r.stars[n] || len(names) > 2 {
		return nil
	}
	for _, w := range r.wide {
		if names[0] == w.ref && (len(names) == 1 || names[1] == "*" || ofRecords[names[1]] && !w.has(names[1])) {
			return &bar{w.bars, history.ReasonWholeRow}
		}
	}
	return nil
}

// ofRecords are the functions that take any row: x.to_json is to_json(x) where x has no such column.
var ofRecords = map[string]bool{"row_to_json": true, "to_json": true, "to_jsonb": true, "json_agg": true,
	"jsonb_agg": true,
	"array_agg": true, "pg_column_size": true, "record_out": true, "record_send": true, "text": true, "varchar": true,
	"name":   true,
	"bpchar": true, "quote_literal": true, "quote_nullable": true, "json_build_object": true,
	"jsonb_build_object": true,
	"concat":             true, "format": true, "hash_record": true}

// stranger returns a bar where a query that isotap does not look into may take all columns of a common table
// expression that it changes.
func (r *reading) stranger(n *ast.SelectStmt) error {
	if r.known[n] || !takesAll(n) {
		return nil
	}
	var found error
	for _, item := range nodes(n.FromClause) {
		ast.Rewrite(item, func(c *ast.Cursor) bool {
			if v, ok := c.Node().(*ast.RangeVar); ok && v.SchemaName == "" {
				for _, cte := range r.uses {
					if cte.def.Ctename == v.RelName && len(cte.shows) > 0 {
						found = &bar{cte.def, history.ReasonWith}
					}
				}
			}
			return true
		}, nil)
	}
	return found
}

// takesAll reports whether a query may name columns without saying which.
func takesAll(n *ast.SelectStmt) bool {
	for _, t := range nodes(n.TargetList) {
		if star(t) != nil {
			return true
		}
	}
	for _, item := range nodes(n.FromClause) {
		if natural(item) {
			return true
		}
	}
	return false
}

// natural reports whether an item of a FROM clause joins by equal names.
func natural(item ast.Node) bool {
	j, ok := bare(item).(*ast.JoinExpr)
	return ok && (j.IsNatural || natural(j.Larg) || natural(j.Rarg))
}

// star returns the reference of a select list's item that is a star, or nil.
func star(item ast.Node) *ast.ColumnRef {
	t, ok := item.(*ast.ResTarget)
	if !ok {
		return nil
	}
	ref, ok := t.Val.(*ast.ColumnRef)
	if !ok {
		return nil
	}
	if names := fields(ref); names[len(names)-1] != "*" {
		return nil
	}
	return ref
}

// prove refuses the statement unless the text with its edits is read as the client's tree with the changes meant by
// them. The tree is of no use afterwards.
func (r *reading) prove() error {
	if !r.session.utf8() && slices.ContainsFunc(r.edits, func(e edit) bool { return !ascii(e.text) }) {
		return refusal(history.ReasonCharset) // the schema spells names in UTF-8
	}
	start, end := r.st.span()
	tree, err := parse(r.readable(spliced(r.st.text, start, end, r.sorted())))
	if err != nil {
		return err
	}
	for _, change := range r.changes {
		change()
	}
	if !reflect.DeepEqual(tree, ast.Stmt(r.tree)) {
		return refusal(history.ReasonUnparsable)
	}
	return nil
}
