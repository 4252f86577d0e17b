package analyzer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/sqltoken"
)

// An assignment is one of an UPDATE's: SET column = value.
type assignment struct {
	column string // without quotes
	target string // what stands before the = in the text: the column, with a table's name if it has one
	value  []word
}

// literal reports whether the value is a literal or a parameter, and nothing else.
func (a *assignment) literal() bool {
	return len(a.value) == 1 && !a.value[0].name && a.value[0].text == "?"
}

// addend returns what an assignment adds to its column or takes away from it, in n = n + ? and n = n - ?: the operator
// and the literal, a word each; nil where the value is something else.
func (a *assignment) addend() []word {
	n := len(a.value)
	if n < 3 || n > 5 || n == 4 || n == 5 && a.value[1].text != "." {
		return nil // n, and t.n
	}
	column, operator, literal := a.value[n-3], a.value[n-2], a.value[n-1]
	if !column.name || !strings.EqualFold(column.text, a.column) || operator.name || literal.name || literal.text != "?" ||
		operator.text != "+" && operator.text != "-" {
		return nil
	}
	return a.value[n-2:]
}

// inPlace returns the shape with what the column holds before the value, and a plus.
func (a *assignment) inPlace(shape string) string {
	at := a.value[0].at
	return shape[:at] + a.target + " + " + shape[at:]
}

// assignmentsOf returns an UPDATE's assignments of single columns, in order.
func assignmentsOf(family dbms.Family, shape string) []assignment {
	words := wordsOf(family, shape)
	depth := 0
	from := slices.IndexFunc(words, func(w word) bool { return nest(&depth, w) == 0 && w.keyword("SET") }) + 1
	var all []assignment
	for from > 0 && from < len(words) {
		depth = 0
		end := slices.IndexFunc(words[from:], func(w word) bool {
			return nest(&depth, w) == 0 && (w.text == "," || slices.ContainsFunc(behindSet, w.keyword))
		})
		if end < 0 {
			end = len(words) - from
		}
		one := words[from : from+end]
		equals := slices.IndexFunc(one, func(w word) bool { return w.text == "=" })
		if equals > 0 && one[equals-1].name && equals+1 < len(one) {
			text := shape[words[from-1].at+len(words[from-1].text) : one[equals].at]
			all = append(all, assignment{one[equals-1].text, strings.TrimSpace(text), one[equals+1:]})
		}
		if from += end + 1; from > len(words) || words[from-1].text != "," {
			break
		}
	}
	return all
}

// behindSet are keywords that may stand behind an UPDATE's assignments.
var behindSet = []string{"FROM", "WHERE", "ORDER", "LIMIT", "RETURNING"}

// nest counts parentheses, and returns how many are open around a word.
func nest(depth *int, w word) int {
	switch {
	case w.name:
	case w.text == "(":
		*depth++
		return *depth - 1
	case w.text == ")":
		*depth--
	}
	return *depth
}

// computes reports whether an UPDATE's first assignment uses the column that it changes.
func computes(family dbms.Family, shape string) bool {
	sets := assignmentsOf(family, shape)
	return len(sets) > 0 && slices.ContainsFunc(sets[0].value, func(w word) bool {
		return w.name && strings.EqualFold(w.text, sets[0].column)
	})
}

// ofOneTable reports whether an UPDATE names one table only.
func ofOneTable(family dbms.Family, shape string) bool {
	depth, set := 0, false
	return !slices.ContainsFunc(wordsOf(family, shape), func(w word) bool {
		outside := nest(&depth, w) == 0
		set = set || w.keyword("SET")
		return outside && (w.keyword("FROM") || w.keyword("JOIN") || w.text == "," && !set)
	})
}

// shows reports whether a SELECT has a column in its list, by itself, or a star.
func shows(family dbms.Family, shape, column string) bool {
	words := wordsOf(family, shape)
	depth := 0
	from := slices.IndexFunc(words, func(w word) bool { return nest(&depth, w) == 0 && w.keyword("SELECT") }) + 1
	if from == 0 {
		return false
	}
	depth = 0
	for i := from; i < len(words); i++ {
		w, before := words[i], words[i-1]
		switch outside := nest(&depth, w) == 0; {
		case !outside:
		case w.keyword("FROM"):
			return false
		case i > from && !slices.Contains([]string{",", "."}, before.text) && !before.keyword("DISTINCT"):
			// A part of an expression, or another name for it.
		case w.text == "*", w.name && strings.EqualFold(w.text, column) && i+1 < len(words) &&
			(words[i+1].name || words[i+1].text == ","):
			return true
		}
	}
	return false
}

// computedInPlace returns the one assignment of a literal to a column that a SELECT reads whose values, as recorded,
// may have been computed from it. Write is a statement of the witness's last transaction.
func (t *explainer) computedInPlace(read, write *history.Stmt) (*assignment, error) {
	shape := t.a.store.shapeOf(t.g.witness[len(t.g.witness)-1].to, write.Num)
	if read.Kind != history.Select || shape == none || !ofOneTable(t.family, write.Shape) {
		return nil, nil
	}
	sets := assignmentsOf(t.family, write.Shape)
	candidates := make([]int, 0, len(sets))
	for i := range sets {
		if sets[i].literal() && shows(t.family, read.Shape, sets[i].column) {
			candidates = append(candidates, i)
		}
	}
	runs := t.witnessRuns(shape)
	if slices.ContainsFunc(candidates, func(i int) bool {
		values, ok := t.numbers(runs, i)
		return ok && !vary(values)
	}) {
		others, err := t.otherRuns(shape)
		if err != nil {
			return nil, err
		}
		runs = append(runs, others...)
	}
	candidates = slices.DeleteFunc(candidates, func(i int) bool {
		values, ok := t.numbers(runs, i)
		return !ok || !vary(values) && (len(values) > 1 || mayBeTruth(values))
	})
	if len(candidates) != 1 {
		return nil, nil
	}
	return &sets[candidates[0]], nil
}

// witnessRuns returns the statements of a shape in the witness's transactions.
func (t *explainer) witnessRuns(shape int32) []*history.Stmt {
	var runs []*history.Stmt
	for _, txn := range slices.Sorted(maps.Keys(t.loaded)) {
		runs = append(runs, t.a.store.ofShape(txn, t.loaded[txn], shape)...)
	}
	return runs
}

// maxRuns bounds the other transactions that are asked what they wrote.
const maxRuns = 16

// otherRuns returns the statements of a shape in a few transactions outside the witness.
func (t *explainer) otherRuns(shape int32) ([]*history.Stmt, error) {
	var runs []*history.Stmt
	asked := 0
	for txn := range t.a.store.withShape(shape) {
		if t.loaded[txn] != nil {
			continue
		}
		loaded, err := t.a.load(txn)
		if err != nil {
			return nil, err
		}
		runs = append(runs, t.a.store.ofShape(txn, loaded, shape)...)
		if asked++; asked == maxRuns {
			break
		}
	}
	return runs, nil
}

// numbers returns what statements set a column to in one of their assignments; false unless each is known to be a
// number.
func (t *explainer) numbers(runs []*history.Stmt, set int) ([]float64, bool) {
	values := make([]float64, len(runs))
	for i, s := range runs {
		var ok bool
		if values[i], ok = assigned(t.family, s, set); !ok {
			return nil, false
		}
	}
	return values, true
}

// vary reports whether numbers are not all the same, nor truth values.
func vary(values []float64) bool {
	return !mayBeTruth(values) && slices.ContainsFunc(values, func(v float64) bool { return v != values[0] })
}

// mayBeTruth reports whether all numbers may be truth values, which the MySQL family writes as 0 and 1.
func mayBeTruth(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v != 0 && v != 1 })
}

// assigned returns the number that a statement sets a column to, where that is known and one. Drivers that send
// parameters as text quote numbers too.
func assigned(family dbms.Family, s *history.Stmt, set int) (float64, bool) {
	sets := assignmentsOf(family, s.Shape)
	if set >= len(sets) || !sets[set].literal() {
		return 0, false
	}
	at := sets[set].value[0].at
	values := sqltoken.Values(family, s.Shape)
	place, found := slices.BinarySearch(values, at)
	// Lists in parentheses have fewer values than arguments.
	aligned := len(values) == len(s.Args) || !strings.Contains(s.Shape[:at], "(")
	if !found || !aligned || place >= len(s.Args) {
		return 0, false
	}
	value := strings.Trim(s.Args[place], "'")
	if strings.Trim(value, "+-.0123456789eE") != "" {
		return 0, false // NaN, too, and what begins with 0x
	}
	number, err := strconv.ParseFloat(value, 64)
	return number, err == nil
}
