package postgres

import (
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// An asking is how a function is written of which another session can be told what it gives: an expression of its own
// type around a literal for the parameter.
type asking struct {
	param  int
	after  string
	called bool // with parentheses; otherwise SQL has it without
	// rounds says that a precision in parentheses rounds it, as it does behind the type's name.
	rounds bool
}

// askingFunctions are those: when the transaction began, for whom it runs, and moments while the statement did.
var askingFunctions = map[string]*asking{
	"now":                   {rewrite.Moment, "::pg_catalog.timestamptz", true, false},
	"transaction_timestamp": {rewrite.Moment, "::pg_catalog.timestamptz", true, false},
	"current_timestamp":     {rewrite.Moment, "::pg_catalog.timestamptz", false, true},
	"current_date":          {rewrite.Moment, "::pg_catalog.timestamptz::pg_catalog.date", false, false},
	"current_time":          {rewrite.Moment, "::pg_catalog.timestamptz::pg_catalog.timetz", false, true},
	"localtimestamp":        {rewrite.Moment, "::pg_catalog.timestamptz::pg_catalog.timestamp", false, true},
	"localtime":             {rewrite.Moment, "::pg_catalog.timestamptz::pg_catalog.time", false, true},
	"current_user":          {rewrite.User, "::pg_catalog.name", false, false},
	"current_role":          {rewrite.User, "::pg_catalog.name", false, false},
	"user":                  {rewrite.User, "::pg_catalog.name", false, false},
	"statement_timestamp":   {rewrite.Within, "::pg_catalog.timestamptz", true, false},
	"clock_timestamp":       {rewrite.Within, "::pg_catalog.timestamptz", true, false},
}

// asks returns the parameter that a call of one of them becomes, and reports whether an expression is one.
func asks(n ast.Node) (param int, ok bool) {
	switch n := n.(type) {
	case *ast.SQLValueFunction:
		switch n.Op {
		case ast.SVFOP_CURRENT_DATE, ast.SVFOP_CURRENT_TIME, ast.SVFOP_CURRENT_TIMESTAMP, ast.SVFOP_LOCALTIME,
			ast.SVFOP_LOCALTIMESTAMP, ast.SVFOP_CURRENT_TIME_N, ast.SVFOP_CURRENT_TIMESTAMP_N, ast.SVFOP_LOCALTIME_N,
			ast.SVFOP_LOCALTIMESTAMP_N:
			return rewrite.Moment, true
		case ast.SVFOP_CURRENT_ROLE, ast.SVFOP_CURRENT_USER, ast.SVFOP_USER:
			return rewrite.User, true
		}
	case *ast.FuncCall:
		names := nodes(n.Funcname)
		last, ok := names[len(names)-1].(*ast.String)
		if !ok || len(names) > 1 || len(nodes(n.Args)) > 0 {
			return 0, false
		}
		if a := askingFunctions[last.SVal]; a != nil && a.called {
			return a.param, true
		}
	}
	return 0, false
}

// asksAt returns what stands at a token if it is a call of one of the askingFunctions, and the token behind it.
func (st *statement) asksAt(i int) (a *asking, end int) {
	if st.toks[i].Kind != pgtoken.Word || st.mark(i-1, ".") {
		return nil, 0
	}
	switch a = askingFunctions[strings.ToLower(st.tok(i))]; {
	case a == nil, st.mark(i+1, "."):
	case a.called && st.mark(i+1, "(") && st.mark(i+2, ")"):
		return a, i + 3
	case !a.called && !st.mark(i+1, "("):
		return a, i + 1
	case a.rounds && st.mark(i+3, ")") && len(st.tok(i+2)) == 1 && "0" <= st.tok(i+2) && st.tok(i+2) <= "6":
		rounded := *a
		rounded.after += "(" + st.tok(i+2) + ")"
		return &rounded, i + 4
	}
	return nil, 0
}

// countAsks returns how often one of them is called among tokens [from, to).
func (st *statement) countAsks(from, to int) (n int) {
	for i := from; i < to; i++ {
		if a, _ := st.asksAt(i); a != nil {
			n++
		}
	}
	return n
}

// around returns what stands around the literal.
func (a *asking) around() (before, behind string) {
	return "(", a.after + ")"
}

// insteadOf returns those of a statement's wide conditions that count where its exact one cannot be closed, since what
// that asks for is not known.
func insteadOf(exact *rewrite.Predicate, wide []rewrite.Predicate) (out []rewrite.Predicate) {
	if !slices.ContainsFunc(exact.Params, func(p int) bool { return p < 0 }) {
		return nil
	}
	// Without moments within the statement the first of them asks for as much as the exact one.
	lacks := slices.Contains(exact.Params, rewrite.Within)
	for _, p := range wide {
		if p.As == exact.As && p.Table == exact.Table && (p.Instead || lacks) {
			p.Instead = true
			out = append(out, p)
		}
	}
	return out
}
