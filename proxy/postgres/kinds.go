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

// authenticationSASL is the code of the authentication request AuthenticationSASL ("Message Formats").
const authenticationSASL = 10

// The formats of parameters and values ("Formats and Format Codes").
const (
	formatText   = 0
	formatBinary = 1
)
