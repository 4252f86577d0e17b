package baseline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/isotap/isotap/analyzer"
)

// Schema names the file's schema and its version, which grows when a field goes away or changes its meaning.
const Schema = "isotap-baseline/1"

// document is the file as JSON has it.
type document struct {
	Schema   string  `json:"schema"`
	Findings []Entry `json:"findings"`
}

// ReadFile reads a baseline. An error names the file and, where there is one, the line; it is
// [os.ErrNotExist] when there is no file.
func ReadFile(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	f, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("baseline %s: %w", path, err)
	}
	return f, nil
}

func parse(text []byte) (*File, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var doc document
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("line %d: %w", lineOf(text, dec.InputOffset(), err), err)
	}
	if doc.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q, and this isotap reads %q", doc.Schema, Schema)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: something follows the document", lineOf(text, dec.InputOffset(), nil))
	}
	seen := make(map[string]bool)
	for i, e := range doc.Findings {
		switch {
		case e.ID == "":
			return nil, fmt.Errorf("finding %d has no id", i+1)
		case seen[e.ID]:
			return nil, fmt.Errorf("finding %s is there twice", e.ID)
		case !slices.Contains([]analyzer.Class{analyzer.Violation, analyzer.Hazard, analyzer.Unprotected}, e.Class):
			return nil, fmt.Errorf("finding %s: class %q is neither violation nor hazard nor unprotected", e.ID, e.Class)
		}
		seen[e.ID] = true
	}
	return &File{Findings: doc.Findings}, nil
}

// lineOf returns the line, from 1, that an error is about.
func lineOf(text []byte, offset int64, err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n"))
}

// WriteFile puts a baseline in the place of the one that is there, sorted, so that its differences are those
// of the findings.
func (f *File) WriteFile(path string) error {
	slices.SortFunc(f.Findings, compare)
	doc := document{Schema, f.Findings}
	if doc.Findings == nil {
		doc.Findings = []Entry{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is read as it is, and SQL is full of < and >
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	if err := replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	return nil
}

// replace writes a file whole or not at all.
func replace(path string, text []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	t, err := os.CreateTemp(filepath.Dir(path), ".isotap-baseline-*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	_, err = t.Write(text)
	if err := errors.Join(err, t.Chmod(mode), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
