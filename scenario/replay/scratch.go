package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/scenario"
)

// A Scratch is a database (PostgreSQL: a schema) of its own for statements that are in no scenario. It belongs to one
// goroutine, and is dropped when it is closed.
type Scratch struct {
	runner   *Runner
	target   Server
	database string
	settings scenario.Settings
	conns    []conn
}

// Scratch makes one. Its connections make the settings first.
func (r *Runner) Scratch(target Server, settings scenario.Settings) (*Scratch, error) {
	database := fmt.Sprintf("%s%d", r.prefix, r.count.Add(1))
	if err := r.administer(r.dialect.create(database)); err != nil {
		return nil, fmt.Errorf("make a scratch database: %w", err)
	}
	return &Scratch{runner: r, target: target, database: database, settings: settings}, nil
}

// A Connection is one to a database, for statements that are in no scenario. It belongs to one goroutine.
type Connection struct{ conn conn }

// Connect connects as a session of a run does: at a level, with the scratch's settings and its own.
func (s *Scratch) Connect(ctx context.Context, level history.Level, own scenario.Settings) (*Connection, error) {
	c, err := s.target.connect(ctx, s.database)
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, c)
	for _, sql := range beginnings(s.runner.dialect, level, s.settings, own) {
		if err := run(c, sql); err != nil {
			return nil, err
		}
	}
	return &Connection{c}, nil
}

// Ask runs a statement. What the server refuses is a Failed result, not an error.
func (c *Connection) Ask(sql string) (*Result, error) {
	r, err := c.conn.execute(sql, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	r.SQL = sql
	return &r, nil
}

// Close ends the connections and drops the database.
func (s *Scratch) Close() error {
	for _, c := range s.conns {
		_ = c.quit() // a courtesy: the socket is closed in any case
		c.abandon()
	}
	if err := s.runner.administer(s.runner.dialect.drop(s.database)); err != nil {
		return errors.Join(errors.New("drop a scratch database"), err)
	}
	return nil
}
