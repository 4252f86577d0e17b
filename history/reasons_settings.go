package history

// The reasons that lie in the text, its protocol, the session's settings, or isotap's own bounds.
var (
	ReasonSeveralStatements = settings.declare(cause{
		text: "multi-statement",
		means: "a text of several statements that cannot be cut into them ([ADR " +
			"18](adr/0018-texts-of-several-statements.md))",
		hint: "Send the statements one by one.",
	})
	ReasonExecute = settings.declare(cause{
		text:  "EXECUTE",
		means: meansUnsure,
		postgres: "a statement prepared in the same block, or run at this level or under this role for the first " +
			"time; in a text of several, or by the extended protocol",
		hint: "Use prepared statements of the driver in place of SQL-level PREPARE and EXECUTE.",
	})
	ReasonCompound = settings.declare(cause{
		text:  "compound statement",
		means: meansUnsure,
		hint: "Send its statements one by one from the client in the test: those between BEGIN NOT ATOMIC " +
			"and END run on the server.",
	})
	ReasonSetStatement = settings.declare(cause{
		text:  "SET STATEMENT",
		means: meansUnsure,
		hint:  "Set the variables by a SET of its own in place of SET STATEMENT ... FOR in the test.",
	})
	ReasonExecutableComment = settings.declare(cause{
		text:  "executable comment",
		means: meansUnsure,
		hint:  "Leave version comments (/*! ... */) out in the test.",
	})
	ReasonUnparsable = settings.declare(cause{
		text:  "unparsable",
		means: meansUnsure,
		hint:  "isotap's parser does not know this syntax. Please report the statement.",
	})
	ReasonNesting = settings.declare(cause{
		text:  "nesting",
		means: meansUnsure,
		hint: "Write fewer parentheses into each other: isotap does not look into a text of so many (2,000 " +
			"on MySQL's family).",
	})
	ReasonUnknownCommand = settings.declare(cause{
		text:  "unknown command",
		means: meansUnsure,
		hint: "Leave the command out in the test: isotap does not know it (the log has its number), and does " +
			"not observe the session from there on.",
	})
	ReasonCharset = settings.declare(cause{
		text:  "charset",
		means: meansSettings,
		hint:  "Connect with utf8mb4 or another charset in which ASCII is ASCII.",
	})
	ReasonModeOracle = settings.declare(cause{
		text:  "sql_mode ORACLE",
		means: meansSettings,
		hint:  hintMode,
	})
	ReasonModeSimultaneous = settings.declare(cause{
		text:  "sql_mode SIMULTANEOUS_ASSIGNMENT",
		means: meansSettings,
		hint:  hintMode,
	})
	ReasonModeEmptyIsNull = settings.declare(cause{
		text:  "sql_mode EMPTY_STRING_IS_NULL",
		means: meansSettings,
		hint:  hintMode,
	})
	ReasonMaxPacket = settings.declare(cause{
		text:  "max_allowed_packet",
		means: meansSettings,
		hint:  "Raise max_allowed_packet on the server, or write fewer rows at a time.",
	})
	ReasonTooLong = settings.declare(cause{
		text:  "too long",
		means: meansSettings,
		hint: "Send statements of less than 16 MiB in the test, with fewer rows at a time: longer ones pass " +
			"through without being kept.",
	})
	ReasonWListSize = settings.declare(cause{
		text:  "isotap_wlist size",
		means: meansSettings,
		hint:  "Run isotap instrument again: the column is smaller than this proxy expects.",
	})
	ReasonSettingsUnknown = settings.declare(cause{
		text:  "settings unknown",
		means: meansSettings,
		hint:  "The session's settings were not known yet; this is rare and passes.",
	})
	ReasonSettingsNotKnown = settings.declare(cause{
		text:     "settings not known",
		postgres: "the session's settings changed inside a transaction where asking would take its snapshot",
		hint:     "Change settings outside of transactions: inside one isotap cannot always ask what they are.",
	})
	ReasonSize = settings.declare(cause{
		text:     "size",
		means:    "a text of more than 200,000 words and marks",
		postgres: "a text or a Bind of more than 1 MiB goes as the client wrote it",
		hint:     "Send shorter texts and parameters: isotap does not change messages of more than 1 MiB.",
	})
	ReasonParameters = settings.declare(cause{
		text:  "parameters",
		means: "with isotap's parameters a prepared statement would have more than it may have",
		hint: "Use fewer parameters in the prepared statement, with fewer rows at a time: with isotap's " +
			"there would be more than 65,535.",
	})
	ReasonPreparedUnchanged = settings.declare(cause{
		text:  "prepared unchanged",
		means: meansPreparedAsIs,
		hint: "Prepare the statement anew: when it was prepared, the server refused what isotap made of it, " +
			"often for a missing privilege on isotap's columns, or the moment allowed no change.",
	})
	ReasonMalformedParameters = settings.declare(cause{
		text:  "malformed parameters",
		means: meansPreparedAsIs,
		hint: "isotap cannot read how the driver bound the parameters. Please report the driver and its " +
			"version.",
	})
	ReasonLongData = settings.declare(cause{
		text:  "long data",
		means: meansPreparedAsIs,
		hint: "Bind the value with the others in the test, not in pieces of its own " +
			"(COM_STMT_SEND_LONG_DATA, streams).",
	})
	ReasonPreparedBefore = settings.declare(cause{
		text:  "prepared before a change",
		means: "the statement's tables, or the session's settings, are others than when it was prepared",
		postgres: "the statement's tables, or the search path, are others than when it was prepared: the " +
			"client's own text runs until it is prepared anew",
		hint: "Prepare the statement anew: its tables or the session's settings are others than when it was " +
			"prepared.",
	})
	ReasonRefused = settings.declare(cause{
		text:   "refused with error ",
		detail: "N",
		means:  "the server refused the rewritten statement (privileges, limits); the original ran",
		hint: "The server refused the rewritten statement and ran the original: look up the error, often a " +
			"missing privilege on isotap's columns.",
	})
	ReasonRefusedState = settings.declare(cause{
		text:     "refused with ",
		detail:   "CODE",
		postgres: "the server refused the rewritten statement; the original ran",
		hint: "The server refused the rewritten statement and ran the original: look up the SQLSTATE, often " +
			"a missing privilege.",
	})
	ReasonMisplanned = settings.declare(cause{
		text: "misplanned",
		means: "a defect of isotap's: the plan would have shown its columns to the client (the client did not " +
			"see them); the log names the shape",
		postgres: "statements of this shape have once shown columns of isotap's where its plan had none: a " +
			"defect of isotap ([ADR 47](adr/0047-postgresql-names-of-columns.md)). The client did not see " +
			"them; the log has the shape",
		hint: "A defect of isotap's: please report the shape of the statement, which the log names. Until " +
			"then its kind goes unobserved; the report is silent about it.",
	})
	ReasonFault = settings.declare(cause{
		text: "fault",
		means: "a defect of isotap's: it failed at this statement, which ran as the client wrote it; the log " +
			"has the place",
		hint: "A defect of isotap's: please report what its log says of the fault. The statement ran as the " +
			"client wrote it.",
	})
	ReasonTxnMemory = settings.declare(cause{
		text:  "max_transaction_memory",
		means: meansLongTxn,
		hint:  "Make transactions shorter, or raise max_transaction_memory.",
	})
	ReasonLostSavepoint = settings.declare(cause{
		text:  "too many savepoints",
		means: meansLongTxn,
		hint: "Release savepoints that are no longer needed, or make transactions shorter: isotap follows " +
			"10,000 of them, and then does not know what a ROLLBACK TO SAVEPOINT undid.",
	})
	ReasonTornCall = settings.declare(cause{
		text: "CALL without autocommit",
		means: "a procedure ran in the transaction that may have ended it, and the next statement began another by " +
			"itself: what came before the CALL may have been rolled back",
		hint: "Call procedures that handle errors, commit or roll back with autocommit on, or outside of transactions: " +
			"what became of the statements before is not known otherwise.",
	})
	ReasonTooManyNames = settings.declare(cause{
		text:  "too many names",
		means: meansNames,
		hint: "Close statements, portals and cursors that are no longer used, or connect anew from time to " +
			"time: isotap remembers 32 MiB of them for each connection.",
	})
	ReasonTooManyPrepared = settings.declare(cause{
		text:  "too many prepared statements",
		means: meansNames,
		hint: "Close prepared statements that are no longer used, or connect anew from time to time: isotap " +
			"remembers 32 MiB of them for each connection.",
	})
	ReasonServerLost = settings.declare(cause{
		text:  "server lost",
		means: "the server went away before it told what was written",
		hint:  "The server went away before it told what was written. Nothing to do but to run it again.",
	})
	ReasonUnknownStatement = settings.declare(cause{
		text:     "unknown statement",
		postgres: meansUnseen,
		hint: "Prepare the statement on the connection that binds it, through isotap, and wait for the " +
			"answer where it may fail.",
	})
	ReasonNotFollowed = settings.declare(cause{
		text:     "not followed",
		postgres: meansUnseen,
		hint: "Wait for the answer to a Parse before its name is given to another statement, or give each " +
			"its own name.",
	})
	ReasonNotPlanned = settings.declare(cause{
		text:     "not planned",
		postgres: meansUnseen,
		hint: "Nothing to do if it is rare: isotap did not know what ran, because the session's tables were " +
			"not known yet or the protocol's function call was used. Send functions by SELECT in the test.",
	})
)
