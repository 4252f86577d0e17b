// Package twin is what the sessions of a proxy tell of their clients' transactions as these go on, and where a client
// waits, for whoever plays a transaction once more beside itself before and after it commits (package explore).
//
// A [Player] has a [Session] for each client. The proxy tells it what was answered, as the client got it ([Answer]);
// before a COMMIT is sent it calls Before, and After before the client gets the reply to it. tap.go keeps what was sent
// to a client until its statement has ended, so that the sessions of both protocols can read the rows out of it.
package twin

import "github.com/isotap/isotap/history"

// A Player plays twins beside the clients of a proxy. It is safe for concurrent use.
type Player interface {
	// Session begins with a client's connection.
	Session(id history.SessionID) Session
}

// A Session is told of one client's connection, and belongs to its goroutine. None of its methods takes longer than a
// twin may.
type Session interface {
	// LoggedIn tells who the client is. It may come again, for another user.
	LoggedIn(Login)
	// Sends tells which statement is about to be sent.
	Sends(Statement)
	// Pass says that the client sends ahead: it has not seen what was answered before, so that nothing waits.
	Pass()
	// Answered tells what a statement was answered.
	Answered(Answer)
	// Ended tells how a transaction has ended, behind its last answer unless that is to COMMIT or ROLLBACK. The client
	// does not know of it yet.
	Ended(history.Status)
	// Before is called before what was told by Sends goes to the server.
	Before()
	// After is called before what was answered since goes to the client.
	After()
	// Ends says that the connection has ended.
	Ends()
}

// A Login is who a client is, and what its session begins with.
type Login struct {
	User       string
	Connection uint32 // the server's number for the connection; 0: it is not known
	// Settings are statements by which another session gets the settings that this one begins with, as far as Strange
	// does not say that there are others.
	Settings []string
	Strange  bool
}

// A Statement is what a client has sent.
type Statement struct {
	Kind     history.Kind
	Database string // that its names are of
	// Alone says that no other statement of its text, nor one sent ahead, runs with it.
	Alone bool
	// Txn is the open transaction that it is in, with what was recorded of it so far; nil: there is none, or none is
	// known.
	Txn *history.Txn
	// Autocommit says that it is a transaction of its own; Stmt is it then, as far as that is known.
	Autocommit bool
	Stmt       history.Stmt
	Level      history.Level
}

// An Answer is what a statement was answered.
type Answer struct {
	Stmt *history.Stmt // with its number in its transaction; 0: it is not recorded
	Txn  history.TxnID // the transaction; 0: it is not recorded
	// Text is the statement with its values; empty: they cannot all be told.
	Text string
	// Block says that a transaction is open now.
	Block bool
	// Changes says that the session's settings may be others than before.
	Changes bool
	Reply   *Reply // nil: it cannot be read
}

// A Reply is what a client got for a statement that succeeded, as text.
type Reply struct {
	Columns  []Column // nil: it is no result with rows
	Rows     [][]Value
	Affected uint64 // of an UPDATE the rows that it found, also those that it left as they were
	InsertID uint64 // MySQL's family: the first key that the server made
}

// A Column is one of a result.
type Column struct {
	Name            string
	Type            uint32
	Table, Origin   string // MySQL's family: the table, and the column's name there; empty where it is calculated
	TableOID        uint32 // PostgreSQL's
	AttributeNumber uint16
}

// A Value is one of a row.
type Value struct {
	Text string
	Null bool
}
