package replay

import "context"

// An Outsider is a session of a run that somebody else has, such as a client of a proxy.
type Outsider struct {
	Connection uint32 // the server's number for it
	// Do does a step, and returns what came of it. It gives up when ctx ends.
	Do func(ctx context.Context, sql string) (Result, error)
}

// An outsiderConn is an Outsider in the place of a connection. The run never ends what is somebody else's.
type outsiderConn struct {
	Outsider
	ctx    context.Context
	giveUp context.CancelFunc
}

func newOutsider(ctx context.Context, o Outsider) *outsiderConn {
	c := &outsiderConn{Outsider: o}
	c.ctx, c.giveUp = context.WithCancel(ctx)
	return c
}

func (c *outsiderConn) execute(sql string, _ bool) (Result, error) { return c.Do(c.ctx, sql) }
func (c *outsiderConn) id() uint32                                 { return c.Connection }
func (c *outsiderConn) notices() []Notice                          { return nil }
func (c *outsiderConn) abandon()                                   { c.giveUp() }

func (c *outsiderConn) quit() error {
	c.giveUp()
	return nil
}

// outside reports whether somebody else has the session.
func (s *session) outside() bool {
	_, outside := s.conn.(*outsiderConn)
	return outside
}
