package oracle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/scenario/replay"
)

// An answer is what came of a statement, and of the question behind it for its warnings.
type answer struct {
	*replay.Result
	warnings *replay.Result // nil where nobody asked: then the notices are in the result
}

// differences compares what a statement gave in its transaction with what it has to give. Closed says that its LIMIT,
// if it has one, leaves nothing open.
func differences(step int, got, want answer, closed bool) (all []Difference) {
	add := func(a Aspect, g, w string) {
		if g != w {
			all = append(all, Difference{Step: step, SQL: got.SQL, Aspect: a, Got: g, Want: w})
		}
	}
	if add(Outcome, outcome(got.Result), outcome(want.Result)); len(all) > 0 {
		return all
	}
	add(Affected, strconv.FormatUint(got.Affected, 10), strconv.FormatUint(want.Affected, 10))
	add(Key, strconv.FormatUint(got.InsertID, 10), strconv.FormatUint(want.InsertID, 10))
	if !closed && limited.MatchString(got.SQL) {
		add(Rows, numberOfRows(len(got.Rows)), numberOfRows(len(want.Rows)))
	} else {
		if d := ofRows(got.Rows, want.Rows); d != nil {
			d.Step, d.SQL, d.Aspect = step, got.SQL, Rows
			all = append(all, *d)
		}
	}
	if !slices.ContainsFunc(all, func(d Difference) bool { return d.Aspect == Rows }) { // other rows have another order, too
		by := sortKeys(got.Result)
		add(Order, sequence(got.Rows, by), sequence(want.Rows, by))
	}
	add(Warnings, codes(got), codes(want))
	return all
}

// outcome says whether a statement succeeded. The words of an error may tell of the row that the server came to first.
func outcome(r *replay.Result) string {
	if r.Status == replay.OK {
		return "success"
	}
	if code := r.ErrorCode(); code != "" {
		return "error " + code
	}
	return string(r.Status)
}

// multiset returns rows in an order of its own.
func multiset(rows [][]replay.Value) string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = rowText(row)
	}
	slices.Sort(texts)
	if len(rows) == 0 {
		return "no rows"
	}
	return numberOfRows(len(rows)) + ": " + strings.Join(texts, " ")
}

func numberOfRows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return strconv.Itoa(n) + " rows"
}

// ofRows returns in what rows differ, as multisets; nil where they do not.
func ofRows(got, want [][]replay.Value) *Difference {
	d := &Difference{Got: multiset(got), Want: multiset(want)}
	if d.Got == d.Want {
		return nil
	}
	left := make(map[string]int)
	for _, row := range want {
		left[rowText(row)]++
	}
	for _, row := range got {
		text := rowText(row)
		if left[text]--; left[text] < 0 {
			d.GotOnly = append(d.GotOnly, text)
		}
	}
	for _, row := range want {
		text := rowText(row)
		if left[text] > 0 {
			left[text]--
			d.WantOnly = append(d.WantOnly, text)
		}
	}
	return d
}

func rowText(row []replay.Value) string {
	texts := make([]string, len(row))
	for i, v := range row {
		if texts[i] = v.String(); !v.Null {
			texts[i] = strconv.Quote(v.Text)
		}
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// limited is a query that may choose among its rows: which it gives is open, unless its order tells all of them apart.
var limited = regexp.MustCompile(`(?i)\bLIMIT\s+\d+\s*$`)

// orderClause is an ORDER BY at the end of a query, without expressions.
var orderClause = regexp.MustCompile(`(?i)\bORDER\s+BY\s+([\w\s,]+?)(?:\s+LIMIT\s+\d+)?\s*$`)

// sortKeys returns the places of the columns that a query's rows are ordered by, as far as they can be told: numbers
// and names of its columns, up to the first that is neither.
func sortKeys(r *replay.Result) (places []int) {
	m := orderClause.FindStringSubmatch(r.SQL)
	if m == nil {
		return nil
	}
	for key := range strings.SplitSeq(m[1], ",") {
		word, _, _ := strings.Cut(strings.TrimSpace(key), " ")
		n, err := strconv.Atoi(word)
		if n--; err != nil {
			n = slices.IndexFunc(r.Columns, func(c replay.Column) bool { return strings.EqualFold(c.Name, word) })
		}
		if n < 0 || n >= len(r.Columns) {
			break
		}
		places = append(places, n)
	}
	return places
}

// sequence returns what rows have in some columns, in their order.
func sequence(rows [][]replay.Value, places []int) string {
	if len(places) == 0 {
		return ""
	}
	texts := make([]string, len(rows))
	for i, row := range rows {
		keys := make([]replay.Value, len(places))
		for j, place := range places {
			keys[j] = row[place]
		}
		texts[i] = rowText(keys)
	}
	return strings.Join(texts, " ")
}

// codes returns the codes of a statement's warnings, each once: how often the server comes to what it warns of is open.
func codes(a answer) string {
	var all []string
	for _, n := range a.Notices {
		all = append(all, n.Severity+" "+n.Code)
	}
	if a.warnings != nil {
		for _, row := range a.warnings.Rows {
			all = append(all, row[0].String()+" "+row[1].String())
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
