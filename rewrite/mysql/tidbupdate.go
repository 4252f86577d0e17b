package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
)

// updateTiDB makes a single-table UPDATE on TiDB collect and tag the rows that it really changes. TiDB
// evaluates every assignment over the row as it was, so what it is about to store cannot be compared with
// what is stored: that a row stays as it is must follow from the assignments themselves. It does for
// literals, parameters and simple arithmetic of a column's own kind; of the rest the statement is opaque.
func (pl *planner) updateTiDB(n *ast.UpdateStmt) error {
	switch {
	case n.With != nil:
		return refusal("with")
	case n.IgnoreErr:
		return refusal("UPDATE IGNORE")
	case !pl.session.Strict:
		return refusal("sql_mode not strict") // a value that does not fit becomes another
	}
	t, err := pl.target(n.TableRefs, "multi-table UPDATE")
	if err != nil {
		return err
	}
	if n.MultipleTable {
		return refusal("multi-table UPDATE")
	}
	if err := pl.collectable(t); err != nil {
		return err
	}
	st := pl.st
	end := st.last() + 1
	set := st.find(1, end, 0, "SET")
	if set < 0 {
		return refusal("unparsable")
	}
	if clause := st.find(set+1, end, 0, "WHERE", "ORDER", "LIMIT"); clause >= 0 {
		end = clause
	}
	same, err := pl.staysSame(n.List, t, set+1, end)
	if err != nil {
		return err
	}
	pos, gap := pl.after(end - 1)
	pl.insertAt(pos, append(pl.tagUnless(same, t), text(gap))...)
	pl.plan.Capture = true
	if t.CascadesUpdate {
		pl.lower("cascade")
	}
	pl.lowerBy(inspectWrite(n))
	return nil
}

// tagUnless gives the assignment that tags a row unless the condition holds for it.
func (pl *planner) tagUnless(same []rewrite.Piece, t *rewrite.Table) []rewrite.Piece {
	condition := rewrite.Piece{Hole: rewrite.CopyHole} // stands in for it: it holds the client's own text
	c := rowCapture{same: []rewrite.Piece{condition}, wlistBytes: t.WListBytes, limit: pl.session.maxPacket() / 4}
	pieces := asFunctions(c.tag())
	at := slices.Index(pieces, condition)
	return slices.Replace(pieces, at, at+1, same...)
}

// staysSame gives the condition under which the assignments, the tokens [from, to), leave a row as it is.
func (pl *planner) staysSame(list []*ast.Assignment, t *rewrite.Table, from, to int) ([]rewrite.Piece, error) {
	st := pl.st
	var same []rewrite.Piece
	var seen []string
	for _, a := range list {
		end := from
		for end < to && !(st.toks[end].depth == st.toks[from].depth && st.mark(end, ",")) {
			end++
		}
		c := column(t, a.Column.Name.O)
		switch {
		case c == nil:
			return nil, refusal("unknown column")
		case c.Generated:
			return nil, refusal("generated column")
		case slices.Contains(seen, c.Name):
			return nil, refusal("column assigned twice")
		}
		seen = append(seen, c.Name)
		equals := from + 1
		for equals < end && !st.mark(equals, "=") && !st.mark(equals, ":=") {
			equals++
		}
		if equals+1 >= end || pl.checkSpelling(c.Name) != nil {
			return nil, refusal("unparsable")
		}
		if len(same) > 0 {
			same = append(same, text(" AND "))
		}
		condition, err := pl.keeps(c, t, equals+1, end)
		if err != nil {
			return nil, err
		}
		same = append(same, condition...)
		from = end + 1
	}
	if from != to+1 {
		return nil, refusal("unparsable")
	}
	return same, nil
}

// keeps gives the condition under which the value, the tokens [from, to), is what the column holds.
func (pl *planner) keeps(c *rewrite.Column, t *rewrite.Table, from, to int) ([]rewrite.Piece, error) {
	st, name := pl.st, quoted(c.Name)
	value := pl.copied(from, to)
	switch {
	case to == from+1 && st.is(from, "NULL"):
		return []rewrite.Piece{text(name + " IS NULL")}, nil
	case integerType(c.Type) && pl.exact(t, 0, from, to):
		return slices.Concat([]rewrite.Piece{text(name + " <=> (")}, value, []rewrite.Piece{text(")")}), nil
	case c.Type == "decimal" && pl.exact(t, scale(c), from, to):
		return slices.Concat([]rewrite.Piece{text(name + " <=> (")}, value, []rewrite.Piece{text(")")}), nil
	case strings.HasPrefix(c.Collation, "utf8mb4_") && to == from+1 && pl.isString(from):
		return sameString(c, name, value)
	}
	return nil, refusal("assignment")
}

// copied gives the text of the tokens [from, to), in which parameters are copies of the client's.
func (pl *planner) copied(from, to int) []rewrite.Piece {
	st, param := pl.st, pl.param(from)
	var pieces []rewrite.Piece
	pos := st.toks[from].start
	for i := from; i < to; i++ {
		pl.literal = pl.literal || st.toks[i].kind == number || st.toks[i].kind == str
		if st.toks[i].kind == placeholder {
			pieces = append(pieces, text(strings.Clone(st.text[pos:st.toks[i].start])), rewrite.Piece{Hole: rewrite.CopyHole, Ordinal: param})
			param++
			pos = st.toks[i].end
		}
	}
	return append(pieces, text(strings.Clone(st.text[pos:st.toks[to-1].end])))
}

// exact says whether the tokens [from, to) are numbers and columns, added, subtracted and, where digits
// is 0, multiplied, whose result has no more than so many digits behind the point.
func (pl *planner) exact(t *rewrite.Table, digits, from, to int) bool {
	st := pl.st
	operand := true // is due
	var copies []rewrite.Copy
	for i := from; i < to; i++ {
		sign := st.mark(i, "-") || st.mark(i, "+")
		switch {
		case operand && i == from && sign:
			continue
		case operand && !pl.exactOperand(t, digits, i):
			return false
		case !operand && !sign && !(st.mark(i, "*") && digits == 0):
			return false
		}
		if operand && st.toks[i].kind == placeholder {
			copies = append(copies, rewrite.Copy{Param: pl.param(i), Integer: true})
		}
		operand = !operand
	}
	if !operand {
		pl.plan.Copies = append(pl.plan.Copies, copies...)
	}
	return !operand
}

func (pl *planner) exactOperand(t *rewrite.Table, digits, i int) bool {
	st := pl.st
	switch st.toks[i].kind {
	case placeholder:
		return true
	case number:
		whole, fraction, _ := strings.Cut(st.tok(i), ".")
		return len(fraction) <= digits && strings.Trim(whole+fraction, "0123456789") == ""
	case word, name:
		if st.is(i, "TRUE", "FALSE") {
			return true
		}
		c := column(t, unquoted(st.tok(i)))
		return c != nil && (integerType(c.Type) || c.Type == "decimal" && scale(c) <= digits)
	}
	return false
}

// param gives the number of parameters before token i.
func (pl *planner) param(i int) int {
	n := 0
	for j := range i {
		if pl.st.toks[j].kind == placeholder {
			n++
		}
	}
	return n
}

// isString says whether token i is a string, or a parameter that is to be one.
func (pl *planner) isString(i int) bool {
	st := pl.st
	if !pl.session.utf8() {
		return false
	}
	switch st.toks[i].kind {
	case str:
		return st.tok(i)[0] == '\'' || st.tok(i)[0] == '"'
	case placeholder:
		pl.plan.Copies = append(pl.plan.Copies, rewrite.Copy{Param: pl.param(i)})
		return true
	}
	return false
}

// sameString gives the condition for texts. Blanks that do not fit a column are cut off, and those at the
// end of a CHAR are not stored; anything else that does not fit is an error.
func sameString(c *rewrite.Column, name string, value []rewrite.Piece) ([]rewrite.Piece, error) {
	open, end := "CAST(", " AS BINARY)"
	switch c.Type {
	case "char", "varchar":
		length, ok := parenthesized(c.Full)
		if _, err := strconv.Atoi(length); !ok || err != nil {
			return nil, refusal("assignment")
		}
		open, end = "CAST(LEFT(", ", "+length+") AS BINARY)"
		if c.Type == "char" {
			name, open, end = "RTRIM("+name+")", "CAST(RTRIM(LEFT(", ", "+length+")) AS BINARY)"
		}
	case "tinytext", "text", "mediumtext", "longtext":
	default:
		return nil, refusal("assignment")
	}
	return slices.Concat([]rewrite.Piece{text("CAST(" + name + " AS BINARY) <=> " + open)}, value, []rewrite.Piece{text(end)}), nil
}

func integerType(kind string) bool {
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// scale gives the digits behind the point of a DECIMAL column; 0 where they are not known.
func scale(c *rewrite.Column) int {
	size, _ := parenthesized(c.Full)
	_, digits, _ := strings.Cut(size, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// parenthesized gives what stands between a type's parentheses.
func parenthesized(full string) (string, bool) {
	_, rest, ok := strings.Cut(full, "(")
	inner, _, closed := strings.Cut(rest, ")")
	return inner, ok && closed
}
