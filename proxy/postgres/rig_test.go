package postgres

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/proxy"
	"github.com/isotap/isotap/proxy/session"
	"github.com/isotap/isotap/proxy/txnstate"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// A rig is a proxy in front of the test server's database, with all that it records.
type rig struct {
	database        string
	direct, proxied string // addresses
	catalog         *catalogpostgres.Cache
	planner         *sqlpostgres.Cache
	proxy           *proxy.Proxy
	logs            *observer.ObservedLogs // warnings

	mu   sync.Mutex
	txns []*history.Txn
	told []session.Schema // of sessions' beginnings and ends
}

func (r *rig) Session(context.Context, history.Session) error { return nil }

// Defined takes what no test here looks at.
func (r *rig) Defined(context.Context, *history.DefiningTxn) error { return nil }

func (r *rig) Txn(_ context.Context, t *history.Txn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.txns = append(r.txns, t)
	return nil
}

// recorded returns the transactions recorded so far, and forgets them.
func (r *rig) recorded() []*history.Txn {
	r.mu.Lock()
	defer r.mu.Unlock()
	txns := r.txns
	r.txns = nil
	return txns
}

func (r *rig) reload(_ context.Context, changed session.Schema) error {
	if !changed.Expected && !changed.Begins && !changed.Ends {
		r.catalog.Touch(changed.Changes)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, changed)
	return nil
}

// newRig starts a proxy in front of a new database in which the statements have run.
func newRig(t *testing.T, change func(*Config), statements ...string) *rig {
	t.Helper()
	database := testdb.NewPostgreSQLDatabase(t)
	db := testdb.OpenPostgreSQL(t, database)
	for _, sql := range statements {
		if _, err := db.Exec(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	server := testdb.PostgreSQL(t)
	target, err := dsn.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{database: database, direct: server.Addr()}
	if r.catalog, err = catalogpostgres.Load(t.Context(), target, database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.catalog.Close() })
	r.planner = sqlpostgres.NewCache(sqlpostgres.New(r.catalog, sqlpostgres.Options{}), 1000, 1<<20)
	r.catalog.Changed(r.planner.Invalidate)
	cfg := Config{Own: NewOwn(), Prepared: &txnstate.Prepared{}, Planners: func(string) Planner { return r.planner }}
	if change != nil {
		change(&cfg)
	}
	core, logs := observer.New(zap.WarnLevel)
	r.logs = logs
	r.proxy = proxy.New(proxy.Config{
		Network: "tcp", Address: r.direct, Recorder: r, Run: 7, Args: true, Durable: cfg.Durable, Reload: r.reload,
		Logger: zap.New(zapcore.NewTee(zaptest.NewLogger(t).Core(), core)),
		Protocol: proxy.Protocol{FirstMessage: FirstMessage, NewSession: func(l session.Options) session.Session {
			cfg := cfg
			cfg.Options = l
			return NewSession(cfg)
		}},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.proxied = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.proxy.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}
