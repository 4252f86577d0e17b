package history

// The reasons that lie in what a statement writes.
var (
	ReasonTrigger = writing.declare(cause{
		text:  "trigger",
		means: meansUnnamed,
		hint: "What a trigger does cannot be seen. Drop it for the test run, or do its work in the " +
			"application there.",
		logged: "What a trigger wrote is known from the server's log, and is in the findings. What it read cannot be " +
			"seen.",
	})
	ReasonCascade = writing.declare(cause{
		text:  "cascade",
		means: meansUnnamed,
		hint: "Rows that a foreign key deletes or changes are not seen. Delete them by statements of their " +
			"own in the test.",
	})
	ReasonCascadeUnlogged = writing.declare(cause{
		text:     "cascade to an unlogged table",
		postgres: "foreign keys change rows of a table that the server's log lacks: an unlogged one, or one of another storage",
		hint: "Rows that a foreign key deletes or changes are not seen, and the server's log lacks those of unlogged " +
			"tables. Make the table a logged one for the test.",
	})
	ReasonFunction = writing.declare(cause{
		text:  "function",
		means: meansUnnamed,
		hint: "A stored function, or one whose rows are not known, hides what it reads. Send its query on " +
			"its own in the test.",
	})
	ReasonCall = writing.declare(cause{
		text:  "call",
		means: meansUnnamed,
		hint:  "What a stored procedure does cannot be seen. Send its statements from the client in the test.",
		logged: "What a stored procedure wrote is known from the server's log, and is in the findings. What it read " +
			"cannot be seen: send its statements from the client in the test.",
	})
	ReasonDoBlock = writing.declare(cause{
		text:     "DO",
		postgres: "a DO block: the server may read or write rows that no statement names",
		hint:     "What a DO block does cannot be seen. Send its statements from the client in the test.",
		logged: "What a DO block wrote is known from the server's log, and is in the findings. What it read cannot be " +
			"seen: send its statements from the client in the test.",
	})
	ReasonReplace = writing.declare(cause{
		text:  "REPLACE",
		means: "a REPLACE that replaced rows: which ones is not known, the new rows are",
		hint:  "Use INSERT ... ON DUPLICATE KEY UPDATE in place of REPLACE: which rows it replaced is not known.",
	})
	ReasonOnDuplicateKey = writing.declare(cause{
		text: "ON DUPLICATE KEY UPDATE",
		means: "on TiDB, and of an INSERT ... SELECT of the table that it writes: which rows were " +
			"there is not known",
		hint: "Send the INSERT and the UPDATE as statements of their own in the test, and the SELECT of an " +
			"INSERT ... SELECT as well: which rows were there is not told.",
	})
	ReasonOnConflict = writing.declare(cause{
		text:     "ON CONFLICT",
		postgres: "ON CONFLICT DO UPDATE of a partitioned table before 18 does not tell whether it inserted",
		hint: "Before PostgreSQL 18, ON CONFLICT DO UPDATE of a partitioned table does not tell which rows " +
			"were there: give the table isotap's columns (isotap instrument), or send INSERT and UPDATE as " +
			"statements of their own in the test.",
	})
	ReasonInsertIgnore = writing.declare(cause{
		text:  "INSERT IGNORE",
		means: meansIgnored,
		hint:  hintIgnore,
	})
	ReasonUpdateIgnore = writing.declare(cause{
		text:  "UPDATE IGNORE",
		means: meansIgnored,
		hint:  hintIgnore,
	})
	ReasonDeleteIgnore = writing.declare(cause{
		text:  "DELETE IGNORE",
		means: meansIgnored,
		hint:  hintIgnore,
	})
	ReasonJoinedUpdate = writing.declare(cause{
		text:  "multi-table UPDATE",
		means: meansOtherWrites,
		hint:  hintSplit,
	})
	ReasonJoinedDelete = writing.declare(cause{
		text:  "multi-table DELETE",
		means: meansOtherWrites,
		hint:  hintSplit,
	})
	ReasonInsertFromSelect = writing.declare(cause{
		text:  "INSERT ... SELECT",
		means: meansOtherWrites,
		hint:  hintSelectApart,
	})
	ReasonReplaceFromSelect = writing.declare(cause{
		text:  "REPLACE ... SELECT",
		means: meansOtherWrites,
		hint:  hintSelectApart,
	})
	ReasonCreateTableSelect = writing.declare(cause{
		text:  "CREATE TABLE ... SELECT",
		means: meansOtherWrites,
		hint:  "Create the table first, then INSERT.",
	})
	ReasonOrderByOrLimit = writing.declare(cause{
		text:  "ORDER BY or LIMIT",
		means: meansOtherWrites,
		hint:  "Name the rows by their key in place of ORDER BY or LIMIT in the test.",
	})
	ReasonTableTwice = writing.declare(cause{
		text:  "table updated twice",
		means: "one UPDATE changes a table under two names",
		hint:  "Update the table under one of its names at a time in the test.",
	})
	ReasonColumnCount = writing.declare(cause{
		text:  "column count",
		means: meansServersError,
		hint:  hintServersError,
	})
	ReasonUnknownColumn = writing.declare(cause{
		text:  "unknown column",
		means: meansServersError,
		hint:  hintServersError,
	})
	ReasonGeneratedColumn = writing.declare(cause{
		text:  "generated column",
		means: "an UPDATE that assigns a generated column, on TiDB or of several tables, or nothing else",
		hint:  "Leave the assignment to the generated column out in the test: it changes nothing.",
	})
	ReasonColumnTwice = writing.declare(cause{
		text:  "column assigned twice",
		means: "an UPDATE on TiDB, or of several tables, that assigns a column twice",
		hint:  "Assign each column once in the test.",
	})
	ReasonAssignment = writing.declare(cause{
		text:  "assignment",
		means: meansAssignments,
		hint: "Assign literals, parameters, or sums and differences of numbers and columns (n = n + 1) in " +
			"the test: of other expressions isotap cannot tell on TiDB whether the row stays as it is.",
	})
	ReasonNotStrict = writing.declare(cause{
		text:  "sql_mode not strict",
		means: meansAssignments,
		hint: "Set a strict sql_mode (STRICT_TRANS_TABLES) in the test: otherwise the server may store " +
			"another value than the one assigned.",
	})
	ReasonParameterType = writing.declare(cause{
		text: "parameter type",
		means: "a parameter of another type than its column: on TiDB, or one by which a subquery is read " +
			"again ([ADR 62](adr/0062-subqueries.md))",
		hint: "Bind the parameter with the type of its column in the test: an integer for an integer, a text " +
			"for all else.",
	})
	ReasonMiscounted = writing.declare(cause{
		text:  "captured rows differ from the server's count",
		means: meansCaptured,
		hint:  hintFewerRows,
	})
	ReasonCaptureUnread = writing.declare(cause{
		text:  "capture not read",
		means: meansCaptured,
		hint:  hintFewerRows,
	})
	ReasonCaptureOverflow = writing.declare(cause{
		text:  "capture overflow",
		means: meansCaptured,
		hint:  hintFewerRows,
	})
	ReasonUnreadableCapture = writing.declare(cause{
		text:  "unreadable capture",
		means: meansCaptured,
		hint: "Leave variables whose names begin with @isotap alone in the application: what they had " +
			"collected could not be read. If nothing uses them, please report the statement.",
	})
	ReasonNoIdentity = writing.declare(cause{
		text:  "row without identity",
		means: meansCaptured,
		hint:  "Run isotap instrument: rows that triggers or procedures inserted have no id yet.",
	})
	ReasonCount = writing.declare(cause{
		text:     "count",
		postgres: "the server counted other rows than it told of, often because of a trigger",
		hint: "The server counted other rows than it told of. Often a BEFORE trigger that leaves rows out, " +
			"or a function or rule that writes, is why: drop it for the test run. The rows that were told " +
			"are in the recording, as uncertain ones.",
	})
	ReasonInsertSelect = writing.declare(cause{
		text:     "INSERT SELECT",
		postgres: "an INSERT ... SELECT whose query cannot show what it reads beside what is inserted",
		hint:     "Send SELECT and INSERT separately in the test: the rows that were read are not told.",
	})
	ReasonMerge = writing.declare(cause{
		text:     "MERGE",
		postgres: "before 17 MERGE does not tell what it wrote",
		hint: "Before PostgreSQL 17 MERGE does not tell what it wrote: use INSERT ... ON CONFLICT, or UPDATE " +
			"and DELETE, in the test.",
	})
	ReasonLoadData = writing.declare(cause{
		text:  "LOAD DATA",
		means: meansLoaded,
		hint:  hintLoad,
	})
	ReasonLoadXML = writing.declare(cause{
		text:  "LOAD XML",
		means: meansLoaded,
		hint:  hintLoad,
	})
	ReasonCopy = writing.declare(cause{
		text: "COPY",
		postgres: "its rows go to the client in a form of their own, in which nothing can be hidden without that " +
			"isotap copies every value, and what it writes it does not return. A second read of the same " +
			"rows would have a snapshot of its own at READ COMMITTED, take locks at SERIALIZABLE, and " +
			"could fail the block at REPEATABLE READ. In modes `predicates` and `auto` what COPY ... FROM wrote is " +
			"read once it is committed, where it can be told from what else was written " +
			"([ADR 67](adr/0067-copied-rows.md))",
		hint: "Load and read by INSERT and SELECT in the test: what COPY moves is not known.",
		logged: "What COPY wrote is known from the server's log, and is in the findings. What it read is not: read by " +
			"SELECT in the test.",
	})
	ReasonCreateTableAs = writing.declare(cause{
		text:     "CREATE TABLE AS",
		postgres: meansNewTable,
		hint:     hintCreateFirst,
	})
	ReasonSelectInto = writing.declare(cause{
		text:     "SELECT INTO",
		postgres: meansNewTable,
		hint:     hintCreateFirst,
	})
	ReasonTruncate = writing.declare(cause{
		text:     "truncate",
		means:    meansNewRows,
		postgres: meansNewLife,
		hint:     hintNewLife,
	})
	ReasonPartition = writing.declare(cause{
		text:  "partition",
		means: meansNewRows,
		hint:  "Nothing to do: the rows of the partition begin a new life.",
	})
	ReasonTableRewrite = writing.declare(cause{
		text:     "table rewrite",
		means:    meansNewRows,
		postgres: meansNewLife,
		hint:     hintNewLife,
	})
	ReasonBinlog = writing.declare(cause{
		text:  "BINLOG",
		means: "BINLOG writes rows of another server's log, which no statement names",
		hint: "Leave replayed logs (BINLOG, mysqlbinlog) out of the test: they hold rows of another server, " +
			"which no statement names.",
	})
)
