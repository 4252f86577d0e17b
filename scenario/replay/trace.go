package replay

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/history"
)

// A Trace is what one run of a scenario did: one result for each of its steps, in their order.
type Trace struct {
	Scenario string // its name
	Level    history.Level
	Database string // of the run (PostgreSQL: its schema); it is gone
	Results  []Result
	Events   []Event // what was seen, in order
	// ServerGone says that the server took no connection any more: a scenario that expects that a connection is lost
	// has ended it, and its database with it.
	ServerGone bool
}

// gone notes that the server has ended: the steps without a reply are lost.
func (t *Trace) gone() {
	t.ServerGone = true
	for i := range t.Results {
		if s := &t.Results[i].Status; *s == NotRun || *s == Blocked {
			*s = Lost
		}
	}
}

// An EventKind is what an [Event] tells.
type EventKind int

// The kinds of events.
const (
	SetUp    EventKind = iota // a set-up gave rows
	Noticed                   // a session got a notice
	Waits                     // a step waits, or counts as waiting
	Ends                      // a step has ended
	TornDown                  // a tear-down gave rows
)

// An Event is one thing that was seen in a run.
type Event struct {
	Kind    EventKind
	Step    int    // the number of the step that waits or has ended
	Session string // that has the notice; of a step: its own
	Notice  Notice
	Rows    Set // of a set-up or tear-down
}

// A Notice is what PostgreSQL tells beside its replies.
type Notice struct{ Severity, Code, Message, Detail, Hint string }

// String returns the notice without its detail and hint.
func (n Notice) String() string { return n.Severity + " " + n.Code + ": " + n.Message }

// A Notification is what PostgreSQL's NOTIFY sends.
type Notification struct {
	Channel, Payload string
	From             string // the session; empty when it is none of the scenario's
	sender           uint32 // its number on the server
}

// A Set is a result set.
type Set struct {
	Columns []Column
	Rows    [][]Value
}

// Status is how a step ended.
type Status string

const (
	// OK: the server answered with rows or with an OK.
	OK Status = "ok"
	// Failed: the server answered with an error.
	Failed Status = "error"
	// Blocked: the step was still waiting for a lock when no other session was left to release it.
	Blocked Status = "blocked"
	// NotRun: the session's earlier step never ended.
	NotRun Status = "not_run"
	// Lost: the connection ended in place of a reply, or the server had ended before. It is an error of the run
	// where the scenario does not expect that anywhere.
	Lost Status = "lost"
)

// AtEnd is the DoneAfter of a step that ended only when the other sessions were closed.
const AtEnd = -1

// ownDatabase is the name of the run's database in a trace.
const ownDatabase = "@db"

// A Result is what one step did, without what is the run's own, so that runs in different databases
// compare: the name of the run's database reads "@db" in it, PostgreSQL's numbers of tables and types that
// the scenario made count from 1.
type Result struct {
	N       int // the step's number
	Session string
	SQL     string
	Status  Status
	// Blocked says that the server had the step waiting for a lock, Queued that an earlier step of its
	// own session was waiting. DoneAfter is then the number of the step after which it ended, or
	// AtEnd; 0 for a step that ended at its turn.
	Blocked, Queued bool
	DoneAfter       int
	// Held says that the step counted as waiting only because the scenario has it so.
	Held bool
	// WaitedFor are the sessions that held what the step waited for when it began to, in order of their names; none
	// where the server does not tell.
	WaitedFor []string

	Columns  []Column // nil when the statement has no result set
	Rows     [][]Value
	Affected uint64
	InsertID uint64
	Warnings uint16
	// InTxn and Autocommit are the two status flags of the reply that tell of transactions; of the MySQL
	// family both are false for an error, which carries none. PostgreSQL has no such Autocommit.
	InTxn, Autocommit bool

	// What only PostgreSQL sends: its command tags, with ";" between those of several statements, its
	// notices, and whether the transaction has failed.
	Tag       string
	Notices   []Notice
	TxnFailed bool
	// Sent and Ended are when the step was sent and when its reply was there; zero where it was not, or never.
	Sent, Ended time.Time
	// Sets are the result sets of all its statements, of which Columns and Rows are the last one's; a step that
	// failed has those before the failure.
	Sets []Set
	// Notifications are what other sessions, or its own, have sent by NOTIFY.
	Notifications []Notification

	Code    uint16 // MySQL's error number; 0 for success, and on PostgreSQL
	State   string // the error's SQLSTATE
	Message string

	// What only PostgreSQL says of an error: the place in the statement, in characters from 1, and everything
	// else, with # for numbers, which are those of processes and transactions.
	Position int32
	Detail   string
}

// A Column is a result column's metadata, as the protocol's column definition or row description has it.
type Column struct {
	Schema, Table, OrgTable string
	Name, OrgName           string
	Type                    uint32 // PostgreSQL: the type's OID
	Charset, Flags          uint16
	Length                  uint32
	Decimals                uint8

	// What only PostgreSQL has.
	TableOID  uint32
	Attribute uint16
	Size      int16
	Modifier  int32
	Format    int16
}

// A Value of a row, as text.
type Value struct {
	Text string
	Null bool
}

// String returns the text, or NULL.
func (v Value) String() string {
	if v.Null {
		return "NULL"
	}
	return v.Text
}

// UnmarshalYAML reads a scalar as its text; null is NULL.
func (v *Value) UnmarshalYAML(node *yaml.Node) error {
	*v = Value{Text: node.Value, Null: node.Tag == "!!null"}
	if v.Null {
		v.Text = ""
	}
	return nil
}

// ErrorCode returns "errno/SQLSTATE", as observations have it, of PostgreSQL "SQLSTATE"; empty for success.
func (r *Result) ErrorCode() string {
	if r.Code == 0 {
		return r.State
	}
	return strconv.Itoa(int(r.Code)) + "/" + r.State
}

func rowText(row []Value) string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = v.String()
		if !v.Null {
			texts[i] = strconv.Quote(v.Text)
		}
	}
	return "(" + strings.Join(texts, ",") + ")"
}
