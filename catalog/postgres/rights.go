package postgres

import (
	"context"
	"maps"
	"slices"

	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// rights are what a role may do with tables, by oid. Nil: the server was not to be asked.
type rights struct{ layers[uint32, right] }

// A right says of a table whether a role may read every column of it with no row security between, and whether it may
// write isotap_wlist there, too.
type right struct{ reads, tags bool }

// rightsOf sorts the rows of readRights by role. A role that has none, or is none, is there too.
func rightsOf(roles []string, rows []row) map[string]*rights {
	of := make(map[string]*rights, len(roles))
	for _, role := range roles {
		of[role] = &rights{layers[uint32, right]{base: map[uint32]right{}}}
	}
	for _, r := range rows {
		if theirs := of[r[0]]; theirs != nil { // else nobody asked about the role
			theirs.base[r.oid(1)] = right{reads: true, tags: r[2] == "t"}
		}
	}
	return of
}

// over returns what is known when r was read anew of the relations touched. What the server was not to be asked stays
// so.
func (r *rights) over(before *rights, touched map[uint32]bool) *rights {
	if before == nil {
		return nil
	}
	differs := func(oid uint32) bool { return r.get(oid) != before.get(oid) }
	changed := slices.DeleteFunc(slices.Collect(maps.Keys(touched)), func(oid uint32) bool { return !differs(oid) })
	if len(changed) == 0 {
		return before
	}
	next := before.edit()
	for _, oid := range changed {
		if now := r.get(oid); now.reads {
			next.set(oid, now)
		} else {
			next.remove(oid)
		}
	}
	return &rights{next.done()}
}

// of returns what the role may do with a table.
func (r *rights) of(oid uint32) right {
	if r == nil {
		return right{}
	}
	return r.get(oid)
}

// equal reports whether both allow the same.
func (r *rights) equal(s *rights) bool {
	if r == nil || s == nil {
		return r == s
	}
	return maps.Equal(maps.Collect(r.all()), maps.Collect(s.all()))
}

// maxRoles bounds the roles whose rights are kept.
const maxRoles = 1000

// Reads reports whether a role may read every column of the table, without row security coming between. The
// first question about a role asks the server, and waits for it; where that fails, the answer is no until the
// server has answered.
func (c *Cache) Reads(role string, t *sqlpostgres.Table) bool {
	reads, _ := c.may(role, t)
	return reads
}

// Tags reports whether a role may write isotap_wlist of a table that it reads. It asks as Reads does.
func (c *Cache) Tags(role string, t *sqlpostgres.Table) bool {
	_, tags := c.may(role, t)
	return tags
}

func (c *Cache) may(role string, t *sqlpostgres.Table) (reads, tags bool) {
	if t == nil || t.OID == 0 {
		return t != nil && t.MadeBy != "" && t.MadeBy == role, false
	}
	known, ok := c.current.Load().rights[role]
	if !ok {
		known = c.ask(role)
	}
	may := known.of(t.OID)
	return may.reads, may.tags
}

// ask takes a role's rights from the server into the current snapshot.
func (c *Cache) ask(role string) *rights {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.current.Load()
	if known, ok := old.rights[role]; ok {
		return known
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	// A role without an answer is asked about when the catalog is read next, and makes a new epoch then.
	var known *rights
	if results, err := c.conn.read(ctx, scope{all: true, roles: []string{role}}.rights()); err == nil {
		known = rightsOf([]string{role}, results[0])[role]
	}
	c.marks.Lock()
	defer c.marks.Unlock()
	next := *old
	next.rights = map[string]*rights{role: known}
	if len(old.rights) < maxRoles {
		maps.Copy(next.rights, old.rights)
	} else {
		next.epoch++ // nobody would notice that what is forgotten changes
	}
	c.current.Store(&next)
	return known
}

// roles are those asked about, and whether some of them still wait for an answer.
func (s *snapshot) roles() (names []string, waiting bool) {
	for role, known := range s.rights {
		names = append(names, role)
		waiting = waiting || known == nil
	}
	return names, waiting
}
