package tap

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// The plans kept: by number and by bytes.
const (
	planEntries = 100_000
	planBytes   = 64 << 20
)

// A schema is the planner and what it rests on: the catalog, read over isotap's own connection.
type schema struct {
	conn    *catalog.Conn
	facts   catalog.Server
	catalog *catalog.Cache
	planner *sqlmysql.Cache
}

func openSchema(ctx context.Context, target catalog.Target, strictPlans bool) (*schema, error) {
	conn, err := catalog.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	s := &schema{conn: conn}
	if s.facts, err = catalog.ServerFacts(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if s.catalog, err = catalog.Load(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s.planner = sqlmysql.NewCache(sqlmysql.New(s.catalog, sqlmysql.Options{StrictPlans: strictPlans}), planEntries, planBytes)
	return s, nil
}

// reload reads the catalog's entries of the tables again, or all when there are none, and forgets the plans
// if anything changed.
func (s *schema) reload(ctx context.Context, tables []rewrite.TableName) error {
	epoch := s.catalog.Epoch()
	if len(tables) == 0 {
		if err := s.catalog.Reload(ctx, s.conn); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := s.catalog.Refresh(ctx, s.conn, t.Schema, t.Table); err != nil {
			return err
		}
	}
	if s.catalog.Epoch() != epoch {
		s.planner.Invalidate()
	}
	return nil
}

// How often the catalog is read again without a cause. A large one takes its time, and is read less
// often: the reading must not become a load.
const (
	watchEvery = time.Second
	watchShare = 100 // of the time between two readings, at most one part is spent reading
)

// watch reads the catalog again and again until ctx ends, so that tables which somebody changed
// without the proxy are not taken for what they were.
func (s *schema) watch(ctx context.Context, log *zap.Logger) {
	pause := watchEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		started := time.Now()
		if err := s.reload(ctx, nil); err != nil && ctx.Err() == nil {
			log.Warn("cannot read the schema: changed tables may go unobserved", zap.Error(err))
		}
		pause = max(watchEvery, watchShare*time.Since(started))
	}
}

func (s *schema) close() error { return s.conn.Close() }
