package oracle

import (
	"slices"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// scenes returns what the statement may see, the likeliest first, or why that cannot be told.
func (j *judging) scenes() (all []scene, why string) {
	if j.ruleIfAny(j.got.Session) == nil {
		return nil, "there are no rules for the level"
	}
	if j.readsSnapshot() && len(j.of.snaps) == 0 {
		j.of.unsure = true
	}
	for _, now := range j.nows() {
		for _, taken := range j.takens() {
			for _, began := range j.begans() {
				x, why := j.scene(now, taken, began)
				if why != "" {
					return nil, why
				}
				all = append(all, x)
			}
		}
	}
	if len(all) > mostViews {
		return nil, "too many orders are possible"
	}
	if j.rule(j.got.Session).meets == rechecks && j.got.Blocked {
		return j.recheck(all[0])
	}
	return all, ""
}

// sights returns what each part of the statement sees.
func (j *judging) sights() [parts]sight {
	r := j.rule(j.got.Session)
	target := current
	if r.optimistic {
		target = snapshot
	}
	plain := r.plain
	if j.of.alone {
		plain = r.alone
	}
	switch {
	case j.verb == selects:
		return [parts]sight{inMain: plain, inNested: plain}
	case j.verb == locks:
		nested := r.nested
		if j.of.alone && nested == current {
			nested = r.alone
		}
		return [parts]sight{inMain: r.main, inNested: nested}
	case j.verb == inserts && j.at("SELECT") >= 0:
		return [parts]sight{inTarget: target, inSource: r.source, inNested: r.source}
	case j.verb == updates:
		return [parts]sight{inTarget: r.main, inSource: r.source, inNested: r.source}
	case j.verb == inserts:
		return [parts]sight{inTarget: target, inSource: r.sourceOfDelete, inNested: r.sourceOfDelete}
	}
	return [parts]sight{inTarget: r.main, inSource: r.sourceOfDelete, inNested: r.sourceOfDelete}
}

// readsSnapshot reports whether the statement reads, or takes, its transaction's snapshot.
func (j *judging) readsSnapshot() bool {
	r := j.rule(j.got.Session)
	if r.early {
		return r.plain == snapshot
	}
	for p, from := range j.sights() {
		if from == snapshot && len(j.named[p]) > 0 {
			return true
		}
	}
	return false
}

// committedSince are the events up to now after which versions were committed, later than an event.
func (j *judging) committedSince(event int) []int {
	var all []int
	for _, t := range j.ever {
		if t.committed && t.ended > event && t.ended <= j.event {
			all = append(all, t.ended)
		}
	}
	slices.Sort(all)
	return all
}

// nows are the events up to which a statement that has waited may have seen what was committed: those that were
// behind it when it went on, and what else ended in the same moment.
func (j *judging) nows() []int {
	if !j.got.Blocked || j.engine == dbms.PostgreSQL {
		return []int{j.event}
	}
	before := -1
	for _, e := range j.ends {
		if e.batch < j.batch {
			before = max(before, e.event)
		}
	}
	all := j.committedSince(before)
	slices.Reverse(all)
	if len(all) == 0 || j.others(j.of) && len(all) > 1 {
		return append(all, before)
	}
	return all
}

// begans are the events up to which a statement's own snapshot may have what was committed.
func (j *judging) begans() []int {
	first := j.start[j.step] - 1
	from := j.sights()
	if !slices.Contains(from[:], begun) || !j.got.Blocked || j.engine == dbms.PostgreSQL || len(j.named[inNested])+len(j.named[inSource]) == 0 {
		return []int{first}
	}
	return append([]int{first}, j.committedSince(first)...)
}

// takens are the events up to which the transaction's snapshot may have what was committed.
func (j *judging) takens() []int {
	if !j.readsSnapshot() {
		return []int{-1}
	}
	all := slices.Clone(j.of.snaps)
	if now := j.start[j.step] - 1; len(all) == 0 || j.of.unsure && !slices.Contains(all, now) {
		all = append(all, now)
		if j.got.Blocked && j.engine != dbms.PostgreSQL {
			all = append(all, j.committedSince(now)...)
		}
	}
	return all
}

// firstSnapshot are the events up to which the transaction's snapshot may have what was committed, if the statement may
// be the one that takes it.
func (j *judging) firstSnapshot() []int {
	if j.ruleIfAny(j.got.Session) == nil || len(j.of.snaps) > 0 || !j.readsSnapshot() {
		return nil
	}
	return j.takens()
}

// scene makes what the statement sees where now, its transaction's snapshot and its own are of certain events.
func (j *judging) scene(now, taken, began int) (x scene, why string) {
	x = scene{looks: make(map[*benchTable]look), taken: taken}
	sights := j.sights()
	of := func(t *benchTable, from sight) look {
		upTo := now
		switch from {
		case begun:
			upTo = began
		case snapshot:
			upTo = taken
		}
		return j.store.look(t, j.of, from, upTo, false)
	}
	for _, t := range j.bench.tables {
		var seen look
		for p, from := range sights {
			if !slices.Contains(j.named[p], t.name) {
				continue
			}
			l := of(t, from)
			r := j.rule(j.got.Session)
			if r.eitherNested && from == current && part(p) >= inSource && !l.equal(of(t, r.plain)) {
				return x, "a query within it may see what a SELECT sees, or the newest versions"
			}
			if seen != nil && !seen.equal(l) {
				return x, "it reads a table in two ways"
			}
			seen = l
		}
		if !j.writes() && j.verb != locks {
			if seen != nil {
				x.looks[t] = seen
			}
			continue
		}
		newest := of(t, current)
		if seen == nil {
			seen = newest
		}
		if j.bench.related && j.writes() && !seen.equal(newest) && (j.rule(j.got.Session).meets == fails || j.rule(j.got.Session).optimistic || !slices.Contains(j.named[inTarget], t.name)) {
			return x, "a foreign key beside a newer version"
		}
		x.looks[t] = seen
	}
	return x, ""
}

// recheck makes the scene of a statement that has waited on PostgreSQL: of the rows that it chose when it began the
// newest versions (EvalPlanQual).
func (j *judging) recheck(x scene) ([]scene, string) {
	if j.verb == inserts || j.verb == selects {
		return []scene{x}, ""
	}
	changed := false
	for _, t := range j.bench.tables {
		if slices.Contains(j.named[inTarget], t.name) || slices.Contains(j.named[inMain], t.name) {
			now := j.store.look(t, j.of, current, j.event, false)
			changed = changed || !now.equal(x.looks[t])
		}
	}
	if !changed {
		return []scene{x}, ""
	}
	if j.joined || j.readsItsTarget() || j.limited || j.grouped || j.bench.related {
		return nil, "EvalPlanQual of more than one table's rows"
	}
	t, _, err := j.try(x)
	if err != nil || t.answer.Status != replay.OK {
		return nil, "EvalPlanQual of a statement that cannot be tried"
	}
	y := scene{looks: make(map[*benchTable]look), taken: x.taken}
	for table, seen := range x.looks {
		if y.looks[table] = seen; !slices.Contains(j.named[inTarget], table.name) && !slices.Contains(j.named[inMain], table.name) {
			continue
		}
		now := j.store.look(table, j.of, current, j.event, false)
		y.looks[table] = make(look)
		for _, n := range t.touched {
			if v := now[n]; v != nil {
				y.looks[table][n] = v
			}
		}
	}
	return []scene{y}, ""
}
