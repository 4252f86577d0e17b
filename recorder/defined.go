package recorder

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/isotap/isotap/history"
)

// Defined queues a transaction that only defines, and waits while the queue is full. One whose texts are
// longer than a value may be is left out.
func (w *Writer) Defined(ctx context.Context, t *history.DefiningTxn) error {
	size := txnSize(&t.Txn)
	for i := range t.Stmts {
		size += int64(len(t.Stmts[i].Shape))
	}
	if size > maxDefinition {
		return nil
	}
	return w.queue.put(ctx, item{defined: t, size: size})
}

// A definedTxn is how a transaction that only defines is stored, as JSON: there are few.
type definedTxn struct {
	Database string            `json:"database"`
	ID       history.TxnID     `json:"id"`
	Session  history.SessionID `json:"session"`
	Status   history.Status    `json:"status"`
	Level    history.Level     `json:"level"`
	Implicit bool              `json:"implicit"`
	Start    int64             `json:"start"`
	End      int64             `json:"end"`
	Stmts    []definedStmt     `json:"stmts"`
}

type definedStmt struct {
	Num      uint32       `json:"num"`
	Kind     history.Kind `json:"kind"`
	Void     bool         `json:"void"`
	Shape    string       `json:"shape"`
	Args     []string     `json:"args"`
	Text     string       `json:"text,omitempty"`
	Origin   string       `json:"origin"`
	Action   string       `json:"action,omitempty"`
	Request  string       `json:"request,omitempty"`
	Start    int64        `json:"start"`
	End      int64        `json:"end"`
	Code     uint16       `json:"code"`
	SQLState string       `json:"sqlstate"`
	Message  string       `json:"message"`
}

func (b *batch) addDefined(t *history.DefiningTxn) {
	stored := definedTxn{t.Database, t.ID, t.Session, t.Status, t.Level, t.Implicit, t.Start, t.End, make([]definedStmt, len(t.Stmts))}
	for i := range t.Stmts {
		s := &t.Stmts[i]
		stored.Stmts[i] = definedStmt{s.Num, s.Kind, s.Void, s.Shape, s.Args, s.Text, s.Sender.Place, s.Sender.Action, s.Sender.Request, s.Start, s.End, s.Error.Code, s.Error.SQLState,
			s.Error.Message}
	}
	value, err := json.Marshal(stored)
	if err != nil { // of such fields there is none
		return
	}
	b.put(func(k []byte) []byte { return appendNumberKey(k, keyDefined, b.run, b.defined) }, value)
	b.defined++
}

// Defined streams the transactions of a run that only define, in the order in which they ended. Recordings of earlier
// versions have none.
func (r *Reader) Defined(ctx context.Context, run history.Run) iter.Seq2[*history.DefiningTxn, error] {
	return func(yield func(*history.DefiningTxn, error) bool) {
		for key, value := range r.values(ctx, appendRunKey(nil, keyDefined, run)) {
			t, err := decodeDefined(value)
			if err != nil {
				err = r.corrupt(key, err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func decodeDefined(v value) (*history.DefiningTxn, error) {
	if v.err != nil {
		return nil, v.err
	}
	var stored definedTxn
	if err := json.Unmarshal(v.bytes, &stored); err != nil {
		return nil, err
	}
	t := &history.DefiningTxn{Database: stored.Database, Txn: history.Txn{ID: stored.ID, Session: stored.Session,
		Status: stored.Status, Level: stored.Level, Implicit: stored.Implicit, Start: stored.Start, End: stored.End,
		Stmts: make([]history.Stmt, len(stored.Stmts))}}
	for i, s := range stored.Stmts {
		t.Stmts[i] = history.Stmt{Num: s.Num, Kind: s.Kind, Void: s.Void, Shape: s.Shape, Args: s.Args, Text: s.Text,
			Sender: history.Sender{Place: s.Origin, Action: s.Action, Request: s.Request}, Start: s.Start, End: s.End, Error: history.Error{Code: s.Code, SQLState: s.SQLState, Message: s.Message}}
	}
	return t, nil
}
