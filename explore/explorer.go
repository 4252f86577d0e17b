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
	calls     map[string][]*instance // that were played beside a twin, by their program
	programs  []string               // of calls, in their order
	// neighbours are the calls that are still to be played beside one of another program, or with other values.
	neighbours map[*instance][]*instance
	// definitions are those of tables that the run used, by their names in lower case.
	definitions map[string]history.Definition
	result      Result
}

// passes plays until there is nothing more to play, or the time is over.
func (x *explorer) passes(ctx context.Context, fresh func(context.Context) (dsn.Target, func() error, error)) error {
	for first := true; first || len(x.neighbours) > 0 && time.Now().Before(x.ends); first = false {
		copied, drop, err := fresh(ctx)
		if err != nil {
			return fmt.Errorf("make a copy to play on: %w", err)
		}
		if err := errors.Join(x.pass(ctx, copied, first), drop()); err != nil {
			return err
		}
		if first {
			x.pair()
		}
	}
	return nil
}

// pair finds the calls that can race though they differ: each writes what the other uses.
func (x *explorer) pair() {
	x.neighbours = make(map[*instance][]*instance)
	for _, program := range x.programs {
		for _, other := range x.programs {
			pairs := 0
			for _, in := range x.calls[program] {
				for _, beside := range x.calls[other] {
					if pairs < playsPerProgram && in != beside && !in.sameValues(beside) && in.crosses(beside) && beside.crosses(in) {
						x.neighbours[in] = append(x.neighbours[in], beside)
						pairs++
					}
				}
			}
		}
	}
}

// pass plays all instances in their order on one copy.
func (x *explorer) pass(ctx context.Context, copied dsn.Target, first bool) (err error) {
	server, err := runner.Server(copied)
	if err != nil {
		return err
	}
	server.Database, server.FoundRows = copied.Database, true
	r, err := replay.NewRunner(ctx, server)
	if err != nil {
		return fmt.Errorf("connect to the copy: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	control, err := r.Connect(ctx)
	if err != nil {
		return err
	}
	defer control.Close()
	p := &pass{explorer: x, runner: r, server: server, control: control, first: first, seen: make(map[string]bool),
		made: make(map[string]bool)}
	if p.schema, err = readSchema(control, server.Family); err != nil {
		return err
	}
	defer func() {
		if p.forward != nil {
			p.forward.Close()
		}
	}()
	for i, in := range x.instances {
		if time.Now().After(x.ends) {
			p.leave(x.instances[i:])
			break
		}
		if err := p.next(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// A pass is one way through the instances.
type pass struct {
	*explorer
	runner  *replay.Runner
	server  replay.Server
	control *replay.Connection // for questions
	forward *replay.Connection // for what is played without a twin; nil until something is
	schema  *schema
	first   bool
	seen    map[string]bool // values that instances so far brought
	made    map[string]bool // tables that the copy got from their definitions
}

// leave counts what the time does not reach.
func (p *pass) leave(rest []*instance) {
	for _, in := range rest {
		if p.first && in.leaves() && len(p.calls[in.program()]) < playsPerProgram {
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
	if err := p.define(in); err != nil {
		return err
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
	if twin == nil {
		if err := p.alone(ctx, play); err != nil {
			return fmt.Errorf("play %s: %w", in.id, err)
		}
		p.judge(play)
		return nil
	}
	trace, err := p.runner.Run(ctx, p.server, play.scenario(), in.playsAt(),
		replay.Options{Existing: true, Whoever: true, Fill: play.fill})
	if err != nil {
		return fmt.Errorf("play %s: %w", in.id, err)
	}
	play.take(trace.Results)
	p.result.Plays++
	if err := p.restore(play.drawn); err != nil {
		return err
	}
	p.judge(play)
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
	switch len(p.calls[program]) {
	case 0:
		p.programs = append(p.programs, program)
	case playsPerProgram:
		return nil, Enough
	}
	p.calls[program] = append(p.calls[program], in)
	return in, ""
}

// neighbourOf takes the next call that is to be played beside an instance.
func (p *pass) neighbourOf(in *instance) (twin *instance, why Reason) {
	all := p.neighbours[in]
	if len(all) == 0 {
		return nil, p.refuses(in)
	}
	if p.neighbours[in] = all[1:]; len(all) == 1 {
		delete(p.neighbours, in)
	}
	return all[0], ""
}

// refuses returns why an instance has no twin; empty where it may have one.
func (p *pass) refuses(in *instance) Reason {
	switch {
	case !in.whole:
		return CutValues
	case in.reach() == beyond, in.namesDatabase(p.schema.databases):
		return ReachesOut
	case in.failed:
		return Failed
	case in.reach() != withinRows:
		return LeavesTraces
	case !in.writes():
		return NothingChanged
	case !in.alone:
		return NotAlone
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
	if p.first && play.twin != nil {
		p.result.Judged++
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
		r.Beside, r.Other = p.in.name(), p.in.firstWrite()
		if !waited && r.Kind != DoubleInsert {
			r.Kind = WriteSkew
		}
	}
	return surest(races)
}
