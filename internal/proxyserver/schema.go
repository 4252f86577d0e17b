package proxyserver

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// How often the schema is read again without a cause. A large one takes its time, and is read less
// often: the reading must not become a load.
const (
	watchEvery = time.Second
	watchShare = 100 // of the time between two readings, at most one part is spent reading
)

// watchSchema calls reload again and again until ctx ends.
func watchSchema(ctx context.Context, log *zap.Logger, reload func(context.Context) error) {
	pause := watchEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		started := time.Now()
		if err := reload(ctx); err != nil && ctx.Err() == nil {
			log.Warn("cannot read the schema: changed tables may go unobserved", zap.Error(err))
		}
		pause = max(watchEvery, watchShare*time.Since(started))
	}
}
