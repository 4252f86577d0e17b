package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isotap/isotap/history"
)

// A drawnTree is an array of those that belong to a row, perhaps with arrays of its own.
type drawnTree struct {
	text string
	// reads are the queries, without their select lists, of what it reads beside a row of d, and of which table.
	reads []treeRead
}

// A treeForm is how a tree is written: of queries in FROM, too, or of LATERAL ones alone.
type treeForm uint8

const (
	nestedTree treeForm = iota
	wrappedTree
	lateralTree
)

// A treeRead is what one of the arrays reads.
type treeRead struct{ alias, from string }

// drawTree draws an array below a table of some name, by a condition that names it, with more below if depth lets it.
func drawTree(t *rapid.T, above, around string, depth int, how treeForm) drawnTree {
	one := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "part") }
	number := rapid.IntRange(0, 99).Draw(t, "number")
	alias := fmt.Sprintf("t%d_%d", depth, number)
	table, key := "e", ".dep = "+above+".id"
	if depth%2 == 1 {
		table, key = "d", ".boss = "+above+".dep"
	}
	if depth == 0 && rapid.IntRange(0, 5).Draw(t, "less") == 0 {
		key = ".id < " + above + ".id"
	}
	condition := alias + key + one("", " AND "+alias+".id > 2", " AND "+alias+".id <> 105")
	joined := table + " AS " + alias + " WHERE " + condition
	if around != "" {
		joined = table + " AS " + alias + " JOIN " + around + " AND " + condition
	}
	out := drawnTree{reads: []treeRead{{alias, joined}}}
	child, hung := "'leaf'", ""
	if depth < 2 && rapid.IntRange(0, 2).Draw(t, "deep") > 0 {
		next := table + " AS " + alias + " WHERE " + condition
		if around != "" {
			next = table + " AS " + alias + " JOIN " + around + " AND " + condition
		}
		inner := drawTree(t, alias, next, depth+1, how)
		child, out.reads = inner.text, append(out.reads, inner.reads...)
		if how == lateralTree {
			r := "r" + strconv.Itoa(depth) + strconv.Itoa(number)
			hung = one(" LEFT JOIN LATERAL "+child+" AS "+r+" ON TRUE", ", LATERAL "+child+" "+r, " JOIN LATERAL "+child+" "+r)
			child = r + ".k"
		}
	}
	if child == "'leaf'" && how != lateralTree && rapid.IntRange(0, 3).Draw(t, "to one") == 0 {
		one := "o" + strconv.Itoa(depth) + strconv.Itoa(number)
		below, last := "d", one+".id = "+alias+".dep"
		if table == "d" {
			below, last = "e", one+".id = "+alias+".boss"
		}
		child = "(SELECT JSON_ARRAY(" + one + ".id) FROM " + below + " AS " + one + " WHERE " + last + " LIMIT 1)"
		if how == wrappedTree {
			child = "(SELECT JSON_ARRAY(w.id) FROM (SELECT " + one + ".* FROM " + below + " AS " + one + " WHERE " + last + " LIMIT 1) AS w)"
		}
		out.reads = append(out.reads, treeRead{one, below + " AS " + one + " JOIN " + joined + " AND " + last})
	}
	from := " FROM " + table + " AS " + alias + hung + " WHERE " + condition
	if how == wrappedTree && rapid.IntRange(0, 2).Draw(t, "wraps") == 0 {
		q := "q" + strconv.Itoa(depth) + strconv.Itoa(number)
		from, child = " FROM (SELECT "+alias+".id AS i, "+child+" AS k"+from+") AS "+q, q+".k"
		alias = q + ".i"
	} else {
		alias += ".id"
	}
	out.text = "(SELECT " + fmt.Sprintf(one("JSON_ARRAYAGG(JSON_OBJECT('i', %s, 'k', %s))", "COALESCE(JSON_ARRAYAGG(JSON_ARRAY(%s, %s)), JSON_ARRAY())",
		"JSON_OBJECTAGG(%s, %s)", "GROUP_CONCAT(JSON_ARRAY(%s, %s))", "CAST(COALESCE(JSON_ARRAYAGG(JSON_OBJECT('i', %s, 'k', %s)), '[]') AS CHAR)"), alias, child) +
		map[treeForm]string{lateralTree: " AS k, COUNT(*) AS n"}[how] + from + ")"
	return out
}

// TestTreesTellTheRowsThatTheyShow draws trees of JSON. It holds what they tell against what their subqueries find for
// each row, and what a client sees against what it saw.
func TestTreesTellTheRowsThatTheyShow(t *testing.T) {
	s := carriedServer(t)
	exact, all, forms := 0, 0, make(map[treeForm]int)
	rapid.Check(t, func(r *rapid.T) {
		one := func(of ...string) string { return rapid.SampledFrom(of).Draw(r, "part") }
		how := nestedTree
		if s.session.Dialect == MySQL {
			how = rapid.SampledFrom([]treeForm{nestedTree, wrappedTree, lateralTree}).Draw(r, "form")
		}
		first := drawTree(r, "d", "", 0, how)
		items, reads := []string{first.text + " AS a"}, first.reads
		joined := ""
		if how == lateralTree {
			items[0], joined = "x.k AS a", one(" LEFT JOIN LATERAL "+first.text+" AS x ON TRUE", " JOIN LATERAL "+first.text+" AS x", " JOIN LATERAL "+first.text+" AS x ON x.n > 1 OR d.id = 1", " LEFT JOIN LATERAL "+first.text+" AS x ON "+one("x.n > 1", "x.n < d.id", "2 <> x.n", "x.n >= 2"), ", LATERAL "+first.text+" x")
		}
		if rapid.IntRange(0, 3).Draw(r, "second") == 0 {
			second := drawTree(r, "d", "", 0, nestedTree)
			items, reads = append(items, second.text+" AS b"), append(reads, second.reads...)
		}
		query := "SELECT d.id, " + strings.Join(items, ", ") + " FROM d" + joined + one(" WHERE d.id < 7", " WHERE d.boss = 2", " WHERE d.id IN (1, 2, 9)")
		if joined != "" {
			query += one("", " ORDER BY d.id DESC", " ORDER BY d.id LIMIT 3", " AND d.name > ''", " AND x.n > 2", " AND (x.n = 0 OR d.id < 4) ORDER BY x.n, d.id LIMIT 3")
		}
		rowsOf := query
		form := one("rows", "rows", "object", "one")
		if how == lateralTree {
			form = "rows"
		}
		switch form {
		case "one":
			where := one(" WHERE d.id < 7", " WHERE d.boss = 2 AND d.id < 30")
			query = "SELECT " + one("JSON_ARRAYAGG", "GROUP_CONCAT", "COUNT(*), JSON_ARRAYAGG") + "(JSON_ARRAY(d.id, " + first.text + ")) AS o FROM d" + where
			rowsOf, reads = "SELECT d.id FROM d"+where, first.reads
		case "object":
			query = "SELECT d.id, JSON_OBJECT('i', d.name, 'a', " + first.text + ") AS o FROM d WHERE d.id < 5"
			rowsOf, reads = query, first.reads
		}
		p := s.rewriter.Plan(query, s.session)
		if all++; p.Observation != history.Exact {
			return
		}
		want := make(map[string]bool)
		rows := s.exec(rowsOf)
		for i := range rows.Values {
			id, _ := rows.GetInt(i, 0)
			want[s.identity("d", id)] = true
			for _, read := range reads {
				found := s.exec("SELECT CONCAT_WS('=', " + read.alias + ".isotap_rowid, NULLIF(" + read.alias + ".isotap_wlist, '0')) FROM " +
					inPlaceOf(read.from, id))
				for k := range found.Values {
					row, _ := found.GetString(k, 0)
					want[row] = true
				}
			}
		}
		text := literal(p, Values{})
		if s.see(text, p.HiddenColumns(), false).full() {
			return // inexact
		}
		exact++
		forms[how]++
		s.holds(r, query, p, slices.Sorted(maps.Keys(want)))
		if lacks := less(s.accessed(query), s.accessed(text)); len(lacks) > 0 {
			plain := s.session
			plain.Repeats = false
			before := s.rewriter.Plan(query, plain)
			if lacks := less(s.accessed(literal(before, Values{})), s.accessed(text)); len(lacks) > 0 {
				r.Fatalf("%s\n%s has the plan\n%s\nnot\n%s", query, text, s.explained(text), s.explained(query))
			}
		}
	})
	if t.Logf("%d of %d are exact, by form %v", exact, all, forms); exact == 0 || s.session.Dialect == MySQL && forms[lateralTree] == 0 {
		t.Error("none was exact")
	}
}

// inPlaceOf puts a number in the place of d.id.
func inPlaceOf(text string, id int64) string {
	return strings.ReplaceAll(text, " d.id", " "+strconv.FormatInt(id, 10))
}
