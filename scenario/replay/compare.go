package replay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/isotap/isotap/history"
)

// A Difference is one thing in which two traces of a scenario differ.
type Difference struct {
	Scenario string
	Level    history.Level
	N        int // the step's number; 0 when the accounts as a whole differ
	SQL      string
	Field    string // "status", "rows", "affected", ...
	A, B     string
}

// String returns the difference as a few lines of a test's output.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s step %d %q: %s\n\tfirst:  %s\n\tsecond: %s", d.Scenario, d.Level, d.N, d.SQL, d.Field,
		d.A, d.B)
}

// Compare lists how the second trace of a scenario differs from the first, in what a client could see
// and in which steps waited for which. Rows count as a multiset where the statement has no ORDER BY,
// because SQL leaves their order open; nothing else may differ.
func Compare(a, b Trace) []Difference {
	if a.Scenario != b.Scenario || a.Level != b.Level || len(a.Results) != len(b.Results) {
		return []Difference{{Scenario: a.Scenario, Level: a.Level, Field: "scenario", A: a.summary(), B: b.summary()}}
	}
	var all []Difference
	for i := range a.Results {
		all = append(all, a.differences(&a.Results[i], a.Results[i].fields(), b.Results[i].fields())...)
	}
	return all
}

func (t *Trace) summary() string {
	return fmt.Sprintf("%s %s, %d steps", t.Scenario, t.Level, len(t.Results))
}

// A field of a result, in the form that is compared.
type field struct{ name, value string }

// differences compares two lists of the same fields, both of the step that r is the result of.
func (t *Trace) differences(r *Result, a, b []field) []Difference {
	var all []Difference
	for i, f := range a {
		if f.value != b[i].value {
			all = append(all, Difference{Scenario: t.Scenario, Level: t.Level, N: r.N, SQL: r.SQL, Field: f.name,
				A: f.value, B: b[i].value})
		}
	}
	return all
}

func (r *Result) fields() []field {
	return []field{
		{"statement", fmt.Sprintf("%d %s: %s", r.N, r.Session, r.SQL)},
		{"status", string(r.Status)},
		{"error", fmt.Sprintf("%s %s %d %s", r.ErrorCode(), r.Message, r.Position, r.Detail)},
		{"waiting", fmt.Sprintf("blocked %t, queued %t, done after %d", r.Blocked, r.Queued, r.DoneAfter)},
		{"columns", fmt.Sprintf("%+v", r.Columns)},
		{"rows", r.comparableRows()},
		{"affected", fmt.Sprint(r.Affected)},
		{"insert id", fmt.Sprint(r.InsertID)},
		{"warnings", fmt.Sprintf("%d %q", r.Warnings, r.Notices)},
		{"transaction", fmt.Sprintf("in transaction %t, failed %t, autocommit %t", r.InTxn, r.TxnFailed, r.Autocommit)},
		{"tag", r.Tag},
	}
}

var orderBy = regexp.MustCompile(`(?i)\border\s+by\b`)

// RowSet returns the rows, sorted where the statement leaves their order open.
func (r *Result) RowSet() [][]Value {
	if orderBy.MatchString(r.SQL) {
		return r.Rows
	}
	return slices.SortedFunc(slices.Values(r.Rows),
		func(a, b []Value) int { return strings.Compare(rowText(a), rowText(b)) })
}

// comparableRows returns the rows as text.
func (r *Result) comparableRows() string {
	rows := r.RowSet()
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = rowText(row)
	}
	return "[" + strings.Join(texts, " ") + "]"
}
