package cases

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Trace is what one run of a case did: one result for each of its steps, in their order.
type Trace struct {
	Case    string // its id
	Level   Level
	Results []Result
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
)

// AtEnd is the DoneAfter of a step that ended only when the other sessions were closed.
const AtEnd = -1

// A Result is what one step did. The name of the run's own database reads "@db" in it, so that runs
// in different databases compare.
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

	Columns  []Column // nil when the statement has no result set
	Rows     [][]Value
	Affected uint64
	InsertID uint64
	Warnings uint16
	// InTxn and Autocommit are the two status flags of the reply that tell of transactions; both are
	// false for an error, which carries none.
	InTxn, Autocommit bool

	Code    uint16 // the server's error number; 0 for success
	State   string // its SQLSTATE
	Message string
}

// A Column is a result column's metadata, as the protocol's column definition has it.
type Column struct {
	Schema, Table, OrgTable string
	Name, OrgName           string
	Type                    uint8
	Charset, Flags          uint16
	Length                  uint32
	Decimals                uint8
}

// A Value of a row, as text.
type Value struct {
	Text string
	Null bool
}

// String gives the text, or NULL.
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

// ErrorCode gives "errno/SQLSTATE", as observations have it; empty for success.
func (r *Result) ErrorCode() string {
	if r.Code == 0 {
		return ""
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
