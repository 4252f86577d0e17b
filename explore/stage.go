package explore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/scenario/replay"
	"github.com/isotap/isotap/scenario/runner"
)

// A stage is a database that plays are played on, with what it takes to play there.
type stage struct {
	target  dsn.Target
	runner  *replay.Runner
	server  replay.Server
	control *replay.Connection // for questions
	schema  *schema
	// mayBeBlind says that plays may go on where the server does not tell who waits, blind that they do.
	mayBeBlind, blind bool
}

// enter connects to the database, and asks it for its tables.
func (s *stage) enter(ctx context.Context) (err error) {
	if s.server, err = runner.Server(s.target); err != nil {
		return err
	}
	s.server.Database, s.server.FoundRows = s.target.Database, true
	if s.runner, err = replay.NewRunner(ctx, s.server); err != nil && s.mayBeBlind {
		s.blind = true
		s.runner, err = replay.NewUnwatchedRunner(ctx, s.server)
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.target.Database, err)
	}
	if s.control, err = s.runner.Connect(ctx); err != nil {
		return err
	}
	return s.learn()
}

// blindGrace is how long a statement has before it counts as waiting, where the server does not tell.
const blindGrace = 100 * time.Millisecond

// learn asks the database for its tables.
func (s *stage) learn() (err error) {
	s.schema, err = readSchema(s.control, s.server.Family)
	return err
}

// leave ends all connections to the database, if there are any.
func (s *stage) leave() error {
	err := s.giveUpPrepared()
	if s.control != nil {
		s.control.Close()
		s.control = nil
	}
	if s.runner == nil {
		return err
	}
	err = errors.Join(err, s.runner.Close())
	s.runner = nil
	return err
}

// giveUpPrepared rolls back what a play left prepared that was broken off: a database with such a transaction cannot be
// dropped.
func (s *stage) giveUpPrepared() error {
	if s.control == nil || s.schema == nil || s.schema.gid == "" {
		return nil
	}
	left, err := ask(s.control, "SELECT gid FROM pg_prepared_xacts WHERE gid = '"+s.schema.gid+"'")
	if err == nil && len(left.Rows) > 0 {
		_, err = ask(s.control, "ROLLBACK PREPARED '"+s.schema.gid+"'")
	}
	if err != nil {
		return fmt.Errorf("look for what is left prepared: %w", err)
	}
	return nil
}

// perform plays on the database as the options say, besides what all plays have in common.
func (s *stage) perform(ctx context.Context, p *play, o replay.Options) error {
	o.Existing, o.Whoever, o.Grace, o.Fill = true, true, grace[s.schema.family], p.fill
	if s.blind {
		o.Grace = blindGrace
	}
	trace, err := s.runner.Run(ctx, s.server, p.scenario(), p.in.playsAt(), o)
	if err != nil {
		return fmt.Errorf("play %s: %w", p.in.id, err)
	}
	p.take(trace.Results)
	return nil
}
