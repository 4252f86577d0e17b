package programs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/recorder"
	"github.com/isotap/isotap/robust/definitions"
)

// recorded adds the definitions that recordings hold. Statements do not say which database they are in, and so
// definitions of one name in several databases must be the same.
func (t *tables) recorded(ctx context.Context, family dbms.Family, recordings []*recorder.Reader) error {
	k := known{named: make(map[string][]history.Definition), found: make(map[string]bool),
		missing: make(map[string]string)}
	for _, r := range recordings {
		for _, run := range r.Runs() {
			for d, err := range r.Definitions(ctx, run.Run) {
				if err != nil {
					return fmt.Errorf("read the definitions of tables: %w", err)
				}
				k.add(&d)
			}
		}
	}
	var all []definitions.Table
	for _, name := range k.order {
		if last, same := k.last(name); same {
			all = append(all, definitions.Table{Spelled: name, SQL: last.SQL, References: last.References})
		}
	}
	if err := t.add(family, "recorded definitions of tables", definitions.Text(all)); err != nil {
		return err
	}
	t.remarks = append(t.remarks, k.remarks()...)
	return nil
}

// known are definitions that were recorded.
type known struct {
	order   []string // of names, as they were seen first
	named   map[string][]history.Definition
	found   map[string]bool   // databases of which there are some
	missing map[string]string // why there are none, by database
}

func (k *known) add(d *history.Definition) {
	if d.Missing != "" {
		k.missing[d.Database] = d.Missing
		return
	}
	if k.named[d.Name] == nil {
		k.order = append(k.order, d.Name)
	}
	k.named[d.Name] = append(k.named[d.Name], *d)
	k.found[d.Database] = true
}

// alike reports whether two definitions say the same.
func alike(a, b *history.Definition) bool { return a.SQL == b.SQL && a.References == b.References }

// last returns the last definition of a name, and whether those of all databases that have it are alike.
func (k *known) last(name string) (last history.Definition, same bool) {
	byDatabase := make(map[string]history.Definition)
	for _, d := range k.named[name] {
		byDatabase[d.Database], last = d, d
	}
	for _, d := range byDatabase {
		if !alike(&d, &last) {
			return last, false
		}
	}
	return last, true
}

// changed reports whether a table was defined differently in the course of the recording.
func (k *known) changed(name string) bool {
	first := &k.named[name][0]
	return slices.ContainsFunc(k.named[name], func(d history.Definition) bool {
		return d.Database == first.Database &&
			!alike(&d, first)
	})
}

// remarks returns what of the definitions does not hold for the whole recording.
func (k *known) remarks() (remarks []string) {
	for _, database := range slices.Sorted(maps.Keys(k.missing)) {
		if !k.found[database] {
			remarks = append(remarks, fmt.Sprintf("the definitions of the tables of database %s were not recorded: %s",
				database, k.missing[database]))
		}
	}
	for _, name := range k.order {
		if _, same := k.last(name); !same {
			remarks = append(remarks, fmt.Sprintf("%s is defined differently in several databases: it is left out; "+
				"give --upstream, or record one database at a time", name))
		} else if k.changed(name) {
			remarks = append(remarks, fmt.Sprintf("%s was changed while it was recorded: "+
				"its last definition counts for all of the recording", name))
		}
	}
	return remarks
}
