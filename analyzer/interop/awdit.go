package interop

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/isotap/isotap/history"
)

// An awdit reads lines "r key value" and "w key value", both integers, in the order of a transaction. A line of dashes
// ends a transaction, one of equals signs a session. All of them committed.
type awdit struct {
	h       *History
	session int32 // none before its first transaction
	ops     []registerOp
}

func (h *History) readAWDIT(r *bufio.Reader) error {
	a := &awdit{h: h, session: none}
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
			if err := a.line(trimmed, position{n, from}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return a.finish()
		}
	}
}

func (a *awdit) line(text []byte, p position) error {
	switch {
	case len(bytes.Trim(text, "-")) == 0:
		return a.end()
	case len(bytes.Trim(text, "=")) == 0:
		err := a.end()
		a.session = none
		return err
	}
	fields := bytes.Fields(text)
	if len(fields) != 3 || len(fields[0]) != 1 || fields[0][0] != 'r' && fields[0][0] != 'w' {
		return at(p, "%.60q is not r or w with a key and a value, nor a line of - or =", text)
	}
	var numbers [2]int64
	for i, f := range fields[1:] {
		var err error
		if numbers[i], err = strconv.ParseInt(string(f), 10, 64); err != nil {
			return at(p, "%.40q is no 64-bit integer", f)
		}
	}
	key := a.h.key(strconv.AppendInt(nil, numbers[0], 10))
	a.ops = append(a.ops, registerOp{fields[0][0] == 'w', key, a.h.integer(numbers[1]), p})
	return nil
}

// end completes the transaction in hand.
func (a *awdit) end() error {
	if len(a.ops) == 0 {
		return nil
	}
	if a.session == none {
		a.session = a.h.session()
	}
	place := a.ops[0].place
	t := a.h.begin(a.session, place, 0)
	if err := a.h.fill(t, place, history.Committed, 0); err != nil {
		return err
	}
	for _, o := range a.ops {
		if err := a.h.addRegisterOp(t, o); err != nil {
			return err
		}
	}
	a.ops = a.ops[:0]
	return nil
}

func (a *awdit) finish() error {
	if err := a.end(); err != nil {
		return err
	}
	if len(a.h.txns) == 0 {
		return at(position{1, 1}, "%w", errNoTxns)
	}
	return nil
}
