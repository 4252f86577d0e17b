package postgres

import (
	"errors"
	"maps"
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
	stmt    ast.Stmt                    // the statement that has its clauses; mostly the tree itself
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
	// alone are the queries that are all there is in the FROM clause of the statement.
	alone map[*ast.SelectStmt]standing
	// ofNoRow are the subqueries of such queries that hang on none of their rows, byCopies the queries of the WITH
	// clause that the server computes by themselves since copies of subqueries name them, too.
	ofNoRow  map[*ast.SelectStmt][]*subquery
	byCopies []*common
	// forParts says that parts of the WITH clause, which write, share what the queries show.
	forParts bool
	// besides are the columns that show what subqueries read, hidden the number of columns that got a name.
	besides []*besides
	hidden  int
	// fails says how the plan decides about errors, once that is asked.
	fails failure
	// aside are relations of the statement that are told otherwise.
	aside []*relation
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
		if pl.shares != nil {
			pl.edits = slices.Clone(pl.shares.edits)
		}
		r := newReading(pl, n, barred)
		err := r.statement()
		var b *queryRefusal
		if err == nil && pl.shares != nil {
			pl.shares.saw(r)
		}
		if !errors.As(err, &b) || !pl.mayBar(b.node) {
			return err
		}
		if barred[b.node] = b.reason; len(barred) > maxBars {
			return refusal(b.reason)
		}
	}
}

func newReading(pl *planner, n *ast.SelectStmt, barred map[ast.Node]history.Reason) *reading {
	r := &reading{planner: pl, tree: n, stmt: n, barred: barred, uses: make(map[*ast.RangeVar]*common),
		stars: make(map[*ast.ColumnRef]bool),
		known: make(map[*ast.SelectStmt]bool),
		alone: make(map[*ast.SelectStmt]standing), ofNoRow: make(map[*ast.SelectStmt][]*subquery),
		asked:  make(map[*ast.SelectStmt]map[string]bool),
		places: placer{statement: pl.st, queries: make(map[*ast.SelectStmt]querySpan)}}
	if pl.shares != nil {
		r.columns = pl.shares.columns
		maps.Copy(r.known, pl.shares.looked)
	}
	return r
}

// statement plans the whole statement.
func (r *reading) statement() error {
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
	case len(shown)+len(r.besides) == 0:
		r.nothing()
		return nil
	}
	if err := r.checkNames(); err != nil {
		return err
	}
	if len(shown) > 0 {
		if err := r.append(blocks, shown); err != nil {
			return err
		}
	}
	if len(r.besides) > 0 && r.unseen.IsZero() {
		if err := r.appendBesides(blocks[0]); err != nil {
			return err
		}
	}
	r.plan.Result.AtOnce = r.atOnce
	if !r.unseen.IsZero() {
		r.downgrade(r.unseen)
	} else {
		r.chooses(blocks)
		if err := r.showOrder(blocks); err != nil {
			return err
		}
	}
	return r.prove()
}

// markUnseen takes note that something that is read is not seen.
func (r *reading) markUnseen(reason history.Reason) {
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
	}, r.stmt)
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
			return &queryRefusal{w.bars, history.ReasonWholeRow}
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
						found = &queryRefusal{cte.def, history.ReasonWith}
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
	if changed, ok := tree.(*ast.SelectStmt); ok {
		defer withoutParts(changed)()
		defer withoutParts(r.tree)()
	}
	if !reflect.DeepEqual(tree, ast.Stmt(r.tree)) {
		return refusal(history.ReasonUnparsable)
	}
	return nil
}

// all returns the sights of all blocks.
func all(blocks []*block) []*sight {
	var out []*sight
	for _, b := range blocks {
		out = append(out, b.sights...)
	}
	return out
}

// query looks at a query in whose place sc says what names mean, and returns the blocks whose rows are its rows.
// What these cannot show is missed.
func (r *reading) query(n *ast.SelectStmt, sc *scope) ([]*block, error) {
	r.known[n] = true
	sc, err := r.enter(n.WithClause, sc)
	if err != nil {
		return nil, err
	}
	if n.Op == ast.SETOP_NONE {
		b, err := r.block(n, sc)
		if err != nil {
			return nil, err
		}
		return []*block{b}, nil
	}
	if n == r.tree && n.Op == ast.SETOP_UNION && !n.All {
		return r.union(n, sc)
	}
	blocks, err := r.operands(n, sc)
	if err != nil {
		return nil, err
	}
	u, err := r.inspect(n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil {
		return nil, err
	}
	r.missBeside(u)
	for _, b := range blocks {
		reason := b.unfit(n, blocks[0])
		if reason.IsZero() && r.st.is(r.places.queries[b.n].from, "TABLE") && len(unionColumns(blocks)) == 0 {
			reason = history.ReasonSetOperation // an error about its types has no place, and would have one in a SELECT
		}
		if !reason.IsZero() && len(all(blocks)) > 0 {
			r.drop(blocks)
			r.markUnseen(reason)
		}
	}
	return blocks, nil
}

// unfit returns the reason why a block cannot show anything as a part of a set operation, of which first is the
// first block.
func (b *block) unfit(operation *ast.SelectStmt, first *block) history.Reason {
	switch {
	case !b.fixed.IsZero():
		return b.fixed
	case b.unique:
		return history.ReasonDistinct
	case b.columns() != first.columns(), !b.counted(), !first.counted():
		return history.ReasonSetOperation // an error, whose place depends on what the columns are
	case beyond(operation.SortClause, b.columns()):
		return history.ReasonOrderByPosition
	}
	return history.Reason{}
}

// drop has blocks show nothing.
func (r *reading) drop(blocks []*block) {
	for _, b := range blocks {
		b.sights = nil
	}
}

// operands returns the blocks of both sides of a set operation. Only UNION ALL keeps each of their rows.
func (r *reading) operands(n *ast.SelectStmt, sc *scope) ([]*block, error) {
	left, err := r.query(n.Larg, sc)
	if err != nil {
		return nil, err
	}
	right, err := r.query(n.Rarg, sc)
	if err != nil {
		return nil, err
	}
	blocks := append(left, right...)
	if err := uncarried(blocks); err != nil {
		return nil, err
	}
	if n.Op != ast.SETOP_UNION || !n.All {
		if len(all(blocks)) > 0 {
			r.markUnseen(history.ReasonSetOperation)
		}
		r.drop(blocks)
		for _, b := range blocks {
			b.fixed = history.ReasonSetOperation
		}
	}
	return blocks, nil
}

// carrier is the query that a carried sight is from.
func (b *block) carrier(s *sight) ast.Node {
	for _, rel := range b.rels {
		for _, other := range rel.sights {
			if other == s {
				return rel.node
			}
		}
	}
	return nil
}

// missBeside takes note of what a query does beside reading its own tables.
func (r *reading) missBeside(u *usage) {
	if r.readsBeside(u) {
		r.markUnseen(history.ReasonSubquery)
	}
	if u.function {
		r.markUnseen(history.ReasonFunction)
	}
}

// block looks at a query without set operators.
func (r *reading) block(n *ast.SelectStmt, sc *scope) (*block, error) {
	b := &block{n: n, outer: r.outer, lateral: r.lateral > 0}
	if len(nodes(n.ValuesLists)) > 0 {
		u, err := r.inspect(n.ValuesLists, n.SortClause, n.LimitCount, n.LimitOffset)
		if err == nil {
			r.missBeside(u)
		}
		b.fixed = history.ReasonValuesStatement
		return b, err
	}
	u, err := r.inspect(n.TargetList, n.DistinctClause, n.FromClause, n.WhereClause, n.GroupClause, n.HavingClause,
		n.WindowClause,
		n.SortClause, n.LimitCount, n.LimitOffset)
	if err != nil {
		return nil, err
	}
	if b.rels, err = r.relations(n, sc); err != nil {
		return nil, err
	}
	b.grouped = u.aggregate || n.GroupClause != nil || n.HavingClause != nil || r.inPlace(n)
	b.unique = n.DistinctClause != nil && len(nodes(n.DistinctClause)) == 0
	r.leaveOut(b)
	if err := r.removable(b); err != nil {
		return nil, err
	}
	for _, rel := range b.rels {
		r.onlyFlats(b, rel)
		b.sights = append(b.sights, rel.sights...)
	}
	told := !r.readsBeside(u) || r.inPlace(n) && r.only != nil
	if r.copies && !told && !r.lookWithin(b, u, sc) {
		r.markUnseen(history.ReasonSubquery)
	}
	if err := b.passes(); err != nil {
		return nil, err
	}
	if err := r.see(b, u); err != nil {
		return nil, err
	}
	if !r.copies && !told {
		looked, err := r.lookInto(b, u, sc)
		if err != nil {
			return nil, err
		}
		if !looked {
			looked = r.lookWithin(b, u, sc)
		}
		if !looked {
			r.markUnseen(history.ReasonSubquery)
		}
	}
	if u.function {
		r.markUnseen(history.ReasonFunction)
	}
	return b, nil
}

// onlyFlats takes the sights off the relations that a copy does not tell of. Those of the others may be there several
// times.
func (r *reading) onlyFlats(b *block, rel *relation) {
	switch {
	case !r.inPlace(b.n) || r.only == nil:
	case !slices.Contains(r.only, rel.ref):
		rel.sights = nil
	default:
		for _, s := range rel.sights {
			s.repeated = true
		}
	}
}

// inPlace reports whether a query stands in the place of one of the client's.
func (r *reading) inPlace(n *ast.SelectStmt) bool { return r.of != nil && n == r.tree }
