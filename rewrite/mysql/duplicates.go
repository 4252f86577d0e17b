package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// ON DUPLICATE KEY UPDATE collects the rows that it meets in the place of an insert, and what the subqueries of its
// assignments read, by one of isotap's behind them.

const (
	// rowAliasVersion is the first MySQL that has a row alias.
	rowAliasVersion = 80019
	// valuesWarnVersion is the first MySQL that warns of VALUES(), in favor of that.
	valuesWarnVersion = 80020
	// candidateValue is the id of the row that was to be inserted.
	candidateValue = "VALUES(" + rewrite.RowIDColumn + ")"
)

// warnsOfValues reports whether the server warns of VALUES().
func (pl *planner) warnsOfValues() bool {
	return pl.session.Dialect == MySQL && pl.session.Version >= valuesWarnVersion
}

// duplicates makes ON DUPLICATE KEY UPDATE collect and tag the rows that it meets in the place of an
// insert. Each entry names the row that was not inserted, whether the update changes anything or not.
func (pl *planner) duplicates(n *ast.InsertStmt, t *Table) error {
	spelled, err := onlyTable(n.Table, history.ReasonUnparsable)
	if err != nil {
		return err
	}
	on := pl.st.onDuplicate()
	if on < 0 {
		return refusal(history.ReasonUnparsable)
	}
	if err := pl.checkSpelling(spelled.Name.O); err != nil {
		return err
	}
	// The row alias has columns of the same names.
	c, err := pl.capture(n.OnDuplicate, t, quoted(spelled.Name.O)+".")
	if err != nil {
		return err
	}
	c.again = true
	if shown := slices.DeleteFunc(slices.Clone(pl.besides), func(b *besides) bool { return !b.instead }); len(shown) > 0 {
		unit := []Piece{text("CONCAT("), tagPiece, text(", _binary'+')")} // the values' are collected once, too
		c.beside = pl.collectingOnce(shown, unit, c.limit)
	}
	c.part = pl.candidate(n, t, on)
	pl.imageUpdate(c, n.OnDuplicate, t)
	end := pl.st.last() + 1
	if r := pl.beyond.returning; !r.empty() {
		end = r.from
	}
	pl.cascades(n.OnDuplicate, t)
	return pl.assign(c, on+3, end)
}

// candidate returns the expression that stands in the update list for the id of the row to be inserted.
func (pl *planner) candidate(n *ast.InsertStmt, t *Table, on int) string {
	if a := pl.beyond.rowAlias; !a.empty() {
		return pl.st.tok(a.from+1) + "." + rewrite.RowIDColumn
	}
	if n.Select != nil || pl.session.Dialect != MySQL || pl.session.Version < rowAliasVersion {
		return candidateValue // the rows of a SELECT have no alias
	}
	// An alias of columns, too, lest the client's own names become ambiguous.
	columns := len(n.Columns)
	if columns == 0 && len(n.Lists[0]) > 0 {
		columns = len(visibleColumns(t))
	}
	var b strings.Builder
	b.WriteString(" AS isotap_new(")
	for i := range columns {
		b.WriteString("isotap_" + strconv.Itoa(i+1) + ", ")
	}
	b.WriteString(rewrite.RowIDColumn + ", " + rewrite.WListColumn + ")")
	pos, gap := pl.after(on - 1)
	pl.insertAt(pos, text(b.String()+gap))
	return "isotap_new." + rewrite.RowIDColumn
}

// extendRowAlias gives isotap's columns names in the client's row alias, where it names columns.
func (pl *planner) extendRowAlias() error {
	a := pl.beyond.rowAlias
	if a.to-a.from <= 2 {
		return nil
	}
	if a.to-a.from == 4 {
		return refusal(history.ReasonUnparsable) // no names between the parentheses
	}
	pl.insertAt(pl.st.Tokens[a.to-1].Start, text(", "+rewrite.RowIDColumn+", "+rewrite.WListColumn))
	return nil
}

// lookIntoDuplicates returns what shows what subqueries read that ON DUPLICATE KEY UPDATE assigns and that hang on no
// row, all of it with the first row that is met. It reports whether that is so for all of them. Where several rows are
// inserted the server must have nothing to say of those behind it.
func (pl *planner) lookIntoDuplicates(n *ast.InsertStmt, t *Table) (found []*besides, ok bool) {
	if cascadesFrom(n.OnDuplicate, t) || pl.computesBehind(t, false, nil) {
		return nil, false
	}
	found, ok = pl.lookIntoAssignments(n.OnDuplicate, &block{dialect: pl.session.Dialect}, nil, true)
	for _, c := range found {
		names, known := pl.outerNames(c.node)
		ok = ok && c.whole && known && len(names) == 0
		c.instead = true
	}
	return found, ok && (n.Select != nil || len(n.Lists) == 1 || pl.updatesFit(n, t) && pl.valuesFit(n, t))
}

// updatesFit reports whether the server has surely nothing to say of what is assigned to a row that is met.
func (pl *planner) updatesFit(n *ast.InsertStmt, t *Table) bool {
	var l outside
	if a := pl.beyond.rowAlias; a.to-a.from == 2 { // its columns have the table's names
		l.alias = strings.ToLower(unquoted(pl.st.tok(a.from + 1)))
	}
	return l.allFit(n.OnDuplicate, t)
}

// valuesFit reports whether the server has surely nothing to say of any value of an INSERT's rows.
func (pl *planner) valuesFit(n *ast.InsertStmt, t *Table) bool {
	columns := insertedColumns(n, t)
	return !slices.ContainsFunc(n.Lists, func(row []ast.ExprNode) bool {
		for i, e := range row {
			if i >= len(columns) || t.ColumnInAnyCase(columns[i]) == nil || !(&outside{}).storable(e, t.ColumnInAnyCase(columns[i])) {
				return true
			}
		}
		return false
	})
}
