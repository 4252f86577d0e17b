package explore

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/history"
)

// versionsOf returns the columns that say how often their row was written, as an object mapper's optimistic lock has
// them: each UPDATE that sets one counts it up, and one of these asks for what it was, and sets something else besides.
// A number that is counted up by itself is somebody's, and no version.
func (s *schema) versionsOf(instances []*instance) map[column]bool {
	locks, otherwise := make(map[column]bool), make(map[column]bool)
	for _, in := range instances {
		for i := range in.statements {
			st := &in.statements[i]
			if st.recorded.Kind != history.Update || st.void {
				continue
			}
			for _, name := range st.assigned {
				of, known := s.named(st.target, name)
				switch counted, asked := st.countsUp(name); {
				case !known:
				case !counted:
					otherwise[of] = true
				case asked && s.setsBeside(st, name):
					locks[of] = true
				}
			}
		}
	}
	maps.DeleteFunc(locks, func(of column, _ bool) bool { return otherwise[of] })
	return locks
}

// setsBeside reports whether an UPDATE sets a column that is none of moments beside another one.
func (s *schema) setsBeside(st *statement, name string) bool {
	return slices.ContainsFunc(st.assigned, func(other string) bool {
		of, known := s.named(st.target, other)
		return !strings.EqualFold(other, name) && !(known && s.moments[of])
	})
}

// countsUp reports whether an UPDATE sets a column to one more than it was, and whether its condition asks for that.
func (s *statement) countsUp(name string) (counted, asked bool) {
	was, asked := s.asksFor(name)
	if s.addsOne(name) {
		return true, asked
	}
	for column, value := range s.sets {
		if asked && strings.EqualFold(column, name) {
			is, err := strconv.ParseInt(value, 10, 64)
			return err == nil && is == was+1, true
		}
	}
	return false, asked
}

// asksFor returns the number that a statement's condition compares a column with.
func (s *statement) asksFor(name string) (number int64, ok bool) {
	for i := range s.literals {
		l := &s.literals[i]
		if l.assigned || !strings.EqualFold(l.column.name, name) {
			continue
		}
		number, err := strconv.ParseInt(l.value, 10, 64)
		return number, err == nil
	}
	return 0, false
}

// addsOne reports whether an UPDATE sets a column to itself and one: n = n + 1, or n = COALESCE(n, 0) + 1, perhaps with
// a table's name before each.
func (s *statement) addsOne(name string) bool {
	names := func(at int) bool {
		got, _, ok := s.tokens[at].Name()
		return ok && strings.EqualFold(got, name)
	}
	for i := 2; i+1 < len(s.tokens); i++ {
		if !s.tokens[i].Is("+") || s.tokens[i+1].Text != "1" {
			continue
		}
		begin, reads := i-1, names(i-1)
		if s.tokens[begin].Is(")") {
			for begin > 0 && !s.tokens[begin].Is("COALESCE") {
				begin--
				reads = reads || names(begin)
			}
		} else if begin > 1 && s.tokens[begin-1].Is(".") {
			begin -= 2
		}
		if reads && begin > 1 && s.tokens[begin-1].Is("=") && names(begin-2) {
			return true
		}
	}
	return false
}
