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
	key        string    // an expression over the assigned columns, which differs whenever what is stored in them does
	same       []Piece   // a condition that holds where nothing is to change, in the place of key; nil: key decides
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
	key, err := pl.storedValues(list, t, of)
	if err != nil {
		return nil, err
	}
	return &rowCapture{of: of, key: key, wlistBytes: t.WListBytes, limit: s.maxPacket() / 4}, nil
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

// storedValues returns an expression over the assigned columns whose value differs whenever what the
// table stores in them differs.
func (pl *planner) storedValues(list []*ast.Assignment, t *Table, of string) (string, error) {
	var seen, parts []string
	for _, a := range list {
		c := t.ColumnInAnyCase(a.Column.Name.O)
		if c == nil {
			return "", refusal(history.ReasonUnknownColumn)
		}
		if c.Generated || slices.Contains(seen, c.Name) {
			continue
		}
		seen = append(seen, c.Name)
		parts = append(parts, "IFNULL("+storedValue(c, of)+", _binary'N')")
	}
	if len(parts) == 0 {
		return "", refusal(history.ReasonGeneratedColumn)
	}
	if err := pl.checkSpelling(seen...); err != nil {
		return "", err
	}
	return "CONCAT_WS(_binary',', " + strings.Join(parts, ", ") + ")", nil
}

// storedValue returns an expression that tells the stored values of a column apart. Most types print
// exactly; the others are why it takes a type.
func storedValue(c *Column, of string) string {
	name := of + quoted(c.Name)
	switch c.Type {
	case "float":
		name += "+0e0" // else it prints six digits
	case "enum":
		name += "+0" // the index: an invalid value and an empty member both print as ''
	case "timestamp":
		name = "UNIX_TIMESTAMP(" + name + ")" // the local hour repeats when summer time ends
	case "tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext", "json",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection":
		return "SHA2(" + name + ", 256)" // in hex a large value would not fit max_allowed_packet
	}
	return "HEX(CAST(" + name + " AS BINARY))"
}

// save returns the assignment that saves the stored values.
func (c *rowCapture) save() string {
	wlist := c.of + rewrite.WListColumn
	return wlist + " = CONCAT(LEFT((@isotap_o := " + c.key + "), 0), " + wlist + "),"
}

// tag returns the assignment that tags a row whose stored values differ from the saved ones, and
// collects its entry. A row that stays as it was is collected too, marked by a ~ behind the tag: the
// statement saw that version. Assignments to variables are consumed by LENGTH or LEFT(..., 0).
func (c *rowCapture) tag() []Piece {
	wlist := c.of + rewrite.WListColumn
	list := "IFNULL(" + wlist + ", _binary'0')"
	if c.wlistBytes > 0 {
		list = wholeTags(list, c.wlistBytes-maxTag-1)
	}
	part := ""
	if c.part != "" {
		part = ", _binary'=', " + c.part
	}
	same := c.same
	if same == nil {
		same = []Piece{text("@isotap_o = " + c.key)}
	}
	pieces := append([]Piece{text(wlist + " = CONCAT(IF(LENGTH((@isotap_s := IF(")}, same...)
	pieces = append(pieces, text(", _binary'~', _binary''))) > 0, "+wlist+", "+list+"), "))
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

// identityEntry returns the expressions for a row's id and wList in its entry. of qualifies its columns.
func identityEntry(of string, wlistBytes int) (rowID, list string) {
	rowID, list = of+rewrite.RowIDColumn, of+rewrite.WListColumn
	if wlistBytes == 0 {
		list = wholeTags(list, unboundedEntry)
	}
	return rowID, list
}

// collect returns an expression that collects the entry of a row and is an empty string itself, as long as
// no more than limit bytes are collected. rest is what stands in the entry behind the tag, as further
// arguments of CONCAT.
func collect(rowID, list string, limit int, rest string) []Piece {
	return entryBuffer.collect(limit, text("IFNULL("+rowID+", _binary''), _binary'=', IFNULL("+list+
		", _binary''), _binary'=', "), tagPiece, text(rest))
}

// A buffer are the session variables that collect texts, each ended by a semicolon, in two levels.
type buffer struct {
	first, second, length string
	missed                string // an expression for where there are too many bytes already
}

var entryBuffer = buffer{"@isotap", "@isotap_b", "@isotap_l", "(@isotap_n := CAST(@isotap_n + 1 AS BINARY))"}

// collect returns an expression that collects a text, the arguments of a CONCAT, and is an empty string itself.
func (b buffer) collect(limit int, item ...Piece) []Piece {
	pieces := append([]Piece{text("IFNULL(LEFT(IF(" + b.length + " < " + strconv.Itoa(limit) + ", IF(LENGTH(" +
		b.first + " := CONCAT(" + b.first + ", ")}, item...)
	return append(pieces, text(", _binary';')) < "+strconv.Itoa(firstLevel)+", _binary'', "+
		"CONCAT(LEFT(("+b.second+" := CONCAT("+b.second+", "+b.first+")), 0), "+
		"LEFT(("+b.length+" := CAST(LENGTH("+b.second+") AS BINARY)), 0), LEFT(("+b.first+" := _binary''), 0))), "+
		b.missed+"), 0), _binary'')"))
}

// unboundedEntry is how much of an unbounded wList an entry carries, in bytes.
const unboundedEntry = 4 << 10

// wholeTags returns the last tags of a list that fit, and never half of one: from behind the first
// comma among the last bytes+1 bytes.
func wholeTags(list string, bytes int) string {
	n := strconv.Itoa(bytes)
	return "SUBSTRING(" + list + ", IF(LENGTH(" + list + ") > " + n + ", LENGTH(" + list + ") - " + n +
		" + LOCATE(_binary',', RIGHT(" + list + ", " + strconv.Itoa(bytes+1) + ")), 1))"
}
