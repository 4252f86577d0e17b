package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// A naturalJoin is a NATURAL JOIN in the text.
type naturalJoin struct {
	right   *ast.TableSource
	using   []string // the columns that both sides have for the client
	outer   bool
	rewrite bool // isotap's columns would be among those that are compared
}

// enterNatural visits a NATURAL JOIN in the order of the text, and takes note of it.
func (c *masker) enterNatural(n *ast.Join) {
	n.Left.Accept(c)
	j := naturalJoin{outer: n.Tp == ast.LeftJoin || n.Tp == ast.RightJoin}
	j.right, _ = n.Right.(*ast.TableSource)
	if c.exposes(n.Left) && c.exposes(n.Right) {
		left, ok := c.outputs(n.Left)
		right, known := c.outputs(n.Right)
		j.rewrite = ok && known
		j.using = common(left, right)
	}
	c.natural = append(c.natural, j)
	n.Right.Accept(c)
}

// exposes reports whether isotap's columns are among those of a part of a FROM clause.
func (c *masker) exposes(n ast.ResultSetNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		return c.exposes(n.Left) || n.Right != nil && c.exposes(n.Right)
	case *ast.TableSource:
		if inner, ok := n.Source.(*ast.Join); ok {
			return c.exposes(inner)
		}
		return c.relation(n).table != nil
	}
	return false
}

// naturalJoins makes the NATURAL JOINs of tables with isotap's columns joins that name their columns.
func (c *masker) naturalJoins() {
	st := c.pl.st
	var at []int
	for i := range st.Tokens {
		if st.is(i, "NATURAL") {
			at = append(at, i)
		}
	}
	if len(at) != len(c.natural) {
		return // NATURAL is somebody's name, or stands in a comment
	}
	for k, j := range c.natural {
		if j.rewrite && c.pl.checkSpelling(j.using...) == nil {
			c.naturalJoin(at[k], j)
		}
	}
}

func (c *masker) naturalJoin(at int, j naturalJoin) {
	st := c.pl.st
	i := at + 1
	for st.is(i, "INNER", "LEFT", "RIGHT", "OUTER") {
		i++
	}
	if !st.is(i, "JOIN") || j.right == nil {
		return
	}
	if base, ok := j.right.Source.(*ast.TableName); ok && c.behindName(i+1, base) < 0 || !ok && !st.mark(i+1, "(") {
		return
	}
	end := st.operandEnd(i + 1)
	if end < 0 {
		return
	}
	condition := " USING (" + quotedList(j.using) + ")"
	if len(j.using) == 0 {
		condition = ""
		if j.outer {
			condition = " ON 1"
		}
	}
	pos, gap := c.pl.after(end)
	c.edit(st.Tokens[at].Start, st.Tokens[at].End, "")
	c.edit(pos, pos, condition+gap)
}

// operandEnd returns the last token of the table that begins at token i of a join; -1 when it has
// hints, whose words also stand behind it.
func (st *statement) operandEnd(i int) int {
	depth := st.Tokens[i].Depth
	for j := i + 1; j < len(st.Tokens); j++ {
		t := st.Tokens[j]
		switch {
		case t.Depth > depth, t.Depth == depth && st.mark(j, ")") && j == st.group(i):
		case t.Depth < depth, st.mark(j, ","), st.mark(j, ";"), st.mark(j, ")"), st.is(j, behindTable...):
			return j - 1
		case st.is(j, "USE", "IGNORE", "FORCE"):
			return -1
		}
	}
	return len(st.Tokens) - 1
}

var behindTable = slices.Concat(
	[]string{"NATURAL", "LEFT", "RIGHT", "INNER", "CROSS", "JOIN", "STRAIGHT_JOIN", "ON", "USING"},
	[]string{"WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK", "INTO", "UNION", "EXCEPT",
		"INTERSECT", "SET"},
)
