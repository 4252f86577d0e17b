package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// ImageInit follows [CaptureInit] where statements collect images, and ImageRead [CaptureRead]: it adds a column, for
// [ParseImages].
const (
	ImageInit = ", @isotap_i = _binary'', @isotap_j = _binary'', @isotap_k = _binary'0'"
	ImageRead = ", CONCAT(CONCAT(IFNULL(@isotap_j, _binary''), IFNULL(@isotap_i, _binary'')), " +
		"LEFT((@isotap_i := _binary''), 0), LEFT((@isotap_j := _binary''), 0), " +
		"LEFT((@isotap_k := _binary'0'), 0)) AS isotap_images"
)

var imageBuffer = buffer{"@isotap_i", "@isotap_j", "@isotap_k", "_binary''"}

const (
	// maxImage bounds the texts and bytes of a row that is pictured.
	maxImage = 8 << 10
	// maxImageValues bounds what an INSERT is made to picture: each value takes some 60 bytes of its text.
	maxImageValues = 1000
)

// An ImageEntry are the values that a write left in a row.
type ImageEntry struct {
	RowID    string
	Tag      history.Tag // of the statement
	Inserted bool        // by INSERT; otherwise by an update
	Values   string      // as SQL spells them, separated by commas: those of the columns in [ImageSpec]
}

// ParseImages reads the value that [ImageRead] gives, in the order of the writes. With an error come the entries before
// the bad one.
func ParseImages(b []byte) (entries []ImageEntry, err error) {
	for len(b) > 0 {
		text, rest, ok := bytes.Cut(b, []byte{';'})
		parts := strings.Split(string(text), "=")
		if !ok || len(parts) != 3 {
			return entries, fmt.Errorf("reading images: %.80q is none", text)
		}
		e := ImageEntry{RowID: parts[0], Inserted: parts[1] == "", Values: parts[2]}
		tag := parts[1]
		if e.Inserted {
			tag, _, _ = strings.Cut(e.RowID, ":")
		}
		if e.Tag, err = history.ParseTag(tag); err != nil {
			return entries, fmt.Errorf("reading images: %w", err)
		}
		entries, b = append(entries, e), rest
	}
	return entries, nil
}

// collectsImages reports whether writes of a table collect images.
func (pl *planner) collectsImages(t *Table) bool {
	return pl.rewriter.options.Predicates && !pl.session.Unpictured && pl.collectable(t) == nil
}

// An image is what can be said of a row in SQL: the columns whose values the statement knows.
type image struct {
	columns string  // their names
	values  []Piece // an expression for their values
	large   []Piece // an expression for how many bytes those of variable length take; nil: there are none
	known   string  // a condition under which the values are known; empty: they always are
}

// image returns the image of a row of t by those columns that are known, and the values that a statement gives them in
// the place of those that are read from the row.
func (pl *planner) image(t *Table, of string, known func(*Column) bool, gives map[*Column]givenValue) (i image, ok bool) {
	var names []string
	for c := range numberedFirst(t) {
		value, variable := pl.session.Dialect.imageValue(c, of)
		if value == "" || c.Generated || !known(c) || pl.checkSpelling(c.Name) != nil {
			continue
		}
		shown, long := []Piece{text(value)}, []Piece{text(of + quoted(c.Name))}
		if given, ok := gives[c]; ok {
			shown, long = given.literal(), given.stored
			variable = variable && given.text
		}
		if len(names) > 0 {
			i.values = append(i.values, text(", "))
		}
		names, i.values = append(names, quoted(c.Name)), append(i.values, shown...)
		if variable {
			i.addLength(long)
		}
	}
	i.columns = "(" + strings.Join(names, ", ") + ")"
	i.values = slices.Concat([]Piece{text("CONCAT_WS(_binary',', ")}, i.values, []Piece{text(")")})
	return i, len(names) > 0
}

// addLength takes note of a value of variable length.
func (i *image) addLength(value []Piece) {
	if len(i.large) > 0 {
		i.large = append(i.large, text(" + "))
	}
	i.large = slices.Concat(i.large, []Piece{text("IFNULL(LENGTH(")}, value, []Piece{text("), 0)")})
}

// numberedFirst returns the columns of a table, the one that the server numbers before the others.
func numberedFirst(t *Table) func(yield func(*Column) bool) {
	return func(yield func(*Column) bool) {
		for _, numbered := range []bool{true, false} {
			for i := range t.Columns {
				if t.Columns[i].AutoIncrement == numbered && !yield(&t.Columns[i]) {
					return
				}
			}
		}
	}
}

// imageValue returns an expression for the value of a column as a literal, or an expression of literals, that stores
// the same value again; empty for types of which there is none. Variable says that the value may be long.
func (d Dialect) imageValue(c *Column, of string) (value string, variable bool) {
	name := of + quoted(c.Name)
	between := func(before, inner, after string) string {
		return "CONCAT(_binary'" + before + "', " + inner + ", _binary'" + after + "')"
	}
	switch c.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year":
		value = "CAST(" + name + " AS BINARY)"
	case "double":
		value = d.doubleLiteral(name)
	case "float":
		value = d.doubleLiteral(name + "+0e0") // else it prints six digits
	case "bit", "enum": // the member's index: an invalid value and an empty member both print as ''
		value = "CAST(" + name + "+0 AS BINARY)"
	case "date", "datetime", "time", "uuid", "inet4", "inet6":
		value = between("''", "CAST("+name+" AS CHAR)", "''")
	case "timestamp": // the local hour repeats when summer time ends
		value = between("FROM_UNIXTIME(", "CAST(UNIX_TIMESTAMP("+name+") AS BINARY)", ")")
	case "json":
		value, variable = between("CONVERT(X''", "HEX("+name+")", "'' USING utf8mb4)"), true
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob",
		"mediumblob", "longblob", "set":
		value, variable = between("X''", "HEX("+name+")", "''"), true
	default:
		return "", false
	}
	return "IFNULL(" + value + ", _binary'NULL')", variable
}

// doubleLiteral returns an expression for the literal of a DOUBLE. TiDB prints all digits and no exponent: it would
// read that as a decimal number again, and cut it.
func (d Dialect) doubleLiteral(expr string) string {
	if d == TiDB {
		return "CONCAT(CAST(" + expr + " AS BINARY), _binary'e0')"
	}
	return "CAST(" + expr + " AS BINARY)"
}

// hasImage reports whether there are literals for the values of a column's type.
func hasImage(c *Column) bool {
	value, _ := MariaDB.imageValue(c, "")
	return value != ""
}

// collect returns an expression that collects the image of a row and is an empty string itself. tag is empty where
// the row id tells it.
func (i image) collect(of string, limit int, tag ...Piece) []Piece {
	entry := append([]Piece{text("IFNULL(" + of + rewrite.RowIDColumn + ", _binary''), _binary'=', ")}, tag...)
	if len(tag) > 0 {
		entry = append(entry, text(", "))
	}
	pieces := imageBuffer.collect(limit, slices.Concat(entry, []Piece{text("_binary'=', ")}, i.values)...)
	if i.large != nil {
		pieces = slices.Concat([]Piece{text("IF(")}, i.large,
			[]Piece{text(" > " + strconv.Itoa(maxImage) + ", _binary'', ")}, pieces, []Piece{text(")")})
	}
	if i.known != "" {
		pieces = slices.Concat([]Piece{text("IF(" + i.known + ", ")}, pieces, []Piece{text(", _binary'')")})
	}
	return pieces
}

// imageUpdate has the assignments of a capture collect images of the rows that they leave. of qualifies the columns.
func (pl *planner) imageUpdate(c *rowCapture, list []*ast.Assignment, t *Table) {
	if !pl.collectsImages(t) {
		return
	}
	assigned := func(c *Column) bool {
		for _, a := range list {
			if strings.EqualFold(a.Column.Name.O, c.Name) {
				return true
			}
		}
		return false
	}
	i, ok := pl.image(t, c.of, func(column *Column) bool { return !column.OnUpdate || assigned(column) }, nil)
	if !ok {
		return
	}
	c.image = i.collect(c.of, c.limit, tagPiece)
	pl.plan.Writes.Images.Updated = i.columns
}

// imageJoined is imageUpdate for a table of a join, whose row the capture sees as it was: what the assignments leave
// alone is collected, and constants that they give it are known from the text. gets are the values, by column.
func (pl *planner) imageJoined(c *rowCapture, s *source, assigned []columnRef, gets []span) {
	if !pl.collectsImages(s.table) {
		return
	}
	i, ok := pl.image(s.table, c.of, func(column *Column) bool {
		return !column.OnUpdate && !slices.Contains(assigned, columnRef{s, column})
	}, nil)
	if !ok {
		return
	}
	c.image = i.collect(c.of, c.limit, tagPiece)
	pl.plan.Writes.Images.Updated = i.columns
	if !pl.session.readsConstantsAlike() {
		return
	}
	for n, place := range assigned {
		if pl.storesAlike(place.column) && pl.st.isConstant(gets[n]) {
			pl.constant = append(pl.constant, constant{column: place.column.Name, at: gets[n]})
		}
	}
}

// imageInsert returns the pieces of a list's last value, the tag: they collect images of the rows that go in, where
// the statement knows what they hold.
func (pl *planner) imageInsert(n *ast.InsertStmt, t *Table) []Piece {
	if !pl.collectsImages(t) || t.InsertTrigger || len(n.Lists)*len(t.Columns) > maxImageValues {
		return []Piece{tagPiece}
	}
	i, ok := pl.imageOfValues(n, t)
	if !ok {
		return []Piece{tagPiece}
	}
	p := &pl.plan.Writes.Images
	p.Inserted = i.columns
	for c := range numberedFirst(t) {
		p.AutoIncrement = p.AutoIncrement || c.AutoIncrement
	}
	pl.returnNumbers(t)
	p.Consecutive = len(n.Lists) == 1 || !n.IsReplace && !n.IgnoreErr && len(n.OnDuplicate) == 0
	collected := i.collect("", pl.session.maxPacket()/4)
	if pl.session.Dialect == TiDB {
		collected = asFunctions(collected)
	}
	return slices.Concat([]Piece{text("CONCAT(")}, collected, []Piece{text(", "), tagPiece, text(")")})
}

// imageOfValues returns the image of a row that INSERT ... VALUES makes, whose values an expression behind them sees.
func (pl *planner) imageOfValues(n *ast.InsertStmt, t *Table) (i image, ok bool) {
	if pl.session.Dialect == TiDB {
		return pl.imageOfTiDBsValues(n, t)
	}
	return pl.image(t, "", func(c *Column) bool { return !c.ComputedDefault || given(n, t, c) }, nil)
}

// imageLoad returns the pieces of the tag that LOAD DATA gives its rows: they collect images of these. The server gives
// the numbers of rows that have none behind that.
func (pl *planner) imageLoad(t *Table) []Piece {
	i, ok := pl.image(t, "", func(c *Column) bool { return !c.ComputedDefault }, nil)
	if !ok || !pl.collectsImages(t) || t.InsertTrigger {
		return []Piece{tagPiece}
	}
	p := &pl.plan.Writes.Images
	p.Inserted = i.columns
	for c := range numberedFirst(t) {
		p.AutoIncrement = p.AutoIncrement || c.AutoIncrement
	}
	pieces := append([]Piece{text("CONCAT(")}, i.collect("", pl.session.maxPacket()/4)...)
	return append(pieces, text(", "), tagPiece, text(")"))
}

// returnNumbers adds to the client's RETURNING what the server numbered each row with: the reply is then a result set,
// which has no place for the first number.
func (pl *planner) returnNumbers(t *Table) {
	if !pl.plan.Writes.Images.AutoIncrement || pl.beyond.returning.empty() {
		return
	}
	for c := range numberedFirst(t) {
		pos, gap := pl.after(pl.st.last())
		pl.insertAt(pos, text(", "+rewrite.RowIDColumn+", CAST("+quoted(c.Name)+" AS BINARY) AS "+
			rewrite.CarriedPrefix+"number"+gap))
		pl.plan.Result.Sources = []Source{{Table: t.Name, Returned: true, Always: true}}
		pl.plan.Result.Reply = rewrite.Trimmed
		return
	}
}

// given reports whether every row of an INSERT has a value of its own for a column.
func given(n *ast.InsertStmt, t *Table, c *Column) bool {
	at := -1
	if len(n.Columns) == 0 {
		for i, name := range visibleColumns(t) {
			if name == c.Name {
				at = i
			}
		}
	}
	for i, name := range n.Columns {
		if strings.EqualFold(name.Name.O, c.Name) {
			at = i
		}
	}
	for _, row := range n.Lists {
		if at < 0 || at >= len(row) {
			return false
		}
		if _, filled := row[at].(*ast.DefaultExpr); filled {
			return false
		}
	}
	return true
}
