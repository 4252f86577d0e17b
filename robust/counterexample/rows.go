package counterexample

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
)

// rows gives the statements that fill the tables with the tuples that an execution begins with, and those that they refer to.
func rows(schema *robust.Schema, tables *Tables, s *robust.Schedule) ([]string, error) {
	f := &filling{schema: schema, inserted: make(map[robust.Tuple]bool), columns: make(map[robust.Tuple]map[string]string)}
	for i := range s.Runs {
		if err := f.use(&s.Runs[i]); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(f.order); i++ { // grows
		f.refer(f.order[i])
	}
	var all []string
	for _, t := range tables.schema.Tables() {
		r := f.relation(t.Name)
		for _, tuple := range f.order {
			if r == nil || tuple.Relation != r.Name || f.inserted[tuple] {
				continue
			}
			var names, values []string
			for _, c := range t.Columns {
				value, known := f.columns[tuple][strings.ToLower(c.Name)]
				if !known && !c.NotNull || c.Derived {
					continue
				}
				if !known {
					value = "1"
				}
				if c.Text {
					value = quote(value)
				}
				names, values = append(names, c.Name), append(values, value)
			}
			all = append(all, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", t.Name, strings.Join(names, ", "), strings.Join(values, ", ")))
		}
	}
	return all, nil
}

// A filling is of tables with tuples.
type filling struct {
	schema   *robust.Schema
	order    []robust.Tuple // all, as they are met
	inserted map[robust.Tuple]bool
	columns  map[robust.Tuple]map[string]string // values by the column's name in small letters
}

// relation finds a relation in any case.
func (f *filling) relation(name string) *robust.Relation {
	i := slices.IndexFunc(f.schema.Relations, func(r *robust.Relation) bool { return strings.EqualFold(r.Name, name) })
	if i < 0 {
		return nil
	}
	return f.schema.Relations[i]
}

// add adds a tuple, with the columns of its key.
func (f *filling) add(t robust.Tuple) error {
	if f.columns[t] != nil {
		return nil
	}
	r := f.relation(t.Relation)
	parts := strings.Split(t.Key, ",")
	if r == nil || len(parts) != len(r.Key) {
		return fmt.Errorf("the key of %s is not known", t)
	}
	f.order = append(f.order, t)
	f.columns[t] = make(map[string]string)
	for i, column := range r.Key {
		f.columns[t][strings.ToLower(column)] = parts[i]
	}
	return nil
}

// use adds the tuples of a run, with the columns that refer to others of its tuples.
func (f *filling) use(run *robust.Run) error {
	for at, tuples := range run.Tuples {
		for _, t := range tuples {
			if err := f.add(t); err != nil {
				return err
			}
			if run.Program.Statements[at].Type == robust.Ins {
				f.inserted[t] = true
			}
			for _, p := range run.Program.Statements[at].Parents {
				parent := run.Tuples[p.At][0]
				if err := f.add(parent); err != nil {
					return err
				}
				key := f.schema.ForeignKey(p.ForeignKey)
				for i, column := range key.Columns {
					f.columns[t][strings.ToLower(column)] = f.columns[parent][strings.ToLower(key.References[i])]
				}
			}
		}
	}
	return nil
}

// refer adds what a tuple refers to by all foreign keys; 1 is the value of columns that have none.
func (f *filling) refer(t robust.Tuple) {
	for _, key := range f.schema.ForeignKeys {
		parent := f.schema.Relation(key.Range)
		if key.Domain != t.Relation || len(key.References) != len(parent.Key) {
			continue
		}
		values := make([]string, len(parent.Key))
		for i, column := range key.Columns {
			at := slices.Index(parent.Key, key.References[i])
			if at < 0 {
				return // to another key than the primary one
			}
			name := strings.ToLower(column)
			if f.columns[t][name] == "" {
				f.columns[t][name] = "1"
			}
			values[at] = f.columns[t][name]
		}
		// It has as many values as the relation has key columns.
		_ = f.add(robust.Tuple{Relation: parent.Name, Key: strings.Join(values, ",")})
	}
}
