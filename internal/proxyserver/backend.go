package proxyserver

import (
	"context"
	"fmt"

	"github.com/isotap/isotap/analyzer/predicate"
	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/rewrite/plancache"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
	"github.com/isotap/isotap/serverlog"
)

// A backend is the server behind isotap, in its protocol family: what isotap knows of it, and the sessions
// that speak to it. One that was not opened gives sessions that only pass on.
type backend interface {
	// open connects to the server and reads the schema that plans rest on.
	open(ctx context.Context, strictPlans bool) error
	// protocol returns the sessions. durable is proxy.Config.Durable.
	protocol(legs proxy.TLS, durable, logged bool) proxy.Protocol
	// unwatched returns what of the upstream's database cannot be watched, as sentences: that it is missing, or tables.
	unwatched(ctx context.Context) ([]string, error)
	// rights returns what isotap's user may do, as far as isotap wants it and it is no matter of single tables or the
	// server's log.
	rights(ctx context.Context) ([]Examined, error)
	// describe says in a run's description what the server is.
	describe(*history.Info)
	// reload takes in that the schema changed, for a client that waits for no longer than it must.
	reload(ctx context.Context, changed session.Schema) error
	// reloadAll reads the whole schema again, so that tables which somebody changed without the proxy are not taken for
	// what they were.
	reloadAll(ctx context.Context) error
	// epoch is another number once the schema was found changed.
	epoch() uint64
	// ping has the server answer.
	ping(ctx context.Context) error
	// plans counts the statements whose plan was asked for, and those whose plan was in the cache.
	plans() plancache.Stats
	// misled counts the readings that had a table otherwise than the statements told that had defined it.
	misled() uint64
	setStrictPlans(bool)
	// tester returns what finds the rows that match a predicate; nil but in mode predicates, and in
	// mode auto where the login may not.
	tester() predicate.Tester
	// rewritten returns history.Info's Rewritten, at the end of a run.
	rewritten(context.Context) []string
	// serverLog returns the server's own log, whose times are by a clock that counts nanoseconds since the run's
	// start. A *serverlog.Unreadable error says why it cannot be read.
	serverLog(clock func() int64) (serverlog.Source, error)
	// inserted returns how many statements that insert rows the server has run; not known on PostgreSQL.
	inserted(context.Context) (n uint64, known bool)
	// outlived returns the transactions that their sessions prepared (PREPARE TRANSACTION, XA PREPARE) and nobody has
	// ended, once all sessions are gone.
	outlived() []*history.Txn
	close() error
}

// newBackend returns the backend of the upstream's family, which is not open yet.
func newBackend(o *Options) backend {
	if o.Upstream.Family == dbms.PostgreSQLFamily {
		return &postgresBackend{target: o.Upstream, options: sqlpostgres.Options{Predicates: o.Predicates || o.Auto,
			Columns: o.Columns, WListBytes: sqlpostgres.DefaultWListBytes}}
	}
	return &mysqlBackend{target: o.Upstream, predicates: o.Predicates || o.Auto, auto: o.Auto && !o.Predicates,
		log: o.Logger}
}

// maxUnwatched bounds the tables that are named among those that cannot be watched.
const maxUnwatched = 20

// sayUnwatched says of tables that they cannot be watched, and of a database that it is missing.
func sayUnwatched(missing string, tables []catalog.LeftOut) []string {
	var said []string
	if missing != "" {
		said = append(said, "the server has no database "+missing+" yet, or isotap's user may not see it")
	}
	for i, t := range tables {
		if i == maxUnwatched {
			said = append(said, fmt.Sprintf("not watched: %d more tables", len(tables)-i))
			break
		}
		said = append(said, fmt.Sprintf("not watched: %s: %s", t.Table, t.Reason))
	}
	return said
}

// An answering backend has the server answer what sessions ask of transactions that have ended. Their clients wait.
type answering interface {
	answer(ctx context.Context, q session.Question) error
}
