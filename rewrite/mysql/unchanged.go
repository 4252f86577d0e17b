package mysql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// A judge says when assignments leave a row as it is, from the assignments alone, for servers that
// evaluate them over the row as it was. It can for literals, parameters, columns and simple arithmetic of
// a column's own kind, where a strict sql_mode stores nothing else than the value itself.
type judge struct {
	*planner
	sources sources
	// assigned are the columns that get values. The server may have put them into the row by the time
	// that it evaluates another value. Nil where it never does.
	assigned []columnRef
	own      columnRef // the column that gets the value being judged
	gets     []span    // the values, in the order of their assignments
	gives    map[*Column]givenValue
}

// A columnRef is a column of one of a statement's tables.
type columnRef struct {
	source *source
	column *Column
}

// staysSame returns for each source the condition under which the assignments, the tokens [from, to), leave
// a row of it as it is; nil where they assign nothing to it.
func (j *judge) staysSame(list []*ast.Assignment, from, to int) ([][]Piece, error) {
	st := j.st
	places, err := j.places(list)
	if err != nil {
		return nil, err
	}
	if j.session.Dialect != TiDB {
		j.assigned = places
	}
	same := make([][]Piece, len(j.sources))
	for _, p := range places {
		end := from
		for end < to && !(st.Tokens[end].Depth == st.Tokens[from].Depth && st.mark(end, ",")) {
			end++
		}
		equals := from + 1
		for equals < end && !st.mark(equals, "=") && !st.mark(equals, ":=") {
			equals++
		}
		if equals+1 >= end {
			return nil, refusal(history.ReasonUnparsable)
		}
		j.own, j.gets = p, append(j.gets, span{equals + 1, end})
		condition, err := j.keeps(equals+1, end)
		if err != nil {
			return nil, err
		}
		i := slices.Index(j.sources, p.source)
		if len(same[i]) > 0 {
			same[i] = append(same[i], text(" AND "))
		}
		same[i] = append(same[i], condition...)
		from = end + 1
	}
	if from != to+1 {
		return nil, refusal(history.ReasonUnparsable)
	}
	return same, nil
}

// places finds the columns that get values.
func (j *judge) places(list []*ast.Assignment) ([]columnRef, error) {
	var places []columnRef
	for _, a := range list {
		p := j.sources.column(a.Column.Schema.O, a.Column.Table.O, a.Column.Name.O)
		switch {
		case p.column == nil:
			if err := j.sources.unobservable(); err != nil {
				return nil, err
			}
			return nil, refusal(history.ReasonUnknownColumn)
		case p.column.Generated:
			return nil, refusal(history.ReasonGeneratedColumn)
		case slices.Contains(places, p):
			return nil, refusal(history.ReasonColumnTwice)
		case j.checkSpelling(p.source.name, p.column.Name) != nil:
			return nil, refusal(history.ReasonCharset)
		}
		places = append(places, p)
	}
	return places, nil
}

// column finds the column that a name surely means.
func (ss sources) column(schema, qualifier, name string) columnRef {
	if schema != "" && len(ss) > 1 {
		return columnRef{}
	}
	var found columnRef
	for _, s := range ss {
		switch {
		case qualifier != "" && !strings.EqualFold(s.name, qualifier):
			continue
		case s.table == nil:
			return columnRef{} // it may have a column of that name
		}
		if c := s.table.ColumnInAnyCase(name); c != nil {
			if found.column != nil {
				return columnRef{}
			}
			found = columnRef{s, c}
		}
	}
	return found
}

// qualifier is what stands before the names of the source's columns.
func (ss sources) qualifier(s *source) string {
	if len(ss) == 1 {
		return ""
	}
	return quoted(s.name) + "."
}

// keeps returns the condition under which the value, the tokens [from, to), is what the column holds.
func (j *judge) keeps(from, to int) ([]Piece, error) {
	c := j.own.column
	name := j.sources.qualifier(j.own.source) + quoted(c.Name)
	value := j.copied(from, to)
	switch {
	case to == from+1 && j.st.is(from, "NULL"):
		j.give(c, givenValue{stored: []Piece{text("NULL")}})
		return []Piece{text(name + " IS NULL")}, nil
	case integerType(c.Type) && j.exact(0, from, to), c.Type == "decimal" && j.exact(scale(c), from, to):
		j.give(c, givenValue{stored: value})
		return slices.Concat([]Piece{text(name + " <=> (")}, value, []Piece{text(")")}), nil
	case unicode(c) && (to == from+1 && j.isString(from) || j.isText(from, to)):
		return j.sameString(name, value)
	}
	return nil, refusal(history.ReasonAssignment)
}

// give takes note of what an assignment stores.
func (j *judge) give(c *Column, v givenValue) {
	if j.gives == nil {
		j.gives = make(map[*Column]givenValue)
	}
	j.gives[c] = v
}

// copied returns the text of the tokens [from, to), in which parameters are copies of the client's.
func (pl *planner) copied(from, to int) []Piece {
	st, param := pl.st, pl.param(from)
	var pieces []Piece
	pos := st.Tokens[from].Start
	for i := from; i < to; i++ {
		if r, ok := pl.renaming(i); ok {
			pieces = append(pieces, text(strings.Clone(st.SQL[pos:st.Tokens[i].Start])+r.name))
			i = r.to - 1
			pos = st.Tokens[i].End
			continue
		}
		pl.literal = pl.literal || st.Tokens[i].Kind == mysqltoken.Number || st.Tokens[i].Kind == mysqltoken.String
		if st.Tokens[i].Kind == mysqltoken.Placeholder {
			pieces = append(pieces, text(strings.Clone(st.SQL[pos:st.Tokens[i].Start])),
				Piece{Hole: CopyHole, Ordinal: param})
			param++
			pos = st.Tokens[i].End
		}
	}
	return append(pieces, text(strings.Clone(st.SQL[pos:st.Tokens[to-1].End])))
}

// exact reports whether the tokens [from, to) are numbers and columns, added, subtracted and, where digits
// is 0, multiplied, whose result has no more than so many digits behind the point.
func (j *judge) exact(digits, from, to int) bool {
	st := j.st
	operand := true // is due
	var copies []Copy
	for i := from; i < to; i++ {
		sign := st.mark(i, "-") || st.mark(i, "+")
		if !operand {
			if !sign && !(st.mark(i, "*") && digits == 0) {
				return false
			}
			operand = true
			continue
		}
		if i == from && sign {
			continue
		}
		n := j.exactOperand(digits, i, to)
		if n == 0 {
			return false
		}
		if st.Tokens[i].Kind == mysqltoken.Placeholder {
			copies = append(copies, Copy{Param: j.param(i), Integer: true})
		}
		operand = false
		i += n - 1
	}
	if !operand {
		j.plan.Upstream.Copies = append(j.plan.Upstream.Copies, copies...)
	}
	return !operand
}

// exactOperand returns the number of tokens of the operand at i, before to; 0 if its value is not an exact
// number of so many digits behind the point.
func (j *judge) exactOperand(digits, i, to int) int {
	st := j.st
	switch st.Tokens[i].Kind {
	case mysqltoken.Placeholder:
		return 1
	case mysqltoken.Number:
		whole, fraction, _ := strings.Cut(st.tok(i), ".")
		if len(fraction) <= digits && strings.Trim(whole+fraction, "0123456789") == "" {
			return 1
		}
	case mysqltoken.Word, mysqltoken.Name:
		if st.is(i, "TRUE", "FALSE") {
			return 1
		}
		c, n := j.columnAt(i, to)
		if c != nil && (integerType(c.Type) || c.Type == "decimal" && scale(c) <= digits) {
			return n
		}
	}
	return 0
}

// columnAt finds the column that is named by n tokens at i, before to. It finds none whose value may be
// another by the time that the server evaluates it.
func (j *judge) columnAt(i, to int) (c *Column, n int) {
	st, qualifier := j.st, ""
	n = 1
	if i+2 < to && st.mark(i+1, ".") {
		qualifier, n = unquoted(st.tok(i)), 3
	}
	p := j.sources.column("", qualifier, unquoted(st.tok(i+n-1)))
	if p.column == nil || p != j.own && slices.Contains(j.assigned, p) {
		return nil, 0
	}
	return p.column, n
}

// param returns the number of parameters before token i.
func (pl *planner) param(i int) int { return pl.st.params(i) }

// params returns how many parameters of the text stand before token i.
func (st *statement) params(i int) int {
	n := st.before
	for j := range i {
		if st.Tokens[j].Kind == mysqltoken.Placeholder {
			n++
		}
	}
	return n
}

// isString reports whether token i is a string, or a parameter that is to be one.
func (pl *planner) isString(i int) bool {
	st := pl.st
	if !pl.session.utf8() {
		return false
	}
	switch st.Tokens[i].Kind {
	case mysqltoken.String:
		return st.tok(i)[0] == '\'' || st.tok(i)[0] == '"'
	case mysqltoken.Placeholder:
		pl.plan.Upstream.Copies = append(pl.plan.Upstream.Copies, Copy{Param: pl.param(i)})
		return true
	}
	return false
}

// isText reports whether the tokens [from, to) name a column of Unicode text.
func (j *judge) isText(from, to int) bool {
	if kind := j.st.Tokens[from].Kind; kind != mysqltoken.Word && kind != mysqltoken.Name {
		return false
	}
	c, n := j.columnAt(from, to)
	return c != nil && n == to-from && unicode(c)
}

// unicode reports whether a column holds text that is stored as UTF-8, of whatever length.
func unicode(c *Column) bool { return strings.HasPrefix(c.Collation, "utf8mb4_") }

// sameString returns the condition for texts. Blanks that do not fit a column are cut off, and those at the
// end of a CHAR are not stored; anything else that does not fit is an error.
func (j *judge) sameString(name string, value []Piece) ([]Piece, error) {
	open, end := "CAST(", " AS BINARY)"
	if j.session.Dialect != TiDB {
		open, end = "CAST(CONVERT(", " USING utf8mb4) AS BINARY)" // literals are of character_set_connection
	}
	switch c := j.own.column; c.Type {
	case "char", "varchar":
		length, ok := parenthesized(c.Full)
		if _, err := strconv.Atoi(length); !ok || err != nil {
			return nil, refusal(history.ReasonAssignment)
		}
		if c.Type == "char" {
			name, open, end = "RTRIM("+name+")", open+"RTRIM(LEFT(", ", "+length+"))"+end
		} else {
			open, end = open+"LEFT(", ", "+length+")"+end
		}
	case "tinytext", "text", "mediumtext", "longtext":
	default:
		return nil, refusal(history.ReasonAssignment)
	}
	stored := slices.Concat([]Piece{text(open)}, value, []Piece{text(end)})
	j.give(j.own.column, givenValue{stored, true})
	return slices.Concat([]Piece{text("CAST(" + name + " AS BINARY) <=> ")}, stored), nil
}

func integerType(kind string) bool {
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

// scale returns the digits behind the point of a DECIMAL column; 0 where they are not known.
func scale(c *Column) int {
	size, _ := parenthesized(c.Full)
	_, digits, _ := strings.Cut(size, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// parenthesized returns what stands between a type's parentheses.
func parenthesized(full string) (string, bool) {
	_, rest, ok := strings.Cut(full, "(")
	inner, _, closed := strings.Cut(rest, ")")
	return inner, ok && closed
}
