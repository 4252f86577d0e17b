package footprint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isotap/isotap/robust"
)

// A deriver derives the accesses of one statement.
type deriver struct {
	schema *Schema
	steps  []Step
	notes  []string
	err    error
	// depth is how deep the query is inside of others, and queries how many there were.
	depth, queries int
}

// Bounds of a statement's queries, with those of its views: how deep they may be inside of others, since views can make
// circles, and how many they may be, since each view can use another one twice.
const (
	maxDepth   = 100
	maxQueries = 2000
)

// A bound source is one that columns can be of.
type bound struct {
	name  string
	table *Table // nil: a query, whose columns are of no concern: all that it reads is taken as read
	// looked and observed are the columns that conditions look at, and that are read otherwise.
	looked, observed map[string]bool
	values           map[string]string
}

// A scope is where a query's columns are looked up.
type scope struct {
	outer   *scope
	sources []*bound
	named   map[string]bool // queries that WITH names
}

func (d *deriver) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func (d *deriver) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// query derives a statement, or a query inside of one.
func (d *deriver) query(q *query, outer *scope, top bool) {
	if d.depth++; d.depth > maxDepth {
		d.fail("queries are nested too deep")
	}
	defer func() { d.depth-- }()
	if d.queries++; d.queries > maxQueries {
		d.fail("it has more than %d queries, those of its views counted", maxQueries)
	}
	if d.err != nil {
		return
	}
	s := &scope{outer: outer, named: map[string]bool{}}
	for _, n := range q.with {
		s.named[strings.ToLower(n.name)] = true // WITH RECURSIVE knows itself
		d.query(n.query, s, false)
	}
	for _, i := range q.inner {
		d.query(i, s, false)
	}
	switch q.verb {
	case reads:
		d.selects(q, s, top)
	case inserts:
		d.insert(q, s, top)
	case merges:
		d.merge(q, s)
	default:
		d.write(q, s, top)
	}
}

// bind makes the sources known to a scope.
func (d *deriver) bind(s *scope, from []source) {
	for i := range from {
		s.sources = append(s.sources, d.source(&from[i], s))
	}
}

func (d *deriver) source(src *source, s *scope) *bound {
	b := &bound{name: src.name(), looked: map[string]bool{}, observed: map[string]bool{}, values: map[string]string{}}
	if src.query != nil {
		d.query(src.query, s, false)
		return b
	}
	for at := s; at != nil; at = at.outer {
		if src.schema == "" && at.named[strings.ToLower(src.table)] {
			return b
		}
	}
	t := d.schema.Table(src.schema, src.table)
	switch {
	case t == nil:
		d.fail("there is no table %s in the schema", qualified(src.schema, src.table))
	case t.View && t.definition == nil:
		d.fail("%s is a view whose query is not known", qualified(src.schema, src.table))
	case t.View:
		d.query(t.definition, nil, false)
	default:
		b.table = t
	}
	return b
}

// find returns the sources that a column may be of: of the innermost query that has one.
func (s *scope) find(e *expr) (found []*bound) {
	for at := s; at != nil && found == nil; at = at.outer {
		for _, b := range at.sources {
			switch {
			case e.qualifier != "" && !e.old && !strings.EqualFold(e.qualifier, b.name):
			case e.kind == star, b.table == nil && e.qualifier != "", b.table != nil && b.table.Column(e.name) != nil:
				found = append(found, b)
			}
		}
		if found == nil && e.qualifier == "" &&
			slices.ContainsFunc(at.sources, func(b *bound) bool { return b.table == nil }) {
			return []*bound{{}} // it is a query's
		}
	}
	return found
}

// mark takes note of the columns in expressions. In a condition they are looked at.
func (d *deriver) mark(s *scope, list []expr, condition bool) {
	for i := range list {
		list[i].each(func(e *expr) {
			switch e.kind {
			case subquery:
				d.query(e.query, s, false)
			case column, star:
				d.markColumn(s, e, condition)
			}
		})
	}
}

func (d *deriver) markColumn(s *scope, e *expr, condition bool) {
	found := s.find(e)
	if len(found) == 0 && e.kind == column && !systemColumn(e.name) && !d.alias(s, e) {
		d.fail("there is no column %s", strings.TrimPrefix(e.qualifier+"."+e.name, "."))
	}
	for _, b := range found {
		if b.table == nil {
			continue
		}
		names := b.table.Attributes()
		if e.kind == column {
			names = b.table.spell([]string{e.name})
		}
		for _, name := range names {
			if condition {
				b.looked[name] = true
			} else {
				b.observed[name] = true
			}
		}
	}
}

// systemColumn reports whether a name is one that all of PostgreSQL's tables have, or of what stands for a row that is
// written.
func systemColumn(name string) bool {
	return slices.Contains([]string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}, strings.ToLower(name))
}

// alias reports whether a name may be one of a select list's, of a whole row (t), or a keyword that the grammar takes
// for a column.
func (d *deriver) alias(s *scope, e *expr) bool {
	if e.qualifier == "excluded" || e.qualifier == "new" {
		return true
	}
	if slices.ContainsFunc(s.sources, func(b *bound) bool { return strings.EqualFold(b.name, e.name) }) {
		d.markColumn(s, &expr{kind: star, qualifier: e.name}, false)
		return true
	}
	return false
}

// equalities takes the values that conditions give to columns, from column to column too.
func (s *scope) equalities(where []expr) {
	for range len(where) + 1 {
		for i := range where {
			if where[i].kind == equal {
				s.equality(&where[i].args[0], &where[i].args[1])
				s.equality(&where[i].args[1], &where[i].args[0])
			}
		}
	}
}

func (s *scope) equality(left, right *expr) {
	of := s.own(left)
	if of == nil {
		return
	}
	name := of.table.spell([]string{left.name})[0]
	if _, known := of.values[name]; known {
		return
	}
	switch {
	case right.kind == value && !(right.numeric && of.table.Column(name).Text):
		of.values[name] = right.symbol
	case right.kind == column:
		if from := s.own(right); from != nil {
			if v, known := from.values[from.table.spell([]string{right.name})[0]]; known {
				of.values[name] = v
			}
		}
	}
}

// own returns the only source that a column is of, if that is a table of this query.
func (s *scope) own(e *expr) *bound {
	if e.kind != column {
		return nil
	}
	inner := scope{sources: s.sources}
	if found := inner.find(e); len(found) == 1 && found[0].table != nil {
		return found[0]
	}
	return nil
}

// keyed finds the key that conditions give the whole of, if the query is of one table alone, and the rest of the
// conditions.
func (s *scope) keyed(where []expr) (key []string, rest []expr) {
	if len(s.sources) != 1 || s.sources[0].table == nil {
		return nil, nil
	}
	b := s.sources[0]
	pins := map[string]bool{}
	for i := range where {
		name, ok := s.pin(&where[i])
		if !ok || pins[name] {
			rest = append(rest, where[i])
			continue
		}
		pins[name] = true
	}
	for _, k := range b.table.Keys {
		if !slices.ContainsFunc(k, func(name string) bool { return !pins[name] }) {
			for _, name := range k {
				delete(pins, name)
			}
			key = k
			break
		}
	}
	// What is left of the pins are conditions of other columns.
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		rest = append(rest, expr{kind: column, name: name})
	}
	return key, rest
}

// pin returns the column that a condition says the value of.
func (s *scope) pin(e *expr) (string, bool) {
	if e.kind != equal {
		return "", false
	}
	for i := range 2 {
		b, other := s.own(&e.args[i]), &e.args[1-i]
		if b == nil || other.kind != value {
			continue
		}
		name := b.table.spell([]string{e.args[i].name})[0]
		if !(other.numeric && b.table.Column(name).Text) {
			return name, true
		}
	}
	return "", false
}

// selects derives a SELECT.
func (d *deriver) selects(q *query, s *scope, top bool) {
	d.bind(s, q.from)
	if d.err != nil {
		return
	}
	d.mark(s, q.outputs, false)
	d.markNames(s, q)
	s.equalities(q.where)
	key, rest := s.keyed(q.where)
	if q.skips {
		q.lock = robust.NoLock
	}
	if !top || q.aggregates || q.skips {
		key = nil
	}
	if key != nil {
		d.mark(s, rest, false)
		d.mark(s, q.others, false)
		d.selectByKey(q, s.sources[0], key, len(rest) > 0)
		return
	}
	d.mark(s, q.where, true)
	d.mark(s, q.others, true)
	for _, b := range s.sources {
		if b.table != nil {
			a := b.access(robust.PredSel)
			a.Lock, a.PRead, a.Read = q.lock, b.set(b.looked), b.set(b.observed)
			d.step(a)
		}
	}
}

func (d *deriver) selectByKey(q *query, b *bound, key []string, conditional bool) {
	a := b.access(robust.KeySel)
	a.Lock, a.Read, a.Key, a.Shows = q.lock, b.read(), key, b.shows(q.outputs)
	if conditional && a.Lock != robust.NoLock {
		seen := a // but not locked
		seen.Lock = robust.NoLock
		d.step(a, seen)
		return
	}
	d.step(a)
}

// markNames takes note of ORDER BY and GROUP BY, which may name items of the select list.
func (d *deriver) markNames(s *scope, q *query) {
	for i := range q.computed {
		e := &q.computed[i]
		if e.kind == column && e.qualifier == "" && len(s.find(e)) == 0 {
			continue
		}
		d.mark(s, q.computed[i:i+1], false)
	}
}

// access begins one of a source's.
func (b *bound) access(typ robust.Type) Access {
	return Access{Table: b.table, Type: typ, Values: b.values}
}

// set returns attributes as a set.
func (b *bound) set(of map[string]bool) robust.Set { return robust.Of(b.table.sorted(of)...) }

// read returns what a statement by key reads: what queries inside of it look at, too.
func (b *bound) read() robust.Set { return b.set(b.observed).Union(b.set(b.looked)) }

// all returns all attributes.
func (b *bound) all() robust.Set { return robust.Of(b.table.Attributes()...) }

// shows returns which outputs are columns of the source.
func (b *bound) shows(outputs []expr) map[int]string {
	shown := map[int]string{}
	for i := range outputs {
		switch e := &outputs[i]; e.kind {
		case star:
			for n, name := range b.table.Attributes() {
				shown[i+n] = name
			}
			return shown // what follows has no place that is known
		case column:
			if b.table.Column(e.name) != nil {
				shown[i] = b.table.spell([]string{e.name})[0]
			}
		}
	}
	return shown
}

// step adds a step that does one of these.
func (d *deriver) step(either ...Access) { d.steps = append(d.steps, Step{Either: either}) }
