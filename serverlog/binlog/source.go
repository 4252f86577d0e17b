package binlog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/guard"
	"github.com/isotap/isotap/serverlog"
)

// A Source is the binary log of a server, as [serverlog.Source] has it.
type Source struct {
	// Target is the server, with a login that may read its log.
	Target dsn.Target
	Engine dbms.Engine
	// Clock is the time of the run, in nanoseconds since its start.
	Clock func() int64
}

// Open begins to read where the log ends.
func (s *Source) Open(ctx context.Context) (_ serverlog.Stream, err error) {
	catalog, err := catalogmysql.Connect(ctx, s.Target)
	if err != nil {
		return nil, err
	}
	st := &stream{source: s, catalog: catalog, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.Close())
		}
	}()
	id, at, err := s.begin(ctx, catalog)
	if err != nil {
		return nil, err
	}
	if st.marker, err = catalogmysql.Connect(ctx, s.Target); err != nil {
		return nil, err
	}
	if at, err = st.mark(ctx); err != nil {
		return nil, err
	}
	st.assembly = newAssembly(newLayouts(catalog), at.file)
	if err := st.start(id, at); err != nil {
		return nil, forbidden(err, s.Engine, readRight)
	}
	return st, nil
}

// begin finds out whether and where the log can be read, and chooses a number to read it under.
func (s *Source) begin(ctx context.Context, c *catalogmysql.Conn) (id uint32, at position, err error) {
	set, err := askSettings(ctx, c)
	if err != nil {
		return 0, at, err
	}
	if unmet := set.unmet(s.Engine); unmet != nil {
		return 0, at, unmet
	}
	e, err := askEnd(ctx, c, s.Engine)
	if err != nil {
		return 0, at, err
	}
	if e.filtered != "" {
		return 0, at, &serverlog.Unreadable{Reason: "the server logs some databases only (binlog_do_db, " +
			"binlog_ignore_db: " + e.filtered + ")"}
	}
	for id == 0 || id == set.serverID {
		id = firstID + rand.Uint32N(1<<32-1-firstID)
	}
	return id, e.at, nil
}

// firstID is where the numbers begin under which isotap reads a log. The server ends whom another one with the same
// number follows, so it is drawn from the upper two thousand million, where nobody numbers servers by hand.
const firstID = 1 << 31

const (
	heartbeat = 2 * time.Second  // of a server that has nothing to say
	silence   = 10 * time.Second // after which it is taken for gone
)

// start connects for the log itself.
func (st *stream) start(id uint32, at position) error {
	secure, err := st.source.Target.TLSConfig()
	if err != nil {
		return err
	}
	target := st.source.Target
	config := replication.BinlogSyncerConfig{ServerID: id, Flavor: mysql.MySQLFlavor, User: target.User,
		Password: target.Password, Localhost: "isotap", Host: target.Address, TLSConfig: secure,
		HeartbeatPeriod: heartbeat, ReadTimeout: silence, DisableRetrySync: true, VerifyChecksum: true,
		DiscardGTIDSet: true, Logger: slog.New(slog.DiscardHandler), SynchronousEventHandler: st,
		RowsEventDecodeFunc: st.decodeRows,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, target.Network, target.Address)
		}}
	if st.source.Engine == dbms.MariaDB {
		config.Flavor, config.FillZeroLogPos = mysql.MariaDBFlavor, true
	}
	err = st.sync(config, at)
	if err != nil && target.TLS.Mode == dsn.TLSPrefer && strings.Contains(err.Error(), "does not support TLS") {
		config.TLSConfig = nil
		err = st.sync(config, at)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	st.stop = stop
	st.running.Go(func() { st.watch(ctx) })
	st.running.Go(func() { st.tick(ctx) })
	return nil
}

// sync asks for the log.
func (st *stream) sync(config replication.BinlogSyncerConfig, at position) error {
	return guard.Call("go-mysql", func() (err error) {
		st.syncer = replication.NewBinlogSyncer(config)
		st.events, err = st.syncer.StartSync(mysql.Position{Name: at.file, Pos: uint32(at.offset)})
		return err
	})
}
