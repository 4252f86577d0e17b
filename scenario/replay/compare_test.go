package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/isotap/isotap/history"
)

func someTrace() Trace {
	rows := [][]Value{{{Text: "1"}, {Null: true}}, {{Text: "2"}, {Text: "NULL"}}}
	return Trace{Scenario: "c", Level: history.ReadCommitted, Results: []Result{
		{N: 1, Session: "A", SQL: "SELECT a, b FROM t", Status: OK, Columns: []Column{{Name: "a"}, {Name: "b"}},
			Rows: rows, Autocommit: true},
		{N: 2, Session: "A", SQL: "SELECT a, b FROM t order  by a", Status: OK,
			Columns: []Column{{Name: "a"}, {Name: "b"}}, Rows: slices.Clone(rows)},
		{N: 3, Session: "B", SQL: "UPDATE t SET b = 1", Status: Failed, Blocked: true, DoneAfter: 4, Code: 1205,
			State: "HY000", Message: "m"},
		{N: 4, Session: "A", SQL: "INSERT INTO t VALUES ()", Status: OK, Affected: 1, InsertID: 3},
	}}
}

func TestCompareSeesEveryField(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Trace)
		want   string // step and field of the differences
	}{
		{"nothing", func(*Trace) {}, ""},
		{"row order where it is open", func(t *Trace) { t.Results[0].Rows = swapped(t.Results[0].Rows) }, ""},
		{"row order under ORDER BY", func(t *Trace) { t.Results[1].Rows = swapped(t.Results[1].Rows) }, "2 rows"},
		{"NULL and its name", func(t *Trace) {
			t.Results[0].Rows = [][]Value{{{Text: "1"}, {Text: "NULL"}}, t.Results[0].Rows[1]}
		}, "1 rows"},
		{"a row too many", func(t *Trace) { t.Results[0].Rows = append(t.Results[0].Rows, t.Results[0].Rows[0]) },
			"1 rows"},
		{"values swapped between rows", func(t *Trace) {
			t.Results[0].Rows = [][]Value{{{Text: "2"}, {Null: true}}, {{Text: "1"}, {Text: "NULL"}}}
		}, "1 rows"},
		{"a column's flags", func(t *Trace) { t.Results[0].Columns = []Column{{Name: "a", Flags: 1}, {Name: "b"}} },
			"1 columns"},
		{"an empty result for none", func(t *Trace) { t.Results[3].Columns = []Column{{Name: "a"}} }, "4 columns"},
		{"status", func(t *Trace) { t.Results[0].Status = Blocked }, "1 status"},
		{"error code", func(t *Trace) { t.Results[2].Code = 1213 }, "3 error"},
		{"error state", func(t *Trace) { t.Results[2].State = "40001" }, "3 error"},
		{"error text", func(t *Trace) { t.Results[2].Message = "n" }, "3 error"},
		{"waiting", func(t *Trace) { t.Results[2].Blocked = false }, "3 waiting"},
		{"released later", func(t *Trace) { t.Results[2].DoneAfter = AtEnd }, "3 waiting"},
		{"queued", func(t *Trace) { t.Results[3].Queued = true }, "4 waiting"},
		{"affected", func(t *Trace) { t.Results[3].Affected = 2 }, "4 affected"},
		{"insert id", func(t *Trace) { t.Results[3].InsertID = 0 }, "4 insert id"},
		{"warnings", func(t *Trace) { t.Results[3].Warnings = 1 }, "4 warnings"},
		{"transaction", func(t *Trace) { t.Results[0].InTxn = true }, "1 transaction"},
		{"autocommit", func(t *Trace) { t.Results[0].Autocommit = false }, "1 transaction"},
		{"statement", func(t *Trace) { t.Results[3].Session = "B" }, "4 statement"},
		{"fewer steps", func(t *Trace) { t.Results = t.Results[:3] }, "0 scenario"},
		{"another level", func(t *Trace) { t.Level = history.RepeatableRead }, "0 scenario"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := someTrace(), someTrace()
			tt.change(&b)
			if got := places(Compare(a, b)); got != tt.want {
				t.Errorf("differences %q, want %q", got, tt.want)
			}
			if got := places(Compare(b, a)); got != tt.want {
				t.Errorf("the other way round: %q, want %q", got, tt.want)
			}
		})
	}
}

func places(all []Difference) string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = string(rune('0'+d.N)) + " " + d.Field
	}
	return strings.Join(texts, ", ")
}

func swapped(rows [][]Value) [][]Value {
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	return rows
}
