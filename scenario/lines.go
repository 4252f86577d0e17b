package scenario

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// A lineError is an error in a line of a text, from 1.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }

func (e *lineError) Unwrap() error { return e.err }

// lineText is how the errors of all formats, the YAML package's among them, tell of a line.
var lineText = regexp.MustCompile(`\bline ([0-9]+): `)

// inFile returns an error of a file's text with its place, as file:line where it has a line.
func inFile(file string, err error) error {
	text := err.Error()
	at := lineText.FindStringSubmatchIndex(text)
	if at == nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return &fileError{fmt.Sprintf("%s:%s: %s%s", file, text[at[2]:at[3]], text[:at[0]], text[at[1]:]), err}
}

// A fileError is an error whose text has its line before all else.
type fileError struct {
	text string
	err  error
}

func (e *fileError) Error() string { return e.text }

func (e *fileError) Unwrap() error { return e.err }

// A yamlPath is a path in a YAML document: names of fields, and positions in lists.
type yamlPath []any

// in gives an error the line of its place in the document; a field that is not there, that of what it would be in.
func (p yamlPath) in(document []byte, err error) error {
	var root yaml.Node
	if yaml.Unmarshal(document, &root) != nil || len(root.Content) == 0 {
		return err
	}
	node := root.Content[0]
	for _, step := range p {
		next := child(node, step)
		if next == nil {
			break
		}
		node = next
	}
	return &lineError{node.Line, err}
}

// child returns what a node has under a name or at a position; nil for nothing.
func child(node *yaml.Node, step any) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch step := step.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return node.Content[step]
		}
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

// number is a step of a place by the number that a document has as a name.
func number(n int) string { return strconv.Itoa(n) }
