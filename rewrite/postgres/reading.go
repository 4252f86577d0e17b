package postgres

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/rewrite"
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
	// besides are the columns that show what subqueries read, hidden the number of columns that got a name.
	besides []*besides
	hidden  int
	// fails says how the plan decides about errors, once that is asked.
	fails failure
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
		stars:  make(map[*ast.ColumnRef]bool),
		known:  make(map[*ast.SelectStmt]bool),
		alone:  make(map[*ast.SelectStmt]standing),
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

// see decides what of its rows' identities a block shows.
func (r *reading) see(b *block, u *usage) error {
	if len(b.sights) == 0 {
		return nil
	}
	reason, err := r.hindrance(b, u)
	switch {
	case err != nil:
		return err
	case !reason.IsZero():
		return r.hide(b, reason)
	}
	if err := r.starred(b); err != nil {
		return err
	}
	r.downgradeBlock(b, u)
	if b.grouped || b.unique {
		r.collect(b)
	}
	return nil
}

// hide has a block show nothing.
func (r *reading) hide(b *block, reason history.Reason) error {
	for _, rel := range b.rels {
		if rel.base == nil && len(rel.sights) > 0 {
			return &queryRefusal{rel.node, reason} // a star may hold what it passes outwards
		}
	}
	r.markUnseen(reason)
	b.sights = nil
	return nil
}

// hindrance returns the reason why a block cannot show what it reads.
func (r *reading) hindrance(b *block, u *usage) (history.Reason, error) {
	n := b.n
	wide := len(nodes(n.TargetList))
	switch {
	case !b.grouped && u.reachesOut(b.rels):
		return history.ReasonAggregate, nil
	case u.unsure && !b.grouped && r.mayAggregate(b):
		return history.ReasonFunction, nil
	case beyond(n.SortClause, b.columns()), beyond(n.GroupClause, b.columns()), beyond(n.DistinctClause, b.columns()):
		return history.ReasonOrderByPosition, nil
	case wide > maxTargets:
		return history.ReasonColumns, nil
	case b.looksUp() && (r.rewriter.options.StrictPlans || r.plan.Session.Cursor != nil),
		b.n.LockingClause == nil && slices.ContainsFunc(b.rels, func(rel *relation) bool {
			return rel.base != nil &&
				r.byDistance(b, rel.base, u)
		}):
		return history.ReasonPlan, nil
	case r.session.Serializable, r.rewriter.options.StrictPlans, r.plan.Session.Cursor != nil:
		if reason, err := r.otherPlan(b, u); !reason.IsZero() || err != nil {
			return reason, err
		}
	}
	if b.unique {
		if reason := b.ungroupable(u); !reason.IsZero() {
			return reason, nil
		}
	}
	if b.grouped || b.unique {
		if r.of == nil && (b.n.GroupClause != nil || b.unique) && r.failure() == ordinary && r.joinsTables() {
			return history.ReasonPlan, nil // an array has a price, as one that a query in FROM passes outwards
		}
		if reason := r.ends(b, u); !reason.IsZero() {
			return reason, nil
		}
		return b.tooMuch(), nil
	}
	return history.Reason{}, nil
}

// downgradeBlock takes note of what the block reads and does not show.
func (r *reading) downgradeBlock(b *block, u *usage) {
	limited := b.n.LimitCount != nil || b.n.LimitOffset != nil
	for _, rel := range b.rels {
		if rel.grouped() && !rel.whole && (limited || !rel.hangs && r.hides(b, rel)) {
			r.markUnseen(history.ReasonGroupsLeftOut)
		}
	}
	switch {
	case b.n.HavingClause != nil, limited && (b.n.GroupClause != nil || b.unique):
		r.markUnseen(history.ReasonGroupsLeftOut)
	case len(nodes(b.n.DistinctClause)) > 0:
		r.markUnseen(history.ReasonDistinct) // the rows that others were preferred to
	case u.window && (limited || b.n != r.tree):
		r.markUnseen(history.ReasonWindowFunction) // its values came from rows that are not among the result's
	}
}

// mayAggregate reports whether a function of which it is not known whether it aggregates stands where an aggregate
// may. It is none if the select list holds a column as it is.
func (r *reading) mayAggregate(b *block) bool {
	for _, t := range nodes(b.n.TargetList) {
		item, ok := t.(*ast.ResTarget)
		if !ok {
			continue
		}
		if ref, ok := bare(item.Val).(*ast.ColumnRef); ok && b.own(ref) {
			return false
		}
	}
	u, err := r.inspect(b.n.TargetList, b.n.SortClause)
	return err != nil || u.unsure
}

// own reports whether a reference is surely to a column of the block's own base tables.
func (b *block) own(ref *ast.ColumnRef) bool {
	names := fields(ref)
	for _, rel := range b.rels {
		if rel.base == nil || len(rel.base.names) == 0 {
			continue
		}
		switch {
		case names[0] == "*", len(names) == 2 && names[0] == rel.ref, len(names) == 1 && rel.base.has(names[0]):
			return true
		}
	}
	return false
}

// starred looks for stars in the select list that hold columns which queries pass outwards: these must be the
// last columns, behind the client's. Elsewhere the client's columns stand in the star's place, one by one.
func (r *reading) starred(b *block) error {
	held := make(map[string]bool)
	for i, item := range nodes(b.n.TargetList) {
		ref := star(item)
		if ref == nil || !b.expands(ref) {
			continue // a star may show a relation of a block around: see wholeRow
		}
		r.stars[ref] = true
		carried, err := b.carriedBy(ref, i, held)
		if err != nil {
			if r.spellStar(b, ref, i) {
				continue
			}
			return err
		}
		for _, s := range carried {
			held[s.names[0]], s.carried = true, true
		}
	}
	return nil
}

// carriedBy returns the columns of isotap's that a star, an item of the select list, holds; an error where it must not.
func (b *block) carriedBy(ref *ast.ColumnRef, item int, held map[string]bool) (carried []*sight, err error) {
	for k, rel := range b.rels {
		if len(rel.sights) == 0 || rel.base != nil || !rel.within(ref) {
			continue
		}
		last := item == len(nodes(b.n.TargetList))-1 && (len(fields(ref)) > 1 || k == len(b.rels)-1)
		if b.grouped || b.unique || !last {
			return nil, &queryRefusal{rel.node, history.ReasonDerivedStar}
		}
		for _, s := range rel.sights {
			switch {
			case s.repeated: // the star shows it however long it is
				return nil, &queryRefusal{rel.node, history.ReasonJoinedAggregate}
			case s.unbounded:
				return nil, &queryRefusal{s.within, history.ReasonSubquery}
			case held[s.names[0]]:
				return nil, &queryRefusal{rel.node, history.ReasonDerivedStar}
			}
			carried = append(carried, s)
		}
	}
	return carried, nil
}

// A sight is what can be seen of the rows of one base table: expressions of a block, or in the place of its
// columns one array.
type sight struct {
	source Source
	exprs  []string
	types  []string // of the expressions, as CAST spells them
	// text is the identity as an array's element; empty where there are arrays already.
	text     string
	nullable bool // there may be no row
	carried  bool // a star at the end of the select list holds the columns
	names    []string
	single   bool // an array of one identity at most
	repeated bool // a join may show one array in many rows
	lookup   bool // the row is looked up by its key, beside the rows of a view
	// within is the query in a FROM clause of whose subquery it shows the rows; nil: it is of no subquery. spelled is
	// its expression there, and unbounded says that nothing there bounds the time that it takes.
	within    *ast.SelectStmt
	spelled   spelling
	unbounded bool
}

// A block is one SELECT without set operators.
type block struct {
	n       *ast.SelectStmt
	rels    []*relation
	outer   []*relation    // those of outer blocks that it can name, innermost first: what LATERAL refers to
	grouped bool           // its rows stand for several
	unique  bool           // DISTINCT, to become GROUP BY
	lateral bool           // it may be computed anew for each row of what stands before it
	fixed   history.Reason // why nothing can be added to its columns
	union   []*block       // those of a UNION, to become a grouping
	sights  []*sight
}

// A relation is an item of a FROM clause that has columns.
type relation struct {
	node ast.Node // what is barred when its columns are in the way
	ref  string   // the name that its columns are qualified by; may be empty
	// base is the table, if it is one that is observed.
	base   *source
	sights []*sight
	// names are those of a query's own columns; open says that there may be others.
	names []string
	open  bool
	// count is how many columns of the client's it surely has; counted says that there are no more.
	count   int
	counted bool
	added   int // columns of isotap's
	// keys are those of a grouping query's columns that it groups by, whole says that it gives one row.
	keys  []string
	whole bool
	// explicit says that the names of its columns are all in the text. hangs says that it is computed anew for each row
	// of what stands before it, by columns of that.
	explicit, hangs bool
}

// A scope is what names of tables may mean beside tables: the expressions of a WITH clause, as far as a query
// sees them, and those around it.
type scope struct {
	up     *scope
	common []*common
}

// A common is a common table expression. It is looked at when a FROM clause first names it, and changed once
// however often it is named: one that nothing names is not read.
type common struct {
	def       *ast.CommonTableExpr
	sc        *scope // what its own query sees
	recursive bool   // it names itself
	looking   bool
	known     bool
	once      bool // it is named once
	shows     []*sight
	as        relation // its columns
}

// has reports whether the relation may have a column of that name.
func (rel *relation) has(name string) bool {
	return rel.open || slices.Contains(rel.names, name) || rel.base != nil && rel.base.has(name)
}

// held returns the relations whose columns a star of the block's select list holds: the block's own, or, where its
// qualifier names none of these, one of a block around, whose columns a star of a LATERAL query shows.
func (b *block) held(star *ast.ColumnRef) []*relation {
	within := func(rels []*relation) []*relation {
		return slices.DeleteFunc(slices.Clone(rels), func(rel *relation) bool { return !rel.within(star) })
	}
	if own := within(b.rels); len(own) > 0 || len(fields(star)) == 1 {
		return own
	}
	if around := within(b.outer); len(around) > 0 {
		return around[:1]
	}
	return nil
}

// expands reports whether a star of the block's select list is of the block's own relations.
func (b *block) expands(star *ast.ColumnRef) bool {
	return len(fields(star)) == 1 || slices.ContainsFunc(b.rels, func(rel *relation) bool { return rel.within(star) })
}

// columns is how many columns the client's select list surely has.
func (b *block) columns() int {
	if slices.ContainsFunc(nodes(b.n.FromClause), merges) {
		return len(nodes(b.n.TargetList))
	}
	n := 0
	for _, item := range nodes(b.n.TargetList) {
		held := 0
		if ref := star(item); ref != nil {
			for _, rel := range b.held(ref) {
				held += rel.count
			}
		}
		n += max(held, 1)
	}
	return n
}

// counted reports whether the client's select list surely has no more columns than that.
func (b *block) counted() bool {
	return len(nodes(b.n.ValuesLists)) == 0 && !slices.ContainsFunc(nodes(b.n.TargetList), func(item ast.Node) bool {
		ref := star(item)
		if ref == nil {
			return false
		}
		held := b.held(ref)
		return len(held) == 0 || slices.ContainsFunc(nodes(b.n.FromClause), merges) ||
			slices.ContainsFunc(held, func(rel *relation) bool { return !rel.counted })
	})
}

// within reports whether a star holds the relation's columns.
func (rel *relation) within(star *ast.ColumnRef) bool {
	names := fields(star)
	return len(names) == 1 || names[len(names)-2] == rel.ref
}

// outputs returns the names of the block's columns, as far as they are known; open says that there may be others.
func (b *block) outputs() (names []string, open bool) {
	if b.n.TargetList == nil || len(nodes(b.n.ValuesLists)) > 0 {
		return nil, true
	}
	for _, item := range nodes(b.n.TargetList) {
		if ref := star(item); ref != nil {
			held := b.held(ref)
			open = open || len(held) == 0
			for _, rel := range held {
				open = open || rel.open
				names = append(names, rel.columnNames()...)
			}
			continue
		}
		t, ok := item.(*ast.ResTarget)
		if !ok {
			return nil, true
		}
		name := t.Name
		if ref, ok := bare(t.Val).(*ast.ColumnRef); ok && name == "" {
			all := fields(ref)
			name = all[len(all)-1]
		}
		open = open || name == "" // it has a name of the server's choice
		names = append(names, name)
	}
	return names, open
}

// columnNames are the names of the relation's columns that are known.
func (rel *relation) columnNames() []string {
	if rel.base != nil {
		return rel.base.names
	}
	return rel.names
}

// merges reports whether an item of a FROM clause joins columns of two tables to one.
func merges(item ast.Node) bool {
	j, ok := bare(item).(*ast.JoinExpr)
	return ok && (j.IsNatural || j.UsingClause != nil || merges(j.Larg) || merges(j.Rarg))
}

// beyond reports whether a clause may name a column by a position behind the client's own columns.
func beyond(clause *ast.NodeList, columns int) bool {
	for _, item := range nodes(clause) {
		if s, ok := item.(*ast.SortBy); ok {
			item = s.Node
		}
		if c, ok := bare(item).(*ast.A_Const); ok {
			if i, ok := c.Val.(*ast.Integer); ok && i.IVal > columns {
				return true
			}
		}
		if set, ok := item.(*ast.GroupingSet); ok && beyond(set.Content, columns) {
			return true
		}
	}
	return false
}

// carriedFirst puts what a star carries before what is added behind it.
func carriedFirst(shown []*sight) []*sight {
	var carried, added []*sight
	for _, s := range shown {
		if s.carried {
			carried = append(carried, s)
		} else {
			added = append(added, s)
		}
	}
	return append(carried, added...)
}

// joint makes all sights of the statement's only block one array, with an element for each if there are several.
func (r *reading) joint(b *block) error {
	item := b.sights[0].exprs[0]
	if len(b.sights) > 1 {
		var elements []string
		for _, s := range b.sights {
			elements = append(elements, "pg_catalog.array_to_string("+s.exprs[0]+", '"+ElementSeparator+"')")
		}
		item = "ARRAY[" + strings.Join(elements, ", ") + "]"
	}
	for _, s := range b.sights {
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	return r.addItems(b, spelling{{text: item}})
}

// append puts the identities behind the columns of the client's result.
func (r *reading) append(blocks []*block, shown []*sight) error {
	if r.of != nil {
		return r.joint(blocks[0])
	}
	var added []*sight
	for _, s := range carriedFirst(shown) {
		if s.carried {
			r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
		} else {
			added = append(added, s)
		}
	}
	for _, s := range added {
		s.names = nil
		for range s.exprs {
			r.hidden++
			s.names = append(s.names, rewrite.NamePrefix+strconv.Itoa(r.hidden))
		}
		r.plan.Result.Sources = append(r.plan.Result.Sources, s.source)
	}
	r.plan.Result.Reply = rewrite.Trimmed
	return r.extend(blocks, added)
}

// extend adds sights to the select lists of the blocks that they are seen from, and NULLs to those of the others.
func (r *reading) extend(blocks []*block, added []*sight) error {
	for _, b := range blocks {
		var items spelling
		width := len(nodes(b.n.TargetList))
		for _, rel := range b.rels {
			width += rel.count + rel.added
		}
		for _, s := range added {
			own := false
			for _, mine := range b.sights {
				own = own || mine == s
			}
			for i, e := range s.exprs {
				if width++; len(items) > 0 {
					items.text(", ")
				}
				switch {
				case !own:
					items.text("NULL::" + s.types[i])
				case s.spelled != nil:
					items = append(items, s.spelled...)
				default:
					items.text(e)
				}
				items.text(" AS " + s.names[i])
			}
		}
		if width > maxTargets {
			return refusal(history.ReasonColumns)
		}
		if err := r.addItems(b, items); err != nil {
			return err
		}
	}
	return nil
}

// addItems adds items to the select list of a block.
func (r *reading) addItems(b *block, spelled spelling) error {
	items := spelled.in(r.st)
	if b.union != nil {
		return r.groupUnion(b, items)
	}
	if b.unique {
		if err := r.groupInstead(b); err != nil {
			return err
		}
	}
	if items == "" {
		return nil
	}
	wanted, err := parse("SELECT " + r.readable(items))
	if err != nil {
		return err
	}
	n, at := b.n, r.places.queries[b.n]
	switch {
	case r.st.is(at.from, "TABLE"):
		t := r.st.toks[at.from]
		r.edits = append(r.edits, edit{start: t.Start, end: t.End, text: "SELECT *, " + items + " FROM"})
	case len(nodes(n.TargetList)) > 0:
		r.insertSpelled(at.listEnd, ", ", spelled)
	default:
		r.insertSpelled(at.listEnd, " ", spelled)
	}
	r.changes = append(r.changes, func() {
		if n.TargetList == nil {
			n.TargetList = ast.NewNodeList()
		}
		n.TargetList.Items = append(n.TargetList.Items, wanted.(*ast.SelectStmt).TargetList.Items...)
	})
	return nil
}
