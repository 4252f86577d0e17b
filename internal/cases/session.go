package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// A session is one connection of a case. A goroutine of its own sends the statements, one at a time,
// because a statement that waits for a lock must not keep the others from going on.
type session struct {
	name     string
	conn     *client.Conn
	prepared bool
	jobs     chan string
	replies  chan reply    // holds one: the goroutine never waits for its reader
	ended    chan struct{} // closed when the goroutine has returned

	// What follows belongs to the run's goroutine.
	running *Result   // the step in flight; nil when idle
	queue   []*Result // the steps that wait behind it
}

// A reply is what the connection had for a statement: a result, a server's error in it, or the
// connection's own failure.
type reply struct {
	result Result
	err    error
}

func newSession(name string, conn *client.Conn, prepared bool) *session {
	s := &session{
		name: name, conn: conn, prepared: prepared,
		jobs: make(chan string), replies: make(chan reply, 1), ended: make(chan struct{}),
	}
	go s.serve()
	return s
}

func (s *session) serve() {
	defer close(s.ended)
	for sql := range s.jobs {
		s.replies <- s.execute(sql)
	}
}

// send starts a step. The session must be idle.
func (s *session) send(r *Result) {
	s.running = r
	s.jobs <- r.SQL
}

// receive waits for the reply to the step in flight, at most for the given time. done is false when
// it did not come.
func (s *session) receive(ctx context.Context, patience time.Duration) (done bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got := <-s.replies:
		if got.err != nil {
			return false, fmt.Errorf("step %d (session %s): %w", s.running.N, s.name, got.err)
		}
		s.running.take(&got.result)
		s.running = nil
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// close ends the connection and the goroutine. A statement in flight must have been killed before,
// or the server goes on with it.
func (s *session) close() {
	if s.running == nil {
		_ = s.conn.Quit() // a courtesy: the socket is closed below in any case
	}
	_ = s.conn.Conn.Conn.Close() // the socket itself: the goroutine may still be reading from what wraps it
	close(s.jobs)
	<-s.ended
}

// execute runs one statement and reads the whole reply.
func (s *session) execute(sql string) reply {
	var res *mysql.Result
	var err error
	if s.prepared {
		res, err = s.executePrepared(sql)
	} else {
		res, err = s.conn.Execute(sql)
	}
	var refused *mysql.MyError
	switch {
	case errors.As(err, &refused):
		return reply{result: Result{Status: Failed, Code: refused.Code, State: refused.State, Message: refused.Message}}
	case err != nil:
		return reply{err: err}
	}
	r, err := decode(res, s.prepared)
	return reply{result: r, err: err}
}

// executePrepared prepares, executes and closes; what the server cannot prepare it sends as text, as
// drivers do.
func (s *session) executePrepared(sql string) (*mysql.Result, error) {
	stmt, err := s.conn.Prepare(sql)
	var refused *mysql.MyError
	if errors.As(err, &refused) && refused.Code == mysql.ER_UNSUPPORTED_PS {
		return s.conn.Execute(sql)
	}
	if err != nil {
		return nil, err
	}
	res, err := stmt.Execute()
	if closeErr := stmt.Close(); err == nil {
		err = closeErr
	}
	return res, err
}

// decode turns a reply into a result. Text rows are taken apart here, because go-mysql parses
// numbers and so would hide how the server wrote them.
func decode(res *mysql.Result, prepared bool) (Result, error) {
	r := Result{
		Status:     OK,
		Affected:   res.AffectedRows,
		InsertID:   res.InsertId,
		Warnings:   res.Warnings,
		InTxn:      res.Status&mysql.SERVER_STATUS_IN_TRANS != 0,
		Autocommit: res.Status&mysql.SERVER_STATUS_AUTOCOMMIT != 0,
	}
	if res.Resultset == nil || len(res.Fields) == 0 {
		return r, nil
	}
	for _, f := range res.Fields {
		r.Columns = append(r.Columns, Column{
			Schema: string(f.Schema), Table: string(f.Table), OrgTable: string(f.OrgTable),
			Name: string(f.Name), OrgName: string(f.OrgName), Type: f.Type, Charset: f.Charset,
			Flags: f.Flag, Length: f.ColumnLength, Decimals: f.Decimal,
		})
	}
	r.Rows = make([][]Value, len(res.Values))
	for i := range res.Values {
		var err error
		if prepared {
			r.Rows[i] = binaryRow(res.Values[i])
		} else if r.Rows[i], err = textRow(res.RowDatas[i], len(r.Columns)); err != nil {
			return Result{}, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return r, nil
}

// textRow takes a row of the text protocol apart
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_row.html).
func textRow(data []byte, columns int) ([]Value, error) {
	row := make([]Value, columns)
	for i := range row {
		text, null, n, err := mysql.LengthEncodedString(data)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		row[i] = Value{Text: string(text), Null: null}
		data = data[n:]
	}
	return row, nil
}

func binaryRow(values []mysql.FieldValue) []Value {
	row := make([]Value, len(values))
	for i := range values {
		switch v := values[i].Value().(type) {
		case nil:
			row[i].Null = true
		case []byte:
			row[i].Text = string(v)
		default:
			row[i].Text = fmt.Sprint(v)
		}
	}
	return row
}

// take fills in the outcome; the step's own place in the case stays.
func (r *Result) take(outcome *Result) {
	place := *r
	*r = *outcome
	r.N, r.Session, r.SQL = place.N, place.Session, place.SQL
	r.Blocked, r.DoneAfter, r.Queued = place.Blocked, place.DoneAfter, place.Queued
}

// hideDatabase replaces the run's own database name by "@db".
func (r *Result) hideDatabase(name string) {
	for i := range r.Columns {
		r.Columns[i].Schema = strings.ReplaceAll(r.Columns[i].Schema, name, "@db")
	}
	r.Message = strings.ReplaceAll(r.Message, name, "@db")
}
