package footprint

import "github.com/isotap/isotap/robust"

// merge derives a MERGE: it looks at its target and its sources by their conditions, and then does all that it may do.
func (d *deriver) merge(q *query, s *scope) {
	d.bind(s, append([]source{*q.target}, q.from...))
	if d.err != nil {
		return
	}
	target := s.sources[0]
	if target.table == nil {
		d.fail("%s is a view: what a MERGE into it writes is not known", q.target.table)
		return
	}
	written := d.written(q, s)
	if d.err != nil {
		return
	}
	d.mark(s, q.where, true)
	d.mark(s, q.others, true)
	for _, set := range q.sets {
		d.mark(s, []expr{set.value}, false)
	}
	for _, row := range q.rows {
		d.mark(s, row, false)
	}
	d.mark(s, q.outputs, false)
	d.note("MERGE is taken as by predicate, and to do all that its WHEN clauses have")
	for _, b := range s.sources {
		if b.table != nil {
			a := b.access(robust.PredSel)
			a.PRead, a.Read = b.set(b.looked), b.set(b.observed)
			d.step(a)
		}
	}
	d.merged(q, target, written[target])
}

// merged adds what is done to the target.
func (d *deriver) merged(q *query, b *bound, columns map[string]bool) {
	if columns != nil {
		d.writeByPredicate(&query{verb: updates}, b, map[*bound]map[string]bool{b: columns})
	}
	if q.removes {
		d.writeByPredicate(&query{verb: deletes}, b, map[*bound]map[string]bool{b: {}})
	}
	if len(q.rows) > 0 {
		a := b.access(robust.Ins)
		a.Write = b.all()
		d.steps = append(d.steps, Step{Either: []Access{a}, Repeated: true})
		d.triggers(b.table)
	}
}
