package postgres

import (
	"regexp"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// cursor classifies what declares, reads and closes cursors. Which rows a FETCH gives only the session can tell:
// it knows what was declared under the name.
func (v verb) cursor() {
	if v.is(0, "DECLARE") {
		v.declare()
		return
	}
	last := len(v.toks) - 1
	c := &Cursor{Verb: CloseCursor}
	switch {
	case v.is(0, "FETCH"):
		c.Verb, v.p.Kind = FetchCursor, history.Select
		v.opaque(history.ReasonCursor)
	case v.is(0, "MOVE"):
		c.Verb = MoveCursor
		v.opaque(history.ReasonCursor)
	case v.is(last, "ALL"):
		v.p.Session.Cursor = c
		return
	}
	if name, ok := v.ident(last); ok && last > 0 {
		c.Name, v.p.Session.Cursor = name, c
		c.Forward, c.All = v.forward()
	}
}

// forward reads the direction of FETCH and MOVE: whether it is forward, and whether to the end.
func (v verb) forward() (forward, all bool) {
	i, last := 1, len(v.toks)-1
	if i < last && v.is(i, "NEXT") {
		i++
	} else {
		if i < last && v.is(i, "FORWARD") {
			i++
		}
		if all = i < last && v.is(i, "ALL"); all || i < last && v.toks[i].Kind == pgtoken.Number {
			i++
		}
	}
	if i < last && v.is(i, "FROM", "IN") {
		i++
	}
	return i == last, all
}

// declare classifies DECLARE.
func (v verb) declare() {
	p := v.p
	p.Kind, p.Locking, p.Session.Changes = history.Select, v.locking(), v.callsSettings()
	if c, query := v.declaration(); query >= 0 {
		p.Session.Cursor, p.Observation = c, history.Exact
	} else {
		v.opaque(history.ReasonCursor)
	}
}

// declaration reads DECLARE up to its query, and returns the token at which that begins; -1 where it is not
// understood.
func (st *statement) declaration() (*Cursor, int) {
	name, ok := st.ident(1)
	c := &Cursor{Verb: DeclareCursor, Name: name}
	i := 2
	for ; st.is(i, "BINARY", "ASENSITIVE", "INSENSITIVE", "SCROLL", "NO"); i++ {
		c.Binary = c.Binary || st.is(i, "BINARY")
	}
	if !ok || !st.is(i, "CURSOR") {
		return nil, -1
	}
	if i++; st.is(i, "WITH", "WITHOUT") && st.is(i+1, "HOLD") {
		c.Hold = st.is(i, "WITH")
		i += 2
	}
	if !st.is(i, "FOR") || i+1 >= len(st.toks) {
		return nil, -1
	}
	return c, i + 1
}

// declare makes the rows of a cursor tell which versions they are made of. Nothing is added that the server may
// need another plan for: whether a cursor goes backwards, and whether it has a current row that can be written,
// depends on its plan.
func (pl *planner) declare(n *ast.SelectStmt) error {
	alone := len(nodes(n.FromClause)) == 1 && n.LockingClause != nil && n.Op == ast.SETOP_NONE
	if alone {
		_, alone = n.FromClause.Items[0].(*ast.RangeVar)
	}
	if err := pl.selectRows(n); err != nil {
		return err
	}
	if pl.plan.Locking != history.NoLock && !(alone && len(pl.plan.Result.Sources) == 1) {
		// A locked row is read when it is fetched, the others of a join are older.
		return refusal(history.ReasonCursor)
	}
	for i := range pl.plan.Result.Sources {
		if pl.plan.Result.Sources[i].Array {
			return refusal(history.ReasonCursor)
		}
	}
	return nil
}

// fetching finds FETCH in a function's body.
var fetching = regexp.MustCompile(`(?i)\bfetch\b`)

// readsCursors reports whether the statement may have the server itself read a cursor by its name: by a function of the
// server's own, in a block of a procedural language, or in a function that it creates.
func (st *statement) readsCursors() bool {
	for i := range st.toks {
		if name, ok := st.ident(i); ok && strings.HasPrefix(name, "cursor_to_xml") {
			return true
		}
	}
	if !st.is(0, "DO", "CREATE") || len(st.toks) < 2 {
		return false
	}
	language := st.is(0, "DO") || slices.ContainsFunc([]int{1, 2, 3},
		func(i int) bool { return st.is(i, "FUNCTION", "PROCEDURE") })
	start, end := st.span()
	return language && fetching.MatchString(st.text[start:end])
}
