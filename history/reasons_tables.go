package history

// The reasons that lie in which tables a statement names.
var (
	ReasonNotInstrumented = tables.declare(cause{
		text:        "not instrumented",
		means:       meansNotInstrumented,
		hint:        "Run isotap instrument: these tables lack isotap's columns.",
		tablesKnown: true,
	})
	ReasonUnknownTable = tables.declare(cause{
		text:  "unknown table",
		means: meansNotInstrumented,
		hint: "The proxy does not know the table: it was made on another connection just now, or it is a " +
			"system table. Nothing to do if it holds no data of the application.",
	})
	ReasonView = tables.declare(cause{
		text: "view",
		means: "a view that does not show the keys of all its tables, is read by an aggregate, locked or written " +
			"([ADR 62](adr/0062-subqueries.md))",
		postgres: "a view that does not show the keys of all its tables, or is written",
		hint:     "Query the tables behind the view in the test, or read the finding list as silent about them.",
	})
	ReasonLockedView = tables.declare(cause{
		text:     "locked view",
		postgres: "a view whose rows are locked",
		hint: "Lock the rows of the tables behind the view in the test: having waited for a row, the server " +
			"goes on with a later version of it than the view shows.",
	})
	ReasonTemporaryTable = tables.declare(cause{
		text:  "temporary table",
		means: meansUnsureName,
		hint:  "Nothing to do: no other session sees a temporary table.",
	})
	ReasonAmbiguousTable = tables.declare(cause{
		text:  "ambiguous table name",
		means: meansUnsureName,
		hint:  "Give each table of the statement an alias of its own.",
	})
	ReasonUncommittedTable = tables.declare(cause{
		text: "temporary or uncommitted",
		postgres: "the transaction made or changed the table itself: what it looks like is not known before it " +
			"commits",
		hint: "Nothing to do: the transaction made or changed the table itself, and what it looks like is " +
			"not known until it commits.",
	})
	ReasonPrivilege = tables.declare(cause{
		text:     "privilege",
		postgres: "the role may not read the whole table, so it cannot read `ctid` and `xmin` either",
		hint:     "Grant the role SELECT on the whole table in the test: ctid and xmin are not readable otherwise.",
	})
	ReasonRowSecurity = tables.declare(cause{
		text:     "row security",
		postgres: meansHidden,
		hint: "Run the test as the table's owner, or as a role that bypasses row security: hidden columns " +
			"must not change which rows are seen.",
	})
	ReasonRule = tables.declare(cause{
		text:     "rule",
		postgres: meansHidden,
		hint:     "What a rewrite rule makes of the statement cannot be seen. Name the table behind it in the test.",
	})
	ReasonMaterializedView = tables.declare(cause{
		text:     "materialized view",
		postgres: meansHidden,
		hint:     "Query the tables behind the view in the test: its rows are copies.",
	})
	ReasonForeignTable = tables.declare(cause{
		text:     "foreign table",
		postgres: meansHidden,
		hint:     "Nothing to do: another server holds the rows.",
	})
	ReasonStorage = tables.declare(cause{
		text:     "storage",
		postgres: "a table of another access method than `heap`, which keeps no versions that tell themselves",
		hint:     "Nothing to do: the table's access method keeps no versions that tell themselves.",
	})
	ReasonCatalog = tables.declare(cause{
		text:     "catalog",
		postgres: "a write of a catalog of the server's own",
		hint: "Nothing to do: the statement writes a catalog of the server's own, which holds no rows of the " +
			"application.",
	})
	ReasonUnknownRow = tables.declare(cause{
		text:     "row of a table that is not known",
		postgres: "a row in a partition, or in a table that inherits, which isotap has not read about yet",
		hint: "Nothing to do: the row is in a partition, or a table that inherits, which was made just now. " +
			"It passes once isotap has read the catalog.",
	})
	ReasonKey = tables.declare(cause{
		text: "key",
		postgres: "a table without a primary key, or an UPDATE that sets it: see [what is " +
			"seen](postgresql.md#what-is-seen)",
		hint: hintKey,
	})
	ReasonKeyChanged = tables.declare(cause{
		text:     "key changed",
		postgres: "an UPDATE gave rows another key",
		hint:     hintKey,
	})
	ReasonOwnColumn = tables.declare(cause{
		text:  "isotap column",
		means: meansOwn,
		hint:  hintOwn,
	})
	ReasonOwnVariable = tables.declare(cause{
		text:  "isotap variable",
		means: meansOwn,
		hint:  hintOwn,
	})
	ReasonOwnName = tables.declare(cause{
		text: "name",
		means: "the statement, or a table, a view or (on PostgreSQL) a function in it, has a column with a name of the " +
			"kind that isotap gives (`isotap_1` on PostgreSQL, `isotap_carried_1`)",
		hint: "Rename the column in the test: names of its kind (isotap_1, isotap_carried_1) are isotap's own.",
	})
)
