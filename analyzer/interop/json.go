package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A jsonFile is a file of JSON, read a piece at a time: its values are checked by encoding/json, and then
// put into trees, which know their places.
type jsonFile struct {
	dec   *json.Decoder
	lines *lineCounter
	raw   json.RawMessage
	edn   edn
	bytes bytes.Reader
}

func newJSONFile(r io.Reader) *jsonFile {
	lines := &lineCounter{r: r, at: position{1, 1}}
	f := &jsonFile{dec: json.NewDecoder(lines), lines: lines, edn: edn{r: bufio.NewReaderSize(nil, 1<<12), json: true,
		begun: true}}
	f.dec.UseNumber()
	return f
}

// value reads the next value into t.
func (f *jsonFile) value(t *tree) error {
	if err := f.dec.Decode(&f.raw); err != nil {
		return f.fail(err)
	}
	f.edn.place = f.lines.positionOf(f.dec.InputOffset() - int64(len(f.raw)))
	f.bytes.Reset(f.raw)
	f.edn.r.Reset(&f.bytes)
	t.reset()
	return f.edn.value(t)
}

// open reads an opening bracket or brace; what it opens is named for the error.
func (f *jsonFile) open(want json.Delim, what string) error {
	begin := f.position()
	token, err := f.dec.Token()
	if err != nil {
		return f.fail(err)
	}
	if token != want {
		return at(begin, "%s is missing: there is %v in its place", what, token)
	}
	return nil
}

// close reads the end of what open opened.
func (f *jsonFile) close() error {
	if _, err := f.dec.Token(); err != nil {
		return f.fail(err)
	}
	return nil
}

// finish says that nothing may follow.
func (f *jsonFile) finish() error {
	if token, err := f.dec.Token(); err == nil {
		return at(f.position(), "%v stands behind the end of the history", token)
	} else if err != io.EOF {
		return f.fail(err)
	}
	return io.EOF
}

func (f *jsonFile) position() position { return f.lines.positionOf(f.dec.InputOffset()) }

// fail puts the place before an error of the decoder: where the value begins that it is in.
func (f *jsonFile) fail(err error) error {
	rest := bufio.NewReader(f.dec.Buffered())
	blank := int64(0)
	for c, end := rest.ReadByte(); end == nil && bytes.IndexByte([]byte(" \t\r\n"), c) >= 0; c, end = rest.ReadByte() {
		blank++
	}
	begin := f.lines.positionOf(f.dec.InputOffset() + blank)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return at(begin, "the file ends inside a value that begins here: it is cut off")
	}
	return at(begin, "%w", err)
}

// jsonOps are the values of a JSON file: those of its array, or one after the other.
type jsonOps struct {
	file         *jsonFile
	in           *bufio.Reader
	begun, array bool
}

func newJSONOps(r *bufio.Reader) *jsonOps { return &jsonOps{file: newJSONFile(r), in: r} }

func (o *jsonOps) next(t *tree) error {
	if !o.begun {
		o.begun = true
		if err := o.open(); err != nil {
			return err
		}
	}
	if o.file.dec.More() {
		return o.file.value(t)
	}
	if !o.array {
		return o.file.finish()
	}
	if err := o.file.close(); err != nil {
		return err
	}
	return o.file.finish()
}

// open looks whether the values stand in an array.
func (o *jsonOps) open() error {
	for n := 1; ; n++ {
		b, err := o.in.Peek(n)
		switch {
		case len(b) < n && err == io.EOF:
			return at(position{1, 1}, "the file is empty")
		case len(b) < n:
			return at(position{1, 1}, "%w", err)
		case bytes.IndexByte([]byte(" \t\r\n"), b[n-1]) >= 0:
			continue
		case b[n-1] != '[':
			return nil
		}
		o.array = true
		return o.file.open('[', "the history's [")
	}
}

// A lineCounter knows on which line each byte is that was read through it.
type lineCounter struct {
	r     io.Reader
	read  int64
	lines []int64  // where the lines begin that placeOf has not come to yet
	at    position // of the last placeOf
	start int64    // where its line begins
}

// Read reads.
func (l *lineCounter) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	for i, c := range b[:n] {
		if c == '\n' {
			l.lines = append(l.lines, l.read+int64(i)+1)
		}
	}
	l.read += int64(n)
	return n, err
}

// positionOf returns the place of a byte, which comes after those of the calls before.
func (l *lineCounter) positionOf(offset int64) position {
	n := 0
	for n < len(l.lines) && l.lines[n] <= offset {
		l.start = l.lines[n]
		l.at.line++
		n++
	}
	l.lines = l.lines[n:]
	return position{l.at.line, int32(offset-l.start) + 1}
}
