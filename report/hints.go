package report

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/history"
)

// hints say, by the beginning of a reason, what a user can do so that such statements are observed. The
// first that fits counts. Where nothing can be done they say so: a reader should not look for it.
var hints = []struct{ reason, hint string }{
	{"not instrumented", "Run isotap instrument: these tables lack isotap's columns."},
	{"unknown table", "The proxy does not know the table: it was made on another connection just now, or it is a system table. Nothing to do if it holds no data of the application."},
	{"view", "Query the tables behind the view in the test, or read the finding list as silent about them."},
	{"temporary table", "Nothing to do: no other session sees a temporary table."},
	{"trigger", "What a trigger does cannot be seen. Drop it for the test run, or do its work in the application there."},
	{"cascade", "Rows that a foreign key deletes or changes are not seen. Delete them by statements of their own in the test."},
	{"call", "What a stored procedure does cannot be seen. Send its statements from the client in the test."},
	{"function", "A stored function, or one whose rows are not known, hides what it reads. Send its query on its own in the test."},
	{"EXECUTE", "Use prepared statements of the driver in place of SQL-level PREPARE and EXECUTE."},
	{"subquery", "Send the subquery as a SELECT of its own where the test allows it: its rows are not in the result."},
	{"with", "Rewrite WITH as a derived table in FROM, which is observed."},
	{"union", "Send the parts of the UNION one after the other in the test: duplicates hide which rows were read."},
	{"window function", "Send the rows' SELECT without the window function beside it in the test."},
	{"aggregate", "Select the rows themselves, or their ids, beside the aggregate in the test."},
	{"plan", "Nothing to do: watching this statement would change its plan and what it locks."},
	{"multi-table", "Split the statement into one for each table in the test."},
	{"INSERT ... SELECT", "Send SELECT and INSERT separately in the test."},
	{"CREATE TABLE ... SELECT", "Create the table first, then INSERT."},
	{"LOAD DATA", "Load by INSERT in the test: the loaded rows are not known."},
	{"truncate", "Nothing to do: the table's rows begin a new life."},
	{"partition", "Nothing to do: the rows of the partition begin a new life."},
	{"charset", "Connect with utf8mb4 or another charset in which ASCII is ASCII."},
	{"sql_mode", "Leave this sql_mode out in the test."},
	{"multi-statement", "Send the statements one by one."},
	{"max_allowed_packet", "Raise max_allowed_packet on the server, or write fewer rows at a time."},
	{"too many rows", "Write fewer rows at a time."},
	{"isotap_wlist size", "Run isotap instrument again: the column is smaller than this proxy expects."},
	{"isotap", "The application uses isotap's own columns or variables."},
	{"server lost", "The server went away before it told what was written. Nothing to do but to run it again."},
	{"settings unknown", "The session's settings were not known yet; this is rare and passes."},
	{"unparsable", "isotap's parser does not know this syntax. Please report the statement."},
}

// hint says what a user can do about a reason.
func hint(reason string) string {
	for _, h := range hints {
		if strings.HasPrefix(reason, h.reason) {
			return h.hint
		}
	}
	return "Nothing is known that helps: read the finding list as silent about these statements."
}

// usedKinds gives the kinds of the recording's statements, the most frequent first.
func usedKinds(c *analyzer.Coverage) []history.Kind {
	kinds := make([]history.Kind, 0, len(c.Kinds))
	for k := range c.Kinds {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b history.Kind) int {
		if x, y := c.Kinds[a].Statements(), c.Kinds[b].Statements(); x != y {
			return y - x
		}
		return int(a) - int(b)
	})
	return kinds
}
