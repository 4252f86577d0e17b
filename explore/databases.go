package explore

import (
	"context"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/recorder"
)

// sessionDatabases returns the database of each of a run's sessions on PostgreSQL, where a session stays in one.
func sessionDatabases(ctx context.Context, r *recorder.Reader, run history.Run) (map[history.SessionID]string, error) {
	all := make(map[history.SessionID]string)
	for s, err := range r.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Run == run {
			all[s.ID] = s.Database
		}
	}
	return all, nil
}

// databaseOf returns the database that a transaction of MySQL's family used, by the first row that it came to; empty:
// it came to none.
func databaseOf(x *history.Txn) string {
	for i := range x.Stmts {
		for _, a := range x.Stmts[i].Accesses {
			if database, _, ok := strings.Cut(a.Row.Table, "."); ok {
				return database
			}
		}
	}
	return ""
}

// noteDatabases notes the database of each instance. Of MySQL's family not every transaction tells it: such a one is
// where its session was before.
func noteDatabases(all []*instance, of func(*instance) string) {
	last := make(map[history.SessionID]string)
	for _, in := range all {
		if in.database = of(in); in.database == "" {
			in.database = last[in.session]
		}
		last[in.session] = in.database
	}
}

// A group is the instances in one database.
type group struct {
	database  string
	instances []*instance
	fresh     func(context.Context) (dsn.Target, func() error, error) // nil: there is nothing to play them on
}

// groups divides the instances by their databases.
func (o *Options) groups(all []*instance) []*group {
	var groups []*group
	byName := make(map[string]*group)
	for _, in := range all {
		name := in.database
		if name == "" || sameDatabase(o.Was.Family, name, o.Database) {
			name = o.Database
		}
		g := byName[name]
		if g == nil {
			g = &group{database: name}
			switch {
			case name == o.Database:
				g.fresh = func(ctx context.Context) (dsn.Target, func() error, error) { return o.Copy(ctx, o.Was) }
			case o.Empty != nil && o.Made(name):
				g.fresh = o.Empty
			}
			byName[name] = g
			groups = append(groups, g)
		}
		g.instances = append(g.instances, in)
	}
	return groups
}

// sameDatabase reports whether two names are of one database. Some servers of MySQL's family tell names in lower case.
func sameDatabase(family dbms.Family, a, b string) bool {
	return a == b || family == dbms.MySQLFamily && strings.EqualFold(a, b)
}
