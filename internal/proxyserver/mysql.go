package proxyserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/analyzer/predicate"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/proxy"
	mysqlproxy "github.com/isotap/isotap/proxy/mysql"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	"github.com/isotap/isotap/rewrite/plancache"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/serverlog/binlog"
)

// The plans kept: by number and by bytes.
const (
	planEntries = 100_000
	planBytes   = 64 << 20
)

// A mysqlBackend is a server of the MySQL family. What is open is the planner and what it rests on: the
// catalog, read over isotap's own connection.
type mysqlBackend struct {
	target    dsn.Target
	conn      *catalogmysql.Conn
	facts     catalogmysql.Server
	catalog   *catalogmysql.Cache
	recreated *catalogmysql.RecreatedTables
	planner   *sqlmysql.Cache // nil: not open
	prepared  txnstate.Prepared
	log       *zap.Logger

	predicates bool
	auto       bool                   // predicates where they can be tested
	matching   *catalogmysql.Matching // nil but in mode predicates
	untested   string                 // why conditions cannot be tested; empty where they can, or nobody wanted it
}

func (b *mysqlBackend) open(ctx context.Context, strictPlans bool) (err error) {
	if b.conn, err = catalogmysql.Connect(ctx, b.target); err != nil {
		return err
	}
	if b.facts, err = catalogmysql.ServerFacts(ctx, b.conn); err != nil {
		return errors.Join(err, b.conn.Close())
	}
	if b.catalog, err = catalogmysql.Load(ctx, b.conn); err != nil {
		return errors.Join(err, b.conn.Close())
	}
	b.recreated = catalogmysql.NewRecreatedTables(ctx, b.conn, b.facts.Engine)
	if b.predicates {
		if b.matching, err = catalogmysql.NewMatching(ctx, b.target, b.catalog); err != nil {
			return errors.Join(err, b.catalog.Close(), b.conn.Close())
		}
		b.tryMatching(ctx)
	}
	b.planner = sqlmysql.NewCache(sqlmysql.New(b.catalog, sqlmysql.Options{StrictPlans: strictPlans,
		Predicates: b.predicates}), planEntries, planBytes)
	b.settle()
	return nil
}

// tryMatching finds out whether conditions can be tested in the database that clients use. Mode auto does without where
// they cannot.
func (b *mysqlBackend) tryMatching(ctx context.Context) {
	if b.target.Database == "" {
		return
	}
	err := b.matching.Try(ctx, b.target.Database)
	if !errors.Is(err, catalogmysql.ErrNoTemporaryTables) {
		return // what else there is shows when there is something to test
	}
	b.untested = fmt.Sprintf("what conditions do not find stays unknown: %s in %s", catalogmysql.ErrNoTemporaryTables,
		b.target.Database)
	if b.auto {
		_ = b.matching.Close() // nothing was left on it
		b.predicates, b.matching = false, nil
	}
}

func (b *mysqlBackend) protocol(legs proxy.TLS, durable, _ bool) proxy.Protocol {
	cfg := mysqlproxy.Config{Durable: durable, Predicates: b.predicates, AsksConflicts: b.facts.AsksConflicts,
		ClientTLS: legs.ClientUse, ServerTLS: legs.ServerUse, Key: passwordKey}
	if b.planner != nil {
		cfg.Planner, cfg.Prepared = b.planner, &b.prepared
	}
	return proxy.Protocol{
		NewSession: func(l session.Options) session.Session {
			cfg := cfg
			cfg.Options = l
			return mysqlproxy.NewSession(cfg)
		},
		Refuse: func(client net.Conn, r proxy.Refusal, why string) []byte {
			packet := mysqlproxy.RefusalPacket(why)
			if r == proxy.TooMany {
				packet = mysqlproxy.TooManyPacket()
			}
			client.Write(packet)
			return nil
		},
	}
}

// passwordKey returns the key pair that clients on a plain leg encrypt their passwords for. It is made
// when the first of them asks, and lives as long as the process.
var passwordKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func (b *mysqlBackend) unwatched(ctx context.Context) ([]string, error) {
	missing := b.target.Database
	if missing != "" {
		there, err := catalogmysql.HasDatabase(ctx, b.conn, missing)
		if err != nil {
			return nil, err
		}
		if there {
			missing = ""
		}
	}
	said := sayUnwatched(missing, b.catalog.Unwatched(b.target.Database))
	if b.untested != "" {
		said = append(said, b.untested)
	}
	return said, nil
}

// rights says whether conditions can be tested. What else the user may do shows in the tables.
func (b *mysqlBackend) rights(ctx context.Context) (all []Examined, err error) {
	database := b.target.Database
	if database == "" {
		return nil, nil
	}
	m, err := catalogmysql.NewMatching(ctx, b.target, b.catalog)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	e := Examined{What: "conditions", There: true, Says: "they can be tested in " + database}
	switch err := m.Try(ctx, database); {
	case errors.Is(err, catalogmysql.ErrNoTemporaryTables):
		e = Examined{What: "conditions", Says: catalogmysql.ErrNoTemporaryTables.Error() + " in " + database,
			Do: fmt.Sprintf("GRANT CREATE TEMPORARY TABLES ON `%s`.* TO <isotap's user>", database)}
	case err != nil:
		e = Examined{What: "conditions", Says: err.Error()}
	}
	return []Examined{e}, nil
}

// describe says of a run that rows may be put back: until it ends nobody knows better.
func (b *mysqlBackend) describe(info *history.Info) { info.Server, info.PutBack = b.facts.Server, true }

// How long a client waits at most for the tables to be read that its statement names, where they were changed. Where
// isotap's columns show, statements may fail for a column too many unless the table is known.
const (
	reloadLimit        = 5 * time.Second
	exposedReloadLimit = time.Minute
)

// settle has the catalog forget plans that rest on what has changed, and tell of what it cannot read.
func (b *mysqlBackend) settle() {
	limit := reloadLimit
	if b.facts.Engine == dbms.TiDB {
		limit = exposedReloadLimit
	}
	b.catalog.Configure(catalogmysql.CacheOptions{Patience: limit, Ahead: true, Invalidate: b.planner.Invalidate,
		Failed: func(err error) {
			b.log.Warn("cannot read the schema: changed tables may go unobserved", zap.Error(err))
		}})
}

// reload notes what was changed. Nobody waits: what is used of it is read when it is.
func (b *mysqlBackend) reload(_ context.Context, changed session.Schema) error {
	change := catalogmysql.Change{Tables: changed.Tables, References: changed.References,
		Triggers: changed.Triggers, Created: changed.Created, MayHaveStayed: changed.MayHaveStayed}
	b.catalog.Changed(change)
	b.recreated.Changed(change)
	return nil
}

func (b *mysqlBackend) reloadAll(ctx context.Context) error { return b.catalog.Reload(ctx, b.conn) }

func (b *mysqlBackend) epoch() uint64 { return b.catalog.Epoch() }

func (b *mysqlBackend) ping(ctx context.Context) error { return b.catalog.Ping(ctx) }

func (b *mysqlBackend) plans() plancache.Stats { return b.planner.Stats() }

// misled counts none: every table is read.
func (b *mysqlBackend) misled() uint64 { return 0 }

// rewritten asks what the tables are as the run ends. A server that is gone makes none anew.
func (b *mysqlBackend) rewritten(ctx context.Context) []string {
	if b.recreated == nil {
		return nil
	}
	return b.recreated.Rewritten(ctx, b.conn)
}

func (b *mysqlBackend) serverLog(clock func() int64) (serverlog.Source, error) {
	return &binlog.Source{Target: b.target, Engine: b.facts.Engine, Clock: clock}, nil
}

func (b *mysqlBackend) inserted(ctx context.Context) (n uint64, known bool) {
	return catalogmysql.Inserts(ctx, b.conn)
}

func (b *mysqlBackend) outlived() []*history.Txn { return b.prepared.Rest() }

func (b *mysqlBackend) setStrictPlans(strict bool) { b.planner.SetStrictPlans(strict) }

func (b *mysqlBackend) tester() predicate.Tester {
	if b.matching == nil {
		return nil
	}
	return b.matching
}

func (b *mysqlBackend) close() error {
	err := errors.Join(b.catalog.Close(), b.conn.Close())
	if b.matching != nil {
		err = errors.Join(err, b.matching.Close())
	}
	return err
}
