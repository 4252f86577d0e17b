package interop

import (
	"bufio"
	"io"
	"slices"
)

// maxDepth bounds how deep values may be nested: histories need about five.
const maxDepth = 64

// maxValue bounds the size of one value of a file: a transaction, in bytes.
const maxValue = 1 << 28

// An edn reads values in EDN (github.com/edn-format/edn): those of the file, or, where the first of them
// is a vector or list, what that holds. Tags are left out (#jepsen.history.Op{...} is a map), and so are
// comments and what #_ discards.
type edn struct {
	r        *bufio.Reader
	place    position // of the next byte
	json     bool     // the text is JSON, known to be valid: a colon is nothing
	begun    bool
	closer   byte     // what ends the vector or list around the values; 0 where there is none
	opened   position // where that begins
	depth    int      // of the value being read
	atomText []byte   // scratch of word
	unread   tree     // what #_ discards
}

func newEDN(r *bufio.Reader) *edn { return &edn{r: r, place: position{1, 1}} }

func (e *edn) next(t *tree) error {
	if !e.begun {
		e.begun = true
		if err := e.open(); err != nil {
			return err
		}
	}
	t.reset()
	c, err := e.skip()
	switch {
	case err == io.EOF && e.closer != 0:
		return at(e.place, "the file ends inside the %s that begins at %s: it is cut off", bracketName(e.closer),
			e.opened)
	case err != nil:
		return e.fail(err)
	case c == e.closer && e.closer != 0:
		return e.finish()
	}
	return e.value(t)
}

// open looks whether the values stand in a vector or list.
func (e *edn) open() error {
	c, err := e.skip()
	if err == io.EOF {
		return at(e.place, "the file is empty")
	}
	if err != nil {
		return e.fail(err)
	}
	if c == '[' || c == '(' {
		e.opened = e.place
		e.take()
		e.closer = closerOf(c)
	}
	return nil
}

// finish reads past the end of the vector or list.
func (e *edn) finish() error {
	e.take()
	e.closer = 0
	if c, err := e.skip(); err == nil {
		return at(e.place, "%q stands behind the end of the history", c)
	} else if err != io.EOF {
		return e.fail(err)
	}
	return io.EOF
}

func closerOf(c byte) byte {
	switch c {
	case '[':
		return ']'
	case '(':
		return ')'
	}
	return '}'
}

func bracketName(closer byte) string {
	switch closer {
	case ']':
		return "vector"
	case ')':
		return "list"
	}
	return "map or set"
}

// fail puts the place before an error of reading.
func (e *edn) fail(err error) error {
	if err == io.EOF {
		return io.EOF
	}
	return at(e.place, "%w", err)
}

func (e *edn) peek() (byte, error) {
	b, err := e.r.Peek(1)
	if len(b) == 0 {
		return 0, err
	}
	return b[0], nil
}

// take consumes a byte that peek has shown.
func (e *edn) take() {
	if c, _ := e.r.ReadByte(); c == '\n' {
		e.place = position{e.place.line + 1, 1}
	} else {
		e.place.column++
	}
}

// skip goes past blanks, commas and comments, and shows the next byte.
func (e *edn) skip() (byte, error) {
	for {
		c, err := e.peek()
		switch {
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == ',', e.json && c == ':':
			e.take()
		case c == ';':
			if err := e.comment(); err != nil {
				return 0, err
			}
		case c == '#' && e.discards():
			if err := e.discard(); err != nil {
				return 0, err
			}
		default:
			return c, nil
		}
	}
}

func (e *edn) comment() error {
	for {
		c, err := e.peek()
		if err != nil {
			return err
		}
		e.take()
		if c == '\n' {
			return nil
		}
	}
}

// value reads the next value.
func (e *edn) value(t *tree) error {
	e.depth++
	defer func() { e.depth-- }()
	if e.depth > maxDepth {
		return at(e.place, "values are nested more than %d deep", maxDepth)
	}
	if len(t.text)+len(t.nodes) > maxValue {
		return at(e.place, "a value has more than %d bytes", maxValue)
	}
	c, err := e.skip()
	if err != nil {
		return e.cut(err)
	}
	switch c {
	case '[', '(', '{':
		e.take()
		k := vector
		if c == '{' {
			k = mapping
		}
		return e.collection(t, k, closerOf(c))
	case ']', ')', '}':
		return at(e.place, "%q closes nothing", c)
	case '"':
		return e.string(t)
	case '#':
		return e.dispatch(t)
	}
	return e.atom(t)
}

// cut is the error of a value that the file ends in.
func (e *edn) cut(err error) error {
	if err == io.EOF {
		return at(e.place, "the file ends inside a value: it is cut off")
	}
	return e.fail(err)
}

// collection reads up to the closing bracket, past the opening one.
func (e *edn) collection(t *tree, k kind, closer byte) error {
	begin := e.place
	begin.column--
	i := t.add(k, begin)
	for n := 0; ; n++ {
		c, err := e.skip()
		if err == io.EOF {
			return at(e.place, "the file ends inside the %s that begins at %s: it is cut off", bracketName(closer),
				begin)
		}
		if err != nil {
			return e.fail(err)
		}
		if c == closer {
			e.take()
			t.close(i)
			if items := count(ref{t, i}); k == mapping && items%2 != 0 {
				return at(begin, "a map has a key without a value")
			}
			return nil
		}
		if err := e.value(t); err != nil {
			return err
		}
	}
}

func count(r ref) int {
	n := 0
	for range r.items() {
		n++
	}
	return n
}

// dispatch reads what begins with a #: a set or a tagged value.
func (e *edn) dispatch(t *tree) error {
	begin := e.place
	e.take()
	c, err := e.peek()
	switch {
	case err != nil:
		return e.cut(err)
	case c == '{':
		e.take()
		return e.collection(t, set, '}')
	case c == '#':
		return e.atom(t) // ##Inf, ##NaN
	}
	tag, err := e.word()
	if err != nil {
		return err
	}
	if len(tag) == 0 {
		return at(begin, "a # stands without a tag")
	}
	return e.value(t)
}

func (e *edn) discards() bool {
	next, _ := e.r.Peek(2)
	return slices.Equal(next, []byte("#_"))
}

// discard reads a value for nothing.
func (e *edn) discard() error {
	e.take()
	e.take()
	nodes, text := len(e.unread.nodes), len(e.unread.text) // of what is being discarded around it
	err := e.value(&e.unread)
	e.unread.nodes, e.unread.text = e.unread.nodes[:nodes], e.unread.text[:text]
	return err
}
