package postgres

import (
	"slices"
	"strconv"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/internal/pgtree"
	"github.com/isotap/isotap/sqltoken/pgtoken"
)

// LIMIT in a subquery has it read the first rows of an order. They are the same each time if the order tells all rows
// apart, as one does that ends with the key. Any other does where no row behind the LIMIT is equal to the last one
// before it: the copy has FETCH FIRST ... WITH TIES. Without an order all rows are read if there are no more than the
// LIMIT: the copy looks for one more. Where there are more rows than the LIMIT, it says that it lacks identities.

// A limiting is how a copy finds the rows that a LIMIT has a subquery read.
type limiting uint8

const (
	byOrder limiting = iota // by an order that tells all rows apart; or there is no LIMIT
	tied                    // by an order in which rows may be equal
	oneMore                 // all of them, if there are no more
)

// withTies is the first version that has FETCH FIRST ... WITH TIES.
const withTies = 13

// fixed reports whether the subquery reads the same rows each time, or can say that it may not.
func (l *looker) fixed(q *subquery) bool {
	n := q.query
	if n.LimitCount == nil && n.LimitOffset == nil || q.exists && n.LimitOffset == nil {
		return true
	}
	if q.exists || len(q.common) > 0 || n.GroupClause != nil || n.DistinctClause != nil || n.HavingClause != nil ||
		n.WindowClause != nil || !l.oneForEach(n.TargetList) {
		return false
	}
	sorted, ok := q.sorted()
	if ok && q.byKey(sorted) {
		return true
	}
	if q.limiting = oneMore; ok && len(sorted) > 0 && q.order > 0 && l.session.Version >= withTies {
		q.limiting = tied
	}
	return n.LimitOffset == nil && q.limit.from > 0
}

// sorted returns the columns that the subquery is ordered by; ok reports whether its order has columns alone.
func (q *subquery) sorted() (columns map[string]bool, ok bool) {
	columns = make(map[string]bool)
	for _, item := range nodes(q.query.SortClause) {
		by, ok := item.(*ast.SortBy)
		if !ok {
			return nil, false
		}
		ref, ok := by.Node.(*ast.ColumnRef)
		if !ok || !q.ofTables(ref) {
			return nil, false
		}
		names := fields(ref)
		columns[names[len(names)-1]] = true
	}
	return columns, true
}

// byKey reports whether columns in an order tell all rows apart.
func (q *subquery) byKey(sorted map[string]bool) bool {
	return len(q.tables) == 1 && len(q.tables[0].table.Key) > 0 && !q.tables[0].repeatsKeys() &&
		!slices.ContainsFunc(q.tables[0].table.Key, func(name string) bool {
			here, err := q.tables[0].column(name)
			return err != nil || !sorted[here]
		})
}

// repeatsKeys reports whether rows of tables that inherit may have the keys of others.
func (s *source) repeatsKeys() bool { return s.inherited() && !s.table.Partitioned }

// oneForEach reports whether a select list surely has one value for each row.
func (pl *planner) oneForEach(list *ast.NodeList) bool {
	u, err := pl.inspect(list)
	return err == nil && !u.aggregate && !u.window && !u.function && !u.volatile && !u.unsure && ofEachRow(list)
}

// forEachRow are common functions beside the immutable ones that have one value for each row.
var forEachRow = map[string]bool{"row_to_json": true, "to_json": true, "to_jsonb": true, "json_build_object": true,
	"jsonb_build_object": true, "json_build_array": true, "jsonb_build_array": true, "concat": true, "concat_ws": true,
	"format": true, "to_char": true, "date_trunc": true, "date_part": true, "extract": true, "age": true, "timezone": true}

// ofEachRow reports whether all functions in a select list are such, outside of subqueries.
func ofEachRow(list *ast.NodeList) bool {
	so := true
	whole := pgtree.Walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SubLink:
			return false
		case *ast.FuncCall:
			name := lastName(n.Funcname)
			so = so && (immutable[name] || forEachRow[name])
		}
		return so
	}, list)
	return so && whole
}

// ofTables reports whether a name in ORDER BY surely is that of a column of the subquery's tables, and not of an item
// of its select list, which goes by the name of what it is made of: id::text is called id.
func (q *subquery) ofTables(ref *ast.ColumnRef) bool {
	names := fields(ref)
	name := names[len(names)-1]
	if len(names) > 1 {
		return name != "*"
	}
	if len(q.tables) > 1 || !q.tables[0].has(name) {
		return false
	}
	return !slices.ContainsFunc(nodes(q.query.TargetList), func(t ast.Node) bool {
		item, ok := t.(*ast.ResTarget)
		if !ok || item.Name != "" {
			return !ok || item.Name == name
		}
		switch item.Val.(type) {
		case *ast.ColumnRef, *ast.A_Const:
			return false
		}
		return true
	})
}

// limited finds the LIMIT and OFFSET of a subquery, which ends before a token.
func (q *subquery) limited(p *placer, to int) bool {
	if q.query.LimitCount == nil && q.query.LimitOffset == nil {
		return true
	}
	if offset := p.findIn(q.end, to, "OFFSET"); offset >= 0 {
		q.offset = span{offset, to}
		if !p.aNumber(span{offset + 1, to}) {
			return false
		}
		to = offset
	}
	end := to
	if limit := p.findIn(q.end, to, "LIMIT"); limit >= 0 {
		q.limit = span{limit + 1, to}
		if !p.aNumber(q.limit) {
			return false
		}
		end = limit
	}
	if order := p.findIn(q.end, end, "ORDER"); order >= 0 && !q.exists {
		q.order = order
	}
	return (q.limit.from > 0) == (q.query.LimitCount != nil) && (q.offset.from > 0) == (q.query.LimitOffset != nil)
}

// aNumber reports whether a span is a number, or a parameter that is to be one.
func (st *statement) aNumber(at span) bool {
	switch {
	case at.from >= at.to:
	case at.to == at.from+1 && st.toks[at.from].Kind == pgtoken.Number:
		return true
	case st.toks[at.from].Kind != pgtoken.Param:
	case at.to == at.from+1:
		return true
	}
	return at.to == at.from+3 && slices.Contains([]string{"bigint", "int8", "int", "int4", "integer"}, st.castTo(at.from+1))
}

// spellLimit spells what stands behind LIMIT, as a number of the type that it has there.
func (q *subquery) spellLimit(st *statement, s *spelling) {
	s.copy(st, q.limit.from, q.limit.to)
	if st.toks[q.limit.from].Kind == pgtoken.Param {
		s.text("::pg_catalog.int8")
	}
}

// limits spells which of its rows a copy shows.
func (q *subquery) limits(st *statement, s *spelling) {
	most := strconv.Itoa(q.atMost())
	switch {
	case q.exists && q.limit.from > 0:
		s.text(" LIMIT " + most + " OPERATOR(pg_catalog.*) LEAST(1, ")
		q.spellLimit(st, s)
		s.text(")")
	case q.limiting == oneMore:
		s.text(" LIMIT ")
		q.least(st, s, q.atMost()-1)
		s.text(" OPERATOR(pg_catalog.+) 1")
	case q.order == 0 || q.limit.from == 0 && q.offset.from == 0:
		s.text(" LIMIT " + most)
	case q.limit.from == 0:
		s.text(" ")
		s.copy(st, q.order, q.offset.to)
		s.text(" LIMIT " + most)
	case q.limiting == tied:
		s.text(" ")
		s.copy(st, q.order, q.limit.from-1)
		s.text(" FETCH FIRST ")
		q.least(st, s, q.atMost())
		s.text(" ROWS WITH TIES")
	default:
		s.text(" ")
		s.copy(st, q.order, q.limit.from)
		s.text(" ")
		q.least(st, s, q.atMost())
		if q.offset.from > 0 {
			s.text(" ")
			s.copy(st, q.offset.from, q.offset.to)
		}
	}
}

// least spells the LIMIT, or a number where that is less.
func (q *subquery) least(st *statement, s *spelling, most int) {
	s.text("LEAST(" + strconv.Itoa(most) + ", ")
	q.spellLimit(st, s)
	s.text(")")
}

// untied spells that a copy has no more rows than its LIMIT, of those that it counts.
func (q *subquery) untied(st *statement, s *spelling) {
	s.text("pg_catalog.count(*) OPERATOR(pg_catalog.<=) ")
	q.least(st, s, q.atMost())
}
