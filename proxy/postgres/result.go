package postgres

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// resultInProgress is the statement whose result comes in. It is empty between results: nothing holds before set.
type resultInProgress struct {
	set     bool
	form    *form
	portal  *portal           // nil for a statement of a Query
	cursor  *portal           // that the statement reads; nil: none
	plan    *sqlpostgres.Plan // by which its rows are understood; nil: by none
	hidden  int               // columns at the end that the client does not see
	swallow bool              // the client gets no rows at all
	cut     []int             // columns before the hidden ones that are isotap's, and that the client does not see either
	wrong   bool              // its plan does not know of some of isotap's columns
	format  byte              // of the hidden columns
	rows    uint64
	started int64
}

// applyLayout has the rows of the statement whose result comes in read by a layout.
func (c *resultInProgress) applyLayout(l layout) {
	if !l.known {
		return
	}
	c.hidden = l.hidden
	for _, at := range l.cut {
		if !slices.Contains(c.cut, at) {
			c.cut = append(slices.Clip(c.cut), at)
		}
	}
	if c.wrong = l.wrong; l.wrong && l.hidden == 0 {
		c.plan, c.swallow = withoutSources(c.plan), false
	}
}

// doubt takes away what a statement has shown whose plan is wrong.
func (c *resultInProgress) doubt(st *history.Stmt) {
	if c.wrong {
		downgrade(st, history.Opaque, history.ReasonMisplanned)
		st.Accesses, st.TupleIDs, st.Images, st.Predicates = nil, nil, nil, nil
	}
}

// countRows puts down how many rows a statement gave the client, and by its tag how many it wrote.
func (c *resultInProgress) countRows(st *history.Stmt, tag string) {
	st.Rows = c.rows
	if c.plan != nil && counts(c.plan) {
		st.Affected = rowsOf(tag)
	}
	if c.swallow {
		st.Rows = 0
	}
}

// rowsOf reads the number at the end of a command's tag.
func rowsOf(tag string) uint64 {
	i := len(tag)
	for i > 0 && tag[i-1] >= '0' && tag[i-1] <= '9' {
		i--
	}
	n, err := strconv.ParseUint(tag[i:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// counts reports whether the command tag counts rows that the statement wrote.
func counts(p *sqlpostgres.Plan) bool {
	switch p.Kind {
	case history.Insert, history.Update, history.Delete:
		return p.Result.Tag != selectTag
	}
	return false
}

// withoutSources returns the plan by which nothing is understood of a statement's rows.
func withoutSources(p *sqlpostgres.Plan) *sqlpostgres.Plan {
	if p == nil || len(p.Result.Sources) == 0 {
		return p
	}
	q := *p
	q.Result.Sources = nil
	return &q
}

// selectTag begins the tag of a statement that reads, and whose parts write.
const selectTag = "SELECT "

// writes reports whether a source of a plan is the table that the statement writes: only writes know where they
// stand in the write-ahead log.
func writes(source *sqlpostgres.Source) bool {
	if source.Physical == nil {
		return false
	}
	for _, item := range source.Physical.Items {
		if item == sqlpostgres.ItemLSN {
			return true
		}
	}
	return false
}

// fetch has the result that begins understood as that of the cursor that is read; query says that the statement came in
// a Query.
func (c *resultInProgress) fetch(n namespace, query bool) {
	if c.portal != nil && c.portal.cursor != nil {
		c.cursor = c.portal // Execute of the cursor itself
		return
	}
	if c.cursor = n.read(c.plan); c.cursor == nil ||
		c.plan.Session.Cursor.Verb == sqlpostgres.MoveCursor {
		return
	}
	p := c.cursor
	c.plan, c.hidden = p.plan, p.form.hidden(p.form.plan(0))
	c.applyLayout(p.layout)
	if query && p.cursor.binary {
		c.format = 1
	}
}

// wraps returns the plan of the statement whose result comes in, if it is such a one; nil otherwise.
func (c *resultInProgress) wraps() *sqlpostgres.Plan {
	if p := c.plan; p != nil && p.Result.Tag != "" && c.hidden > 0 {
		return p
	}
	return nil
}

// retagged returns the end of a result as the client's statement has it. absent says that all that came is the row that
// stands for none: the result is at its end.
func (c *resultInProgress) retagged(m message, absent bool) message {
	p := c.wraps()
	if p == nil || m.kind == msgPortalSuspended && !absent {
		return m
	}
	var rows uint64
	if tag := string(bytes.TrimSuffix(m.body, []byte{0})); !absent {
		rows = rowsOf(tag)
	}
	body := append([]byte(p.Result.Tag+strconv.FormatUint(rows, 10)), 0)
	return message{kind: msgCommandComplete, body: body, raw: appendMessage(nil, msgCommandComplete, body...)}
}

// trims reports whether rows of the statement whose result comes in are changed.
func (c *resultInProgress) trims() bool { return c.hidden > 0 || len(c.cut) > 0 }
