package mysql

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
	"github.com/pingcap/tidb/pkg/parser/types"
)

// mayWarn reports whether the server may warn of what a SELECT groups by, or leaves groups out by. It evaluates these
// expressions in a temporary table more or less often than in a sort, to which the arrays of identities lead, so that
// the client would hear another number of warnings.
func (pl *planner) mayWarn(n *ast.SelectStmt, srcs sources) bool {
	if n.GroupBy == nil {
		return false
	}
	l := listener{srcs: srcs, fields: n.Fields.Fields, bodies: pl.nesting.bodies}
	for _, item := range n.GroupBy.Items {
		if l.kind(item.Expr) == noisy {
			return true
		}
	}
	return n.Having != nil && !l.truth(n.Having.Expr)
}

// A valueKind is what conversions go by: a value of one kind, put in the place of another, may be a warning.
type valueKind uint8

const (
	noisy   valueKind = iota // the server may warn of it
	anyKind                  // quiet where it needs no conversion: NULL, a parameter, a column of an unknown type
	numeric                  // an integer, a decimal, a float, a truth value
	textual                  // a text
	moment                   // a date, with or without a time
)

// A listener tells expressions of which the server never warns from others.
type listener struct {
	srcs   sources
	fields []*ast.SelectField
	bodies map[*ast.SelectStmt]*block // of the queries in FROM clauses
	depth  int                        // of aliases that lead to others
	// copies says that it looks at a condition of which there is a copy.
	copies bool
}

// maxAliases bounds how deep aliases are followed.
const maxAliases = 8

// kind returns the kind of an expression's values, noisy where the server may warn of it.
func (l *listener) kind(e ast.ExprNode) valueKind {
	switch e := e.(type) {
	case *test_driver.ParamMarkerExpr:
		return anyKind
	case *test_driver.ValueExpr:
		return literalKind(e)
	case *ast.ColumnNameExpr:
		return l.named(e.Name)
	case *ast.PositionExpr:
		if i := e.N - 1; i >= 0 && i < len(l.fields) && l.fields[i].Expr != nil {
			return l.aliased(l.fields[i].Expr)
		}
		return anyKind // the server says what is wrong with it, or a star stands there
	case *ast.ParenthesesExpr:
		return l.kind(e.Expr)
	case *ast.SetCollationExpr:
		return l.kind(e.Expr)
	case *ast.UnaryOperationExpr:
		return l.numberOf(e.V)
	case *ast.BinaryOperationExpr:
		return l.operation(e)
	case *ast.IsNullExpr:
		return l.numberIf(l.kind(e.Expr) != noisy)
	case *ast.IsTruthExpr:
		return l.numberOf(e.Expr)
	case *ast.BetweenExpr:
		return l.numberIf(l.alike(e.Expr, e.Left, e.Right))
	case *ast.PatternInExpr:
		return l.numberIf(e.Sel == nil && l.alike(append(slices.Clone(e.List), e.Expr)...))
	case *ast.PatternLikeOrIlikeExpr:
		return l.numberIf(l.quiet(e.Expr, e.Pattern))
	case *ast.CaseExpr:
		return l.cases(e)
	case *ast.FuncCallExpr:
		return l.call(strings.ToLower(e.FnName.L), e.Args)
	case *ast.FuncCastExpr:
		return l.cast(e)
	case *ast.AggregateFuncExpr:
		return l.aggregate(e)
	}
	return noisy
}

// truth reports whether an expression can be a condition without a warning.
func (l *listener) truth(e ast.ExprNode) bool { return l.numberOf(e) == numeric }

// literalKind returns the kind of a literal. A text that is written as a number or as a moment is as quiet as one.
func literalKind(e *test_driver.ValueExpr) valueKind {
	switch e.Kind() {
	case test_driver.KindNull:
		return anyKind
	case test_driver.KindInt64, test_driver.KindUint64, test_driver.KindFloat32, test_driver.KindFloat64,
		test_driver.KindMysqlDecimal:
		return numeric
	case test_driver.KindString:
		return textual
	}
	return noisy
}

// fits reports whether a literal text can stand in the place of another kind without a warning.
func fits(e ast.ExprNode, kind valueKind) bool {
	v, ok := e.(*test_driver.ValueExpr)
	if !ok || v.Kind() != test_driver.KindString {
		return false
	}
	text := v.GetString()
	switch kind {
	case numeric:
		_, ok := new(big.Rat).SetString(text)
		return ok && strings.Trim(text, "+-.0123456789") == "" // neither a fraction nor another base
	case moment:
		_, err := time.Parse(time.DateOnly, text)
		_, err2 := time.Parse(time.DateTime, text)
		return err == nil || err2 == nil
	}
	return false
}

// named returns the kind of what a name stands for: a column, or an item of the select list. Where it may be either it
// has to be quiet as both.
func (l *listener) named(n *ast.ColumnName) valueKind {
	kind := l.column(n.Table.O, n.Name.O)
	if n.Table.O != "" || kind == noisy {
		return kind
	}
	for _, f := range l.fields {
		if f.Expr == nil || f.AsName.L != n.Name.L {
			continue
		}
		switch as := l.aliased(f.Expr); {
		case as == noisy, kind == anyKind:
			return as
		case as != kind:
			return anyKind
		}
	}
	return kind
}

// column returns the kind of the column of that name: of a table, or of a query in the FROM clause.
func (l *listener) column(qualifier, name string) valueKind {
	kind, found := anyKind, false
	for _, s := range l.srcs {
		if qualifier != "" && !strings.EqualFold(s.name, qualifier) {
			continue
		}
		k, has := l.columnOf(s, name)
		switch {
		case !has:
		case k == noisy:
			return noisy
		case found && k != kind:
			kind = anyKind
		default:
			kind, found = k, true
		}
	}
	return kind
}

// columnOf returns the kind of a source's column, and whether there may be one of the name.
func (l *listener) columnOf(s *source, name string) (kind valueKind, has bool) {
	if s.table != nil {
		c := s.table.ColumnInAnyCase(name)
		switch {
		case c == nil:
			return anyKind, false
		case c.Generated:
			return noisy, true // its expression may be evaluated with it
		}
		return kindOf(c.Type), true
	}
	query := s.query
	if query == nil || l.bodies[query] == nil {
		return anyKind, true
	}
	inner := &listener{srcs: l.bodies[query].srcs, bodies: l.bodies}
	for _, f := range query.Fields.Fields {
		own, isColumn := f.Expr.(*ast.ColumnNameExpr)
		switch {
		case f.WildCard != nil:
			return inner.column(f.WildCard.Table.O, name), true
		case f.AsName.L == strings.ToLower(name), isColumn && f.AsName.L == "" &&
			own.Name.Name.L == strings.ToLower(name):
			return inner.kind(f.Expr), true
		}
	}
	return anyKind, false
}

// aliased returns the kind of an item of the select list.
func (l *listener) aliased(e ast.ExprNode) valueKind {
	if l.depth >= maxAliases {
		return noisy
	}
	if c, ok := e.(*ast.ColumnNameExpr); ok { // its alias may be its own name
		return l.column(c.Name.Table.O, c.Name.Name.O)
	}
	l.depth++
	defer func() { l.depth-- }()
	return l.kind(e)
}

// kindOf returns the kind of a column's type.
func kindOf(name string) valueKind {
	switch name {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year":
		return numeric
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob",
		"mediumblob", "longblob",
		"enum", "set":
		return textual
	case "date", "datetime", "timestamp":
		return moment
	}
	return anyKind
}

func (l *listener) quiet(list ...ast.ExprNode) bool {
	return !slices.ContainsFunc(list, func(e ast.ExprNode) bool { return l.kind(e) == noisy })
}

// alike reports whether the expressions can be compared without a conversion of which the server may warn.
func (l *listener) alike(list ...ast.ExprNode) bool {
	kind := anyKind
	for _, e := range list {
		switch k := l.kind(e); {
		case k == noisy, k == anyKind && !parameter(e):
			return false
		case k == anyKind, k == textual && kind != textual:
		default:
			kind = k
		}
	}
	return !slices.ContainsFunc(list, func(e ast.ExprNode) bool {
		k := l.kind(e)
		return kind != anyKind && k != anyKind && k != kind && !fits(e, kind)
	})
}

// parameter reports whether an expression is a value that is given apart from the text, or NULL. A parameter is taken
// for what it is compared with.
func parameter(e ast.ExprNode) bool {
	switch e := e.(type) {
	case *test_driver.ParamMarkerExpr:
		return true
	case *test_driver.ValueExpr:
		return e.Kind() == test_driver.KindNull
	}
	return false
}

func (l *listener) numberIf(quiet bool) valueKind {
	if quiet {
		return numeric
	}
	return noisy
}

// numberOf returns a number where all expressions are such.
func (l *listener) numberOf(list ...ast.ExprNode) valueKind {
	return l.numberIf(!slices.ContainsFunc(list, func(e ast.ExprNode) bool {
		return l.kind(e) != numeric &&
			!parameter(e) && !fits(e, numeric)
	}))
}

func (l *listener) operation(e *ast.BinaryOperationExpr) valueKind {
	switch e.Op {
	case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
		return l.numberIf(l.alike(e.L, e.R))
	case opcode.Div, opcode.IntDiv, opcode.Mod:
		return l.numberIf(divisor(e.R) && l.numberOf(e.L) == numeric)
	case opcode.Plus, opcode.Minus, opcode.Mul, opcode.LogicAnd, opcode.LogicOr, opcode.LogicXor, opcode.And, opcode.Or,
		opcode.Xor,
		opcode.LeftShift, opcode.RightShift:
		return l.numberOf(e.L, e.R)
	}
	return noisy
}

// divisor reports whether an expression is a number that is surely not 0.
func divisor(e ast.ExprNode) bool {
	v, ok := e.(*test_driver.ValueExpr)
	return ok && (v.Kind() == test_driver.KindInt64 || v.Kind() == test_driver.KindUint64) && v.GetInt64() != 0
}

// cases returns the kind of a CASE: that of its results, where they have one.
func (l *listener) cases(e *ast.CaseExpr) valueKind {
	var results []ast.ExprNode
	for _, w := range e.WhenClauses {
		if e.Value == nil && !l.truth(w.Expr) || e.Value != nil && !l.alike(e.Value, w.Expr) {
			return noisy
		}
		results = append(results, w.Result)
	}
	if e.ElseClause != nil {
		results = append(results, e.ElseClause)
	}
	return l.oneOf(results)
}

// oneOf returns the kind of a value that is one of these.
func (l *listener) oneOf(list []ast.ExprNode) valueKind {
	kind := anyKind
	for i, e := range list {
		switch k := l.kind(e); {
		case k == noisy:
			return noisy
		case i == 0:
			kind = k
		case k != kind:
			kind = anyKind
		}
	}
	return kind
}

// Functions of which the server does not warn, whatever the values are: with arguments of any kind and a text for a
// result, or a number; with numbers; with a moment and then texts.
var (
	textFunctions = set("concat concat_ws lower lcase upper ucase trim ltrim rtrim reverse replace md5 sha sha1 " +
		"left right substr substring mid")
	countFunctions  = set("length octet_length bit_length char_length character_length ascii crc32 instr isnull")
	numberFunctions = set("abs ceil ceiling floor round truncate sign")
	partFunctions   = set("year month day dayofmonth quarter hour minute second")
)

// call returns the kind of what a function gives.
func (l *listener) call(name string, args []ast.ExprNode) valueKind {
	if !l.quiet(args...) || len(args) == 0 {
		return noisy
	}
	switch {
	case name == "left", name == "right", name == "substr", name == "substring", name == "mid":
		if l.numberOf(args[1:]...) == numeric {
			return textual
		}
	case textFunctions[name]:
		return textual
	case countFunctions[name]:
		return numeric
	case numberFunctions[name]:
		return l.numberOf(args...)
	case partFunctions[name]:
		return l.numberIf(l.kind(args[0]) == moment)
	case name == "date" && l.kind(args[0]) == moment:
		return moment
	case name == "date_format" && l.kind(args[0]) == moment:
		return textual
	case name == "coalesce", name == "ifnull":
		return l.oneOf(args)
	case l.copies:
		return l.inCopies(name, args)
	case name == "if" && len(args) == 3 && l.truth(args[0]):
		return l.oneOf(args[1:])
	}
	return noisy
}

// cast returns the kind of what a CAST makes that loses nothing.
func (l *listener) cast(e *ast.FuncCastExpr) valueKind {
	kind := l.kind(e.Expr)
	switch tp := e.Tp.GetType(); {
	case kind == noisy:
	case tp == mysql.TypeVarString && e.Tp.GetFlen() == types.UnspecifiedLength:
		return textual
	case kind == moment && (tp == mysql.TypeDate || tp == mysql.TypeDatetime):
		return moment
	}
	return noisy
}

// aggregate returns the kind of an aggregate.
func (l *listener) aggregate(e *ast.AggregateFuncExpr) valueKind {
	switch strings.ToLower(e.F) {
	case ast.AggFuncCount:
		return l.numberIf(l.quiet(e.Args...))
	case ast.AggFuncMin, ast.AggFuncMax:
		return l.oneOf(e.Args)
	case ast.AggFuncSum, ast.AggFuncAvg, ast.AggFuncBitAnd, ast.AggFuncBitOr, ast.AggFuncBitXor, ast.AggFuncStddevPop,
		ast.AggFuncStddevSamp,
		ast.AggFuncVarPop, ast.AggFuncVarSamp:
		return l.numberOf(e.Args...)
	}
	return noisy
}
