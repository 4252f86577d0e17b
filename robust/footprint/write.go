package footprint

import (
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
)

// write derives an UPDATE or DELETE.
func (d *deriver) write(q *query, s *scope, top bool) {
	if q.target != nil {
		d.bind(s, []source{*q.target})
	}
	d.bind(s, q.from)
	if d.err != nil {
		return
	}
	written := d.written(q, s)
	if d.err != nil {
		return
	}
	for i := range q.sets {
		d.mark(s, []expr{q.sets[i].value}, false)
	}
	d.mark(s, q.computed, false)
	d.markReturned(q, s, written)
	s.equalities(q.where)
	key, rest := s.keyed(q.where)
	if !top || key != nil && d.changesKey(written[s.sources[0]], s.sources[0]) {
		key = nil
	}
	if key != nil {
		d.mark(s, rest, false)
		d.writeByKey(q, s.sources[0], written[s.sources[0]], key, len(rest) > 0)
		return
	}
	d.mark(s, q.where, true)
	d.mark(s, q.others, true)
	for _, b := range s.sources {
		if b.table != nil {
			d.writeByPredicate(q, b, written)
		}
	}
}

// written returns which columns of which sources are written. A DELETE writes all.
func (d *deriver) written(q *query, s *scope) map[*bound]map[string]bool {
	all := map[*bound]map[string]bool{}
	if q.verb == deletes {
		for _, b := range s.sources {
			named := func(t source) bool { return strings.EqualFold(t.table, b.name) }
			if len(q.targets) > 0 && slices.ContainsFunc(q.targets, named) || len(q.targets) == 0 && b == s.sources[0] {
				all[b] = map[string]bool{}
			}
		}
		return all
	}
	for _, a := range q.sets {
		e := expr{kind: column, qualifier: a.qualifier, name: a.column}
		var b *bound
		if q.target != nil {
			b = s.sources[0]
		} else if found := s.find(&e); len(found) == 1 {
			b = found[0]
		}
		if b == nil || b.table == nil || b.table.Column(a.column) == nil {
			d.fail("there is no column %s to write", a.column)
			return nil
		}
		if all[b] == nil {
			all[b] = map[string]bool{}
		}
		all[b][b.table.spell([]string{a.column})[0]] = true
	}
	for b, columns := range all {
		for _, c := range b.table.Columns {
			if c.Derived {
				columns[c.Name] = true
			}
		}
	}
	return all
}

// markReturned takes note of what RETURNING gives: of a column that the statement writes, what it wrote.
func (d *deriver) markReturned(q *query, s *scope, written map[*bound]map[string]bool) {
	for i := range q.outputs {
		q.outputs[i].each(func(e *expr) {
			if b := s.own(e); b != nil && !e.old && written[b][b.table.spell([]string{e.name})[0]] {
				return
			}
			d.mark(s, []expr{{kind: e.kind, qualifier: e.qualifier, name: e.name, query: e.query, old: e.old}}, false)
		})
	}
}

// changesKey reports whether columns of a key are written.
func (d *deriver) changesKey(columns map[string]bool, b *bound) bool {
	for name := range columns {
		if b.table.keyColumn(name) {
			return true
		}
	}
	return false
}

func (d *deriver) writeByKey(q *query, b *bound, columns map[string]bool, key []string, conditional bool) {
	a := b.access(robust.KeyUpd)
	a.Key, a.Shows = key, b.shows(q.outputs)
	if q.verb == deletes {
		a.Type, a.Write = robust.KeyDel, b.all()
	} else {
		a.Read, a.Write = b.read(), b.set(columns)
	}
	if conditional {
		seen := b.access(robust.KeySel)
		seen.Key, seen.Read = key, b.read()
		d.step(a, seen)
	} else {
		d.step(a)
	}
	d.consequences(q.verb, b.table, columns)
}

func (d *deriver) writeByPredicate(q *query, b *bound, written map[*bound]map[string]bool) {
	a := b.access(robust.PredSel)
	a.PRead, a.Read = b.set(b.looked), b.set(b.observed)
	columns, writes := written[b]
	switch {
	case !writes:
		d.step(a)
		return
	case q.verb == deletes:
		a.Type, a.Read, a.Write = robust.PredDel, robust.Set{}, b.all()
	default:
		a.Type, a.Write = robust.PredUpd, b.set(columns)
	}
	if d.changesKey(columns, b) {
		d.note("it changes a key of %s: no statement over %s is taken as by that key", b.table.Name, b.table.Name)
	}
	d.step(a)
	d.consequences(q.verb, b.table, columns)
}

// consequences adds what the server does when rows of a table are deleted, or get new values: what it writes through
// each foreign key, one after the other; all of it twice where it can come back to one, so that each is written before
// and after the others.
func (d *deriver) consequences(v verb, t *Table, columns map[string]bool) {
	d.triggers(t)
	through := d.cascading(v, t, columns)
	times := 1
	for i := 0; i < len(through); i++ {
		d.note("%s makes the server write %s too", through[i].Name, through[i].Child.Name)
		d.triggers(through[i].Child)
		for _, f := range d.cascading(deletes, through[i].Child, nil) {
			if slices.ContainsFunc(through, func(g Function) bool { return g.Child == f.Child && g.Name == f.Name }) {
				times = 2
			} else {
				through = append(through, f)
			}
		}
	}
	for range times {
		for _, f := range through {
			b := bound{table: f.Child}
			a := b.access(robust.PredDel)
			a.PRead, a.Write = robust.Of(f.ChildColumns...), b.all()
			d.step(a)
		}
	}
}

func (d *deriver) triggers(t *Table) {
	if t.Triggers {
		d.note("%s has triggers: what they read and write is not known", t.Name)
	}
}

// cascading returns the foreign keys through which the server writes the rows that refer to those that are written.
func (d *deriver) cascading(v verb, t *Table, columns map[string]bool) []Function {
	return slices.DeleteFunc(d.schema.Functions(), func(f Function) bool {
		changed := slices.ContainsFunc(f.ParentColumns, func(name string) bool { return columns[name] })
		return f.Parent != t || !(v == deletes && f.cascadesDelete || v == updates && f.cascadesUpdate && changed)
	})
}

// insert derives an INSERT or REPLACE.
func (d *deriver) insert(q *query, s *scope, top bool) {
	b := d.source(q.target, s)
	if d.err != nil {
		return
	}
	if b.table == nil {
		d.fail("%s is a view: what an INSERT into it writes is not known", q.target.table)
		return
	}
	for _, row := range q.rows {
		d.mark(s, row, false)
	}
	columns := q.columns
	if columns == nil {
		columns = b.table.Attributes()
	}
	for _, name := range columns {
		if b.table.Column(name) == nil {
			d.fail("there is no column %s in %s", name, b.table.Name)
			return
		}
	}
	if len(q.rows) == 1 && len(q.rows[0]) <= len(columns) {
		for i, e := range q.rows[0] {
			if e.kind == value {
				b.values[b.table.spell(columns)[i]] = e.symbol
			}
		}
	}
	a := b.access(robust.Ins)
	a.Write = b.all()
	if top {
		a.Shows = b.shows(q.outputs)
	}
	s.sources = append(s.sources, b)
	d.mark(s, q.outputs, false) // of a row that is there already, if the statement updates that
	d.insertion(q, s, b, a)
	d.triggers(b.table)
}

// insertion adds the insertion, and what comes of a key that is there.
func (d *deriver) insertion(q *query, s *scope, b *bound, a Access) {
	repeated := len(q.rows) > 1 || len(q.inner) > 0
	if q.conflict.kind == fails {
		d.steps = append(d.steps, Step{Either: []Access{a}, Repeated: repeated})
		return
	}
	of := b.all()
	if len(q.conflict.columns) > 0 && !slices.Contains(q.conflict.columns, "") {
		of = robust.Of(b.table.spell(q.conflict.columns)...)
	}
	a.Shows = nil
	if q.conflict.kind == replaces {
		d.steps = append(d.steps, Step{Either: []Access{{Table: b.table, Type: robust.PredDel, PRead: of,
			Write: b.all()}}, Repeated: repeated})
		d.consequences(deletes, b.table, nil)
		d.steps = append(d.steps, Step{Either: []Access{a}, Repeated: repeated})
		return
	}
	d.step(Access{Table: b.table, Type: robust.PredSel, PRead: of, Read: robust.Of()})
	st := Step{Either: []Access{a}, Optional: q.conflict.kind == passes, Repeated: repeated}
	if q.conflict.kind == updatesInstead {
		st.Either = append(st.Either, d.instead(q, s, b, of))
	}
	d.steps = append(d.steps, st)
}

// instead is the update of the row that is there.
func (d *deriver) instead(q *query, s *scope, b *bound, of robust.Set) Access {
	columns := map[string]bool{}
	for _, set := range q.conflict.sets {
		d.mark(s, []expr{set.value}, false)
		if b.table.Column(set.column) == nil {
			d.fail("there is no column %s in %s", set.column, b.table.Name)
			return Access{}
		}
		columns[b.table.spell([]string{set.column})[0]] = true
	}
	d.mark(s, q.conflict.where, true)
	if d.changesKey(columns, b) {
		d.note("it changes a key of %s: no statement over %s is taken as by that key", b.table.Name, b.table.Name)
	}
	return Access{Table: b.table, Type: robust.PredUpd, PRead: of.Union(b.set(b.looked)), Read: b.set(b.observed),
		Write: b.set(columns)}
}
