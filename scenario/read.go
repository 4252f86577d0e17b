package scenario

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/isotap/isotap/history"
)

// Read reads what [Scenario.Write] wrote. What cannot be played is an error with its line: a field that it does not
// know, a step of a session that is not listed, a level that there is not, steps that wait for each other.
func Read(r io.Reader) (*Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var s Scenario
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("read the scenario: %w", err)
	}
	if s.Format != Format {
		return nil, yamlPath{"format"}.in(text, fmt.Errorf("the scenario's format is %q, and this isotap reads %q",
			s.Format, Format))
	}
	if at, err := s.check(); err != nil {
		return nil, at.in(text, err)
	}
	return &s, nil
}

// check refuses what cannot be played, and says where it stands.
func (s *Scenario) check() (yamlPath, error) {
	for i, x := range s.Sessions {
		if x.Level != "" {
			if _, err := history.ParseLevel(x.Level); err != nil {
				return yamlPath{"sessions", i}, err
			}
		}
		if err := x.Settings.check(); err != nil {
			return yamlPath{"sessions", i, "settings"}, err
		}
	}
	for i, x := range s.Steps {
		if s.Session(x.Session) == nil {
			return yamlPath{"steps", i}, fmt.Errorf("step %d is of session %q, which is not listed", i+1, x.Session)
		}
		for _, c := range x.Until {
			if !slices.ContainsFunc(s.Steps, func(other Step) bool { return c.Step != "" && other.Name == c.Step }) {
				return yamlPath{"steps", i, "until"},
					fmt.Errorf("step %d has a condition on step %q, which is not listed", i+1, c.Step)
			}
		}
	}
	if i, err := circle(s.Steps); err != nil {
		return yamlPath{"steps", i, "until"}, err
	}
	return s.checkOutcomes()
}

// circle refuses conditions by which steps wait for each other: none of them could ever count as ended. It gives one of
// them.
func circle(steps []Step) (int, error) {
	named := make(map[string][]int) // steps of each name
	for i, x := range steps {
		if x.Name != "" {
			named[x.Name] = append(named[x.Name], i)
		}
	}
	seen := make(map[int]bool)
	for i := range steps {
		if path := circleFrom(steps, named, i, seen, nil); path != nil {
			return path[0], fmt.Errorf("steps wait for each other: %s", strings.Join(names(steps, path), ", "))
		}
	}
	return 0, nil
}

// circleFrom returns the steps of a circle of conditions that a step leads to, which begins and ends with one step; nil
// where there is none. Steps that were seen, and are not on the path, lead to none.
func circleFrom(steps []Step, named map[string][]int, step int, seen map[int]bool, path []int) []int {
	if at := slices.Index(path, step); at >= 0 {
		return append(path[at:], step)
	}
	if seen[step] {
		return nil
	}
	seen[step] = true
	for _, c := range steps[step].Until {
		if c.Notices > 0 {
			continue
		}
		for _, next := range named[c.Step] {
			if found := circleFrom(steps, named, next, seen, append(path, step)); found != nil {
				return found
			}
		}
	}
	return nil
}

func names(steps []Step, path []int) []string {
	all := make([]string, len(path))
	for i, step := range path {
		all[i] = steps[step].Name
	}
	return all
}

// checkOutcomes refuses outcomes of what there is not.
func (s *Scenario) checkOutcomes() (yamlPath, error) {
	for i, o := range s.Outcomes {
		for _, l := range o.Levels {
			if _, err := history.ParseLevel(l); err != nil {
				return yamlPath{"outcomes", i, "levels"}, fmt.Errorf("the scenario's outcomes: %w", err)
			}
		}
		if err := o.Settings.check(); err != nil {
			return yamlPath{"outcomes", i, "settings"}, err
		}
		if n, ok := s.noStep(o.Steps); ok {
			return yamlPath{"outcomes", i, "steps", number(n)},
				fmt.Errorf("the scenario's outcomes speak of step %d of %d", n, len(s.Steps))
		}
	}
	if n, ok := s.noStep(s.Witness); ok {
		return yamlPath{"witness", number(n)}, fmt.Errorf("the scenario's witness speaks of step %d of %d", n,
			len(s.Steps))
	}
	return nil, nil
}

// noStep returns the least number among those of replies that no step has.
func (s *Scenario) noStep(replies map[int]Reply) (int, bool) {
	var none []int
	for n := range replies {
		if n < 1 || n > len(s.Steps) {
			none = append(none, n)
		}
	}
	if len(none) == 0 {
		return 0, false
	}
	return slices.Min(none), true
}
