package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// ReadFile reads a configuration file into s and returns the names of the settings it has. A key that
// is no setting and a value that does not fit are errors that name the file, the line and the key. A
// key without a value is as good as absent.
func ReadFile(file string, s *Settings) (names []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	var document yaml.Node
	err = yaml.NewDecoder(bytes.NewReader(text)).Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil // it is empty, or all comment
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration %s: %w", file, err)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: settings are lines like \"listen: 127.0.0.1:3307\"", file, root.Line)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, at := root.Content[i], root.Content[i+1]
		if line, twice := seen[key.Value]; twice {
			return nil, fmt.Errorf("%s:%d: %s stands in line %d already", file, key.Line, key.Value, line)
		}
		seen[key.Value] = key.Line
		given, err := setNode(s, key, at)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, key.Line, err)
		}
		if given {
			names = append(names, key.Value)
		}
	}
	return names, nil
}

// setNode sets one setting from the file, and reports whether it has a value there.
func setNode(s *Settings, key, at *yaml.Node) (given bool, err error) {
	o := find(key.Value)
	if o == nil {
		return false, unknown(key.Value)
	}
	if at.Kind == yaml.AliasNode {
		at = at.Alias
	}
	if at.Kind != yaml.ScalarNode {
		return false, fmt.Errorf("%s: has one value, not a list or a map", key.Value)
	}
	if at.Tag == "!!null" {
		return false, nil
	}
	if err := o.bind(s).Set(at.Value); err != nil {
		return false, fmt.Errorf("%s: %w", key.Value, err)
	}
	return true, nil
}

func unknown(name string) error {
	names := make([]string, len(Options))
	for i := range Options {
		names[i] = Options[i].Name
	}
	if like := Nearest(name, names); like != "" {
		return fmt.Errorf("%q is no setting; did you mean %q?", name, like)
	}
	return fmt.Errorf("%q is no setting; configs/isotap.yaml and \"isotap config show\" list them", name)
}
