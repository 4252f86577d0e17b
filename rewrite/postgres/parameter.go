package postgres

import (
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// A cast of a parameter whose type nobody has said yet does not convert anything: it says the type, and what the client
// binds is read as that before the statement runs. So it cannot fail for a row. It is sure to be so where the parameter
// stands nowhere without the same cast.

// saysType are the words of types that a cast may name. None of them is that of a type of the database's own.
var saysType = []string{"bigint", "boolean", "bool", "date", "float4", "float8", "int", "int2", "int4", "int8", "integer",
	"json", "jsonb", "numeric", "real", "smallint", "text", "timestamp", "timestamptz", "uuid"}

// namesType reports whether a cast says no more than which type a parameter has.
func (pl *planner) namesType(n *ast.TypeCast) bool {
	param, ok := bare(n.Arg).(*ast.ParamRef)
	if !ok || pl == nil || !pl.session.Untyped {
		return false
	}
	for schema := range pl.session.Path.All() {
		if schema != "pg_catalog" {
			return false
		}
		break
	}
	toks, _ := pgtoken.Scan(nil, pl.st.text, pl.session.Backslashes)
	st, said := &statement{text: pl.st.text, toks: toks}, ""
	for i := range toks {
		if toks[i].Kind != pgtoken.Param || st.tok(i) != "$"+strconv.Itoa(param.Number) {
			continue
		}
		is := st.castOf(i)
		if is == "" || said != "" && said != is {
			return false
		}
		said = is
	}
	return said != ""
}

// castOf returns the type that a parameter at token i, perhaps in parentheses of its own, is cast to.
func (st *statement) castOf(i int) string {
	before, behind := i-1, i+1
	for st.mark(before, "(") && st.mark(behind, ")") {
		before, behind = before-1, behind+1
	}
	if behind > i+1 && before >= 0 && (st.toks[before].Kind == pgtoken.Word || st.toks[before].Kind == pgtoken.Name) {
		return "" // the arguments of a call
	}
	return st.castTo(behind)
}

// castTo returns the type that a cast at token i names, if it is one of those and has no modifiers.
func (st *statement) castTo(i int) (name string) {
	if st.tok(i) != "::" {
		return ""
	}
	name = folded(st.tok(i + 1))
	if !slices.Contains(saysType, name) {
		return ""
	}
	for i += 2; st.is(i, "WITH", "WITHOUT", "TIME", "ZONE") || st.mark(i, "[") || st.mark(i, "]"); i++ {
		name += " " + folded(st.tok(i))
	}
	if st.mark(i, "(") {
		return ""
	}
	return name
}
