package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

const (
	// minPacket is the smallest max_allowed_packet under which assignments are captured: the stored values
	// of one row (64 KiB at most, blobs are hashed) as hex text and a quarter of collected entries must fit.
	minPacket = 256 << 10
	// maxTag is the length of the longest tag: run, counter, dot and statement number.
	maxTag = 6 + 7 + 1 + 7
	// minWList is the smallest isotap_wlist in which a version fits beside the new one.
	minWList = 2 * (maxTag + 1)
)

// A rowCapture is how a list of assignments to columns of one table is captured, in the form of
// ADR 7: the old stored values are saved before the client's assignments and compared after them.
type rowCapture struct {
	of         string    // the qualifier of the table's columns, with its dot; empty: they stand alone
	stored     stored    // tells whether what is stored in the assigned columns has changed
	same       []Piece   // a condition that holds where nothing is to change, in the place of stored; nil: stored decides
	single     bool      // the statement writes one row at most
	part       string    // an expression for the entries' fourth part; empty: there is none
	again      bool      // the statement may come back to a row that it wrote itself: its tag is there already
	beside     []Piece   // an expression that collects what subqueries read, and is an empty string; nil: there is none
	image      []Piece   // an expression that collects an image of the row as it is left; nil: there is none
	marked     [][]Piece // what the marks in same and image stand for
	wlistBytes int
	limit      int // bytes of collected entries
}

// capture makes the capture of assignments to t, or the reason why there cannot be one.
func (pl *planner) capture(list []*ast.Assignment, t *Table, of string) (*rowCapture, error) {
	s := pl.session
	switch {
	case t.UpdateTrigger:
		return nil, refusal(history.ReasonTrigger)
	case s.SimultaneousAssignment:
		return nil, refusal(history.ReasonModeSimultaneous)
	}
	if err := pl.collectable(t); err != nil {
		return nil, err
	}
	values, err := pl.storedValues(list, t, of)
	if err != nil {
		return nil, err
	}
	return &rowCapture{of: of, stored: values, wlistBytes: t.WListBytes, limit: s.maxPacket() / 4}, nil
}

// collectable returns why no entries can be collected of rows of t.
func (pl *planner) collectable(t *Table) error {
	s := pl.session
	switch {
	case s.EmptyStringIsNull:
		return refusal(history.ReasonModeEmptyIsNull)
	case s.maxPacket() < minPacket:
		return refusal(history.ReasonMaxPacket)
	case t.WListBytes != 0 && t.WListBytes < minWList:
		return refusal(history.ReasonWListSize)
	}
	return nil
}

// assign puts the saving assignment and the tagging one around the client's, which are the tokens
// behind keyword up to end.
func (pl *planner) assign(c *rowCapture, keyword, end int) error {
	if end <= keyword+1 {
		return refusal(history.ReasonUnparsable)
	}
	pos, _ := pl.after(keyword)
	pl.insertAt(pos, text(" "+c.save()))
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, slices.Concat([]Piece{text(", ")}, c.tag(), []Piece{text(gap)})...)
	pl.plan.Writes.Captured = true
	return nil
}

// stored is an expression over columns whose value differs whenever what a table stores in them differs, by <=>.
type stored struct {
	expression string
	nullable   bool // its value may be NULL
}

// storedValues returns that of the assigned columns. Parsing takes a server longer than computing, so it is as short as
// their types let it be.
func (pl *planner) storedValues(list []*ast.Assignment, t *Table, of string) (stored, error) {
	var seen []string
	var columns []*Column
	for _, a := range list {
		c := t.ColumnInAnyCase(a.Column.Name.O)
		if c == nil {
			return stored{}, refusal(history.ReasonUnknownColumn)
		}
		if c.Generated || slices.Contains(seen, c.Name) {
			continue
		}
		seen, columns = append(seen, c.Name), append(columns, c)
	}
	if len(columns) == 0 {
		return stored{}, refusal(history.ReasonGeneratedColumn)
	}
	if err := pl.checkSpelling(seen...); err != nil {
		return stored{}, err
	}
	if len(columns) == 1 {
		return stored{storedBytes(columns[0], of), !columns[0].NotNull}, nil
	}
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = storedPart(c, of)
	}
	return stored{"CONCAT_WS(_binary',', " + strings.Join(parts, ", ") + ")", false}, nil
}

// storedBytes returns an expression that tells the stored values of a column apart. Most types print
// exactly; the others are why it takes a type.
func storedBytes(c *Column, of string) string {
	name := of + quoted(c.Name)
	switch c.Type {
	case "float":
		name += "+0e0" // else it prints six digits
	case "enum":
		name += "+0" // the index: an invalid value and an empty member both print as ''
	case "timestamp":
		name = "UNIX_TIMESTAMP(" + name + ")" // the local hour repeats when summer time ends
	}
	if largeTypes[c.Type] {
		name = "SHA2(" + name + ", 256)" // a large value would not fit max_allowed_packet beside others
	}
	return "CAST(" + name + " AS BINARY)"
}

// largeTypes are those of columns whose values may be large, plainTypes those whose values print without commas.
var (
	largeTypes = set("tinyblob blob mediumblob longblob tinytext text mediumtext longtext json geometry point linestring " +
		"polygon multipoint multilinestring multipolygon geometrycollection")
	plainTypes = set("tinyint smallint mediumint int bigint decimal float double enum timestamp datetime date time year")
)

// storedPart returns such an expression that stands beside others, with commas between them. N is NULL: no number and
// no moment prints so, and no hexadecimal digits.
func storedPart(c *Column, of string) string {
	part := storedBytes(c, of)
	if !largeTypes[c.Type] && !plainTypes[c.Type] {
		part = "HEX(" + part + ")"
	}
	if c.NotNull {
		return part
	}
	return "IFNULL(" + part + ", _binary'N')"
}

// save returns the assignment that saves the stored values.
func (c *rowCapture) save() string {
	wlist, saved := c.of+rewrite.WListColumn, "LEFT((@isotap_o := "+c.stored.expression+"), 0)"
	if c.stored.nullable {
		saved = "IFNULL(" + saved + ", _binary'')"
	}
	return wlist + " = CONCAT(" + saved + ", " + wlist + "),"
}

// tag returns the assignment that tags a row whose stored values differ from the saved ones, and
// collects its entry. A row that stays as it was is collected too, marked by a ~ behind the tag: the
// statement saw that version. Assignments to variables are consumed by LENGTH, LEFT(..., 0) or RIGHT.
func (c *rowCapture) tag() []Piece {
	same := c.same
	if same == nil {
		same = []Piece{text("@isotap_o <=> " + c.stored.expression)}
	}
	if c.single && c.wlistBytes > 0 && c.part == "" && !c.again && c.beside == nil && c.image == nil {
		return c.tagSingle(same)
	}
	wlist := c.of + rewrite.WListColumn
	part := ""
	if c.part != "" {
		part = ", _binary'=', " + c.part
	}
	pieces := append([]Piece{text(wlist + " = CONCAT(IF(LENGTH((@isotap_s := IF(")}, same...)
	pieces = append(pieces, text(", _binary'~', _binary''))) > 0, "+wlist+", "+c.earlier()+"), "))
	rowID, entryList := identityEntry(c.of, c.wlistBytes)
	pieces = append(pieces, collect(rowID, entryList, c.limit, ", @isotap_s"+part)...)
	if c.beside != nil {
		pieces = append(append(pieces, text(", ")), c.beside...)
	}
	if c.image != nil {
		pieces = append(append(append(pieces, text(", IF(LENGTH(@isotap_s) > 0, _binary'', ")), c.image...), text(")"))
	}
	if c.again {
		pieces = append(pieces, text(", IF(LENGTH(@isotap_s) > 0 OR SUBSTRING_INDEX("+wlist+", _binary',', -1) = "),
			tagPiece)
	} else {
		pieces = append(pieces, text(", IF(LENGTH(@isotap_s) > 0"))
	}
	return append(pieces, text(", _binary'', CONCAT(_binary',', "), tagPiece, text(")))"))
}

// tagSingle is tag for a statement that writes one row at most. Its entry needs no bounds: entries are read before
// there are many statements.
func (c *rowCapture) tagSingle(same []Piece) []Piece {
	wlist := c.of + rewrite.WListColumn
	pieces := []Piece{text(wlist + " = IF(RIGHT((@isotap := CONCAT_WS(_binary'', @isotap, " + c.of + rewrite.RowIDColumn +
		", _binary'=', " + wlist + ", _binary'=', "), tagPiece, text(", IF(")}
	pieces = append(pieces, same...)
	return append(pieces, text(", _binary'~;', _binary';'))), 2) = _binary'~;', "+wlist+", CONCAT_WS(_binary',', "+
		c.earlier()+", "), tagPiece, text("))"))
}

// earlier returns the tags that stay beside a new one.
func (c *rowCapture) earlier() string {
	tags := c.of + rewrite.WListColumn
	if c.wlistBytes > 0 {
		tags = lastTags(tags, c.wlistBytes-maxTag-1)
	}
	return "IFNULL(" + tags + ", _binary'0')"
}

// identityEntry returns the expressions for a row's id and wList in its entry. of qualifies its columns.
func identityEntry(of string, wlistBytes int) (rowID, list string) {
	rowID, list = of+rewrite.RowIDColumn, of+rewrite.WListColumn
	if wlistBytes == 0 {
		list = lastTags(list, unboundedEntry)
	}
	return rowID, list
}

// collect returns an expression that collects the entry of a row and is an empty string itself, as long as
// no more than limit bytes are collected. rest is what stands in the entry behind the tag, as further
// arguments of CONCAT_WS, which takes NULL for nothing.
func collect(rowID, list string, limit int, rest string) []Piece {
	return entryBuffer.collect(limit, text(rowID+", _binary'=', "+list+", _binary'=', "), tagPiece, text(rest))
}

// A buffer are the session variables that collect texts, each ended by a semicolon, in two levels.
type buffer struct {
	first, second, length string
	missed                string // an expression for where there are too many bytes already
}

var entryBuffer = buffer{"@isotap", "@isotap_b", "@isotap_l", "(@isotap_n := CAST(@isotap_n + 1 AS BINARY))"}

// collect returns an expression that collects a text, the arguments of a CONCAT_WS, and is an empty string itself.
func (b buffer) collect(limit int, item ...Piece) []Piece {
	pieces := append([]Piece{text("IFNULL(LEFT(IF(" + b.length + " < " + strconv.Itoa(limit) + ", IF(LENGTH(" +
		b.first + " := CONCAT_WS(_binary'', " + b.first + ", ")}, item...)
	return append(pieces, text(", _binary';')) < "+strconv.Itoa(firstLevel)+", _binary'', "+
		"CONCAT(LEFT(("+b.second+" := CONCAT("+b.second+", "+b.first+")), 0), "+
		"LEFT(("+b.length+" := CAST(LENGTH("+b.second+") AS BINARY)), 0), LEFT(("+b.first+" := _binary''), 0))), "+
		b.missed+"), 0), _binary'')"))
}

// unboundedEntry is how much of an unbounded wList an entry carries, in bytes.
const unboundedEntry = 4 << 10

// lastTags returns the last tags of a list, as many as surely fit so many bytes.
func lastTags(list string, bytes int) string {
	return "SUBSTRING_INDEX(" + list + ", _binary',', -" + strconv.Itoa(bytes/(maxTag+1)) + ")"
}
