package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// playsPerProgram is how often a program, or a pair of two, is played beside a twin, with the values of different
// calls.
const playsPerProgram = 3

// An explorer goes through the instances once for each copy: first beside twins of their own program, then beside those
// of others. It belongs to one goroutine.
type explorer struct {
	instances []*instance
	ends      time.Time
	played    map[string]int // plays with a twin, by the programs of both
	beside    map[[2]history.TxnID]bool
	result    Result
}

// passes plays until there is nothing more to play, or the time is over.
func (x *explorer) passes(ctx context.Context, fresh func(context.Context) (dsn.Target, func() error, error)) error {
	for first, more := true, true; more; first = false {
		copied, drop, err := fresh(ctx)
		if err != nil {
			return fmt.Errorf("make a copy to play on: %w", err)
		}
		plays, err := x.pass(ctx, copied, first)
		if err := errors.Join(err, drop()); err != nil {
			return err
		}
		more = (first || plays > 0) && time.Now().Before(x.ends)
	}
	return nil
}

// pass plays all instances in their order on one copy, and returns how many of them had a twin.
func (x *explorer) pass(ctx context.Context, copied dsn.Target, first bool) (plays int, err error) {
	server, err := runner.Server(copied)
	if err != nil {
		return 0, err
	}
	server.Database, server.FoundRows = copied.Database, true
	r, err := replay.NewRunner(ctx, server)
	if err != nil {
		return 0, fmt.Errorf("connect to the copy: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	control, err := r.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	p := &pass{explorer: x, runner: r, server: server, control: control, first: first, seen: make(map[string]bool)}
	if p.schema, err = readSchema(control, server.Family); err != nil {
		return 0, err
	}
	for i, in := range x.instances {
		if time.Now().After(x.ends) {
			p.leave(x.instances[i:])
			break
		}
		if err := p.next(ctx, in); err != nil {
			return p.plays, err
		}
	}
	return p.plays, nil
}

// A pass is one way through the instances.
type pass struct {
	*explorer
	runner  *replay.Runner
	server  replay.Server
	control *replay.Connection // for questions
	schema  *schema
	first   bool
	seen    map[string]bool // values that instances so far brought
	plays   int
}

// leave counts what the time does not reach.
func (p *pass) leave(rest []*instance) {
	for _, in := range rest {
		if p.first && in.leaves() {
			p.result.NotPlayed[NoTime]++
		}
	}
}

// next plays an instance, beside a twin if there is one for it.
func (p *pass) next(ctx context.Context, in *instance) error {
	defer p.see(in)
	if !in.leaves() {
		return nil
	}
	twin, why := p.twinOf(in)
	if p.first {
		p.result.Transactions++
		if twin == nil {
			p.result.NotPlayed[why]++
		}
	}
	if why == CutValues || why == ReachesOut {
		return nil // what it wrote is missing from here on: who depends on it does otherwise than recorded
	}
	play := newPlay(p.schema, in, twin, p.seen)
	trace, err := p.runner.Run(ctx, p.server, play.scenario(), in.playsAt(),
		replay.Options{Existing: true, Whoever: true, Fill: play.fill})
	if err != nil {
		return fmt.Errorf("play %s: %w", in.id, err)
	}
	play.take(trace.Results)
	if twin != nil {
		p.plays++
		p.result.Plays++
		if err := p.restore(play.drawn); err != nil {
			return err
		}
	}
	p.judge(play)
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
	if why := p.refuses(in); why != "" {
		return nil, why
	}
	if p.first {
		if _, known := p.played[in.program()]; !known {
			p.result.Programs++
		}
		if p.played[in.program()] >= playsPerProgram {
			return nil, Enough
		}
		p.played[in.program()]++
		return in, ""
	}
	for _, other := range p.instances {
		pair := in.program() + "beside\n" + other.program()
		if other == in || p.beside[[2]history.TxnID{in.id, other.id}] || p.refuses(other) != "" || p.played[pair] >= playsPerProgram || !in.crosses(other) ||
			!other.crosses(in) || in.sameValues(other) {
			continue
		}
		p.played[pair]++
		p.beside[[2]history.TxnID{in.id, other.id}] = true
		return other, ""
	}
	return nil, Enough
}

// refuses returns why an instance has no twin; empty where it may have one.
func (p *pass) refuses(in *instance) Reason {
	switch {
	case !in.whole:
		return CutValues
	case in.reach() == beyond, slices.ContainsFunc(in.statements, func(s statement) bool { return s.namesDatabase(p.schema.databases) }):
		return ReachesOut
	case in.failed, !in.writes():
		return Failed
	case !in.alone:
		return NotAlone
	case in.reach() != withinRows:
		return LeavesTraces
	case in.level == history.Serializable && p.schema.family == dbms.PostgreSQLFamily:
		return Serializable
	}
	return ""
}

// judge takes what a play told.
func (p *pass) judge(play *play) {
	if !play.asRecorded(own) {
		if p.first {
			p.result.Diverged++
		}
		return
	}
	if play.twin == nil || play.twin != play.in && !play.asRecorded(before) {
		return
	}
	v := judge(play.twin, play.differences(racing), play.differences(serial))
	if play.twin != play.in {
		v.races = play.crossing(v.races)
	}
	if v.refused && len(v.races) == 0 {
		p.result.Refused++
	}
	p.result.Races = append(p.result.Races, v.races...)
}

// crossing returns the races of two different programs: none but where the transaction writes over the twin, or would
// itself have been answered otherwise behind it.
func (p *play) crossing(races []Race) []Race {
	waited := p.waited()
	if !waited && !p.turned() {
		return nil
	}
	for i := range races {
		r := &races[i]
		r.Beside = p.in.name()
		if !waited && r.Kind != DoubleInsert {
			r.Kind = WriteSkew
		}
	}
	return surest(races)
}
