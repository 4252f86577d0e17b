package scenario

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
)

// The beginnings of lines by which formats are told apart.
var (
	ownLine  = regexp.MustCompile(`(?m)^format:`)
	specLine = regexp.MustCompile(`(?m)^\s*step\s+("[^"\n]*"|\w+)\s*\{`)
)

// ReadFile reads the scenarios of a file, in the format that its name or, where that says nothing, its text has: a
// specification of isolationtester (.spec, see [ReadSpec]), a script of ReplBug (see [ReadReplBug]), or isotap's own
// (see [Read]). What other formats hold is named after the file. An error names it.
func ReadFile(r io.Reader, file string) ([]*Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	all, err := readText(text, file)
	if err != nil {
		return nil, inFile(file, err)
	}
	for _, s := range all {
		s.File = file
	}
	return all, nil
}

// readText reads the text of a file.
func readText(text []byte, file string) ([]*Scenario, error) {
	extension := filepath.Ext(file)
	name := strings.TrimSuffix(filepath.Base(file), extension)
	own := extension == ".yaml" || extension == ".yml" || ownLine.Match(text)
	switch {
	case extension == ".spec" || !own && specLine.Match(text):
		return ReadSpec(bytes.NewReader(text), name)
	case !own && replBugPrompt.Match(text):
		return only(ReadReplBug(bytes.NewReader(text), name))
	}
	return only(Read(bytes.NewReader(text)))
}

// only is the list of one scenario.
func only(s *Scenario, err error) ([]*Scenario, error) {
	if err != nil {
		return nil, err
	}
	return []*Scenario{s}, nil
}
