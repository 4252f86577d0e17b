package replay

import (
	"context"
	"errors"
	"fmt"
)

// inPlace runs the steps in a database that is there and stays. A scenario's own set-up and tear-down are not run.
func (p *play) inPlace(ctx context.Context) (Trace, error) {
	t, err := p.perform(ctx)
	return t, errors.Join(err, p.close())
}

// Connect connects to the database that the control server names.
func (r *Runner) Connect(ctx context.Context) (*Connection, error) {
	c, err := r.control.connect(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", r.control.Database, err)
	}
	return &Connection{c}, nil
}

// Close ends a connection that Connect made.
func (c *Connection) Close() {
	_ = c.conn.quit() // a courtesy: the socket is closed in any case
	c.conn.abandon()
}
