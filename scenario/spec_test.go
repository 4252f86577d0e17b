package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/isotap/isotap/internal/mutate"
)

const twoSessions = `# a comment
setup { CREATE TABLE t (a int); }
setup
{
 VACUUM t;
}
teardown { DROP TABLE t; }

session s1
setup		{ BEGIN; }
step a	{ SELECT 1; }   # behind
step "b ""1"""	{
  SELECT '#';
}
teardown { COMMIT; }

session "session"
step c { }
`

func TestSpecsGiveAScenarioForEachPermutation(t *testing.T) {
	all, err := ReadSpec(strings.NewReader(twoSessions+`
permutation a "c" "b ""1"""
permutation c(*, a notices 12, "b ""1""") a
 "b ""1""" c`), "two")
	if err != nil {
		t.Fatal(err)
	}
	a := Step{Session: "s1", Name: "a", SQL: "SELECT 1;"}
	b := Step{Session: "s1", Name: `b "1"`, SQL: "\n  SELECT '#';\n"}
	c := Step{Session: "session", Name: "c"}
	marked := c
	marked.AtOnce, marked.Until = true, []Condition{{Step: "a", Notices: 12}, {Step: `b "1"`}}
	want := Scenario{Format: Format, Name: "two, permutation 1 of 2", InOrder: true,
		Setup: []string{"CREATE TABLE t (a int);", "\n VACUUM t;\n"}, Teardown: []string{"DROP TABLE t;"},
		Sessions: []Session{{Name: "s1", Level: "READ COMMITTED",
			Settings: Settings{"application_name": "isolation/two/s1"}, Setup: []string{"BEGIN;"},
			Teardown: []string{"COMMIT;"}},
			{Name: "session", Level: "READ COMMITTED",
				Settings: Settings{"application_name": "isolation/two/session"}}},
		Steps: []Step{a, c, b}}
	second := want
	second.Name, second.Steps = "two, permutation 2 of 2", []Step{marked, a, b, c}
	if got := all; !reflect.DeepEqual(got, []*Scenario{&want, &second}) {
		t.Errorf("got %+v", got)
	}
}

func TestSpecsWithoutPermutationsGiveAllInTheirOrder(t *testing.T) {
	all, err := ReadSpec(strings.NewReader(twoSessions), "two")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		var names []string
		for _, x := range s.Steps {
			names = append(names, x.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{`a b "1" c`, `a c b "1"`, `c a b "1"`}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadSpecsAreRefusedWithTheLine(t *testing.T) {
	var many strings.Builder
	for session := range 4 {
		fmt.Fprintf(&many, "session s%d\n", session)
		for step := range 5 {
			fmt.Fprintf(&many, "step x%d%d {}\n", session, step)
		}
	}
	const one = "session a step x {} session b step y {}\n"
	for text, want := range map[string]string{
		"":                                 `line 1: the end where session should be`,
		"setup {}\nsetup }":                `line 2: unexpected character '}'`,
		"setup {\n\n}\nsetup { SELECT":     `line 4: SQL without }`,
		"setup\nsession a":                 `line 2: session where { should be`,
		"session setup":                    `line 1: setup where the name of a session should be`,
		"session \"a\n":                    `line 1: a name without its second quote`,
		"session a\nsetup {}":              `line 2: the end where step should be`,
		one + "teardown {}\nsetup {}":      `line 3: setup where permutation should be`,
		one + "step z {} step z {}":        `there are two steps "z"`,
		one + "permutation":                `line 2: the end where the name of a step should be`,
		one + "permutation x 1":            `line 2: 1 where permutation should be`,
		one + "permutation\nx\nz":          `line 4: there is no step "z"`,
		one + "permutation x y(":           `line 2: the end where * or the name of a step should be`,
		one + "permutation x y(x":          `line 2: the end where ) should be`,
		one + "permutation x y(y)":         `line 2: step "y" has a marker with step "y" of its own session`,
		one + "permutation y(x)":           `line 2: step "y" has a marker with step "x", which its permutation does not have`,
		one + "permutation x y(x notices":  `line 2: the end where a number of notices should be`,
		one + "permutation y(x notices 0)": `line 2: 0 is no number of notices`,
		many.String():                      `more than 10000 ways`,
	} {
		if _, err := ReadSpec(strings.NewReader(text), "bad"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadSpec(f *testing.F) {
	f.Add(twoSessions + "permutation a c(*, a notices 2) \"b \"\"1\"\"\"(c)")
	mutate.Fuzz(f, func(t *testing.T, text string) {
		all, err := ReadSpec(strings.NewReader(text), "fuzz")
		if err != nil {
			return
		}
		for _, s := range all {
			for _, x := range s.Steps {
				if s.Session(x.Session) == nil {
					t.Errorf("step %q has no session", x.Name)
				}
			}
			if _, err := s.check(); err != nil {
				t.Error(err)
			}
		}
	}, mutate.SQL...)
}
