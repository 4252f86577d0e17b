package mining

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/sqltoken/shape"
)

// A slot is an argument of a statement of a program, with its values.
type slot struct {
	loops  []*node           // around the statement, from the outermost
	values map[string]string // by trace and iterations
	name   string
}

// A naming gives the arguments of one program names: arguments that were equal in all calls, in the same iterations,
// have the same.
type naming struct {
	slots []*slot
}

// place names a trace and iterations in it.
func place(trace int, path []int) string { return fmt.Sprint(trace, path) }

// add names an argument by what was seen of it. An argument that was never seen has no name.
func (n *naming) add(s *slot) string {
	if len(s.values) == 0 {
		return ""
	}
	if v, one := s.constant(); one {
		s.name = v
		return s.name
	}
	for _, other := range n.slots {
		if other.sameAs(s) {
			s.name = other.name
			return s.name
		}
	}
	s.name = fmt.Sprintf(":v%d", len(n.slots)+1)
	n.slots = append(n.slots, s)
	return s.name
}

// constant returns the only value that was seen.
func (s *slot) constant() (value string, one bool) {
	first := true
	for _, v := range s.values {
		if !first && v != value {
			return "", false
		}
		value, first = v, false
	}
	return value, true
}

// sameAs reports whether a later slot, in the same loops or further inside, always had this one's value.
func (s *slot) sameAs(later *slot) bool {
	if len(s.loops) > len(later.loops) || !slices.Equal(s.loops, later.loops[:len(s.loops)]) {
		return false
	}
	met := false
	for at, v := range later.values {
		mine, ok := s.values[outer(at, len(s.loops))]
		if !ok {
			continue
		}
		if mine != v {
			return false
		}
		met = true
	}
	return met
}

// outer cuts the name of a place to the iterations of the first loops.
func outer(at string, loops int) string {
	trace, path, _ := strings.Cut(at, " [")
	fields := strings.Fields(strings.TrimSuffix(path, "]"))
	return trace + " [" + strings.Join(fields[:min(loops, len(fields))], " ") + "]"
}

// plain writes a value alike however the client sent it; ok is false for one that is not known whole.
func plain(arg string) (value string, ok bool) {
	if len(arg) >= shape.MaxArg || strings.EqualFold(arg, "NULL") {
		return "", false
	}
	if n := len(arg); n >= 2 && arg[0] == '\'' && arg[n-1] == '\'' {
		arg = arg[1 : n-1]
	}
	return arg, arg != ""
}
