package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/isotap/isotap/history"
)

// A plume reads lines r(key,value,session,transaction) and w(key,value,session,transaction), all of them
// integers. The lines of a transaction stand in its order; its first one puts it behind those of its session.
// Transaction -1 is one that failed, of one write. A zero that nobody wrote was there before.
type plume struct {
	h        *History
	sessions map[int64]*plumeSession
	ids      map[int64]int32 // transactions that were begun
}

// A plumeSession is a session with the transaction that its lines are at.
type plumeSession struct {
	number int32
	id     int64
	open   int32 // none before the first
	ops    []registerOp
	place  position
}

func (h *History) readPlume(r *bufio.Reader) error {
	h.zeroIsInitial = true
	p := &plume{h: h, sessions: make(map[int64]*plumeSession), ids: make(map[int64]int32)}
	for n := int32(1); ; n++ {
		text, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return at(position{n, 1}, "the line is longer than %d bytes", r.Size())
		}
		if err != nil && err != io.EOF {
			return at(position{n, 1}, "%w", err)
		}
		if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 {
			from := int32(bytes.Index(text, trimmed)) + 1
			if err := p.line(trimmed, position{n, from}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return p.finish()
		}
	}
}

func (p *plume) line(text []byte, at1 position) error {
	write, numbers, err := plumeLine(text, at1)
	if err != nil {
		return err
	}
	key, val, session, id := numbers[0], numbers[1], numbers[2], numbers[3]
	o := registerOp{write, p.h.key(strconv.AppendInt(nil, key, 10)), p.h.integer(val), at1}
	s := p.sessions[session]
	if s == nil {
		s = &plumeSession{number: p.h.session(), open: none}
		p.sessions[session] = s
	}
	if id == -1 {
		return p.failed(s, o)
	}
	if s.open == none || s.id != id {
		if t, ok := p.ids[id]; ok {
			return at(at1, "transaction %d stands twice: it began at %s, and another one of its session, "+
				"or another session, came in between",
				id, p.h.txns[t].place)
		}
		if err := p.end(s); err != nil {
			return err
		}
		s.id, s.open, s.place = id, p.h.begin(s.number, at1, 0), at1
		p.ids[id] = s.open
	}
	s.ops = append(s.ops, o)
	return nil
}

// plumeLine reads one line.
func plumeLine(text []byte, p position) (write bool, numbers [4]int64, err error) {
	const form = "r(key,value,session,transaction) or w(...)"
	if len(text) < 3 || text[1] != '(' || text[len(text)-1] != ')' {
		return false, numbers, at(p, "%.60q is not %s", text, form)
	}
	if text[0] != 'r' && text[0] != 'w' {
		return false, numbers, at(p, "operation %q is not known: a line is %s", text[0], form)
	}
	fields := bytes.Split(text[2:len(text)-1], []byte(","))
	if len(fields) != len(numbers) {
		return false, numbers, at(p, "the line has %d numbers: it is to be %s", len(fields), form)
	}
	column := p.column + 2
	for i, f := range fields {
		if numbers[i], err = strconv.ParseInt(string(bytes.TrimSpace(f)), 10, 64); err != nil {
			return false, numbers, at(position{p.line, column}, "%.40q is no 64-bit integer", f)
		}
		column += int32(len(f)) + 1
	}
	return text[0] == 'w', numbers, nil
}

// failed adds the write of a transaction that failed. What such a one read shows nothing.
func (p *plume) failed(s *plumeSession, o registerOp) error {
	t := p.h.begin(s.number, o.place, 0)
	if err := p.h.fill(t, o.place, history.Aborted, 0); err != nil {
		return err
	}
	return p.h.addRegisterOp(t, o)
}

// end completes a session's open transaction.
func (p *plume) end(s *plumeSession) error {
	if s.open == none {
		return nil
	}
	if err := p.h.fill(s.open, s.place, history.Committed, 0); err != nil {
		return err
	}
	for _, o := range s.ops {
		if err := p.h.addRegisterOp(s.open, o); err != nil {
			return err
		}
	}
	s.open, s.ops = none, s.ops[:0]
	return nil
}

func (p *plume) finish() error {
	if len(p.h.txns) == 0 {
		return at(position{1, 1}, "%w", errNoTxns)
	}
	open := slices.SortedFunc(maps.Values(p.sessions),
		func(a, b *plumeSession) int { return cmp.Compare(a.open, b.open) })
	for _, s := range open {
		if err := p.end(s); err != nil {
			return err
		}
	}
	return nil
}
