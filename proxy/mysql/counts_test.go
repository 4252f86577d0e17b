package mysql

import (
	"testing"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

func TestCountsAreThoseOfTheClientsStatement(t *testing.T) {
	for name, test := range map[string]struct {
		reply    reply
		replaced bool
		want     sqlmysql.Values
	}{
		"an update": {reply: reply{ok: okPacket{affected: 2}}, want: sqlmysql.Values{RowCount: 2, FoundRows: 7}},
		"a select":  {reply: reply{fields: 1, rows: 3}, want: sqlmysql.Values{RowCount: -1, FoundRows: 3}},
		"an error":  {reply: reply{failed: true}, want: sqlmysql.Values{RowCount: -1, FoundRows: 7}},
		"a select that fails half-way": {reply: reply{fields: 1, rows: 3, failed: true},
			want: sqlmysql.Values{RowCount: -1, FoundRows: 7}},
		"a delete whose rows isotap asked for": {reply: reply{fields: 2, rows: 3}, replaced: true,
			want: sqlmysql.Values{RowCount: 3, RowCountGone: true, FoundRows: 7, FoundRowsGone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := counts{foundRows: 7}
			c.take(&test.reply, test.replaced)
			var got sqlmysql.Values
			if c.fill(&got); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCountsAreAskedWhileTheyAreTheClients(t *testing.T) {
	answer := appendString(appendString(nil, "5"), "6")
	c := counts{rowCount: 1, foundRows: 2, foundRowsGone: true}
	take := c.ask()
	again := c.ask() // by now both are of isotap's own query
	if err := take(&reader{b: answer}); err != nil {
		t.Fatal(err)
	}
	if err := again(&reader{b: appendString(appendString(nil, "8"), "9")}); err != nil {
		t.Fatal(err)
	}
	if c.rowCount != 5 || c.foundRows != 2 {
		t.Errorf("ROW_COUNT() %d, FOUND_ROWS() %d; want the server's 5 and the 2 of before", c.rowCount, c.foundRows)
	}
	if err := take(&reader{b: appendString(nil, "none")}); err == nil {
		t.Error("an answer is taken that is no number")
	}
}
