package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// What the subqueries of a DELETE read is shown beside the rows that it returns, and what those of INSERT ... SELECT
// read is collected with the rows that it makes (ADR 62). Those of UPDATE are in updatesubquery.go. Where the server
// locks what it reads, the copies read the same rows in the same way, so that they lock no more.

// lookIntoDelete finds what shows, beside the rows that a DELETE returns or collects, what its subqueries read. It
// reports whether that is so for all of them. A DELETE locks what it reads at every level, but at READ COMMITTED not
// what it does not find: the copy could read what was committed meanwhile. Of EXISTS and IN MySQL makes joins.
func (pl *planner) lookIntoDelete(n *ast.DeleteStmt) bool {
	srcs := flatten(n.TableRefs.TableRefs)
	if pl.session.WriteReads != ReadLocked || pl.session.Dialect == TiDB || !pl.copiesInWrites() ||
		n.Order != nil && hasSubquery(n.Order) || !pl.beyond.returning.empty() || !pl.baseSources(srcs) {
		return false
	}
	b := &block{srcs: srcs, dialect: pl.session.Dialect}
	found, ok := pl.lookIntoCondition(n.Where, b, true)
	if pl.session.Dialect == MySQL {
		ok = ok && outsideOf(found, b).silent(n.Where) &&
			!slices.ContainsFunc(found, func(c *besides) bool { return c.first })
	}
	pl.plan.Upstream.LocksReads = pl.keepBesides(found, ok, srcs[0].table)
	return pl.plan.Upstream.LocksReads
}

// lookIntoValues finds what shows what the subqueries of an INSERT's rows of values read, all of it with the last row:
// behind that one's values the server says nothing more of a row by its number. Those of ON DUPLICATE KEY UPDATE it
// finds, too. It reports whether that is so for all of them. The server locks what these read at every level. At READ
// COMMITTED a copy could read what was committed meanwhile.
func (pl *planner) lookIntoValues(n *ast.InsertStmt, t *Table) bool {
	if pl.session.WriteReads != ReadLocked || pl.session.Dialect == TiDB || !pl.copiesInWrites() ||
		n.IgnoreErr || !pl.beyond.returning.empty() || t.InsertTrigger ||
		pl.computesBehind(t, true, insertedColumns(n, t)) || pl.collectable(t) != nil {
		return false
	}
	if len(n.Lists) > 1 && n.IsReplace && (t.DeleteTrigger || t.CascadesDelete || len(t.CascadesUpdate) > 0) {
		return false // what a row replaces may change what is read with the last one
	}
	var values []*ast.Assignment
	for _, row := range n.Lists {
		for _, e := range row {
			values = append(values, &ast.Assignment{Expr: e})
		}
	}
	found, ok := pl.lookIntoAssignments(values, &block{dialect: pl.session.Dialect}, nil, true)
	name, err := onlyTable(n.Table, history.ReasonUnparsable)
	if err != nil {
		return false
	}
	row := sources{{name: name.Name.O, table: t}}
	for _, c := range found {
		ok = ok && c.whole && !refersTo(c.node, sources{c.of}, row) // the row's own columns have no values yet
	}
	if len(n.OnDuplicate) > 0 {
		updates, fine := pl.lookIntoDuplicates(n, t)
		ok = ok && fine && (len(found) == 0 || pl.updatesFit(n, t))
		found = append(found, updates...)
	}
	pl.plan.Upstream.LocksReads = pl.keepBesides(found, ok, t)
	return pl.plan.Upstream.LocksReads
}

// lookIntoInsert finds what shows what the subqueries of the query of an INSERT read, in its condition and its select
// list. It reports whether that is so for all of them.
func (pl *planner) lookIntoInsert(n *ast.InsertStmt, sel *ast.SelectStmt, t *Table) bool {
	locks := pl.session.WriteReads == ReadLocked
	if pl.session.WriteReads == NotAgain || pl.session.Dialect == TiDB || !pl.copiesInWrites() ||
		len(n.OnDuplicate) > 0 && sel.From != nil && !pl.updatesFit(n, t) ||
		!pl.beyond.returning.empty() || sel.LockInfo != nil || sel.TableHints != nil ||
		sel.Limit != nil && (sel.From != nil || !plainLimit(sel.Limit)) || sel.OrderBy != nil || sel.Having != nil {
		return false
	}
	var srcs sources
	if sel.From != nil {
		if srcs = flatten(sel.From.TableRefs); !pl.baseSources(srcs) || hasSubquery(sel.From) {
			return false
		}
	}
	b := &block{srcs: srcs, dialect: pl.session.Dialect}
	found, ok := pl.lookIntoCondition(sel.Where, b, locks)
	// Of EXISTS and IN the server may make joins.
	ok = ok && !(locks && len(srcs) > 0 && slices.ContainsFunc(found, func(c *besides) bool { return c.first }))
	var links []link
	for _, f := range sel.Fields.Fields {
		ok = ok && (f.Expr == nil || shownSubqueries(f.Expr, &links))
	}
	for i := range links {
		if ok {
			var columns []*besides
			columns, ok = pl.lookFrom(&links[i], b, locks)
			found = append(found, columns...)
		}
	}
	ok = ok && !pl.computesBehind(t, true, insertedColumns(n, t))
	if len(n.OnDuplicate) > 0 && assignsSubqueries(n) {
		updates, fine := pl.lookIntoDuplicates(n, t)
		ok = ok && fine && locks && (sel.From != nil || len(found) == 0 || pl.updatesFit(n, t))
		found = append(found, updates...)
		ok = pl.keepBesides(found, ok && (sel.From == nil || pl.allInsertedFit(n, sel, t, b, found)), t)
		pl.plan.Upstream.LocksReads = ok // at READ COMMITTED, too, where what the SELECT reads is of a snapshot
		return ok
	}
	if sel.From == nil { // all is read before the only row is written, and shown behind its values
		return pl.keepBesides(found, ok && (len(n.OnDuplicate) == 0 || pl.updatesFit(n, t)), nil)
	}
	return pl.keepBesides(found, ok && pl.allInsertedFit(n, sel, t, b, found), t)
}

// assignsSubqueries reports whether ON DUPLICATE KEY UPDATE has subqueries.
func assignsSubqueries(n *ast.InsertStmt) bool {
	return slices.ContainsFunc(n.OnDuplicate, func(a *ast.Assignment) bool { return hasSubquery(a.Expr) })
}

// keepBesides has the plan show what subqueries read, if that was found for all of them and they do not read the table
// that is written. It reports whether that is so.
func (pl *planner) keepBesides(found []*besides, ok bool, written *Table) bool {
	for _, c := range found {
		ok = ok && c.of.table != written && pl.checkSpelling(c.of.name) == nil
		c.gated = true
	}
	if !ok || len(found) == 0 || len(found) > maxBesideColumns || pl.copiesLimits(found) {
		pl.parameters = nil
		return false
	}
	pl.besides, pl.plan.Upstream.Copies = found, pl.parameters
	pl.plan.Upstream.Shows, pl.literal = true, true // the copies hold literals
	pl.plan.Upstream.SameLocks = pl.session.WriteReads == ReadLocked
	return true
}

// copiesInWrites reports whether a write may hold copies of its subqueries.
func (pl *planner) copiesInWrites() bool {
	limit, err := pl.session.arrayLimit()
	return pl.session.arraysAreCut() && pl.st.executable() < 0 && !pl.rewriter.options.StrictPlans &&
		err == nil && (limit == 0 || limit >= MaxBeside)
}

// lookIntoCondition returns what shows what the subqueries of a write's condition read.
func (pl *planner) lookIntoCondition(where ast.ExprNode, b *block, locks bool) (found []*besides, ok bool) {
	if where == nil {
		return nil, true
	}
	links, arms, ok := pl.hanging(where, pl.conditionSpan(), b)
	if !ok || locks && slices.ContainsFunc(arms, func(a alternative) bool { return a.copies }) {
		return nil, false
	}
	for i := range links {
		columns, ok := pl.lookFrom(&links[i], b, locks)
		if !ok {
			return nil, false
		}
		found = append(found, columns...)
	}
	behindOr, ok := pl.lookIntoArms(arms, b, locks)
	return append(found, behindOr...), ok
}

// lookFrom returns the columns that show what a subquery of a write reads. If that locks, they lock no more.
func (pl *planner) lookFrom(at *link, b *block, locks bool) ([]*besides, bool) {
	columns, ok := pl.look(at, b)
	if !ok || !locks {
		return columns, ok
	}
	n := at.query
	if at.part || len(columns) != 1 || n.GroupBy != nil || n.Having != nil || n.Distinct || n.OrderBy != nil || n.Limit != nil ||
		at.set && at.equal == nil || at.equal != nil && !at.matched && !at.set {
		return nil, false
	}
	c := columns[0]
	if at.set {
		return columns, pl.readsUntil(at, c, b)
	}
	if at.equal != nil && c.whole {
		return nil, false // all its rows are read
	}
	used := aggregatesOf(n)
	one := used.extremes || used.sums
	c.first = at.exists || at.equal != nil
	c.all = !c.first
	if c.first && one || used.distinct || inspectWrite(n.Fields).window {
		return nil, false
	}
	c.gathers = pl.session.Dialect == MySQL
	return columns, readsWholeRows(at, c.of, used.extremes)
}

// readsUntil has a column show what IN reads that hangs on no row: the row that is equal, with which the reading ends,
// and all where none is. It reports whether that locks no more: the server cannot but scan the table.
func (pl *planner) readsUntil(at *link, c *besides, b *block) bool {
	own := sources{c.of}
	test, ok := pl.equalTo(at, own, b.srcs)
	named := neededColumns(at.query, own)[c.of]
	c.until, c.gathers = test, true
	if !ok || !c.whole || !readsWholeRows(at, c.of, false) {
		return false
	}
	return !slices.ContainsFunc(c.of.table.Indexes, func(x rewrite.Index) bool {
		return x.Columns[0] == "" || named[strings.ToLower(x.Columns[0])]
	})
}

// readsWholeRows reports whether a subquery reads the rows of its only table from the table itself, and not from an
// index, so that it locks them there. ends says that the end of an index may answer it: the server may find so once it
// has left conditions out that are always true.
func readsWholeRows(at *link, s *source, ends bool) bool {
	n := *at.query
	if at.exists {
		n.Fields = &ast.FieldList{} // the server does not look at it
	}
	n.Where = lasting(n.Where)
	if indexed(s.table, neededColumns(&n, sources{s})[s]) {
		return false
	}
	n.Where = nil
	listed := neededColumns(&n, sources{s})[s]
	return !ends || !slices.ContainsFunc(s.table.Indexes, func(x rewrite.Index) bool {
		return x.Columns[0] == "" || listed[strings.ToLower(x.Columns[0])]
	})
}

// lasting returns the parts of a condition that the server cannot leave out, as it does with what is always true; nil
// where there are none.
func lasting(e ast.ExprNode) ast.ExprNode {
	switch of := e.(type) {
	case nil:
		return nil
	case *ast.ParenthesesExpr:
		return lasting(of.Expr)
	case *ast.BinaryOperationExpr:
		if of.Op != opcode.LogicAnd {
			break
		}
		l, r := lasting(of.L), lasting(of.R)
		switch {
		case l == nil:
			return r
		case r == nil:
			return l
		}
		return &ast.BinaryOperationExpr{Op: opcode.LogicAnd, L: l, R: r}
	}
	if varies(e) {
		return e
	}
	return nil
}

// varies reports whether each comparison of a condition is one of a column, and none of a column with itself.
func varies(e ast.ExprNode) bool {
	switch of := e.(type) {
	case *ast.ParenthesesExpr:
		return varies(of.Expr)
	case *ast.BinaryOperationExpr:
		switch of.Op {
		case opcode.LogicAnd, opcode.LogicOr:
			return varies(of.L) && varies(of.R)
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
			return comparesColumns(e)
		}
	case *ast.BetweenExpr, *ast.PatternInExpr, *ast.PatternLikeOrIlikeExpr:
		return comparesColumns(e)
	}
	return false
}

// comparesColumns reports whether a comparison is one of columns, of each once.
func comparesColumns(e ast.ExprNode) bool {
	var c namedColumns
	e.Accept(&c)
	for i, name := range c.names {
		if slices.ContainsFunc(c.names[:i], func(n *ast.ColumnName) bool {
			return n.Name.L == name.Name.L && (n.Table.L == name.Table.L || n.Table.L == "" || name.Table.L == "")
		}) {
			return false
		}
	}
	return len(c.names) > 0
}

// conditionSpan finds the condition of an UPDATE or a DELETE, or of an INSERT ... SELECT.
func (pl *planner) conditionSpan() span {
	st, end := pl.st, pl.st.last()+1
	where := st.find(1, end, 0, "WHERE")
	if where < 0 {
		return span{}
	}
	if clause := st.find(where+1, end, 0, "ORDER", "LIMIT", "RETURNING"); clause >= 0 {
		end = clause
	}
	if on := st.onDuplicate(); on > where && on < end {
		end = on
	}
	return span{where + 1, end}
}

// collectingBesides returns an expression that collects what the subqueries of a write read, and is an empty string.
func (pl *planner) collectingBesides(found []*besides) []Piece {
	return pl.collectingOnce(found, []Piece{tagPiece}, pl.session.maxPacket()/4)
}

// collectingOnce returns an expression that collects what subqueries read, as long as no more than limit bytes are
// collected, and is an empty string. What is the same for all rows it collects once, with the first row that comes to
// it: unit is a text that no other such expression has.
func (pl *planner) collectingOnce(found []*besides, unit []Piece, limit int) []Piece {
	var each, once []Piece
	for _, of := range found {
		plain, i := *of, len(pl.plan.Writes.Beside)
		if of.whole {
			plain.decided = nil
		}
		collected := append([]Piece{text(", ")}, pl.collectingBeside(i, &plain, limit)...)
		switch {
		case !of.whole:
			each = append(each, collected...)
		case of.decided != nil:
			each = slices.Concat(each, []Piece{text(", IF((")}, of.decided, []Piece{text(") IS TRUE, _binary''")},
				onceFor("@isotap_w"+strconv.Itoa(i), unit, collected), []Piece{text(")")})
		default:
			once = append(once, collected...)
		}
		pl.plan.Writes.Beside = append(pl.plan.Writes.Beside, of.source())
	}
	pieces := []Piece{text("CONCAT(_binary''")}
	if once != nil {
		pieces = append(pieces, onceFor("@isotap_w", unit, once)...)
	}
	return append(append(pieces, each...), text(")"))
}

// onceFor returns a further argument that is evaluated once for a unit, which the variable keeps, and is an empty
// string for all other rows. Collected are the arguments of a CONCAT.
func onceFor(variable string, unit, collected []Piece) []Piece {
	return slices.Concat([]Piece{text(", IF(IFNULL(" + variable + ", _binary'') = ")}, unit,
		[]Piece{text(", _binary'', CONCAT(LEFT((" + variable + " := ")}, unit, []Piece{text("), 0)")}, collected, []Piece{text("))")})
}

// collectingBeside returns an expression that collects what one subquery read, which has that number, and is an empty
// string.
func (pl *planner) collectingBeside(i int, of *besides, limit int) []Piece {
	if of.gathers {
		return pl.gathering(i, of)
	}
	array := []Piece{text("_binary'[]'")}
	if !of.none {
		array = slices.Concat([]Piece{text("IFNULL(")}, of.spell(pl.session.Dialect), []Piece{text(", _binary'[]')")})
	}
	item := slices.Concat([]Piece{text("_binary'" + arrayMark + "', ")}, array,
		[]Piece{text(", _binary'=', "), tagPiece, text(", _binary'=" + strconv.Itoa(i) + "'")})
	return entryBuffer.collect(limit, item...)
}
