package history

// What several reasons mean: those that stand beside each other share a row of the table.
const (
	meansNotInstrumented = "the table lacks isotap's columns: `isotap instrument`"
	meansUnsureName      = "a name that is not surely one instrumented table"
	meansHidden          = "hidden columns could change which rows are seen, or there are none"
	meansOwn             = "the statement, or a table in it, uses names or variables of isotap's own"
	meansDuplicates      = "duplicates hide which rows were read. Seen at REPEATABLE READ inside a transaction, unless " +
		"they lock; on MariaDB and MySQL DISTINCT also elsewhere, but not at SERIALIZABLE, and UNION without ORDER BY and LIMIT " +
		"at every level ([ADR 62](adr/0062-subqueries.md))"
	meansNoTablesRows = "queries in a FROM clause whose rows are not rows of tables, or that aggregate and are joined " +
		"or aggregated again"
	meansWithPart     = "a part of a WITH clause that reads another, or whose columns' names the server chooses"
	meansOtherMeaning = "the identities of a query in a FROM clause would change what the statement means"
	meansLarge        = "an aggregate over more rows than isotap collects, or than the setting lets it ([ADR " +
		"10](adr/0010-aggregates.md))"
	meansUnfetched = "rows that the client did not fetch, or that IGNORE or LOAD DATA LOCAL left out: which ones is " +
		"not known"
	meansCompared = "a part that compares whole rows, or cannot pass identities outwards. A set operation whose parts " +
		"read tables by inner joins and conditions that cannot fail is observed all the same, by a query beside " +
		"it ([ADR 62](adr/0062-subqueries.md)); not with LIMIT, in another query, at SERIALIZABLE, and INTERSECT " +
		"and EXCEPT not on 18, which does not read the second part where the first is empty (measured; 15 reads both)"
	meansUnnamed     = "the server may read or write rows that no statement names"
	meansIgnored     = "the server may have left rows out"
	meansOtherWrites = "writes that are not rewritten, or of which only a part is seen ([ADR " +
		"13](adr/0013-other-writes.md))"
	meansServersError = "the server refuses such a statement, or the table changed just now"
	meansAssignments  = "an UPDATE on TiDB whose assignments do not tell whether a row stays as it is ([ADR " +
		"16](adr/0016-tidb.md))"
	meansCaptured     = "what a write replaced is not certain"
	meansLoaded       = "the rows that are loaded are not known"
	meansNewTable     = "the rows that a new table is made of are not told"
	meansNewRows      = "all rows of the table or partition begin a new life"
	meansNewLife      = "all rows begin a new life"
	meansUnsure       = "isotap cannot tell for sure what would run"
	meansSettings     = "the session's or the table's settings leave no room for a rewriting, or are not known yet"
	meansPreparedAsIs = "a prepared statement that could not be changed when it was prepared, or whose parameters " +
		"isotap cannot tell"
	meansLongTxn = "the transaction was too long to be kept as a whole: what it did from some statement on is one " +
		"statement of the recording, which may have read and written anything, or what it wrote may " +
		"have been rolled back"
	meansNames  = "the connection has more prepared statements, portals or cursors than isotap remembers"
	meansUnseen = "a statement or portal of whose making isotap saw nothing that it can rely on"
)

// What helps with several reasons.
const (
	hintKey = "An UPDATE that sets the key makes another row of it, and before PostgreSQL 18 one of a table " +
		"without a key does not tell which row it changed: give the table a primary key, and leave it " +
		"alone."
	hintOwn            = "The application uses isotap's own columns or variables."
	hintAggregateApart = "Send the aggregating query on its own in the test."
	hintAnalyze        = "Leave ANALYZE out in the test, or read the finding list as silent about what it ran."
	hintIgnore         = "Leave IGNORE out in the test: which rows were left out is not certain."
	hintSplit          = "Split the statement into one for each table in the test."
	hintSelectApart    = "Send SELECT and INSERT separately in the test."
	hintServersError   = "Nothing to do: the server refuses such a statement, unless the table changed just now; then " +
		"it passes."
	hintFewerRows   = "What the statement replaced is not certain; often fewer rows at a time help."
	hintLoad        = "Load by INSERT in the test: the loaded rows are not known."
	hintCreateFirst = "Create the table first, then INSERT: what its query reads is seen where it is a SELECT of its " +
		"own."
	hintNewLife = "Nothing to do: the table's rows begin a new life."
	hintMode    = "Leave this sql_mode out in the test."
)
