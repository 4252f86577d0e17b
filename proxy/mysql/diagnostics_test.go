package mysql

import (
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// conditionRow is a row of SHOW WARNINGS.
func conditionRow(level, code, message string) []byte {
	return appendString(appendString(appendString(nil, level), code), message)
}

func TestConditionsAreKeptWhereTheServerLosesThem(t *testing.T) {
	raised := &reply{ok: okPacket{warnings: 2}}
	for name, test := range map[string]struct {
		server sqlmysql.Dialect
		reply  *reply
		fetch  bool
	}{
		"MySQL, warnings":   {sqlmysql.MySQL, raised, true},
		"MySQL, an error":   {sqlmysql.MySQL, &reply{failed: true}, true},
		"MySQL, nothing":    {sqlmysql.MySQL, &reply{}, false},
		"MariaDB, warnings": {sqlmysql.MariaDB, raised, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConditions(test.server)
			c.take(test.reply, nil, sqlmysql.Deprecated{})
			if got := c.lose(); got != test.fetch {
				t.Errorf("to be fetched: %t", got)
			}
			if c.lose() {
				t.Error("they are to be fetched twice")
			}
		})
	}
}

func TestListsOfConditionsLeaveIsotapsOwnOut(t *testing.T) {
	c := newConditions(sqlmysql.MySQL)
	c.take(&reply{ok: okPacket{warnings: 6}}, nil, sqlmysql.Deprecated{Assignments: 2, Values: 1})
	lists := &sqlmysql.Plan{Session: sqlmysql.SessionEffect{Conditions: sqlmysql.ListsConditions}}
	if c.right(lists) {
		t.Error("the server's list is taken for right with isotap's warning in it")
	}
	if c.lose(); c.right(lists) {
		t.Error("the server's list is taken for right though it is gone")
	}
	for _, row := range [][]byte{conditionRow("Warning", "1287", "'&&' is deprecated, the client's"),
		conditionRow("Warning", "1287", "Setting user variables, isotap's"), conditionRow("Warning", "1287", "Setting user variables, isotap's"),
		conditionRow("Warning", "1287", "'VALUES function' is deprecated, isotap's"),
		conditionRow("Warning", "1287", "'VALUES function' is deprecated, the client's"), conditionRow("Error", "1048", "null")} {
		if err := c.keep(row); err != nil {
			t.Fatal(err)
		}
	}
	env := &sqlmysql.Session{Dialect: sqlmysql.MySQL}
	for sql, want := range map[string][]string{
		"SHOW WARNINGS":         {"the client's", "the client's", "null"},
		"SHOW ERRORS":           {"null"},
		"SHOW WARNINGS LIMIT 1": {"the client's"},
	} {
		rows := c.listed(lists, []byte(sql), env, false)
		if len(rows) != len(want) {
			t.Errorf("%s: %d rows, want %d", sql, len(rows), len(want))
			continue
		}
		for i, row := range rows {
			if !strings.HasSuffix(string(row), want[i]) {
				t.Errorf("%s: row %d is %q", sql, i+1, row)
			}
		}
	}
	if err := c.keep([]byte{200}); err == nil {
		t.Error("a row is taken that is cut short")
	}
}

func TestConditionsAreRaisedAgain(t *testing.T) {
	warning := condition{[]byte("Warning"), []byte("1265"), []byte("cut")}
	failure := condition{[]byte("Error"), []byte("1048"), []byte("null")}
	for name, test := range map[string]struct {
		conditions conditions
		asked      sqlmysql.Conditions
		want       string
	}{
		"none":         {want: "DO 0"},
		"one warning":  {conditions{kept: []condition{warning}}, 0, "SIGNAL SQLSTATE '01000' SET MYSQL_ERRNO = 1265"},
		"two warnings": {conditions{kept: []condition{warning, warning}}, 0, "DO CAST('' AS SIGNED),CAST('' AS SIGNED)"},
		"an error behind a warning": {conditions{kept: []condition{warning, failure}, state: "23000"},
			sqlmysql.KeepsConditions, "SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1048"},
		"an error behind two, counted": {conditions{kept: []condition{warning, warning, failure}, state: "23000"},
			sqlmysql.CountsConditions, "DO CAST('' AS SIGNED),CAST('' AS SIGNED),(SELECT"},
	} {
		if got := test.conditions.raising(test.asked); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestCountsOfWarningsLeaveIsotapsOwnOut(t *testing.T) {
	c := newConditions(sqlmysql.MySQL)
	plan := &sqlmysql.Plan{Upstream: sqlmysql.Upstream{Deprecated: sqlmysql.Deprecated{Assignments: 1, Values: 1}}}
	if c.addedBy(plan, true).Sum() != 2 || c.addedBy(plan, false).Sum() != 0 {
		t.Errorf("%d warnings of isotap's, %d of the client's own text", c.addedBy(plan, true).Sum(), c.addedBy(plan, false).Sum())
	}
	info := "Rows matched: 1  Changed: 1  Warnings: 3"
	payload := appendString([]byte{markOK, 1, 0, 2, 0, 3, 0}, info)
	ok, err := parseOK(payload, gomysql.CLIENT_SESSION_TRACK)
	if err != nil {
		t.Fatal(err)
	}
	corrected := withoutAdded(payload, &ok, 2)
	again, err := parseOK(corrected, gomysql.CLIENT_SESSION_TRACK)
	if err != nil || again.warnings != 1 || ok.warnings != 1 || !strings.HasSuffix(string(again.info), "Warnings: 1") {
		t.Errorf("%d warnings, %q, %v", again.warnings, again.info, err)
	}
	end := endWithoutAdded([]byte{markEOF, 3, 0, 2, 0}, 2)
	if end[1] != 1 {
		t.Errorf("%d warnings behind definitions", end[1])
	}
}

func TestCountsAreThoseOfTheClientsStatement(t *testing.T) {
	for name, test := range map[string]struct {
		reply    reply
		replaced bool
		lists    bool
		finds    bool
		want     sqlmysql.Values
	}{
		"warnings":  {reply: reply{fields: 3, rows: 2}, lists: true, want: sqlmysql.Values{RowCount: -1, FoundRows: 7}},
		"an update": {reply: reply{ok: okPacket{affected: 2}}, want: sqlmysql.Values{RowCount: 2, FoundRows: 7}},
		"an update that finds": {reply: reply{ok: okPacket{affected: 2}}, finds: true,
			want: sqlmysql.Values{RowCount: 2, FoundRows: 7}},
		"a select": {reply: reply{fields: 1, rows: 3}, want: sqlmysql.Values{RowCount: -1, FoundRows: 3}},
		"an error": {reply: reply{failed: true}, want: sqlmysql.Values{RowCount: -1, FoundRows: 7}},
		"a select that fails half-way": {reply: reply{fields: 1, rows: 3, failed: true},
			want: sqlmysql.Values{RowCount: -1, FoundRows: 7}},
		"a delete whose rows isotap asked for": {reply: reply{fields: 2, rows: 3}, replaced: true,
			want: sqlmysql.Values{RowCount: 3, RowCountGone: true, FoundRows: 7, FoundRowsGone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := counts{foundRows: 7, foundRowsGone: test.finds}
			c.take(&test.reply, test.replaced, test.lists, test.finds)
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
