package postgres

// The kinds of messages, which are their first bytes (PostgreSQL documentation, 55.7, "Message Formats"). Client and
// server use the same letters for different messages: a kind is read by who sent it.

// The client's messages. Those of the login that answer an authentication request share one letter.
const (
	msgQuery        byte = 'Q'
	msgParse        byte = 'P'
	msgBind         byte = 'B'
	msgDescribe     byte = 'D'
	msgExecute      byte = 'E'
	msgClose        byte = 'C'
	msgFlush        byte = 'H'
	msgSync         byte = 'S'
	msgFunctionCall byte = 'F'
	msgCopyFail     byte = 'f'
	msgTerminate    byte = 'X'
	msgPassword     byte = 'p' // PasswordMessage, SASLInitialResponse, SASLResponse, GSSResponse
)

// The messages that either side sends.
const (
	msgCopyData byte = 'd'
	msgCopyDone byte = 'c'
)

// The server's messages.
const (
	msgAuthentication       byte = 'R' // whichever it asks for
	msgBackendKeyData       byte = 'K'
	msgParameterStatus      byte = 'S'
	msgReadyForQuery        byte = 'Z'
	msgErrorResponse        byte = 'E'
	msgNoticeResponse       byte = 'N'
	msgNotificationResponse byte = 'A'
	msgParseComplete        byte = '1'
	msgBindComplete         byte = '2'
	msgCloseComplete        byte = '3'
	msgParameterDescription byte = 't'
	msgRowDescription       byte = 'T'
	msgNoData               byte = 'n'
	msgDataRow              byte = 'D'
	msgCommandComplete      byte = 'C'
	msgEmptyQueryResponse   byte = 'I'
	msgPortalSuspended      byte = 's'
	msgCopyInResponse       byte = 'G'
	msgCopyOutResponse      byte = 'H'
	msgCopyBothResponse     byte = 'W'
)

// An objectKind is what Describe and Close name ("Message Formats").
type objectKind byte

const (
	ofStatement objectKind = 'S' // a prepared statement
	ofPortal    objectKind = 'P'
)

// What a server answers to SSLRequest, in one byte without a head, and what to GSSENCRequest, too, when it declines
// ("Message Flow").
const (
	acceptsTLS         byte = 'S'
	declinesEncryption byte = 'N'
)

// The formats of parameters and values ("Formats and Format Codes").
const (
	formatText   = 0
	formatBinary = 1
)

// A txnStatus is what ReadyForQuery says of the session's transaction ("Message Formats").
type txnStatus byte

const (
	txnIdle   txnStatus = 'I' // not in a transaction block
	txnOpen   txnStatus = 'T' // in a transaction block
	txnFailed txnStatus = 'E' // in a block that has failed: the server refuses what does not end it
)

// The SQLSTATEs that a session gives, or looks for (PostgreSQL documentation, appendix A, "PostgreSQL Error Codes").
const (
	sqlstateConnectionFailure            = "08006"
	sqlstateConnectionRejected           = "08004" // sqlserver_rejected_establishment_of_sqlconnection
	sqlstateTransactionResolutionUnknown = "08007"
	sqlstateProtocolViolation            = "08P01"
	sqlstateOutOfMemory                  = "53200"
	sqlstateFeatureNotSupported          = "0A000"
	sqlstateReadOnlyTransaction          = "25006"
	sqlstateInvalidAuthorization         = "28000"
	sqlstateInsufficientPrivilege        = "42501"
	sqlstateNameTooLong                  = "42622"
	sqlstateNonstandardEscape            = "22P06"
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
	fieldDetail        byte = 'D'
	fieldHint          byte = 'H'
	fieldPosition      byte = 'P'
	fieldRoutine       byte = 'R' // of the server's source
)

// begins reports whether a message may begin a segment: what the server answers up to a ReadyForQuery.
func begins(kind byte) bool {
	switch kind {
	case msgQuery, msgParse, msgBind, msgDescribe, msgExecute, msgClose, msgFunctionCall:
		return true
	}
	return false
}

// resultFormats is the routine of the server that refuses a Bind with the wrong number of format codes.
const resultFormats = "PortalSetResultFormat"

// The types whose binary form is read, by oid (pg_type).
const (
	oidBool  = 16
	oidBytea = 17
	oidInt8  = 20
	oidInt2  = 21
	oidInt4  = 23
	oidText  = 25
	oidUUID  = 2950
)

// oidVarchar is the type varchar (pg_type).
const oidVarchar = 1043
