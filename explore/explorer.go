package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/scenario/replay"
)

// playsPerProgram is how often a program, or a pair of two, is played beside a twin, with the values of different
// calls.
const playsPerProgram = 3

// callsPerProgram is how many calls of a program are looked at for others that they meet.
const callsPerProgram = 16

// grace is how long a statement of a play has before the server is asked whether it waits. Statements of applications
// often take longer than those of scenarios, and servers of the MySQL family take long to answer.
var grace = map[dbms.Family]time.Duration{dbms.PostgreSQLFamily: 10 * time.Millisecond, dbms.MySQLFamily: 50 * time.Millisecond}

// An explorer goes through the instances once for each copy: first beside twins of their own program, then beside those
// of others. It belongs to one goroutine.
type explorer struct {
	instances []*instance
	fresh     func(context.Context) (dsn.Target, func() error, error) // makes what the run began with
	copy      func(ctx context.Context, of dsn.Target) (dsn.Target, func() error, error)
	ends      time.Time
	calls     map[string][]*instance // that may have a twin, by their program; the first of them had one of their own
	programs  []string               // of calls, in their order
	// neighbours are the calls that are still to be played beside one of another program, or with other values.
	neighbours map[*instance][]neighbour
	// definitions are those of tables that the run used, by their names in lower case.
	definitions map[string]history.Definition
	creates     map[string]bool // tables that instances make
	journals    map[string]bool // tables in which programs note what they do, in lower case
	backs       writeBacks
	result      *Result
}

// A neighbour is a call that is to be played beside another one, at the other's place. Those of the lowest rank come
// first.
type neighbour struct {
	*instance
	rank int
	// later says that it is not possible before its own place: the other one is left out until then.
	later bool
}

// passes plays until there is nothing more to play, or the time is over.
func (x *explorer) passes(ctx context.Context) error {
	for first := true; first || len(x.neighbours) > 0 && time.Now().Before(x.ends); first = false {
		if _, err := x.pass(ctx, x.fresh, x.instances, &pass{explorer: x, first: first, rank: x.lowest(),
			seen: make(map[string]bool), made: make(map[string]bool)}); err != nil {
			return err
		}
		if first {
			x.pair()
		}
	}
	return nil
}

// meetings are how two calls can race though they differ, the most promising first: they write one row, or each writes
// a row that the other uses, which is another mistake. Where a suite makes its rows anew for each test, two that would
// meet in an application meet in tables alone.
var meetings = []func(in, beside *instance) bool{
	(*instance).overwrites,
	func(in, beside *instance) bool {
		return in.crosses(beside) && beside.crosses(in) && !in.overwrites(beside)
	},
	func(in, beside *instance) bool { return in.crossesTables(beside) && beside.crossesTables(in) },
}

// pair finds the calls that are to be played beside others. One of each two programs comes before more of the same.
func (x *explorer) pair() {
	x.neighbours = make(map[*instance][]neighbour)
	for i, in := range x.instances {
		in.place = i + 1
	}
	for _, program := range x.programs {
		for _, other := range x.programs {
			for i, meet := range meetings {
				pairs := 0
				for _, in := range x.calls[program] {
					for _, beside := range x.calls[other] {
						if pairs < playsPerProgram && in != beside && !in.sameValues(beside) && meet(in, beside) &&
							!slices.ContainsFunc(x.neighbours[in], func(n neighbour) bool { return n.instance == beside }) {
							later, possible := x.beside(in, beside)
							if !possible {
								continue
							}
							x.neighbours[in] = append(x.neighbours[in], neighbour{beside, rankOf(i, program == other, pairs), later})
							pairs++
						}
					}
				}
			}
		}
	}
	for _, all := range x.neighbours {
		slices.SortStableFunc(all, func(a, b neighbour) int { return cmp.Compare(a.rank, b.rank) })
	}
}

// rankOf returns the rank of a pair: by how the two meet, then those of one program, then those that are the first of
// two programs.
func rankOf(meets int, same bool, pairs int) int {
	if !same {
		pairs += playsPerProgram
	}
	return 2*playsPerProgram*meets + pairs
}

// lowest returns the lowest rank of what is still to be played beside another one.
func (x *explorer) lowest() int {
	rank := rankOf(len(meetings), true, 0)
	for _, all := range x.neighbours {
		rank = min(rank, all[0].rank)
	}
	return rank
}

// awaited reports whether a call is to be played beside another one in a pass through those up to a rank.
func (p *pass) awaited(in *instance) bool {
	all := p.neighbours[in]
	return len(all) > 0 && all[0].rank <= p.rank && !all[0].later
}

// pass plays instances in their order on a copy of a database that it has made, and returns where its counters stand
// then.
func (x *explorer) pass(ctx context.Context, fresh func(context.Context) (dsn.Target, func() error, error),
	instances []*instance, p *pass) (drawn counts, err error) {
	copied, drop, err := fresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a copy to play on: %w", err)
	}
	defer func() { err = errors.Join(err, drop()) }()
	p.target = copied
	defer func() { err = errors.Join(err, p.leaveCopy()) }()
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	p.choose(instances)
	if err := p.all(ctx, instances); err != nil {
		return nil, err
	}
	return p.counts()
}

// all plays instances in their order, as long as there is time. What stands behind the last one that may have a twin
// changes nothing for any.
func (p *pass) all(ctx context.Context, instances []*instance) error {
	last := -1
	for i, in := range instances {
		if in.mayHaveTwin(p.schema.host()) {
			last = i
		}
	}
	for i, in := range instances[:last+1] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(p.ends) {
			p.outOfTime(instances[i : last+1])
			break
		}
		if err := p.next(ctx, in); err != nil {
			return err
		}
	}
	if p.first {
		for _, in := range instances[last+1:] {
			p.result.count(in, p.refuses)
		}
	}
	return nil
}

// A pass is one way through instances, on one copy.
type pass struct {
	*explorer
	stage                      // the copy
	forward *replay.Connection // for what is played without a twin; nil until something is
	first   bool
	rank    int                    // of the neighbours that are played, at most
	seen    map[string]bool        // values that instances so far brought
	made    map[string]bool        // tables that the copy got from their definitions
	left    map[*instance]*leftOut // by what is left out until another's place
	due     map[*instance]*leftOut // and by that other one
}

// enter connects to the copy.
func (p *pass) enter(ctx context.Context) error {
	if err := p.stage.enter(ctx); err != nil {
		return err
	}
	for table, columns := range p.schema.carried {
		drop := "ALTER TABLE " + backquoted(table) + " DROP COLUMN " + strings.Join(columns, ", DROP COLUMN ")
		if _, err := ask(p.control, drop); err != nil {
			return fmt.Errorf("take isotap's columns out of the copy: %w", err)
		}
	}
	return p.learned(nil)
}

// learn asks the copy for its tables.
func (p *pass) learn() error {
	next := p.schema.next
	if err := p.stage.learn(); err != nil {
		return err
	}
	return p.learned(next)
}

// learned completes what was asked of the copy by what is known otherwise: next is what was known of its counters.
func (p *pass) learned(next map[string]string) error {
	p.schema.journals, p.schema.versions = p.journals, p.schema.versionsOf(p.instances)
	if !p.schema.tidb {
		return nil
	}
	p.schema.next = make(map[string]string)
	for table := range p.schema.counts {
		first, known := next[table]
		if !known {
			var err error
			if first, err = firstKey(p.control, table); err != nil {
				return err
			}
		}
		p.schema.next[table] = first
	}
	return nil
}

// leaveCopy ends all connections to the copy, if there are any.
func (p *pass) leaveCopy() error {
	if p.forward != nil {
		p.forward.Close()
		p.forward = nil
	}
	return p.leave()
}

// branch plays what a test wrapped in a transaction, each part as if it had been by itself, on a copy of the copy: the
// test rolled it back, so that nothing of it is there for what comes behind it but numbers that counters gave.
func (p *pass) branch(ctx context.Context, in *instance) error {
	if err := p.leaveCopy(); err != nil { // of a PostgreSQL database with connections there is no copy
		return err
	}
	copied := func(ctx context.Context) (dsn.Target, func() error, error) { return p.copy(ctx, p.target) }
	on := &pass{explorer: p.explorer, first: p.first, rank: p.rank, seen: p.seen, made: maps.Clone(p.made)}
	drawn, err := p.explorer.pass(ctx, copied, in.inner, on)
	if err != nil {
		return err
	}
	if p.first {
		p.result.Wrapped++
	}
	if err := p.enter(ctx); err != nil {
		return err
	}
	return p.restore(drawn)
}

// wants reports whether something that a test wrapped in a transaction is to be played beside a twin.
func (p *pass) wants(in *instance) bool {
	return slices.ContainsFunc(in.inner, func(part *instance) bool {
		switch {
		case len(part.inner) > 0:
			return p.wants(part)
		case !p.first:
			return p.awaited(part)
		}
		return part.leaves() && p.refuses(part) == "" && len(p.calls[part.program()]) < playsPerProgram
	})
}

// outOfTime counts what the time does not reach.
func (p *pass) outOfTime(rest []*instance) {
	for _, in := range rest {
		if p.first {
			p.result.count(in, func(*instance) Reason { return NoTime })
		}
	}
}

// next plays an instance, beside a twin if there is one for it.
func (p *pass) next(ctx context.Context, in *instance) error {
	defer p.see(in)
	if !in.leaves() {
		return nil
	}
	if err := p.define(in); err != nil {
		return err
	}
	if p.wants(in) {
		return p.branch(ctx, in)
	}
	if left := p.left[in]; left != nil {
		return p.leaveOut(ctx, left)
	}
	if left := p.due[in]; left != nil {
		if err := p.catchUp(ctx, left); err != nil {
			return err
		}
	}
	twin, why := p.twinOf(in)
	if p.first {
		p.result.count(in, func(part *instance) Reason {
			if part == in {
				return why
			}
			return cmp.Or(p.refuses(part), Enough)
		})
	}
	if why == CutValues || why == ReachesOut {
		return nil // what it wrote is missing from here on: who depends on it does otherwise than recorded
	}
	var from beginning
	if twin != nil && twin != in {
		var err error
		if from.start, err = p.counts(); err != nil {
			return err
		}
	}
	play := newPlay(p.schema, in, twin, from, p.seen)
	if twin == nil {
		if err := p.alone(ctx, play); err != nil {
			return fmt.Errorf("play %s: %w", in.id, err)
		}
		p.judge(play)
		return p.redefined(in)
	}
	return p.run(ctx, play, nil)
}

// count counts an instance, and why it has no twin; empty: it has one. Of one that a test wrapped around others those
// count, and of definitions none.
func (r *Result) count(in *instance, why func(*instance) Reason) {
	switch {
	case !in.leaves(), in.defines():
	case len(in.inner) > 0:
		for _, part := range in.inner {
			r.count(part, why)
		}
	default:
		r.Transactions++
		if reason := why(in); reason != "" {
			r.NotPlayed[reason]++
		}
	}
}

// redefined asks for the tables anew behind a definition.
func (p *pass) redefined(in *instance) error {
	if slices.ContainsFunc(in.statements, func(s statement) bool { return s.recorded.Kind == history.DDL }) {
		return p.learn()
	}
	return nil
}

// alone plays an instance without a twin, on a connection that those before it left.
func (p *pass) alone(ctx context.Context, play *play) (err error) {
	if p.forward == nil {
		if p.forward, err = p.runner.Connect(ctx); err != nil {
			return err
		}
	}
	so := make([]replay.Result, len(play.steps))
	for i, st := range play.steps {
		r, err := p.forward.Ask(st.sql)
		if err != nil {
			return err
		}
		so[i] = *r
	}
	play.take(so)
	if slices.ContainsFunc(play.in.statements, func(s statement) bool { return s.recorded.Kind == history.Set }) {
		p.forward.Close() // no other one goes on with its settings
		p.forward = nil
	}
	return nil
}

// see notes the values that an instance brought.
func (p *pass) see(in *instance) {
	for i := range in.statements {
		for _, l := range in.statements[i].literals {
			if l.quoted {
				p.seen[l.value] = true
			}
		}
	}
}

// twinOf returns the instance to play beside another one, and counts the play; nil for none, and why.
func (p *pass) twinOf(in *instance) (twin *instance, why Reason) {
	if !p.first {
		return p.neighbourOf(in)
	}
	if why := p.refuses(in); why != "" {
		return nil, why
	}
	program := in.program()
	n := len(p.calls[program])
	if n == 0 {
		p.programs = append(p.programs, program)
	}
	if n < callsPerProgram {
		p.calls[program] = append(p.calls[program], in)
	}
	if n >= playsPerProgram {
		return nil, Enough
	}
	return in, ""
}

// neighbourOf takes the next call that is to be played beside an instance.
func (p *pass) neighbourOf(in *instance) (twin *instance, why Reason) {
	all := p.neighbours[in]
	if !p.awaited(in) {
		return nil, p.refuses(in)
	}
	if p.neighbours[in] = all[1:]; len(all) == 1 {
		delete(p.neighbours, in)
	}
	return all[0].instance, ""
}

// refuses returns why an instance has no twin; empty where it may have one.
func (p *pass) refuses(in *instance) Reason { return in.refusal(p.schema.host()) }

// judge takes what a play told.
func (p *pass) judge(play *play) {
	if !play.asRecorded(own) {
		if p.first && !play.in.defines() {
			p.result.Diverged++
		}
		return
	}
	if p.first {
		p.backs.take(p.schema, play.in, play.replies[own])
	}
	if p.first && play.twin != nil {
		p.result.Judged++
	}
	if p.first && slices.Contains(p.calls[play.in.program()], play.in) {
		play.in.read = play.replies[own]
	}
	if play.twin == nil || play.twin != play.in && !(play.asRecorded(before) && play.readsAsRecorded()) {
		return
	}
	p.result.tell(play)
}

// tell takes what a play shows in which the transaction did as recorded.
func (r *Result) tell(play *play) {
	switch refused, known := play.refused(); {
	case refused:
		r.Refused++
		return
	case !known:
		r.NotPlayed[Serializable]++
		return
	}
	v := judge(play.schema, play.twin, play.differences(racing), play.differences(serial), play.twin != play.in && !play.waited())
	if play.twin != play.in {
		v.races = play.crossing(v.races)
	}
	if play.left != nil {
		for i := range v.races {
			v.races[i].Wrote, v.races[i].Serial = "", "" // they hang on what it read at its own place
		}
	}
	if v.refused && len(v.races) == 0 {
		r.Refused++
	}
	r.Races = append(r.Races, v.races...)
}

// crossing returns the races of two different programs: none but where the transaction writes over the twin, or would
// itself have been answered otherwise behind it.
func (p *play) crossing(races []Race) []Race {
	waited := p.waited()
	if !waited && !p.turned() {
		return nil
	}
	apart := p.apart()
	for i := range races {
		r := &races[i]
		other := p.in.firstWrite()
		r.Beside, r.Other, r.beside = p.in.name(p.schema), other.text, p.in.writings()
		r.alike = other.recorded.Shape == r.shapes[1] || r.beside == r.writes
		switch {
		case !waited && r.Kind != DoubleInsert:
			r.Kind = WriteSkew
		case r.Kind == StaleChoice && apart:
			r.Kind = OtherColumns
		}
	}
	return surest(races, playing)
}
