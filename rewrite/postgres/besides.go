package postgres

import (
	"strconv"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// A besides is a hidden column: a chain of subqueries, each in the one before it, and what is seen of a table that the
// last one reads.
type besides struct {
	chain []*subquery
	shown *sight
	// unless is a query without whose rows it may not have run; nil: there is none.
	unless *subquery
	// row stands in the place of the row that is written; nil: that row does.
	row *replaced
	// asText says that it shows one text instead of an array: as a part of a WITH clause tells what it reads.
	asText bool
	// perGroup says that it stands beside a group, and not beside each of the rows that a group is made of.
	perGroup bool
}

// collected reports whether the column shows what is read beside each row that a row of the block stands for.
func (c *besides) collected(b *block) bool { return (b.grouped || b.unique) && !c.perGroup }

// A spelling is what is put into the text, in parts: texts, and copies of the client's bytes.
type spelling []edit

func (s *spelling) text(t string) { *s = append(*s, edit{text: t}) }

// copy adds the client's tokens [from, to).
func (s *spelling) copy(st *statement, from, to int) {
	*s = append(*s, edit{from: st.toks[from].Start, to: st.toks[to-1].End})
}

// where spells what is evaluated only where tests hold, one after the other. Elsewhere stands what is otherwise.
func (s *spelling) where(st *statement, tests []test, otherwise string, spell func()) {
	if len(tests) == 0 {
		spell()
		return
	}
	t := tests[0]
	switch s.text("CASE "); {
	case t.ofNode != nil:
		s.copy(st, t.of.from, t.of.to)
		s.text(" ")
		s.copy(st, t.from-1, t.to) // from WHEN on, where the server finds fault with the comparison
	case t.node != nil:
		s.text("WHEN " + t.must.before)
		s.copy(st, t.from, t.to)
	default:
		s.text("WHEN " + t.must.before)
	}
	s.text(t.must.behind + " THEN ")
	if t.must.not {
		s.text(otherwise + " ELSE ")
		s.where(st, tests[1:], otherwise, spell)
	} else {
		s.where(st, tests[1:], otherwise, spell)
		s.text(" ELSE " + otherwise)
	}
	s.text(" END")
}

// in returns the spelling as text.
func (s spelling) in(st *statement) string {
	var b strings.Builder
	for i := range s {
		b.WriteString(s[i].added(st.text))
	}
	return b.String()
}

// query spells a subquery of the chain, and those within it, with the identity of its rows in the place of its select
// list.
func (c *besides) query(st *statement, s *spelling, chain []*subquery) {
	q := chain[0]
	if len(q.gates) > 0 {
		s.text("(")
		defer func() { s.text(") UNION ALL SELECT '" + Lacking + "' WHERE NOT (" + q.gate() + ")") }()
	}
	s.text("SELECT ")
	if len(chain) == 1 {
		s.text(c.shown.text)
	} else {
		s.where(st, chain[1].tests, "NULL", func() { c.element(st, s, chain[1:]) })
	}
	if c.asText || q.limiting != byOrder {
		s.text(" AS " + rowName)
	}
	s.text(" ")
	s.copyFrom(st, q)
	q.condition(st, s, q.test)
	q.limits(st, s)
}

// condition spells the WHERE clause of the copy, with a test more if there is one.
func (q *subquery) condition(st *statement, s *spelling, test string) {
	var more []string
	if test != "" {
		more = append(more, test)
	}
	if len(q.gates) > 0 {
		more = append(more, q.gate())
	}
	filtered := q.where < q.end
	switch {
	case filtered && len(more) == 0:
		s.text(" ")
		s.copy(st, q.where, q.end)
		return
	case filtered:
		s.text(" WHERE (")
		s.copy(st, q.where+1, q.end)
		s.text(") AND ")
	case len(more) > 0:
		s.text(" WHERE ")
	}
	s.text(strings.Join(more, " AND "))
}

// spell spells the column for a block. In one that groups, each row that a group is made of shows what subqueries read
// beside it.
func (c *besides) spell(r *reading, b *block) spelling {
	var s spelling
	tests := c.chain[0].tests
	switch grouped := c.collected(b); {
	case grouped && !c.chain[0].whole:
		s.text("pg_catalog.array_agg(CASE WHEN " + intime + " THEN ")
		if c.row != nil {
			s.text(c.row.begin)
		}
		s.where(r.st, tests, "NULL", func() { c.element(r.st, &s, c.chain) })
		if c.row != nil {
			s.text(c.row.end("'" + Lacking + "'"))
		}
		s.text(" ELSE '" + Lacking + "' END)")
		return s
	case grouped && len(tests) > 0: // it has been evaluated if that is so for one row of the group
		s.text("CASE WHEN pg_catalog.bool_or(")
		s.where(r.st, tests, "false", func() { s.text("true") })
		s.text(") THEN ")
		c.arrayOf(r.st, &s)
		s.text(" END")
		return s
	}
	if c.chain[0].whole && (c.unless == nil || c.unless.whole) { // the server runs it once
		return c.array(r.st)
	}
	s.text(boundedFrom)
	s = append(s, c.array(r.st)...)
	s.text(" ELSE " + c.missing() + " END")
	return s
}

// missing is what stands in the place of identities that are not shown.
func (c *besides) missing() string {
	if c.asText {
		return "'" + Lacking + "'"
	}
	return lacking
}

// intime is the condition that less than [besideFor] has gone by since the first row, boundedFrom and boundedTo stand
// around what is shown as long as it holds.
var (
	intime = "(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) ((SELECT pg_catalog.clock_timestamp()) " +
		"OPERATOR(pg_catalog.+) '" + strconv.FormatInt(besideFor.Milliseconds(), 10) + " ms'::pg_catalog.interval))"
	boundedFrom = "CASE WHEN " + intime + " THEN "
)

const boundedTo = " ELSE " + lacking + " END"

// array spells what the column shows, without a bound on the time that it takes.
func (c *besides) array(st *statement) (s spelling) {
	if c.row != nil {
		s.text(c.row.begin)
	}
	otherwise := "NULL"
	switch {
	case c.row == nil || !c.row.checked:
	case c.asText:
		otherwise = "''"
	default:
		otherwise = "'{}'::pg_catalog.text[]"
	}
	tests := c.chain[0].tests
	if c.unless != nil {
		tests = c.unless.tests
	}
	s.where(st, tests, otherwise, func() {
		var array spelling
		c.arrayOf(st, &array)
		s = append(s, c.unlessNone(st, array)...)
	})
	if c.row != nil {
		s.text(c.row.end(c.missing()))
	}
	return s
}

// arrayOf spells the array itself.
func (c *besides) arrayOf(st *statement, s *spelling) {
	if c.asText {
		c.marked(st, s, c.chain)
		return
	}
	if q := c.chain[0]; q.limiting != byOrder {
		s.text("(SELECT CASE WHEN ")
		q.untied(st, s)
		s.text(" THEN COALESCE(pg_catalog.array_agg(" + rowName + "), '{}'::pg_catalog.text[]) ELSE " + lacking + " END FROM (")
		c.query(st, s, c.chain)
		s.text(") AS isotap_rows)")
		return
	}
	s.text("ARRAY(")
	c.query(st, s, c.chain)
	s.text(")")
}

// element spells what a chain of subqueries reads as one element of an array.
func (c *besides) element(st *statement, s *spelling, chain []*subquery) {
	if c.asText || chain[0].limiting != byOrder {
		c.marked(st, s, chain)
		return
	}
	s.text("pg_catalog.array_to_string(ARRAY(")
	c.query(st, s, chain)
	s.text("), '" + ElementSeparator + "')")
}

// rowName is the name of an identity that becomes a part of a text.
const rowName = "isotap_row"

// marked spells what a chain of subqueries reads as one text, which says itself where it lacks identities.
func (c *besides) marked(st *statement, s *spelling, chain []*subquery) {
	s.text("(SELECT CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.<) " + strconv.Itoa(chain[0].atMost()))
	if chain[0].limiting != byOrder {
		s.text(" AND ")
		chain[0].untied(st, s)
	}
	s.text(" THEN COALESCE(pg_catalog.string_agg(" + rowName + ", '" + ElementSeparator + "'), '') ELSE '" + Lacking +
		"' END FROM (")
	c.query(st, s, chain)
	s.text(") AS isotap_rows)")
}

// insertSpelled puts something spelled behind a token.
func (pl *planner) insertSpelled(i int, lead string, s spelling) {
	at := pl.st.toks[i].End
	for _, e := range append(spelling{{text: lead}}, s...) {
		e.start, e.end = at, at
		pl.edits = append(pl.edits, e)
	}
	pl.insertAfter(i, "")
}

// appendBesides puts the columns that show what subqueries read behind all others.
func (r *reading) appendBesides(b *block) error {
	if len(nodes(b.n.TargetList))+len(r.besides)+r.hidden > maxTargets {
		return refusal(history.ReasonColumns)
	}
	n, at := b.n, r.places.queries[b.n].listEnd
	var all spelling
	for i, c := range r.besides {
		if i > 0 || r.hidden > 0 || len(nodes(n.TargetList)) > 0 {
			all.text(", ")
		} else {
			all.text(" ")
		}
		column := c.spell(r, b)
		if i == 0 {
			column = r.rehearsed(b, column)
		}
		all = append(all, column...)
		r.hidden++
		all.text(" AS " + rewrite.NamePrefix + strconv.Itoa(r.hidden))
		r.plan.Result.Sources = append(r.plan.Result.Sources, c.source(b))
	}
	r.plan.Result.Reply = rewrite.Trimmed
	text := all.in(r.st)
	r.insertSpelled(at, "", all)
	wanted, err := parse("SELECT " + strings.TrimLeft(r.readable(text), ", "))
	if err != nil {
		return err
	}
	r.changes = append(r.changes, func() {
		if n.TargetList == nil {
			n.TargetList = ast.NewNodeList()
		}
		n.TargetList.Items = append(n.TargetList.Items, wanted.(*ast.SelectStmt).TargetList.Items...)
	})
	return nil
}

// source is what the plan says about the column. In a query that groups, its elements hold as many identities as an
// array elsewhere.
func (c *besides) source(b *block) Source {
	whole, limit := c.chain[0].whole, c.chain[0].atMost()
	if c.collected(b) && !whole {
		limit = 0
	}
	if c.asText {
		limit = 0
	}
	return Source{Table: c.shown.source.Table, Array: true, Limit: limit, Whole: whole, Beside: true, Marked: c.asText,
		Physical: c.shown.source.Physical}
}
