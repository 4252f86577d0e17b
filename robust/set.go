package robust

import (
	"slices"
	"strings"
)

// A Set is a PReadSet, a ReadSet or a WriteSet: attributes of the statement's relation, or ⊥ where the statement has no
// such operation. The zero value is ⊥, which is other than the empty set: a key-based selection that reads no attribute
// still reads a tuple, which matters when dependencies are between whole tuples.
type Set struct {
	defined, all bool
	attributes   []string // sorted, each once
}

// Of returns the set of these attributes; of none: the empty set, which is defined.
func Of(attributes ...string) Set {
	sorted := slices.Clone(attributes)
	slices.Sort(sorted)
	return Set{defined: true, attributes: slices.Compact(sorted)}
}

// All returns the set of all attributes of a relation, whichever they are: for insertions and deletions, and wherever
// it is not known which attributes a statement uses.
func All() Set { return Set{defined: true, all: true} }

// Defined reports whether the set is not ⊥.
func (s Set) Defined() bool { return s.defined }

// IsAll reports whether the set is [All].
func (s Set) IsAll() bool { return s.all }

// Attributes returns the attributes in order; nothing for ⊥ and [All].
func (s Set) Attributes() []string { return slices.Clone(s.attributes) }

// Meets reports whether the sets have an attribute in common. ⊥ has none with any set.
func (s Set) Meets(other Set) bool {
	switch {
	case s.all && other.all:
		return true
	case s.all:
		return len(other.attributes) > 0
	case other.all:
		return len(s.attributes) > 0
	}
	return slices.ContainsFunc(s.attributes, func(a string) bool {
		_, found := slices.BinarySearch(other.attributes, a)
		return found
	})
}

// Union returns the attributes of both; ⊥ adds nothing.
func (s Set) Union(other Set) Set {
	switch {
	case !s.defined || other.all:
		return other
	case !other.defined || s.all:
		return s
	}
	return Of(slices.Concat(s.attributes, other.attributes)...)
}

// outside returns an attribute that the other set does not have.
func (s Set) outside(other Set) (string, bool) {
	for _, a := range s.attributes {
		if _, found := slices.BinarySearch(other.attributes, a); !found && !other.all {
			return a, true
		}
	}
	return "", false
}

// String returns the set as the paper prints it.
func (s Set) String() string {
	switch {
	case !s.defined:
		return "⊥"
	case s.all:
		return "{*}"
	}
	return "{" + strings.Join(s.attributes, ", ") + "}"
}
