package postgres

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A passage is what a view does that passes columns of one table on and leaves none of its rows out. The
// zero passage is that of a view that does anything else.
type passage struct {
	table   uint32
	columns []int // pg_attribute.attnum of the table, in the order of the view's columns
}

// plainQuery are what a stored query has in it that does nothing but pass on: no condition, no grouping, no
// order, the rows of inheriting tables with them. Names cannot look like these, as their spaces and braces
// are escaped.
var plainQuery = []string{
	"({QUERY :commandType 1 ", ":hasAggs false", ":hasWindowFuncs false", ":hasTargetSRFs false", ":hasSubLinks false",
	":cteList <>", ":quals <>}", ":groupClause <>", ":groupingSets <>", ":havingQual <>", ":windowClause <>",
	":distinctClause <>", ":sortClause <>", ":limitOffset <>", ":limitCount <>", ":rowMarks <>", ":setOperations <>",
	":inh true",
}

var (
	oneTable = regexp.MustCompile(`:fromlist \(\{RANGETBLREF :rtindex \d+\}\)`)
	sampled  = regexp.MustCompile(`:tablesample [^<]`)
	entry    = regexp.MustCompile(`\{TARGETENTRY :expr \{VAR [^{}]*\} [^{}]* :resorigtbl (\d+) :resorigcol (\d+) :resjunk false\}`)
)

// passageOf reads a view's query as pg_rewrite.ev_action stores it: a tree that nodes/outfuncs.c of the
// server's source prints.
func passageOf(action string) passage {
	if !oneTable.MatchString(action) || sampled.MatchString(action) ||
		slices.ContainsFunc(plainQuery, func(part string) bool { return !strings.Contains(action, part) }) {
		return passage{}
	}
	entries := entry.FindAllStringSubmatch(action, -1)
	if len(entries) != strings.Count(action, "{TARGETENTRY ") {
		return passage{}
	}
	var p passage
	for _, e := range entries {
		table, err := strconv.ParseUint(e[1], 10, 32)
		column, err2 := strconv.Atoi(e[2])
		if err != nil || err2 != nil || table == 0 || p.table != 0 && p.table != uint32(table) {
			return passage{}
		}
		p.table = uint32(table)
		p.columns = append(p.columns, column)
	}
	return p
}

// keepsNames says whether each of a view's columns is the table's of the same name.
func (r *relation) keepsNames(table *relation) bool {
	if len(r.passes.columns) != len(r.table.Columns) {
		return false
	}
	for i, number := range r.passes.columns {
		at := slices.Index(table.numbers, number)
		if at < 0 || table.table.Columns[at].Name != r.table.Columns[i].Name {
			return false
		}
	}
	return true
}
