package robust

import "fmt"

// A Schema is a relational schema (3.1): the relations that programs use, and the foreign keys between them.
type Schema struct {
	Relations   []*Relation
	ForeignKeys []*ForeignKey
}

// A Relation is a table. Names are compared as they are: whoever makes a schema folds their case as the engine does.
type Relation struct {
	Name       string
	Attributes []string // Attr(R): all columns
	Key        []string // those of the primary key, in its order; none: there is no key, and no statement is by key
}

// A ForeignKey maps each tuple of Domain to the tuple of Range that it refers to. Columns and References are parallel;
// References is the key of Range.
type ForeignKey struct {
	Name       string // unique in the schema
	Domain     string // dom(f), the relation that refers
	Columns    []string
	Range      string // range(f), the relation referred to
	References []string
}

// Relation returns a relation by its name; nil when there is none.
func (s *Schema) Relation(name string) *Relation {
	for _, r := range s.Relations {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// ForeignKey returns a foreign key by its name; nil when there is none.
func (s *Schema) ForeignKey(name string) *ForeignKey {
	for _, f := range s.ForeignKeys {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Check returns what is wrong with the schema itself: names used twice, and attributes and relations that there are
// not.
func (s *Schema) Check() error {
	seen := make(map[string]bool)
	for _, r := range s.Relations {
		if seen[r.Name] {
			return fmt.Errorf("relation %s is there twice", r.Name)
		}
		seen[r.Name] = true
		if stray, ok := Of(r.Key...).outside(Of(r.Attributes...)); ok {
			return fmt.Errorf("relation %s: %s of its key is no attribute", r.Name, stray)
		}
	}
	seen = make(map[string]bool)
	for _, f := range s.ForeignKeys {
		if seen[f.Name] {
			return fmt.Errorf("foreign key %s is there twice", f.Name)
		}
		seen[f.Name] = true
		if err := s.checkForeignKey(f); err != nil {
			return fmt.Errorf("foreign key %s: %w", f.Name, err)
		}
	}
	return nil
}

func (s *Schema) checkForeignKey(f *ForeignKey) error {
	if len(f.Columns) != len(f.References) {
		return fmt.Errorf("%d columns refer to %d", len(f.Columns), len(f.References))
	}
	for _, end := range []struct {
		relation string
		columns  []string
	}{{f.Domain, f.Columns}, {f.Range, f.References}} {
		r := s.Relation(end.relation)
		if r == nil {
			return fmt.Errorf("there is no relation %s", end.relation)
		}
		if stray, ok := Of(end.columns...).outside(Of(r.Attributes...)); ok {
			return fmt.Errorf("relation %s has no attribute %s", r.Name, stray)
		}
	}
	return nil
}
