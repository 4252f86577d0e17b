package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/test_driver"
)

// A condition that is evaluated a second time has the client's parameters a second time. The server takes a parameter
// for what it is compared with, as it takes the first one; whether it warns hangs on what the client gives. So a plan
// says of each what it must be: of the kind of the column that it is compared with.

// copyParams takes note of a condition's parameters. It reports whether each of them is compared with something of a
// kind that is known.
func (pl *planner) copyParams(e ast.ExprNode, l *listener) bool {
	p := comparedParams{l: l, pl: pl, known: make(map[*test_driver.ParamMarkerExpr]bool)}
	e.Accept(&p)
	return !p.unknown
}

// comparedParams looks for what parameters are compared with.
type comparedParams struct {
	l       *listener
	pl      *planner
	known   map[*test_driver.ParamMarkerExpr]bool
	unknown bool
}

// Enter implements ast.Visitor.
func (p *comparedParams) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.BinaryOperationExpr:
		switch n.Op {
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE:
			p.compare(n.L, n.R)
			p.compare(n.R, n.L)
		}
	case *ast.BetweenExpr:
		p.compare(n.Left, n.Expr)
		p.compare(n.Right, n.Expr)
	case *ast.PatternInExpr:
		for _, e := range n.List {
			p.compare(e, n.Expr)
		}
	case *ast.PatternLikeOrIlikeExpr:
		if p.l.kind(n.Expr) == textual {
			p.compare(n.Pattern, n.Expr)
		}
	case *test_driver.ParamMarkerExpr:
		p.unknown = p.unknown || !p.known[n]
	}
	return n, p.unknown
}

// Leave implements ast.Visitor.
func (p *comparedParams) Leave(n ast.Node) (ast.Node, bool) { return n, !p.unknown }

// compare takes note of a parameter that is compared with something.
func (p *comparedParams) compare(e, with ast.ExprNode) {
	marker, ok := e.(*test_driver.ParamMarkerExpr)
	if !ok {
		return
	}
	at := p.pl.st.tokenAt(marker.Offset)
	kind := p.l.kind(with)
	if _, column := with.(*ast.ColumnNameExpr); !column || at < 0 || kind == textual && !p.pl.session.utf8() {
		return
	}
	switch kind {
	case numeric, textual, moment:
		p.known[marker] = true
		p.pl.parameters = append(p.pl.parameters, Copy{Param: p.pl.param(at), Integer: kind == numeric, Moment: kind == moment})
	}
}
