package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/scenario/replay"
)

// A leftOut is a transaction that is left out from its place on until the place of another one, whose rows were not
// there before: then the two are played beside each other. So two orders are paid at once, which a suite fills one
// after the other.
type leftOut struct {
	in, until *instance
	// before is where the counters stood at its place that it drew from.
	before counts
	// keys are those that a server of the MySQL family made for its statements, which cannot put a counter back.
	keys map[int]uint64
	now  counts // where the counters stand at the other's place
}

// beside reports whether a call can be played beside another one at all, and whether only later, at its own place.
func (x *explorer) beside(in, other *instance) (later, possible bool) {
	switch {
	case in.place == 0 || other.place == 0: // a test wrapped it
		return false, true
	case other.place < in.place: // what it inserted is there, and what came between may be what it led to
		return false, !other.inserts() && !slices.ContainsFunc(x.instances[other.place-1:in.place-1], in.hangsOn)
	}
	between := x.instances[in.place-1 : other.place-1]
	if !slices.ContainsFunc(between, other.hangsOn) {
		return false, true
	}
	return true, !slices.ContainsFunc(x.instances[in.place:other.place], func(k *instance) bool { return k.leaves() && k.hangsOn(in) })
}

// choose takes the calls that are left out in this pass: each has a part in one pair at most.
func (p *pass) choose(instances []*instance) {
	p.left, p.due = make(map[*instance]*leftOut), make(map[*instance]*leftOut)
	for _, in := range instances {
		all := p.neighbours[in]
		if p.first || len(all) == 0 || all[0].rank > p.rank || !all[0].later {
			continue
		}
		until := all[0].instance
		if p.left[in] != nil || p.due[in] != nil || p.left[until] != nil || p.due[until] != nil {
			continue
		}
		if p.neighbours[in] = all[1:]; len(all) == 1 {
			delete(p.neighbours, in)
		}
		left := &leftOut{in: in, until: until}
		p.left[in], p.due[until] = left, left
	}
}

// leaveOut plays a transaction and takes it back, so that it has drawn the keys that it was recorded with.
func (p *pass) leaveOut(ctx context.Context, left *leftOut) error {
	was, err := p.counts()
	if err != nil {
		return err
	}
	undone := *left.in
	undone.block, undone.commits = true, false
	play := newPlay(p.schema, &undone, nil, beginning{}, p.seen)
	if err := p.alone(ctx, play); err != nil {
		return fmt.Errorf("play %s: %w", left.in.id, err)
	}
	now, err := p.counts()
	if err != nil {
		return err
	}
	left.before, left.keys = make(counts), make(map[int]uint64)
	for name, value := range was {
		if now[name] != value {
			left.before[name] = value
		}
	}
	for at, r := range play.replies[own] {
		if st := &undone.statements[at]; r != nil && st.inserts() {
			left.keys[at] = p.schema.keyMade(r)
		}
	}
	return nil
}

// keyMade returns the first key that a server of the MySQL family made for an INSERT; 0: none. RETURNING shows it among
// the rows.
func (s *schema) keyMade(r *replay.Result) uint64 {
	for i := range r.Columns {
		if of, known := s.shown(&r.Columns[i]); known && s.counts[of.table] == of.name && len(r.Rows) > 0 {
			key, _ := strconv.ParseUint(r.Rows[0][i].Text, 10, 64)
			return key
		}
	}
	return r.InsertID
}

// catchUp plays what was left out, beside the call that it was left out for.
func (p *pass) catchUp(ctx context.Context, left *leftOut) (err error) {
	if left.now, err = p.counts(); err != nil {
		return err
	}
	play := newPlay(p.schema, left.in, left.until, beginning{left, left.now}, p.seen)
	return p.run(ctx, play, left.now)
}

// drawsAsRecorded has the server make the keys of the transaction that it made when it was recorded, though others have
// drawn some meanwhile. Nobody is in a transaction then, or PostgreSQL's own way needs none.
func (p *play) drawsAsRecorded() {
	switch {
	case p.left != nil:
		p.draws(p.left.before, p.left.before)
	case p.schema.family == dbms.PostgreSQLFamily:
		p.draws(p.start, p.start)
	default:
		for _, table := range slices.Sorted(maps.Keys(p.start)) {
			if p.in.insertsInto(table) || p.twin.insertsInto(table) {
				p.end(counting, p.schema.setCount(table, p.start[table]))
			}
		}
	}
}

// drawsNow has PostgreSQL go on where it stood when what was left out began.
func (p *play) drawsNow() {
	if p.left != nil {
		p.draws(p.left.before, p.left.now)
	}
}

// draws puts PostgreSQL's sequences of some names to where they stood.
func (p *play) draws(names, from counts) {
	if p.schema.family != dbms.PostgreSQLFamily || len(names) == 0 {
		return
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		name, value := "'"+strings.ReplaceAll(name, "'", "''")+"'", from[name]
		if value.Null {
			all = append(all, "setval("+name+", 1, false)")
		} else {
			all = append(all, "setval("+name+", "+value.Text+")")
		}
	}
	for most := range slices.Chunk(all, mostColumns) {
		p.end(counting, "SELECT "+strings.Join(most, ", "))
	}
}

// mostColumns is how many a SELECT of PostgreSQL's may show, about.
const mostColumns = 1000

// insertsInto reports whether the instance inserts into a table.
func (in *instance) insertsInto(table string) bool {
	return slices.ContainsFunc(in.statements, func(s statement) bool { return s.inserts() && strings.EqualFold(s.target, table) })
}

// numbered has a server of the MySQL family make the key that it made for a statement of what was left out.
func (p *play) numbered(r role, at int) {
	if p.left == nil || p.schema.family != dbms.MySQLFamily || r != own && r != reverse || p.left.keys[at] == 0 {
		return
	}
	p.end(r, fmt.Sprintf("SET INSERT_ID = %d", p.left.keys[at]))
}

// run plays an instance with its twin, puts counters back, and judges what it told.
func (p *pass) run(ctx context.Context, play *play, back counts) error {
	if err := p.perform(ctx, play, replay.Options{Again: true}); err != nil {
		return err
	}
	p.result.Plays++
	if back == nil {
		back = play.drawn
	}
	if err := p.restore(back); err != nil {
		return err
	}
	p.judge(play)
	return nil
}
