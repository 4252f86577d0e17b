package postgres

// The SQLSTATEs that a session gives, or looks for (PostgreSQL documentation, appendix A, "PostgreSQL Error Codes").
const (
	sqlstateConnectionFailure            = "08006"
	sqlstateConnectionRejected           = "08004" // sqlserver_rejected_establishment_of_sqlconnection
	sqlstateTransactionResolutionUnknown = "08007"
	sqlstateProtocolViolation            = "08P01"
	sqlstateFeatureNotSupported          = "0A000"
	sqlstateReadOnlyTransaction          = "25006"
	sqlstateInvalidAuthorization         = "28000"
	sqlstateInsufficientPrivilege        = "42501"
	sqlstateUndefinedColumn              = "42703"
	sqlstateUndefinedTable               = "42P01"
	sqlstateDiskFull                     = "53100"
	sqlstateTooManyConnections           = "53300"
	sqlstateQueryCanceled                = "57014"
	sqlstateAdminShutdown                = "57P01"
	sqlstateCannotConnectNow             = "57P03"
	sqlstateIOError                      = "58030"
)

// Classes of SQLSTATEs: their first two characters.
const (
	classFeatureNotSupported     = "0A"
	classSyntaxErrorOrAccessRule = "42" // syntax, names, privileges
	classProgramLimitExceeded    = "54"
)

// The fields of an ErrorResponse or NoticeResponse (PostgreSQL documentation, 55.8, "Error and Notice Message Fields").
const (
	fieldLocalSeverity byte = 'S' // in the language of the server's messages
	fieldSeverity      byte = 'V' // in English
	fieldCode          byte = 'C' // the SQLSTATE
	fieldMessage       byte = 'M'
	fieldHint          byte = 'H'
	fieldPosition      byte = 'P'
	fieldRoutine       byte = 'R' // of the server's source
)
