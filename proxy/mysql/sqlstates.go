package mysql

// The SQLSTATEs that a session gives (MySQL's reference manual, "Server Error Message Reference"; ISO/IEC 9075,
// "SQLSTATE class and subclass codes").
const (
	sqlstateWarning            = "01000"
	sqlstateGeneral            = "HY000" // for errors that have none of their own
	sqlstateConnectionRejected = "08004"
	sqlstateCommunicationLink  = "08S01" // the connection is lost, or what comes of it is no protocol
	// sqlstateTransactionUnknown is that of an end of which the client cannot know what came of it: drivers take all of
	// its class for a connection that is lost.
	sqlstateTransactionUnknown = "08007"
)
