package analyzer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
	sqlshape "github.com/isotap/isotap/sqltoken/shape"
)

// A lookup is what a SELECT of one table asks for by values of columns: WHERE email = ? AND site = ?. Or it asks
// whether the table has a row. Nothing of its condition is left out.
type lookup struct {
	table  string // as the statement names it, without a schema
	keys   []placed
	unlike []string // columns that are compared otherwise: id <> ?, closed IS NULL
	values int      // how many arguments the statement has
	limit  int      // the place of LIMIT's value among them; -1 for none
	single bool     // it shows one column, or a constant
}

// A rowValues is the values that a statement gives a row's columns: an INSERT of one row, which says nothing of rows
// that are there already, or an UPDATE of one table.
type rowValues struct {
	table  string
	sets   []placed // the columns that it names, but for those that it gives the table's default
	values int
	update bool
}

// placed is a column whose value is a statement's argument, by its place among these; -1 where it is an expression.
type placed struct {
	column string
	arg    int
}

// lookupOf returns what a shape looks for; nil where it is no SELECT of one table, or has more to it.
func lookupOf(family dbms.Family, shape string) *lookup {
	words := wordsOf(family, shape)
	from := unnested(words, "FROM")
	if len(words) == 0 || !words[0].keyword("SELECT") || from < 0 {
		return nil
	}
	l := &lookup{table: tableOf(words, history.Select), limit: none, single: isSingle(words[1:from])}
	rest, ok := afterTable(words[from+1:])
	if l.table == "" || !ok {
		return nil
	}
	values := sqltoken.Values(family, shape)
	l.values = len(values)
	if len(rest) > 0 && rest[0].keyword("WHERE") {
		condition := conditionOf(words)
		if !l.take(condition, values) {
			return nil
		}
		rest = rest[1+len(condition):]
	}
	if !l.end(rest, values) || len(l.keys) == 0 && (len(l.unlike) > 0 || l.limit < 0) {
		return nil
	}
	return l
}

// unnested returns where a keyword stands that is in no parentheses; -1 for nowhere.
func unnested(words []word, keyword string) int {
	depth := 0
	return slices.IndexFunc(words, func(w word) bool { return nest(&depth, w) == 0 && w.keyword(keyword) })
}

// isSingle reports whether a select list is one column or constant, perhaps with another name, or COUNT(*).
func isSingle(list []word) bool {
	depth := 0
	return len(list) > 0 && list[0].text != "*" && list[len(list)-1].text != "*" &&
		!slices.ContainsFunc(list, func(w word) bool { return nest(&depth, w) == 0 && w.text == "," })
}

// afterTable returns the words behind the only table of a FROM clause and its other name; false where there are more.
func afterTable(words []word) (rest []word, ok bool) {
	clauses := []string{"WHERE", "ORDER", "LIMIT", "FETCH", "FOR", "LOCK"}
	begins := func() bool { return len(words) == 0 || slices.ContainsFunc(clauses, words[0].keyword) }
	for len(words) > 2 && words[1].text == "." {
		words = words[2:]
	}
	if len(words) == 0 || !words[0].name {
		return nil, false
	}
	if words = words[1:]; !begins() && words[0].keyword("AS") {
		words = words[1:]
	}
	if !begins() && words[0].name {
		words = words[1:]
	}
	return words, begins()
}

// take takes in a condition, whose parts AND joins; false where it has more to it.
func (l *lookup) take(condition []word, values []int) bool {
	for _, part := range conjunctsOf(unwrapped(condition)) {
		part = unwrapped(part)
		for len(part) > 2 && part[0].name && part[1].text == "." {
			part = part[2:]
		}
		if len(part) < 3 || !part[0].name {
			return false
		}
		column, compares := part[0].text, part[2:]
		switch {
		case part[1].text == "=":
			if compares[0].keyword("BINARY") {
				compares = compares[1:]
			}
			arg, ok := argument(compares, values)
			if !ok {
				return false
			}
			l.keys = append(l.keys, placed{column, arg})
		case part[1].keyword("IN") && len(compares) == 3 && compares[0].text == "(" && compares[2].text == ")":
			arg, ok := argument(compares[1:2], values)
			if !ok {
				return false
			}
			l.keys = append(l.keys, placed{column, arg})
		case part[1].text == "<>", part[1].text == "!=":
			if _, ok := argument(compares, values); !ok {
				return false
			}
			l.unlike = append(l.unlike, column)
		case part[1].keyword("IS") && len(compares) == 1 && compares[0].keyword("NULL"):
			l.unlike = append(l.unlike, column)
		default:
			return false
		}
	}
	return true
}

// unwrapped returns words without parentheses around all of them.
func unwrapped(words []word) []word {
	for len(words) > 1 && words[0].text == "(" {
		depth := 0
		closes := slices.IndexFunc(words, func(w word) bool { nest(&depth, w); return depth == 0 })
		if closes != len(words)-1 {
			break
		}
		words = words[1:closes]
	}
	return words
}

// argument returns the place of the argument that words are, perhaps with PostgreSQL's cast behind it.
func argument(words []word, values []int) (arg int, ok bool) {
	if len(words) == 0 || words[0].name || words[0].text != "?" || len(words) > 1 && words[1].text != "::" {
		return 0, false
	}
	for _, w := range words[1:] { // a type
		if w.keyword("OR") || w.keyword("XOR") || !w.name && !strings.Contains("::.()[]", w.text) {
			return 0, false
		}
	}
	return slices.BinarySearch(values, words[0].at)
}

// end takes in what stands behind the condition: an order, a lock, and LIMIT with one number.
func (l *lookup) end(words []word, values []int) bool {
	if slices.ContainsFunc(words, func(w word) bool {
		return slices.ContainsFunc([]string{"OFFSET", "GROUP", "HAVING", "UNION", "WINDOW", "RETURNING"}, w.keyword)
	}) {
		return false
	}
	i := slices.IndexFunc(words, func(w word) bool { return w.keyword("LIMIT") || w.keyword("FIRST") || w.keyword("NEXT") })
	if i < 0 {
		return true
	}
	if i+1 >= len(words) || i+2 < len(words) && words[i+2].text == "," {
		return false // of two numbers the first is an offset
	}
	arg, ok := argument(words[i+1:i+2], values)
	l.limit = arg
	return ok
}

// conjunctsOf returns the parts of a condition that AND joins.
func conjunctsOf(condition []word) [][]word {
	var parts [][]word
	depth, from := 0, 0
	for i, w := range condition {
		if nest(&depth, w) == 0 && w.keyword("AND") {
			parts, from = append(parts, condition[from:i]), i+1
		}
	}
	return append(parts, condition[from:])
}

// rowValuesOf returns the values that a shape gives a row. It returns nil where that is no UPDATE of one table and no
// INSERT of one row, or one that says what comes of a row that is there already.
func rowValuesOf(family dbms.Family, shape string) *rowValues {
	words := wordsOf(family, shape)
	if len(words) > 0 && words[0].keyword("UPDATE") {
		return updatedValuesOf(family, shape, words)
	}
	if len(words) < 2 || !words[0].keyword("INSERT") || !words[1].keyword("INTO") {
		return nil // IGNORE, too
	}
	open := slices.IndexFunc(words, func(w word) bool { return w.text == "(" })
	end := open + slices.IndexFunc(words[max(open, 0):], func(w word) bool { return w.text == ")" })
	if open < 0 || end < open || end+2 >= len(words) || words[end+2].text != "(" ||
		!words[end+1].keyword("VALUES") && !words[end+1].keyword("VALUE") {
		return nil
	}
	values := sqltoken.Values(family, shape)
	ins := &rowValues{table: tableOf(words, history.Insert), values: len(values)}
	items, rest := itemsOf(words[end+2:])
	if len(rest) > 0 && !rest[0].keyword("RETURNING") && rest[0].text != ";" {
		return nil // another row, ON CONFLICT, ON DUPLICATE KEY UPDATE
	}
	columns, _ := itemsOf(words[open : end+1])
	if len(items) != len(columns) {
		return nil
	}
	for i, item := range items {
		if len(columns[i]) != 1 {
			return nil
		}
		if len(item) == 1 && item[0].keyword("DEFAULT") {
			continue
		}
		arg, ok := argument(item, values)
		if !ok {
			arg = none
		}
		ins.sets = append(ins.sets, placed{columns[i][0].text, arg})
	}
	return ins
}

// updatedValuesOf returns what an UPDATE sets; nil where it is not of one table, or sets more than single columns.
func updatedValuesOf(family dbms.Family, shape string, words []word) *rowValues {
	sets := assignmentsOf(family, shape)
	if !ofOneTable(family, shape) || len(sets) == 0 || len(sets) != countAssignments(words) {
		return nil
	}
	places := sqltoken.Values(family, shape)
	values := &rowValues{table: tableOf(words, history.Update), values: len(places), update: true}
	for _, a := range sets {
		arg, ok := argument(a.value, places)
		if !ok {
			arg = none
		}
		values.sets = append(values.sets, placed{a.column, arg})
	}
	return values
}

// itemsOf returns what a list in parentheses has, with which the words begin, and the words behind it.
func itemsOf(words []word) (items [][]word, rest []word) {
	depth, from := 0, 1
	for i, w := range words {
		switch outside := nest(&depth, w); {
		case depth == 0:
			return append(items, words[from:i]), words[i+1:]
		case w.text == "," && outside == 1:
			items, from = append(items, words[from:i]), i+1
		}
	}
	return nil, nil
}

// valueAt returns the argument at a place; false where it is not known as a whole, or is NULL, which equals nothing.
func valueAt(args []string, at int) (string, bool) {
	if at < 0 || at >= len(args) || len(args[at]) >= sqlshape.MaxArg || strings.EqualFold(args[at], "NULL") ||
		strings.HasPrefix(args[at], "<") {
		return "", false
	}
	return strings.Trim(args[at], "'"), true
}

// finds returns the columns by which a lookup finds a row of the given values, with their values: none where any row
// will do. It returns nil where it does not, or where that is not known.
func (l *lookup) finds(args []string, ins *rowValues, inserted []string) []setting {
	if len(args) != l.values || len(inserted) != ins.values || !strings.EqualFold(l.table, ins.table) {
		return nil
	}
	set := func(column string) int {
		return slices.IndexFunc(ins.sets, func(p placed) bool { return strings.EqualFold(p.column, column) })
	}
	if slices.ContainsFunc(l.unlike, func(column string) bool { return set(column) >= 0 }) {
		return nil
	}
	by := make([]setting, 0, len(l.keys))
	for _, key := range l.keys {
		at := set(key.column)
		if at < 0 {
			return nil // whatever the table's default is
		}
		want, known := valueAt(args, key.arg)
		is, told := valueAt(inserted, ins.sets[at].arg)
		if !known || !told || want != is {
			return nil
		}
		by = append(by, setting{column: key.column, value: args[key.arg], constant: true})
	}
	return by
}

// forOne reports whether a lookup asks whether a thing is there, rather than for a list: it wants one row, or names it
// by two columns and shows one.
func (l *lookup) forOne(args []string) bool {
	if l.limit >= 0 {
		limit, _ := valueAt(args, l.limit)
		return limit == "1"
	}
	return l.single && len(l.keys) > 1
}

// thing returns the values that a lookup asks for, as one text, without LIMIT's. Who is about to set a row asks for
// another than that one, which is no part of the thing.
func (l *lookup) thing(args []string, found *rowValues) string {
	var all strings.Builder
	for i, arg := range args {
		key := slices.ContainsFunc(l.keys, func(p placed) bool { return p.arg == i })
		if key || i != l.limit && !found.update {
			all.WriteString(strings.Trim(arg, "'") + "\x00")
		}
	}
	return all.String()
}

// moment begins the literal of a time.
var moment = regexp.MustCompile(`^'\d{4}-\d\d-\d\d[ T]\d\d:`)

// lasting returns the values that a statement sets, as one text, without times. It reports whether all are known.
func (ins *rowValues) lasting(args []string) (values string, known bool) {
	var all strings.Builder
	for _, p := range ins.sets {
		if p.arg >= 0 && p.arg < len(args) && moment.MatchString(args[p.arg]) {
			continue
		}
		value, ok := valueAt(args, p.arg)
		if !ok && (p.arg < 0 || p.arg >= len(args) || !strings.EqualFold(args[p.arg], "NULL")) {
			return "", false
		}
		all.WriteString(p.column + "=" + value + "\x00")
	}
	return all.String(), true
}
