package history

// The reasons that lie in what a statement reads, or how it shows that.
var (
	ReasonDistinct = reading.declare(cause{
		text:  "distinct",
		means: meansDuplicates,
		hint: "Select without DISTINCT in the test where the application allows it: it hides which rows were " +
			"read.",
		tablesKnown: true,
	})
	ReasonUnion = reading.declare(cause{
		text:  "union",
		means: meansDuplicates,
		hint: "Send the parts of the UNION one after the other in the test: duplicates hide which rows were " +
			"read.",
		tablesKnown: true,
	})
	ReasonLimit = reading.declare(cause{
		text:  "LIMIT",
		means: "DISTINCT or UNION with LIMIT: what was read of rows that gave way to equal ones is not known",
		hint: "Leave LIMIT out in the test, or DISTINCT and UNION: what was read of rows that gave way to " +
			"equal ones is not known.",
		tablesKnown: true,
	})
	ReasonCompanionFailed = reading.declare(cause{
		text:   "companion failed with error ",
		detail: "N",
		means: "the server refused the second read, of isotap's own, by which the rows behind a DISTINCT or " +
			"UNION are seen",
		hint: "Look up the error, often a missing privilege on isotap's columns or a limit of time: isotap " +
			"reads the rows behind a DISTINCT or UNION once more, and the server refused that. Or select " +
			"without DISTINCT and UNION in the test.",
	})
	ReasonWith = reading.declare(cause{
		text:     "with",
		means:    meansNoTablesRows,
		postgres: meansWithPart,
		hint:     "Write the query of the WITH into FROM, where its rows are observed if they are rows of tables.",
	})
	ReasonColumnNames = reading.declare(cause{
		text:     "column names",
		postgres: meansWithPart,
		hint: "Give each column that a part of the WITH clause or a query in FROM has a name of its own (AS) " +
			"in the test, and their aliases no more names than there are columns.",
	})
	ReasonRecursive = reading.declare(cause{
		text:  "recursive",
		means: meansNoTablesRows,
		hint: "The rows of a recursive query are not rows of tables, and no rewriting shows which these " +
			"were. Follow the tree by one SELECT a level in the test.",
	})
	ReasonJoinedAggregate = reading.declare(cause{
		text:        "joined aggregate",
		means:       meansNoTablesRows,
		hint:        hintAggregateApart,
		tablesKnown: true,
	})
	ReasonNestedAggregate = reading.declare(cause{
		text:        "nested aggregate",
		means:       meansNoTablesRows,
		hint:        hintAggregateApart,
		tablesKnown: true,
	})
	ReasonDerivedStar = reading.declare(cause{
		text:  "star over a derived table",
		means: meansOtherMeaning,
		hint:  "Name the columns in place of the star.",
	})
	ReasonOrderByPosition = reading.declare(cause{
		text:  "ORDER BY position",
		means: meansOtherMeaning,
		hint:  "Write the column or the expression in ORDER BY and GROUP BY in place of its position.",
	})
	ReasonNaturalJoin = reading.declare(cause{
		text:  "natural join",
		means: meansOtherMeaning,
		hint:  "Join with ON in place of NATURAL JOIN or USING.",
	})
	ReasonWindowFunction = reading.declare(cause{
		text:        "window function",
		means:       "a window over rows that LIMIT left out, or over groups on MariaDB",
		hint:        "Send the rows' SELECT without the window function beside it in the test.",
		tablesKnown: true,
	})
	ReasonAggregate = reading.declare(cause{
		text: "aggregate",
		means: "HAVING with LIMIT, an aggregate in a subquery that may belong outside, on MySQL ROLLUP, groups " +
			"by a BIT and MIN or MAX of groups, on MariaDB what a function, MIN or MAX makes " +
			"of groups' BITs, ENUMs, CHARs and long texts ([ADR 10](adr/0010-aggregates.md))",
		hint:        "Select the rows themselves, or their ids, beside the aggregate in the test.",
		tablesKnown: true,
	})
	ReasonWarnings = reading.declare(cause{
		text: "warnings",
		means: "GROUP BY or HAVING of an expression that the server may warn of (a text as a number, a " +
			"division): grouped in another way, it would warn more or less often",
		hint: "Compare and group values of one type in the test, and divide by what is never 0: the server " +
			"may warn of the expression, and grouped in another way it would warn more or less often.",
	})
	ReasonGroupsLeftOut = reading.declare(cause{
		text:        "groups left out",
		means:       "HAVING or LIMIT may have left out groups that the SELECT read",
		postgres:    "HAVING on what is grouped by, LIMIT, or a condition on what was aggregated hides groups that were read",
		hint:        "Nothing to do: the groups that HAVING or LIMIT leaves out are not told.",
		tablesKnown: true,
	})
	ReasonLargeAggregate = reading.declare(cause{
		text:  "large aggregate",
		means: meansLarge,
		postgres: "an aggregate without WHERE over more than 10,000 rows, or one over many that is joined with " +
			"other rows",
		hint:        "Aggregate fewer rows in the test: isotap does not collect the ids of so many.",
		tablesKnown: true,
	})
	ReasonGroupConcat = reading.declare(cause{
		text:  "group_concat_max_len",
		means: meansLarge,
		hint:  "Raise group_concat_max_len on the server.",
	})
	ReasonSubquery = reading.declare(cause{
		text:     "subquery",
		means:    "the outer part is observed, the subquery is not, or not all of it ([ADR 62](adr/0062-subqueries.md))",
		postgres: "the rows of a query in WHERE or in the select list are not known ([ADR 62](adr/0062-subqueries.md)); those of the FROM clause are",
		hint: "Send the subquery as a SELECT of its own where the test allows it: its rows are not in the " +
			"result.",
	})
	ReasonPlan = reading.declare(cause{
		text: "plan",
		means: "a locking read, or any read inside a SERIALIZABLE transaction, that an index may cover: " +
			"wider, it could lock more. MariaDB and TiDB at any level: an outer join that the server may leave out, " +
			"since nothing is asked of what it adds",
		postgres: "at SERIALIZABLE a wider read could take more predicate locks; an index may answer it alone, " +
			"or groups might come in an index's order ([ADR 32](adr/0032-postgresql-reads-of-reads.md)). " +
			"At any level: a cursor of such a query; `min` and `max` from an index's end; an index of its " +
			"own that gives rows by a distance; a query in FROM that puts all rows into one, of which nothing asks for an " +
			"aggregate; a join of groups, of DISTINCT or of a table that an index may answer alone, " +
			"where something may fail for a row ([ADR 62](adr/0062-subqueries.md))",
		hint:        "Nothing to do: watching this statement would change its plan and what it locks.",
		tablesKnown: true,
	})
	ReasonInto = reading.declare(cause{
		text:  "INTO",
		means: "SELECT ... INTO of a UNION, DISTINCT or a file, and on TiDB",
		hint: "Leave INTO out in the test, and let the client keep the values: SELECT ... INTO shows no " +
			"result that could tell what it read.",
	})
	ReasonVariablesUnread = reading.declare(cause{
		text:  "variables not read",
		means: "what a SELECT ... INTO left of its row in variables could not be asked for",
		hint: "Leave INTO out in the test, and let the client keep the values: the variables in which SELECT " +
			"... INTO left what it read could not be asked for.",
	})
	ReasonTableStatement = reading.declare(cause{
		text:  "TABLE",
		means: "MySQL's TABLE in the place of a SELECT",
		hint:  "Write SELECT * FROM in place of TABLE.",
	})
	ReasonValuesStatement = reading.declare(cause{
		text:  "VALUES",
		means: "a list of VALUES in the place of a SELECT",
		hint: "Nothing to do where it holds no subquery: VALUES reads no table. Send a subquery as a SELECT " +
			"of its own in the test.",
	})
	ReasonHandler = reading.declare(cause{
		text:  "HANDLER",
		means: "HANDLER reads rows without naming columns",
		hint: "Read by SELECT in place of HANDLER in the test: HANDLER names no columns, and reads in no " +
			"consistent snapshot.",
	})
	ReasonCursor = reading.declare(cause{
		text:        "cursor",
		means:       meansUnfetched,
		postgres:    "a cursor of several tables that locks rows, or one that isotap did not see declared",
		hint:        "Read without a server-side cursor in the test: rows that were not fetched are not known.",
		tablesKnown: true,
	})
	ReasonRowsLeftOut = reading.declare(cause{
		text:  "rows left out",
		means: meansUnfetched,
		hint:  "Read the result to its end: rows that were not fetched are not known.",
	})
	ReasonTooManyRows = reading.declare(cause{
		text:        "too many rows",
		means:       "a statement read or wrote more rows than isotap keeps of one",
		hint:        "Write fewer rows at a time.",
		tablesKnown: true,
	})
	ReasonUnreadableIdentity = reading.declare(cause{
		text:  "unreadable identity",
		means: "what a row's isotap columns hold is not what isotap wrote",
		hint: "Leave isotap's columns alone in the application, its triggers and its imports: something else " +
			"than isotap wrote into them. If nothing does, please report the statement.",
	})
	ReasonReadOnServer = reading.declare(cause{
		text: "cursor read on the server",
		postgres: "a cursor whose columns a function on the server may see ([ADR " +
			"48](adr/0048-what-the-server-tells.md))",
		hint: "Fetch from the cursor in the client in the test, not in a function on the server " +
			"(cursor_to_xml, FETCH in a function), which would see isotap's columns.",
		tablesKnown: true,
	})
	ReasonHeldCursor = reading.declare(cause{
		text: "held cursor",
		postgres: "a cursor WITH HOLD that is open at COMMIT: the server reads the rest of its rows then and " +
			"keeps them, and a FETCH shows them when the transaction is recorded already. It read nothing " +
			"itself, and what it shows may be old: as a read of its own it would claim dependencies that " +
			"are not there. What was fetched before COMMIT is known",
		hint: "Fetch in the transaction that declared the cursor: later nothing tells which versions the " +
			"rows were.",
	})
	ReasonRowLimit = reading.declare(cause{
		text: "row limit",
		postgres: "of a portal that was not read to its end: the groups and the rows written that were not " +
			"fetched are not known. At SERIALIZABLE: groups that an index may have in order are observed " +
			"if they are fetched at once ([ADR 36](adr/0036-postgresql-pieces.md))",
		hint: "Fetch the result to its end: rows that were not fetched are not known.",
	})
	ReasonBoundEarly = reading.declare(cause{
		text: "bound early",
		postgres: "other statements ran between a portal's Bind and its Execute: what it reads is older than " +
			"what they read",
		hint: "Execute a portal before the next statement runs: what it reads is as old as its Bind.",
	})
	ReasonVisible = reading.declare(cause{
		text: "visible",
		postgres: "the statement shows whole rows, or columns that cannot be told apart, of a table with " +
			"isotap's columns",
		hint: "Name the columns in place of whole rows in the test, or take isotap's columns out of the " +
			"table (isotap strip): it is then known by system columns, which no row shows.",
	})
	ReasonWholeRow = reading.declare(cause{
		text:     "whole row",
		postgres: "the whole row of a query in FROM, which the identities would be part of",
		hint:     "Name the columns of a query in FROM in place of its whole row (row_to_json(q), q.*::text).",
	})
	ReasonSetOperation = reading.declare(cause{
		text:     "set operation",
		postgres: meansCompared,
		hint: "Send the parts of the UNION, INTERSECT or EXCEPT one after the other in the test: duplicates " +
			"hide which rows were read. PostgreSQL's are seen where they stand alone, without LIMIT, and are " +
			"of tables.",
	})
	ReasonDerivedTable = reading.declare(cause{
		text:     "derived table",
		means:    "a query in a FROM clause, or beside the table that is written, that is not looked into",
		postgres: meansCompared,
		hint:     "Select the rows themselves in place of the query in FROM.",
	})
	ReasonSameName = reading.declare(cause{
		text: "same name",
		postgres: "two tables, or two columns, go by one name in the statement, or a column by that of a system " +
			"column",
		hint: "Give each table of the statement an alias of its own, and their columns different names, none " +
			"of which is that of a system column (ctid, xmin).",
	})
	ReasonJoinAlias = reading.declare(cause{
		text:     "join alias",
		postgres: "an alias of a whole join hides the names of its tables",
		hint:     "Leave out the alias of the join in parentheses in the test, and name its tables.",
	})
	ReasonFromItem = reading.declare(cause{
		text: "FROM",
		postgres: "a write that is joined with what is neither a table nor a function of rows (JSON_TABLE, " +
			"XMLTABLE)",
		hint: "Join what is written with tables alone in the test: JSON_TABLE, XMLTABLE and their kind in " +
			"FROM or USING are not looked into.",
	})
	ReasonColumns = reading.declare(cause{
		text:     "columns",
		postgres: "with isotap's columns the result would have more than it may have",
		hint: "Name fewer columns in the test: with those that isotap needs there would be more than the " +
			"1,664 that a result may have.",
	})
	ReasonNoColumns = reading.declare(cause{
		text: "no columns",
		postgres: "a SELECT without columns (`SELECT FROM t`): with isotap's its result would look like that of a " +
			"write that returns nothing",
		hint: "Have the SELECT return something in the test: SELECT 1 FROM ... instead of SELECT FROM ....",
	})
	ReasonOwnText = reading.declare(cause{
		text: "own text",
		postgres: "the server may show the statement its own text: `current_query()`, `pg_stat_activity`, by a " +
			"trigger, a default, a function",
		hint: "Leave what asks for the running text (current_query(), pg_stat_activity) out of the statement " +
			"and its triggers in the test: it would see isotap's changes to the text.",
	})
	ReasonExplainAnalyze = reading.declare(cause{
		text: "EXPLAIN ANALYZE",
		postgres: "the server runs the statement and keeps its rows to itself: nothing could be shown; and what " +
			"isotap adds would stand in the plan that it prints",
		hint: hintAnalyze,
	})
	ReasonUndone = reading.declare(cause{
		text: "undone writes",
		means: "at READ UNCOMMITTED, beside somebody who may have written rows that isotap did not observe and undid it: what was " +
			"read of these has the tag of the version before, and leaves no trace ([ADR " +
			"63](adr/0063-the-servers-own-log.md)). The analysis says so of a statement that was recorded as exact",
		hint: "Read at READ COMMITTED in the test, or have no statement write there that isotap cannot observe.",
	})
	ReasonOldTag = reading.declare(cause{
		text: "old tag",
		means: "a statement that isotap did not observe may have left the rows under the tags that they had: they may have " +
			"been other versions than told. The analysis says so of a statement that was recorded as exact, where no log of the " +
			"server's was read",
		hint: "See why the UPDATE before it was not observed: what it leaves cannot be told from what it replaced.",
	})
	ReasonAnalyzeStatement = reading.declare(cause{
		text:  "ANALYZE",
		means: "ANALYZE or EXPLAIN ANALYZE: the server runs the statement and keeps its rows to itself",
		hint:  hintAnalyze,
	})
)
