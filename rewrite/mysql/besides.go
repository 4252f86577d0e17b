package mysql

import (
	"slices"
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

const (
	// MaxBeside is how many identities one subquery may show beside a row.
	MaxBeside = 64
	// maxBesideColumns is how many columns of this kind a statement gets.
	maxBesideColumns = 6
	// besideFor is how long a statement runs subqueries again, from its beginning on, in microseconds.
	besideFor = 500_000
	// maxBesideBytes is how long an array may be on MySQL. A longer one is cut, and so is no array. Of rows with a
	// column of over 64 KiB the server sorts the ids, and keeps them in a temporary table before, which shows in the
	// flags of the client's columns.
	maxBesideBytes = 16_000
	// Lacking stands in the place of identities that were not collected.
	Lacking = "*"
)

// A besides is a hidden column that shows what a subquery read of one table.
type besides struct {
	of    *source
	node  *ast.SelectStmt
	equal ast.ExprNode // what its rows are equal to, by isotap's condition; nil: they need not be
	query []Piece      // the subquery's FROM and WHERE
	parts clauses      // these by themselves, for what gathers
	// decided is a condition under which the row does not hang on the subquery; nil where it does in any case.
	decided []Piece
	// rowsOf is the query in FROM beside whose rows it stands; nil: the statement.
	rowsOf *ast.SelectStmt
	// asked are the columns of that query of which it shows what they read, if the server computes them.
	asked []string
	// whole says that it reads the same for all rows of the result.
	whole bool
	limit int // of its identities; 0: MaxBeside
	// all says that it reads all rows, whatever their number, as the client's subquery does.
	all bool
	// first says that it shows the first row alone, where the server stops there.
	first bool
	// leading is how many rows it shows, in an order; nil: all that there are.
	leading *leading
	// gated says that a ShownHole decides whether it shows anything.
	gated bool
	// gathers says that it collects its rows one by one; see gathering.
	gathers bool
	// none says that it has read nothing where there is a row.
	none bool
	// apart says that it stands beside the rows of one of several queries.
	apart bool
	// grouped says that it stands beside a group, of whose rows each reads something else; see groups.go.
	grouped bool
	// instead says that it stands beside a row that ON DUPLICATE KEY UPDATE met: without one nothing was read.
	instead bool
	// until is the condition of the row with which the reading ends, if there is one; empty: all rows are read.
	until string
	// groupRows is of how many of them it may tell; 0: no bound.
	groupRows int
}

// spell returns the column's expression. The server runs a whole one once. A query in FROM reads no more rows than it
// shows; MySQL's may name the row around it, MariaDB's may not.
func (c *besides) spell(d Dialect) []Piece {
	switch {
	case c.grouped:
		return c.spellGrouped(d)
	case c.whole && c.decided != nil:
		plain := *c
		plain.decided, plain.apart = nil, true
		return slices.Concat([]Piece{text("IF((")}, c.decided, []Piece{text(") IS TRUE, NULL, ")}, plain.spell(d), []Piece{text(")")})
	}
	rowID, wList := quoted(c.of.name)+"."+rewrite.RowIDColumn, quoted(c.of.name)+"."+rewrite.WListColumn
	limit := c.most()
	head := "(SELECT JSON_ARRAYAGG(isotap_row) FROM (SELECT " + d.element(rowID, wList, c.of.outer) + " AS isotap_row "
	tail := " LIMIT " + strconv.Itoa(limit) + ") AS isotap_rows)"
	cast, end := "CAST(", " AS BINARY)"
	if d == MySQL && limit <= MaxBeside {
		cast, end = "LEFT("+cast, end+", "+strconv.Itoa(maxBesideBytes)+")"
	}
	if c.first {
		head = "(SELECT CONCAT(_latin1'[\"', " + d.element(rowID, wList, c.of.outer) + ", _latin1'\"]') "
		tail = " LIMIT 1)"
	}
	if c.all {
		head, tail = "(SELECT "+d.array(rowID, wList, limit, c.of.outer)+" ", ")"
	}
	query := c.query
	if c.leading != nil {
		head, query = c.leading.spell(d.element(rowID, wList, c.of.outer), c.query)
		tail = ""
	}
	switch {
	case c.whole && c.gated && d == TiDB: // of a parameter it does not know how long the result may be
		return slices.Concat([]Piece{text("IF("), {Hole: ShownHole}, text(", " + cast + head)}, query,
			[]Piece{text(tail + end + ", _binary'" + Lacking + "')")})
	case c.whole && c.gated:
		return slices.Concat([]Piece{text(cast + "IF("), {Hole: ShownHole}, text(", " + head)}, query,
			[]Piece{text(tail + ", _latin1'" + Lacking + "')" + end)})
	case c.whole && c.apart:
		return slices.Concat([]Piece{text("COALESCE(" + cast + head)}, query, []Piece{text(tail + end + ", _binary'[]')")})
	case c.whole:
		return slices.Concat([]Piece{text(cast + head)}, query, []Piece{text(tail + end)})
	case d == MariaDB && !c.first && !c.all && c.leading == nil:
		head, tail = "(SELECT "+d.array(rowID, wList, limit, c.of.outer)+" ", ")"
	}
	if c.decided != nil {
		head, tail = ", NULL, "+head, tail+")"
	}
	begin := []Piece{text(cast + "IF(")}
	if c.gated {
		begin = append(begin, Piece{Hole: ShownHole}, text(" AND "))
	}
	begin = append(begin, text("SYSDATE(6) < NOW(6) + INTERVAL "+strconv.Itoa(besideFor)+" MICROSECOND, "))
	if c.decided != nil {
		begin = slices.Concat(begin, []Piece{text("IF((")}, c.decided, []Piece{text(") IS TRUE")})
	}
	return slices.Concat(begin, []Piece{text(head)}, query, []Piece{text(tail + ", _latin1'" + Lacking + "')" + end)})
}

// source says what the column carries.
func (c *besides) source() Source {
	return Source{Table: c.of.table.Name, Array: true, Limit: c.most(), Beside: true, Whole: c.whole && !c.instead, Apart: c.whole && (c.apart || c.decided != nil),
		Grouped: c.grouped, Rows: c.groupRows}
}

// most returns how many identities the column shows at most.
func (c *besides) most() int {
	switch {
	case c.limit > 0:
		return c.limit
	case c.leading != nil && c.leading.param < 0 && c.leading.rows < MaxBeside:
		return c.leading.rows + 1 // none is lacking where it has as many as it may
	}
	return MaxBeside
}

// appendBesides puts the columns that show what subqueries read behind all others.
func (pl *planner) appendBesides(b *block) error {
	var items []Piece
	for _, c := range pl.besides {
		c.apart = pl.oneOf
		if err := pl.checkSpelling(c.of.name); err != nil {
			return err
		}
		items = append(append(items, text(", ")), c.spell(pl.session.Dialect)...)
		pl.plan.Result.Sources = append(pl.plan.Result.Sources, c.source())
	}
	pos, gap := pl.after(b.list[len(b.list)-1].last)
	pl.insertAt(pos, append(items, text(gap))...)
	pl.plan.Upstream.Copies = append(pl.plan.Upstream.Copies, pl.parameters...)
	pl.plan.Result.Reply, pl.plan.Upstream.Repeats = rewrite.Trimmed, true
	return nil
}
