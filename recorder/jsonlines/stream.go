package jsonlines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/isotap/isotap/history"
)

// An Encoder writes a history as lines, as it comes. What stands between the first line and the last is up to
// the caller: Export writes recordings, and package follow a stream in which a run may be told of twice. The first
// error of writing stays, and every call gives it. It is used by one goroutine.
type Encoder struct {
	w      *bufio.Writer
	err    error
	counts end
}

// NewEncoder returns an Encoder that has written the first line.
func NewEncoder(w io.Writer) *Encoder {
	e := &Encoder{w: bufio.NewWriterSize(w, 1<<16)}
	e.line(line{Isotap: &header{Format}})
	return e
}

// Run writes a run, before its sessions and transactions.
func (e *Encoder) Run(info *history.Info) error {
	e.counts.Runs++
	return e.line(line{Run: writeRun(info)})
}

// Session writes a session of the last run.
func (e *Encoder) Session(s *history.Session) error {
	e.counts.Sessions++
	return e.line(line{Session: writeSession(s)})
}

// Txn writes a transaction of the last run.
func (e *Encoder) Txn(t *history.Txn) error {
	e.counts.Txns++
	return e.line(line{Txn: writeTxn(t)})
}

// Matches writes what matches a predicate, of the last run.
func (e *Encoder) Matches(m *history.Matches) error {
	e.counts.Matches++
	return e.line(line{Matches: writeMatches(m)})
}

// Definition writes how a table was defined, of the last run.
func (e *Encoder) Definition(d *history.Definition) error {
	e.counts.Definitions++
	return e.line(line{Definition: &definition{text(d.Database), text(d.Name), d.At, text(d.SQL), text(d.References),
		text(d.Missing)}})
}

// Defined writes a transaction of the last run that only defines.
func (e *Encoder) Defined(t *history.DefiningTxn) error {
	e.counts.Defined++
	return e.line(line{Defined: &defined{text(t.Database), *writeTxn(&t.Txn)}})
}

// Logged writes a transaction of the server's own log, of the last run.
func (e *Encoder) Logged(t *history.LoggedTxn) error {
	e.counts.Logged++
	return e.line(line{Logged: writeLogged(t)})
}

// After writes that the stream has none of the last run's transactions up to this one.
func (e *Encoder) After(id history.TxnID) error { return e.line(line{After: id.String()}) }

// Flush sends what was written.
func (e *Encoder) Flush() error {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

// End writes the last line, and sends it.
func (e *Encoder) End() error {
	e.line(line{End: &e.counts})
	return e.Flush()
}

func (e *Encoder) line(l line) error {
	if e.err != nil {
		return e.err
	}
	var b []byte
	if b, e.err = appendJSON(l); e.err == nil {
		e.w.Write(b)
		e.err = e.w.WriteByte('\n')
	}
	return e.err
}

// An Event is what a line says: one of its fields is set.
type Event struct {
	Run        *history.Info
	Session    *history.Session
	Matches    *history.Matches
	Definition *history.Definition
	Logged     *history.LoggedTxn
	Txn        *history.Txn
	After      history.TxnID // see Encoder.After
	End        bool          // it is the last line
}

// A Decoder reads the lines of an Encoder. It is used by one goroutine.
type Decoder struct {
	in   *bufio.Reader
	name string
	n    int
	run  history.Run
}

// NewDecoder returns a Decoder. name is what errors call r.
func NewDecoder(r io.Reader, name string) *Decoder {
	return &Decoder{in: bufio.NewReaderSize(r, 1<<16), name: name}
}

// Next reads the next line. It gives io.ErrUnexpectedEOF where the lines end without a last one; other errors name the
// line.
func (d *Decoder) Next() (Event, error) {
	for {
		text, err := d.in.ReadBytes('\n')
		if err == io.EOF {
			return Event{}, io.ErrUnexpectedEOF // what was cut off is no line
		}
		if err != nil {
			return Event{}, fmt.Errorf("%s: %w", d.name, err)
		}
		d.n++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		ev, ok, err := d.event(text)
		if err != nil {
			return Event{}, fmt.Errorf("%s:%d: %w", d.name, d.n, err)
		}
		if ok {
			return ev, nil
		}
	}
}

// event reads a line; false for one that says nothing of a history.
func (d *Decoder) event(text []byte) (Event, bool, error) {
	l, err := parseLine(text, d.n)
	switch {
	case err != nil || l.Isotap != nil:
		return Event{}, false, err
	case l.End != nil:
		return Event{End: true}, true, nil
	case l.Run != nil:
		info, err := readRun(l.Run)
		d.run = info.Run
		return Event{Run: &info}, true, err
	case d.run == 0:
		return Event{}, false, errNoRun
	case l.Session != nil:
		s := readSession(l.Session)
		s.Run = d.run
		return Event{Session: &s}, true, nil
	case l.Definition != nil:
		return Event{Definition: l.Definition.read()}, true, nil
	case l.Logged != nil:
		t, err := readLogged(l.Logged)
		return Event{Logged: t}, true, err
	case l.Matches != nil:
		m, err := readMatches(l.Matches, d.run)
		return Event{Matches: &m}, true, err
	case l.After != "":
		id, err := history.ParseTxnID(l.After)
		return Event{After: id}, true, err
	}
	t, err := readTxn(l.Txn)
	return Event{Txn: t}, true, err
}

var errNoRun = errors.New("a session, a transaction or what matches stands before the first run")

// parseLine reads the n-th line, and sees to it that it says one thing, and the first one the format.
func parseLine(b []byte, n int) (l line, err error) {
	if err := strictly(b, &l); err != nil {
		return l, err
	}
	set := 0
	for _, is := range []bool{l.Isotap != nil, l.Run != nil, l.Session != nil, l.Matches != nil, l.Definition != nil,
		l.Defined != nil, l.Logged != nil, l.Txn != nil, l.After != "", l.End != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return l, errors.New("a line has one of isotap, run, session, matches, definition, defined, logged, txn, after, end")
	case (n == 1) != (l.Isotap != nil):
		return l, fmt.Errorf("the first line, and no other, says {\"isotap\":{\"format\":%d}}", Format)
	case l.Isotap != nil && l.Isotap.Format != Format:
		return l, fmt.Errorf("format %d is not known: this isotap reads format %d", l.Isotap.Format, Format)
	}
	return l, nil
}

func readSession(s *session) history.Session {
	return history.Session{ID: history.SessionID(s.ID), Client: string(s.Client), User: string(s.User),
		Database: string(s.Database), Start: s.Start, End: s.End}
}
