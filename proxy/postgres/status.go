package postgres

// A txnStatus is what ReadyForQuery says of the session's transaction ("Message Formats").
type txnStatus byte

const (
	txnIdle   txnStatus = 'I' // not in a transaction block
	txnOpen   txnStatus = 'T' // in a transaction block
	txnFailed txnStatus = 'E' // in a block that has failed: the server refuses what does not end it
)
