package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
)

// ReadFile reads a history from a file, or from in where its name is -. An empty format is found by what
// the file holds, where that leaves no doubt.
func ReadFile(ctx context.Context, in io.Reader, name string, f Format, o Options) (*History, error) {
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read a history: %w", err)
		}
		defer file.Close()
		in = file
	}
	r := bufio.NewReaderSize(interruptible{ctx, in}, detectSize)
	if f == "" {
		var err error
		if f, err = detect(r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return Read(r, name, f, o)
}

// interruptible is a reader that fails once its context has ended.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read reads.
func (i interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(b)
}

// detectSize is how much of a file detect looks at.
const detectSize = 1 << 16

// signs are what tells a format, the surer ones first.
var signs = []struct {
	sign   *regexp.Regexp
	format Format
}{
	{regexp.MustCompile(`\A[rw]\(`), Plume},
	{regexp.MustCompile(`\A(?:[-=]+\s+)*[rw][ \t]+-?[0-9]+[ \t]+-?[0-9]+\s*(?:\n|\z)`), AWDIT},
	{regexp.MustCompile(`(?s)\A[\[\s]*\{\s*".*"type"\s*:\s*"(?:invoke|ok|fail|info)"`), JepsenJSON},
	{regexp.MustCompile(`\A[\[{\s]*"(?:events|params)"\s*:`), DBCop},
	{regexp.MustCompile(`(?s)\A[\[{(#;].*:type.*[\[(]\s*:append\s`), Elle},
	{regexp.MustCompile(`(?s)\A[\[{(#;].*:type.*[\[(]\s*:w\s`), ElleRW},
}

// detect finds a format by how a file begins.
func detect(r *bufio.Reader) (Format, error) {
	begin, err := r.Peek(detectSize)
	if len(begin) == 0 && err != nil && err != io.EOF {
		return "", err
	}
	begin = bytes.TrimSpace(begin)
	if bytes.HasPrefix(begin, []byte(`{"isotap"`)) {
		return "", errors.New("the file is an export of a recording: isotap import makes a recording of it again")
	}
	for _, s := range signs {
		if s.sign.Match(begin) {
			return s.format, nil
		}
	}
	return "", fmt.Errorf("the file's beginning does not tell what history it holds: name its format, one of %s",
		formatNames())
}
