package scenario

import (
	"fmt"
	"io"
	"math/big"
	"slices"
)

// maxInterleavings bounds the scenarios of a specification that names no permutations.
const maxInterleavings = 10000

// A spec is a test specification of PostgreSQL's isolationtester, as src/test/isolation/README in PostgreSQL's source
// describes it.
type spec struct {
	setup        []string
	teardown     []string
	sessions     []specSession
	permutations [][]specEntry
}

type specSession struct {
	session Session
	steps   []Step // without their conditions, which permutations have
	lines   []int  // of the steps
}

// A specEntry is a step in a permutation, with its markers.
type specEntry struct {
	line   int
	step   string
	atOnce bool
	until  []Condition
}

// ReadSpec reads a specification of PostgreSQL's isolationtester (a .spec file) as it is, and gives a scenario for each
// of its permutations: those that it names, or all that keep each session's steps in their order. Their sessions run at
// READ COMMITTED where the steps do not say otherwise, as isolationtester's do. The scenarios are named after name. An
// error has the line.
func ReadSpec(r io.Reader, name string) ([]*Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the specification: %w", err)
	}
	p := specParser{scanner: specScanner{text: string(text), line: 1}}
	s, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("read the specification: %w", err)
	}
	all, err := s.scenarios(name)
	if err != nil {
		return nil, fmt.Errorf("read the specification: %w", err)
	}
	return all, nil
}

// scenarios returns one for each permutation.
func (s *spec) scenarios(name string) ([]*Scenario, error) {
	steps, err := s.steps()
	if err != nil {
		return nil, err
	}
	permutations := s.permutations
	if len(permutations) == 0 {
		if permutations, err = s.interleavings(); err != nil {
			return nil, err
		}
	}
	sessions := make([]Session, len(s.sessions))
	for i, x := range s.sessions {
		sessions[i] = x.session
		sessions[i].Settings = applicationName(name, x.session.Name)
	}
	unused := s.unused(permutations)
	all := make([]*Scenario, len(permutations))
	for i, permutation := range permutations {
		all[i] = &Scenario{Format: Format, Name: fmt.Sprintf("%s, permutation %d of %d", name, i+1, len(permutations)),
			Setup: s.setup, Sessions: sessions, InOrder: true, Teardown: s.teardown, Unused: unused}
		for _, entry := range permutation {
			step, ok := steps[entry.step]
			if !ok {
				return nil, fmt.Errorf("line %d: there is no step %q", entry.line, entry.step)
			}
			step.AtOnce, step.Until = entry.atOnce, entry.until
			all[i].Steps = append(all[i].Steps, step)
		}
		if err := checkMarkers(permutation, all[i].Steps); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// longestName is what PostgreSQL cuts names to, with a notice.
const longestName = 63

// applicationName is how isolationtester's sessions call themselves; none where that would need quotes, or be cut.
func applicationName(spec, session string) Settings {
	name := "isolation/" + spec + "/" + session
	if s, err := ParseSettings([]string{"application_name=" + name}); err == nil && len(name) <= longestName {
		return s
	}
	return nil
}

// unused are the names of the steps that no permutation has, in their order.
func (s *spec) unused(permutations [][]specEntry) []string {
	used := make(map[string]bool)
	for _, entry := range slices.Concat(permutations...) {
		used[entry.step] = true
	}
	var all []string
	for _, session := range s.sessions {
		for _, x := range session.steps {
			if !used[x.Name] {
				all = append(all, x.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// steps returns the steps by their names, which are unique.
func (s *spec) steps() (map[string]Step, error) {
	steps := make(map[string]Step)
	for _, session := range s.sessions {
		for i, x := range session.steps {
			if _, ok := steps[x.Name]; ok {
				return nil, fmt.Errorf("line %d: there are two steps %q", session.lines[i], x.Name)
			}
			steps[x.Name] = x
		}
	}
	return steps, nil
}

// checkMarkers refuses markers that name a step which is not in the permutation, or is its own session's: both could
// never come true.
func checkMarkers(permutation []specEntry, steps []Step) error {
	for i, entry := range permutation {
		for _, c := range entry.until {
			other := slices.IndexFunc(steps, func(x Step) bool { return x.Name == c.Step })
			switch {
			case other < 0:
				return fmt.Errorf("line %d: step %q has a marker with step %q, which its permutation does not have",
					entry.line, entry.step, c.Step)
			case steps[other].Session == steps[i].Session:
				return fmt.Errorf("line %d: step %q has a marker with step %q of its own session", entry.line,
					entry.step, c.Step)
			}
		}
	}
	if i, err := circle(steps); err != nil {
		return fmt.Errorf("line %d: %w", permutation[i].line, err)
	}
	return nil
}

// interleavings returns all orders of the steps that keep each session's own, the first session's steps first.
func (s *spec) interleavings() ([][]specEntry, error) {
	count, steps := big.NewInt(1), 0
	for _, x := range s.sessions {
		steps += len(x.steps)
		count.Mul(count, new(big.Int).Binomial(int64(steps), int64(len(x.steps))))
		if count.Cmp(big.NewInt(maxInterleavings)) > 0 {
			return nil, fmt.Errorf("the sessions' steps can be interleaved in more than %d ways: "+
				"name those to play by permutation lines", maxInterleavings)
		}
	}
	var all [][]specEntry
	next := make([]int, len(s.sessions)) // each session's next step
	order := make([]specEntry, 0, steps)
	var visit func()
	visit = func() {
		if len(order) == steps {
			all = append(all, slices.Clone(order))
			return
		}
		for i, x := range s.sessions {
			if next[i] == len(x.steps) {
				continue
			}
			order = append(order, specEntry{step: x.steps[next[i]].Name})
			next[i]++
			visit()
			next[i]--
			order = order[:len(order)-1]
		}
	}
	visit()
	return all, nil
}
