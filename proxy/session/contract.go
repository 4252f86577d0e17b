// Package session is what a protocol's session and the driver that moves its bytes say to each other,
// whichever protocol it is: whose turn it is, which leg is to begin TLS, what happened that is to be
// recorded. A [Session] (proxy/mysql, proxy/postgres) is a state machine without a socket; the driver is
// package proxy.
package session

import (
	"errors"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy/provoke"
	"github.com/isotap/isotap/proxy/twin"
	"github.com/isotap/isotap/rewrite"
	"github.com/isotap/isotap/sqltoken"
)

// Options are what a session is told of the connection that it speaks on.
type Options struct {
	ID history.SessionID
	// NextTxn hands out transaction ids.
	NextTxn func() history.TxnID
	// Args records the values of a statement's literals and parameters.
	Args bool
	// Texts records statements with all of their values, too.
	Texts bool
	// TxnMemory bounds what is kept of an open transaction until it is recorded, in bytes; 0: there is no bound.
	TxnMemory int
	// RowMemory bounds what is held of long rows, of all sessions together.
	RowMemory *RowMemory
	// Halted returns why no transaction may begin now, as it could not be recorded; nil: one may. The field is nil
	// where transactions may always begin. It is asked when one would.
	Halted func() error
	// Provoke is told what is about to be sent, and what was answered, so that statements can be held back; nil: none
	// is.
	Provoke *provoke.Session
	// Twin is told of the client's transactions, for a twin to be played beside them; nil: nobody is.
	Twin twin.Session
	// ClientLocal and ServerLocal say which leg is a unix socket.
	ClientLocal, ServerLocal bool
}

// maxText bounds a statement that is recorded with all of its values, in bytes.
const maxText = 64 << 10

// BoundedText returns the text of a statement with values in the places of its parameters; empty where a value is
// missing, and where it is too long.
func BoundedText(family dbms.Family, text string, values []string) string {
	size := len(text)
	for _, v := range values {
		size += len(v)
	}
	if size > maxText {
		return ""
	}
	filled, ok := sqltoken.FillText(family, text, values)
	if !ok || len(filled) > maxText {
		return ""
	}
	return filled
}

// An Event is something to record or to act on. Exactly one field is set, but for Questions.
type Event struct {
	Txn *history.Txn
	// Defined is a transaction in the place of Txn, which came to no rows.
	Defined *history.DefiningTxn
	// Questions are what the server can be asked of Txn on another connection, before it is recorded.
	Questions []Question
	// User is the name the client logged in with.
	User *string
	// Schema says that what the session's plans rest on has changed: whoever plans by it next must see it as it is.
	Schema *Schema
	// Fault is a panic that cost no more than an observation.
	Fault *Fault
	// Note is something an operator should know, such as a session that went on unobserved.
	Note string
	// Downgraded is why the connection to the server is plain although TLS was preferred. It comes before the client's
	// login goes over that connection.
	Downgraded string
	// Misplanned says that columns of isotap's were taken out of a result where its plan had none.
	Misplanned bool
}

// A Question is a query of a session's for another connection. It sees what had been committed before.
type Question struct {
	Database string
	Query    string
	Args     []string
	Columns  int
	// Take takes the answer: the rows with NULL as "", and where the server's write-ahead log ended before these were
	// read. It is not called where there is none.
	Take func(lsn string, rows [][]string) `json:"-"`
}

// A Schema is the tables that may look different from what isotap knows of them.
type Schema struct {
	// Database is the one that the session is connected to, where a connection is to one (PostgreSQL); the
	// first Schema of a session asks for it to be read at all.
	Database string
	// Expected says that a client asks to be let in to Database, whose name is as the client has it. Reading may begin.
	Expected bool
	// Begins says that the session has just begun, and none of its statements has changed anything.
	Begins bool
	// Ends says that the session has ended whose beginning was told.
	Ends bool
	// Tables are those that changed; nil: perhaps any. On PostgreSQL Changes tell of them. References are those to
	// which they may have foreign keys from now on. See SchemaEffect in rewrite/mysql.
	Tables, References []rewrite.TableName
	// Triggers says what became of those of Tables.
	Triggers rewrite.TriggerFate
	// Changes are what was changed, in order; nil: perhaps anything. PostgreSQL only.
	Changes []rewrite.SchemaChange
	// Created are the client's columns of the only one of Tables, which was just made with isotap's behind them, on a
	// server that shows these (TiDB); nil: it is not known.
	Created []string
	// MayHaveStayed says that the only one of Tables was to be made there, and the server warned: it may have been
	// there before, and is then as it was.
	MayHaveStayed bool
}

// A Turn is the side that speaks next.
type Turn uint8

const (
	// EitherTurn: the protocol does not say, or the session does not follow it.
	EitherTurn Turn = iota
	// ClientTurn: the server has answered everything.
	ClientTurn
	// ServerTurn: a reply is due.
	ServerTurn
)

// A TLSUse says whether a leg of a session is encrypted.
type TLSUse uint8

const (
	// NoTLS keeps the leg plain.
	NoTLS TLSUse = iota
	// MayTLS encrypts it if the other side can.
	MayTLS
	// MustTLS ends the session if the other side cannot.
	MustTLS
	// LastTLS encrypts it if the server takes it no other way. It is for the server's leg alone.
	LastTLS
)

// A Leg is one of the two connections of a session.
type Leg uint8

// The legs of a session.
const (
	NoLeg Leg = iota
	ClientLeg
	ServerLeg
	// ServerAgain is a new connection to the server in the place of the one there is, without TLS.
	ServerAgain
	// ServerDial is the first connection to the server, of a session whose client has said what it wants.
	ServerDial
)

// ErrTooManyLogins is why a session gets no connection to the server while too many other clients are logging in.
var ErrTooManyLogins = errors.New("too many clients are logging in")
