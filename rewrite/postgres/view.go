package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/multigres/multigres/go/common/parser/ast"

	"github.com/isotap/isotap/history"
)

// A view stays where it stands: what it is, who may read it and with whose rights it reads is the server's to know, at
// the moment when the statement runs. Beside each of its rows those of its tables are looked up by their keys, where it
// shows these: in the statement's own snapshot they are the ones that the view's row was made of (ADR 35).

// lookupName is that of a table whose rows are looked up.
const lookupName = "isotap_base"

// view adds a view, with what its rows tell of those that they are made of.
func (w *walker) view(rel *relation, n *ast.RangeVar, nullable bool) error {
	t, _ := w.lookup(n)
	s, err := sourceOf(t, n)
	if err != nil {
		return err
	}
	rel.base, rel.open, rel.count, rel.counted = &s, false, len(s.names), true
	if !t.Beside.IsZero() {
		w.miss(t.Beside)
	}
	for i := range t.Bases {
		shown, err := w.lookUp(&s, &t.Bases[i])
		if err != nil {
			w.miss(reasonOf(err))
			continue
		}
		shown.nullable = nullable
		rel.sights = append(rel.sights, shown)
	}
	return nil
}

// lookUp is what is seen of a table's row by looking it up beside a row of a view.
func (w *walker) lookUp(view *source, base *Base) (*sight, error) {
	if reason := w.waits(); !reason.IsZero() {
		return nil, refusal(reason)
	}
	name := &ast.RangeVar{SchemaName: base.Table.Schema, RelName: base.Table.Table, Inh: !base.Only,
		Alias: &ast.Alias{AliasName: lookupName}}
	t, reason := w.table(name)
	if t == nil {
		return nil, refusal(cmp.Or(reason, history.ReasonView))
	}
	if slices.ContainsFunc(w.indexesOf(t), w.orders) {
		return nil, refusal(history.ReasonPlan)
	}
	s, err := w.sourceOf(t, name)
	if err != nil {
		return nil, err
	}
	row, err := sightOf(&s)
	if err != nil {
		return nil, err
	}
	where, err := sameKey(&s, view, base.Key)
	if err != nil {
		return nil, err
	}
	only := ""
	if base.Only {
		only = "ONLY "
	}
	query := "(SELECT " + row.text + " FROM " + only + quoted(base.Table.Schema) + "." + quoted(base.Table.Table) +
		" AS " + lookupName + " WHERE " + where + ")"
	return &sight{source: Source{Table: row.source.Table, Array: true, Physical: row.source.Physical},
		exprs: []string{"ARRAY" + query}, types: []string{"pg_catalog.text[]"}, text: query, single: true,
		lookup: true}, nil
}

// waits returns the reason why looking up would not be of the same moment as the view's rows are, or would lock more.
func (w *walker) waits() history.Reason {
	if w.session.Serializable {
		return history.ReasonPlan // the pages of the keys' indexes
	}
	for i := range w.st.toks {
		if w.st.is(i, "FOR") {
			return history.ReasonLockedView // having waited for a row, the server goes on with a later version of it
		}
	}
	return history.Reason{}
}

// sameKey is the condition that a row of a table has the key that a view's row shows in some columns.
func sameKey(s, view *source, columns []string) (string, error) {
	if len(columns) != len(s.table.Key) {
		return "", refusal(history.ReasonView)
	}
	var all []string
	for i, column := range s.table.Key {
		here, err := s.column(column)
		if err != nil {
			return "", err
		}
		shown, err := view.column(columns[i])
		if err != nil {
			return "", err
		}
		all = append(all, s.columnOf(here)+" OPERATOR(pg_catalog.=) "+view.columnOf(shown))
	}
	return strings.Join(all, " AND "), nil
}

// looksUp reports whether rows are looked up beside those of the relation, and of the views in it.
func (rel *relation) looksUp() bool {
	return slices.ContainsFunc(rel.sights, func(s *sight) bool { return s.lookup })
}

// looksUp says so of the block's relations: what their views do to make a row is not known.
func (b *block) looksUp() bool { return slices.ContainsFunc(b.rels, (*relation).looksUp) }
