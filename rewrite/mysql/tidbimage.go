package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// On TiDB an UPDATE sees its rows as they were, in every assignment. What it leaves follows from its assignments, where
// it is observed at all: they are such that what they store is known (unchanged.go). An INSERT sees the values before
// its own, and the defaults of columns that it does not name, as on the other servers.

// A givenValue is what an assignment stores in a column, as an expression over the row as it was.
type givenValue struct {
	stored []Piece
	text   bool // it is a text; otherwise a number or NULL
}

// literal returns an expression for the literal that stores the value again.
func (v givenValue) literal() []Piece {
	before, after := "CAST((", ") AS BINARY)"
	if v.text {
		before, after = "CONCAT(_binary'X''', HEX(", "), _binary'''')"
	}
	return slices.Concat([]Piece{text("IFNULL(" + before)}, v.stored, []Piece{text(after + ", _binary'NULL')")})
}

// imageTiDB has the assignment that tags a row collect an image of the row that the statement leaves, in which it gives
// columns some values.
func (pl *planner) imageTiDB(c *rowCapture, t *Table, gives map[*Column]givenValue) {
	if !pl.collectsImages(t) {
		return
	}
	marked := make(map[*Column]givenValue, len(gives))
	for column := range numberedFirst(t) {
		if given, ok := gives[column]; ok {
			marked[column] = givenValue{[]Piece{c.mark(given.stored)}, given.text}
		}
	}
	i, ok := pl.image(t, c.of, func(column *Column) bool {
		_, given := gives[column]
		return given || !column.OnUpdate
	}, marked)
	if !ok {
		return
	}
	c.image = i.collect(c.of, c.limit, tagPiece)
	pl.plan.Writes.Images.Updated = i.columns
}

// mark returns a piece that stands for pieces with the client's own text.
func (c *rowCapture) mark(stands []Piece) Piece {
	c.marked = append(c.marked, stands)
	return Piece{Hole: CopyHole, Ordinal: -len(c.marked)}
}

// unmarked returns pieces with what their marks stand for.
func (c *rowCapture) unmarked(pieces []Piece) (out []Piece) {
	for _, p := range pieces {
		if p.Hole == CopyHole && p.Ordinal < 0 {
			out = append(out, c.marked[-p.Ordinal-1]...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// imageOfTiDBsValues is imageOfValues for TiDB. An expression that names a column has the server work out the defaults
// of all columns first, those too that the statement names. So nothing is collected where that may be seen (a sequence
// goes on), nor where a value may become another behind the image.
func (pl *planner) imageOfTiDBsValues(n *ast.InsertStmt, t *Table) (i image, ok bool) {
	if n.IgnoreErr || !pl.session.Strict || slices.ContainsFunc(t.Columns, func(c Column) bool {
		return c.ComputedDefault && c.Type != "timestamp" && c.Type != "datetime"
	}) {
		return image{}, false
	}
	gives := make(map[*Column]givenValue)
	for c := range numberedFirst(t) {
		if c.AutoIncrement { // NULL asks for a number, too; the server takes IFNULL of a NOT NULL column for the column
			gives[c] = givenValue{stored: []Piece{text("IF(" + quoted(c.Name) + " <> 0, " + quoted(c.Name) + ", 0)")}}
		}
	}
	i, ok = pl.image(t, "", func(c *Column) bool {
		return given(n, t, c) || c.AutoIncrement || !c.ComputedDefault && (!c.NotNull || c.Default != "")
	}, gives)
	if c := mayBeRandom(t); c != nil {
		i.known = quoted(c.Name) + " <> 0"
	}
	return i, ok
}

// mayBeRandom returns the column that the server may fill with a random number where it is given none (AUTO_RANDOM,
// which information_schema.COLUMNS does not show): a BIGINT that the primary key begins with.
func mayBeRandom(t *Table) *Column {
	for _, index := range t.Indexes {
		if index.Primary {
			c := t.Column(index.Columns[0])
			if c != nil && c.Type == "bigint" && !c.AutoIncrement {
				return c
			}
		}
	}
	return nil
}
