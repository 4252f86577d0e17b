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
	{"with", "Write the query of the WITH into FROM, where its rows are observed if they are rows of tables."},
	{"recursive", "Nothing is known that helps: the rows of a recursive query are not rows of tables."},
	{"distinct", "Select without DISTINCT in the test where the application allows it: it hides which rows were read."},
	{"joined aggregate", "Send the aggregating query on its own in the test."},
	{"nested aggregate", "Send the aggregating query on its own in the test."},
	{"large aggregate", "Aggregate fewer rows in the test: isotap does not collect the ids of so many."},
	{"star over a derived table", "Name the columns in place of the star."},
	{"natural join", "Join with ON in place of NATURAL JOIN or USING."},
	{"executable comment", "Leave version comments (/*! ... */) out in the test."},
	{"refused with error", "The server refused the rewritten statement and ran the original: look up the error, often a missing privilege on isotap's columns."},
	{"capture", "What the statement replaced is not certain; often fewer rows at a time help."},
	{"INSERT IGNORE", "Leave IGNORE out in the test: which rows were left out is not certain."},
	{"UPDATE IGNORE", "Leave IGNORE out in the test: which rows were left out is not certain."},
	{"DELETE IGNORE", "Leave IGNORE out in the test: which rows were left out is not certain."},
	{"REPLACE", "Use INSERT ... ON DUPLICATE KEY UPDATE in place of REPLACE: which rows it replaced is not known."},
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
	{"ORDER BY or LIMIT", "Name the rows by their key in place of ORDER BY or LIMIT in the test."},
	{"group_concat_max_len", "Raise group_concat_max_len on the server."},
	{"groups left out", "Nothing to do: the groups that HAVING or LIMIT leaves out are not told."},
	{"cursor", "Read without a server-side cursor in the test: rows that were not fetched are not known."},
	{"rows left out", "Read the result to its end: rows that were not fetched are not known."},
	{"row without identity", "Run isotap instrument: rows that triggers or procedures inserted have no id yet."},
	{"charset", "Connect with utf8mb4 or another charset in which ASCII is ASCII."},
	{"sql_mode", "Leave this sql_mode out in the test."},
	{"multi-statement", "Send the statements one by one."},
	{"max_allowed_packet", "Raise max_allowed_packet on the server, or write fewer rows at a time."},
	{"too many rows", "Write fewer rows at a time."},
	{"row security", "Run the test as the table's owner, or as a role that bypasses row security: hidden columns must not change which rows are seen."},
	{"rule", "What a rewrite rule makes of the statement cannot be seen. Name the table behind it in the test."},
	{"privilege", "Grant the role SELECT on the whole table in the test: ctid and xmin are not readable otherwise."},
	{"set operation", "Send the parts of the UNION, INTERSECT or EXCEPT one after the other in the test: duplicates hide which rows were read. PostgreSQL's UNION is seen where it stands alone and is of plain columns."},
	{"materialized view", "Query the tables behind the view in the test: its rows are copies."},
	{"foreign table", "Nothing to do: another server holds the rows."},
	{"temporary or uncommitted", "Nothing to do: the transaction made or changed the table itself, and what it looks like is not known until it commits."},
	{"table rewrite", "Nothing to do: the table's rows begin a new life."},
	{"key", "An UPDATE that sets the key makes another row of it, and before PostgreSQL 18 one of a table without a key does not tell which row it changed: give the table a primary key, and leave it alone."},
	{"derived table", "Select the rows themselves in place of the query in FROM."},
	{"bound early", "Execute a portal before the next statement runs: what it reads is as old as its Bind."},
	{"row limit", "Fetch the result to its end: rows that were not fetched are not known."},
	{"count", "The server counted other rows than it told of, often because of a trigger; nothing is known that helps."},
	{"COPY", "Load and read by INSERT and SELECT in the test: what COPY moves is not known."},
	{"DO", "What a DO block does cannot be seen. Send its statements from the client in the test."},
	{"CREATE TABLE AS", "Create the table first, then INSERT: what its query reads is seen where it is a SELECT of its own."},
	{"SELECT INTO", "Create the table first, then INSERT: what its query reads is seen where it is a SELECT of its own."},
	{"EXPLAIN ANALYZE", "Leave ANALYZE out in the test, or read the finding list as silent about what it ran."},
	{"INSERT SELECT", "Send SELECT and INSERT separately in the test: the rows that were read are not told."},
	{"MERGE", "Before PostgreSQL 17 MERGE does not tell what it wrote: use INSERT ... ON CONFLICT, or UPDATE and DELETE, in the test."},
	{"held cursor", "Fetch in the transaction that declared the cursor: later nothing tells which versions the rows were."},
	{"settings not known", "Change settings outside of transactions: inside one isotap cannot always ask what they are."},
	{"prepared before a change", "Prepare the statement anew: its tables or the session's settings are others than when it was prepared."},
	{"refused with", "The server refused the rewritten statement and ran the original: look up the SQLSTATE, often a missing privilege."},
	{"storage", "Nothing to do: the table's access method keeps no versions that tell themselves."},
	{"max_transaction_memory", "Make transactions shorter, or raise max_transaction_memory."},
	{"size", "Send shorter texts and parameters: isotap does not change messages of more than 1 MiB."},
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
