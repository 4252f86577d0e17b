package recorder

import (
	"context"
	"errors"

	"github.com/isotap/isotap/history"
)

// A Checked is what [Reader.Check] found of a recording.
type Checked struct {
	// Missing are the runs of which transactions cannot be read.
	Missing []*MissingError
	// Damage is what of the files cannot be read, and Unreadable what of that is known by name: transactions, sessions
	// and what else stands in the database.
	Damage     []Damage
	Unreadable []error
}

// Sound reports whether all of the recording can be read.
func (c *Checked) Sound() bool { return len(c.Missing)+len(c.Damage)+len(c.Unreadable) == 0 }

// Of returns how many transactions of a run are missing.
func (c *Checked) Of(run history.Run) (n uint64) {
	for _, e := range c.Missing {
		if e.Run == run {
			n += e.Written - e.Read
		}
	}
	return n
}

// Check reads all of the recording and returns what is damaged. The error is that of ctx, or of the system.
func (r *Reader) Check(ctx context.Context) (*Checked, error) {
	c := &Checked{}
	var failed error
	take := func(err error) {
		switch missing := Missing(err); {
		case err == nil:
		case !errors.Is(err, ErrCorrupt):
			failed = errors.Join(failed, err)
		case len(missing) > 0:
			c.Missing = append(c.Missing, missing...)
		case !errors.Is(err, errDamage):
			c.Unreadable = append(c.Unreadable, err)
		}
	}
	for _, err := range r.Sessions(ctx) {
		take(err)
	}
	for _, info := range r.Runs() {
		for _, err := range r.Matches(ctx, info.Run) {
			take(err)
		}
		for _, err := range r.Definitions(ctx, info.Run) {
			take(err)
		}
		for _, err := range r.Defined(ctx, info.Run) {
			take(err)
		}
		for _, err := range r.Texts(ctx, info.Run) {
			take(err)
		}
		for _, err := range r.Logged(ctx, info.Run) {
			take(err)
		}
	}
	var a Arena
	for _, err := range r.Outlines(ctx, func() *Arena { a.Reset(); return &a }) {
		take(err)
	}
	c.Damage = r.Damage()
	return c, failed
}
