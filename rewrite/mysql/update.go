package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

const (
	// minPacket is the smallest max_allowed_packet under which UPDATE is captured: the stored values of
	// one row (64 KiB at most, blobs are hashed) as hex text and a quarter of collected entries must fit.
	minPacket = 256 << 10
	// maxTag is the length of the longest tag: run, counter, dot and statement number.
	maxTag = 6 + 7 + 1 + 7
	// minWList is the smallest isotap_wlist in which a version fits beside the new one.
	minWList = 2 * (maxTag + 1)
)

// update makes a single-table UPDATE collect and tag the rows that it really changes, in the form of
// DESIGN 4.3: the old stored values are saved before the client's assignments and compared after them.
func (pl *planner) update(n *ast.UpdateStmt) error {
	if n.With != nil {
		return refusal("with")
	}
	t, err := pl.target(n.TableRefs, "multi-table UPDATE")
	if err != nil {
		return err
	}
	if err := pl.capturable(n, t); err != nil {
		return err
	}
	key, err := pl.storedValues(n.List, t)
	if err != nil {
		return err
	}
	if err := pl.spliceUpdate(key, t); err != nil {
		return err
	}
	if n.IgnoreErr {
		pl.lower("UPDATE IGNORE")
	}
	if t.CascadesUpdate {
		pl.lower("cascade")
	}
	pl.lowerBy(inspectWrite(n))
	return nil
}

func (pl *planner) capturable(n *ast.UpdateStmt, t *rewrite.Table) error {
	s := pl.session
	switch {
	case n.MultipleTable:
		return refusal("multi-table UPDATE")
	case t.UpdateTrigger:
		return refusal("trigger")
	case s.SimultaneousAssignment:
		return refusal("sql_mode SIMULTANEOUS_ASSIGNMENT")
	case s.EmptyStringIsNull:
		return refusal("sql_mode EMPTY_STRING_IS_NULL")
	case s.maxPacket() < minPacket:
		return refusal("max_allowed_packet")
	case t.WListBytes != 0 && t.WListBytes < minWList:
		return refusal("isotap_wlist size")
	}
	return nil
}

// spliceUpdate puts the saving assignment before the client's and the tagging one behind them.
func (pl *planner) spliceUpdate(key string, t *rewrite.Table) error {
	st := pl.st
	end := st.last() + 1
	set := st.find(1, end, 0, "SET")
	if set < 0 {
		return refusal("unparsable")
	}
	if clause := st.find(set+1, end, 0, "WHERE", "ORDER", "LIMIT"); clause >= 0 {
		end = clause
	}
	if end <= set+1 {
		return refusal("unparsable")
	}
	pos, _ := pl.after(set)
	pl.insertAt(pos, text(" "+saveStored(key)))
	pos, gap := pl.after(end - 1)
	pieces := tagChanged(key, t.WListBytes, pl.session.maxPacket()/4)
	pl.insertAt(pos, append(pieces, text(gap))...)
	pl.plan.Capture = true
	return nil
}

// storedValues gives an expression over the assigned columns whose value differs whenever what the
// table stores in them differs (K in DESIGN 4.3).
func (pl *planner) storedValues(list []*ast.Assignment, t *rewrite.Table) (string, error) {
	var seen, parts []string
	for _, a := range list {
		c := column(t, a.Column.Name.O)
		if c == nil {
			return "", refusal("unknown column")
		}
		if c.Generated || slices.Contains(seen, c.Name) {
			continue
		}
		seen = append(seen, c.Name)
		parts = append(parts, "IFNULL("+storedValue(c)+", _binary'N')")
	}
	if len(parts) == 0 {
		return "", refusal("generated column")
	}
	if err := pl.checkSpelling(seen...); err != nil {
		return "", err
	}
	return "CONCAT_WS(_binary',', " + strings.Join(parts, ", ") + ")", nil
}

// storedValue gives an expression that tells the stored values of a column apart. Most types print
// exactly; the others are why it takes a type.
func storedValue(c *rewrite.Column) string {
	name := quoted(c.Name)
	switch c.Type {
	case "float":
		name += "+0e0" // else it prints six digits
	case "enum":
		name += "+0" // the index: an invalid value and an empty member both print as ''
	case "timestamp":
		name = "UNIX_TIMESTAMP(" + name + ")" // the local hour repeats when summer time ends
	case "tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext", "json",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection":
		return "SHA2(" + name + ", 256)" // in hex a large value would not fit max_allowed_packet
	}
	return "HEX(CAST(" + name + " AS BINARY))"
}

func saveStored(key string) string {
	return rewrite.WListColumn + " = CONCAT(LEFT((@isotap_o := " + key + "), 0), " + rewrite.WListColumn + "),"
}

// tagChanged gives the assignment that tags a row whose stored values differ from the saved ones, and
// collects its entry. A row that stays as it was is collected too, marked by a ~ behind the tag: the
// UPDATE met that version. Assignments to variables are consumed by LENGTH or LEFT(..., 0).
func tagChanged(key string, wlistBytes, limit int) []rewrite.Piece {
	entryList, list := wholeTags(rewrite.WListColumn, unboundedEntry), "IFNULL("+rewrite.WListColumn+", _binary'0')"
	if wlistBytes > 0 {
		entryList = rewrite.WListColumn
		list = wholeTags(list, wlistBytes-maxTag-1)
	}
	return []rewrite.Piece{
		text(", " + rewrite.WListColumn + " = CONCAT(IF(LENGTH((@isotap_s := IF(@isotap_o = " + key + ", _binary'~', _binary''))) > 0, " +
			rewrite.WListColumn + ", " + list + "), IFNULL(LEFT(" +
			"IF(@isotap_l < " + strconv.Itoa(limit) + ", IF(LENGTH(@isotap := CONCAT(@isotap, IFNULL(" + rewrite.RowIDColumn +
			", _binary''), _binary'=', IFNULL(" + entryList + ", _binary''), _binary'=', "),
		tagPiece,
		text(", @isotap_s, _binary';')) < " + strconv.Itoa(firstLevel) + ", _binary'', " +
			"CONCAT(LEFT((@isotap_b := CONCAT(@isotap_b, @isotap)), 0), " +
			"LEFT((@isotap_l := CAST(LENGTH(@isotap_b) AS BINARY)), 0), LEFT((@isotap := _binary''), 0))), " +
			"(@isotap_n := CAST(@isotap_n + 1 AS BINARY))), 0), _binary''), IF(LENGTH(@isotap_s) > 0, _binary'', CONCAT(_binary',', "),
		tagPiece,
		text(")))"),
	}
}

// unboundedEntry is how much of an unbounded wList an entry carries, in bytes.
const unboundedEntry = 4 << 10

// wholeTags gives the last tags of a list that fit, and never half of one: from behind the first
// comma among the last bytes+1 bytes.
func wholeTags(list string, bytes int) string {
	n := strconv.Itoa(bytes)
	return "SUBSTRING(" + list + ", IF(LENGTH(" + list + ") > " + n + ", LENGTH(" + list + ") - " + n +
		" + LOCATE(_binary',', RIGHT(" + list + ", " + strconv.Itoa(bytes+1) + ")), 1))"
}
