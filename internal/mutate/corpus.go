package mutate

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// An input is what a target is called with, after the *testing.T.
type input []any

// clone returns a copy whose bytes are its own: a target may change what it is given.
func (in input) clone() input {
	in = slices.Clone(in)
	for i, v := range in {
		if b, ok := v.([]byte); ok {
			in[i] = bytes.Clone(b)
		}
	}
	return in
}

// corpusVersion is the first line of the files that go test -fuzz keeps inputs in.
const corpusVersion = "go test fuzz v1"

// marshal writes an input as those files have it: a line for each value.
func (in input) marshal() []byte {
	b := []byte(corpusVersion + "\n")
	for _, v := range in {
		switch v.(type) {
		case []byte, string:
			b = fmt.Appendf(b, "%s(%q)\n", typeName(reflect.TypeOf(v)), v)
		default:
			b = fmt.Appendf(b, "%s(%v)\n", typeName(reflect.TypeOf(v)), v)
		}
	}
	return b
}

func typeName(t reflect.Type) string {
	if t == reflect.TypeFor[[]byte]() {
		return "[]byte"
	}
	return t.String()
}

// write keeps an input as one of a target's in testdata, under the name that go test would give it, and returns the
// file.
func (in input) write(target string) (string, error) {
	text := in.marshal()
	dir := filepath.Join("testdata", "fuzz", target)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("make a directory for an input: %w", err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256(text))[:16])
	if err := os.WriteFile(name, text, 0o666); err != nil {
		return "", fmt.Errorf("keep an input: %w", err)
	}
	return name, nil
}

// readCorpus reads a target's inputs in a directory of go test -fuzz; none where there is no such directory.
func readCorpus(dir, target string, types []reflect.Type) (inputs []input, err error) {
	if dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(filepath.Join(dir, target))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for i := 0; i < len(files) && err == nil; i++ {
		name := filepath.Join(dir, target, files[i].Name())
		var text []byte
		if text, err = os.ReadFile(name); err != nil {
			break
		}
		var in input
		if in, err = unmarshal(text, types); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		inputs = append(inputs, in)
	}
	if err != nil {
		return nil, fmt.Errorf("read kept inputs: %w", err)
	}
	return inputs, nil
}

// aValue is one in a file of go test -fuzz.
var aValue = regexp.MustCompile(`^(\[\]byte|\w+)\((.*)\)$`)

// unmarshal reads an input of such types. A target may have got other parameters since go test kept it.
func unmarshal(text []byte, types []reflect.Type) (input, error) {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if string(bytes.TrimSpace(lines[0])) != corpusVersion || len(lines) != len(types)+1 {
		return nil, fmt.Errorf("it does not hold %d values in the form %q", len(types), corpusVersion)
	}
	var in input
	for i, t := range types {
		m := aValue.FindSubmatch(bytes.TrimSpace(lines[i+1]))
		if m == nil {
			return nil, fmt.Errorf("%q is no value", lines[i+1])
		}
		v, err := parseValue(t, string(m[2]))
		if err != nil {
			return nil, fmt.Errorf("read %q as %v: %w", lines[i+1], t, err)
		}
		in = append(in, v)
	}
	return in, nil
}

// parseValue reads what stands between the parentheses.
func parseValue(t reflect.Type, text string) (any, error) {
	v := reflect.New(t).Elem()
	var err error
	switch {
	case t.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case t.Kind() == reflect.String || t == reflect.TypeFor[[]byte]():
		var s string
		s, err = strconv.Unquote(text)
		v.Set(reflect.ValueOf(s).Convert(t))
	case len(text) > 2 && text[0] == '\'': // a byte or a rune
		var r rune
		r, _, _, err = strconv.UnquoteChar(text[1:len(text)-1], '\'')
		v.Set(reflect.ValueOf(r).Convert(t))
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 0, t.Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 0, t.Bits())
		v.SetUint(n)
	default:
		err = errors.New("no target has this type")
	}
	return v.Interface(), err
}
