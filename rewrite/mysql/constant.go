package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/mysqltoken"
)

// Constants are the values that all rows of an INSERT ... SELECT or an UPDATE of joined tables have alike, as its text
// says. They store the same again in columns of the same types.
type Constants struct {
	// Columns are the names of their columns as SQL spells them, in parentheses; empty where nothing is known.
	Columns string
	// Values stand between commas.
	Values rewrite.OpenText
	// AutoIncrement is the AUTO_INCREMENT column, as SQL spells it; empty: there is none, or the text names it.
	AutoIncrement string
}

// A constant is what a column has in all rows: what a token of the text says, or the column's default.
type constant struct {
	column string
	at     span
	preset string
}

// constants takes note of what the text of an INSERT ... SELECT tells of the rows that it makes, where what the server
// makes of a value is the same everywhere. names are the columns that the select list has values for.
func (pl *planner) constants(n *ast.InsertStmt, sel *ast.SelectStmt, t *Table, names []string, list []item) {
	if !pl.rewriter.options.Predicates || t.InsertTrigger || n.IgnoreErr || len(n.OnDuplicate) > 0 ||
		!pl.session.readsConstantsAlike() || len(names) != len(list) {
		return
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if !pl.storesAlike(c) {
			continue
		}
		place := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, c.Name) })
		switch {
		case c.AutoIncrement && place < 0:
			pl.numbered = c.Name
		case c.AutoIncrement:
		case place < 0 && c.Default != "":
			pl.constant = append(pl.constant, constant{column: c.Name, preset: c.Default})
		case place >= 0:
			if at := pl.st.constantAt(sel.Fields.Fields[place], list[place]); !at.empty() {
				pl.constant = append(pl.constant, constant{column: c.Name, at: at})
			}
		}
	}
}

// readsConstantsAlike reports whether isotap's own sessions read literals as this one does.
func (s *Session) readsConstantsAlike() bool {
	return s.Strict && !s.NoBackslashEscapes && !s.EmptyStringIsNull && !s.Oracle
}

// storesAlike reports whether a column stores a constant as another one of its type does in isotap's own sessions.
func (pl *planner) storesAlike(c *Column) bool {
	return hasImage(c) && !c.Generated && c.Type != "timestamp" && pl.checkSpelling(c.Name) == nil
}

// isConstant reports whether tokens are a literal or a placeholder.
func (st *statement) isConstant(at span) bool {
	last := at.to - 1
	switch st.Tokens[last].Kind {
	case mysqltoken.Number:
		return last == at.from || last == at.from+1 && st.mark(at.from, "-")
	case mysqltoken.Placeholder:
		return last == at.from
	case mysqltoken.String:
		return last == at.from && (st.tok(last)[0] == '\'' || st.tok(last)[0] == '"')
	}
	return last == at.from && st.is(last, "NULL")
}

// constantAt returns the tokens of an item of a select list if it is a literal or a placeholder, without its name.
func (st *statement) constantAt(field *ast.SelectField, of item) span {
	if field.WildCard != nil {
		return span{}
	}
	end := of.first
	if st.mark(end, "-") {
		end++
	}
	switch kind := st.Tokens[end].Kind; {
	case end > of.last:
		return span{}
	case kind == mysqltoken.Number, end == of.first && kind == mysqltoken.Placeholder,
		end == of.first && st.is(end, "NULL"):
	case end == of.first && kind == mysqltoken.String && (st.tok(end)[0] == '\'' || st.tok(end)[0] == '"'):
	default:
		return span{}
	}
	name := end + 1
	if name <= of.last && st.is(name, "AS") {
		name++
	}
	if name < of.last || name == of.last && name == end+1 && st.Tokens[name].Kind != mysqltoken.Word {
		return span{} // an expression, or texts side by side
	}
	return span{of.first, end + 1}
}

// constantImage returns what the text of the statement at hand tells.
func (pl *planner) constantImage() (c Constants) {
	if len(pl.constant) == 0 || !pl.session.SameInUTF8(pl.st.SQL) {
		return Constants{}
	}
	names, values := make([]string, len(pl.constant)), rewrite.OpenText{Texts: []string{""}}
	for i, of := range pl.constant {
		names[i] = quoted(of.column)
		texts, params := []string{of.preset}, []int(nil)
		if of.preset == "" {
			texts, params = pl.st.cutAtParams(of.at.from, of.at.to, false)
		}
		if i > 0 {
			texts[0] = ", " + texts[0]
		}
		values.Texts[len(values.Texts)-1] += texts[0]
		values.Texts, values.Params = append(values.Texts, texts[1:]...), append(values.Params, params...)
	}
	c = Constants{Columns: "(" + strings.Join(names, ", ") + ")", Values: values}
	if pl.numbered != "" {
		c.AutoIncrement = quoted(pl.numbered)
	}
	return c
}
