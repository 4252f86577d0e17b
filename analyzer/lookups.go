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
// whether the table has a row.
type lookup struct {
	table  string // as the statement names it, without a schema
	keys   []placed
	values int // how many arguments the statement has
	limit  int // the place of LIMIT's value among them; -1 for none
}

// An insertion is an INSERT of one row, with nothing said of rows that are there already.
type insertion struct {
	table  string
	sets   []placed
	values int
}

// placed is a column whose value is a statement's argument, by its place among these.
type placed struct {
	column string
	arg    int
}

// lookupOf returns what a shape looks for; nil where it is no SELECT of one table, or one that finds rows in another
// way than by values of columns, all of which count. A condition's other parts do not; without one it has a LIMIT.
func lookupOf(family dbms.Family, shape string) *lookup {
	words := wordsOf(family, shape)
	if len(words) == 0 || !words[0].keyword("SELECT") {
		return nil
	}
	values := sqltoken.Values(family, shape)
	l := &lookup{table: tableOf(words, history.Select), values: len(values), limit: none}
	condition := conditionOf(words)
	depth := 0
	if l.table == "" || slices.ContainsFunc(condition, func(w word) bool {
		return nest(&depth, w) == 0 && (w.keyword("OR") || w.keyword("XOR") || w.text == "||")
	}) {
		return nil
	}
	for _, part := range conjunctsOf(condition) {
		if column, at, ok := comparison(part); ok {
			if arg, found := slices.BinarySearch(values, at); found {
				l.keys = append(l.keys, placed{column, arg})
			}
		}
	}
	depth = 0
	for i, w := range words[:len(words)-1] {
		if nest(&depth, w) == 0 && (w.keyword("LIMIT") || w.keyword("FIRST") || w.keyword("NEXT")) {
			if arg, found := slices.BinarySearch(values, words[i+1].at); found {
				l.limit = arg
			}
		}
	}
	if len(l.keys) == 0 && (len(condition) > 0 || l.limit < 0) {
		return nil
	}
	return l
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

// comparison returns the column that a part of a condition compares with a value, and where in the text that stands.
func comparison(part []word) (column string, at int, ok bool) {
	for len(part) > 2 && part[0].name && part[1].text == "." {
		part = part[2:]
	}
	if len(part) < 3 || !part[0].name || part[1].text != "=" {
		return "", 0, false
	}
	column, part = part[0].text, part[2:]
	if len(part) > 1 && part[0].keyword("BINARY") {
		part = part[1:]
	}
	// Behind it stands nothing, or PostgreSQL's cast.
	if part[0].text != "?" || part[0].name || len(part) > 1 && part[1].text != "::" {
		return "", 0, false
	}
	return column, part[0].at, true
}

// insertionOf returns what a shape inserts; nil where it is no INSERT of one row, or has something to say of a row that
// is there already.
func insertionOf(family dbms.Family, shape string) *insertion {
	words := wordsOf(family, shape)
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
	ins := &insertion{table: tableOf(words, history.Insert), values: len(values)}
	items, rest := itemsOf(words[end+2:])
	if len(rest) > 0 && !rest[0].keyword("RETURNING") && rest[0].text != ";" {
		return nil // another row, ON CONFLICT, ON DUPLICATE KEY UPDATE
	}
	columns, _ := itemsOf(words[open : end+1])
	if len(items) != len(columns) {
		return nil
	}
	for i, item := range items {
		if len(item) == 1 && len(columns[i]) == 1 && item[0].text == "?" {
			if arg, found := slices.BinarySearch(values, item[0].at); found {
				ins.sets = append(ins.sets, placed{columns[i][0].text, arg})
			}
		}
	}
	return ins
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

// argOf returns the argument that stands for a column; false where there is none, or it may be cut.
func argOf(of []placed, column string, args []string) (string, bool) {
	for _, p := range of {
		if strings.EqualFold(p.column, column) && p.arg < len(args) {
			return strings.Trim(args[p.arg], "'"), len(args[p.arg]) < sqlshape.MaxArg
		}
	}
	return "", false
}

// finds returns the columns by which a lookup finds what an insertion inserts, with their values: none where
// any row will do. It returns nil where it does not, or where that is not known.
func (l *lookup) finds(args []string, ins *insertion, inserted []string) []setting {
	if len(args) != l.values || len(inserted) != ins.values || !strings.EqualFold(l.table, ins.table) {
		return nil
	}
	by := make([]setting, 0, len(l.keys))
	for _, key := range l.keys {
		want, known := argOf(l.keys, key.column, args)
		is, set := argOf(ins.sets, key.column, inserted)
		switch {
		case !set:
			continue // the server fills it in
		case !known || want != is:
			return nil
		}
		by = append(by, setting{column: key.column, value: args[key.arg], constant: true})
	}
	if len(by) == 0 && len(l.keys) > 0 {
		return nil
	}
	return by
}

// forOne reports whether a lookup asks whether a thing is there, rather than for a list: it wants one row, or names it
// by two columns.
func (l *lookup) forOne(args []string) bool {
	return len(l.keys) > 1 || l.limit >= 0 && l.limit < len(args) && strings.Trim(args[l.limit], "'") == "1"
}

// moment begins the literal of a time.
var moment = regexp.MustCompile(`^'\d{4}-\d\d-\d\d[ T]\d\d:`)

// lasting returns the values that an insertion sets, but for times.
func (ins *insertion) lasting(args []string) string {
	var all strings.Builder
	for _, p := range ins.sets {
		if p.arg < len(args) && !moment.MatchString(args[p.arg]) {
			all.WriteString(p.column + "=" + args[p.arg] + "\x00")
		}
	}
	return all.String()
}
