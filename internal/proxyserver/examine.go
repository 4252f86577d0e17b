package proxyserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/serverlog"
)

// An Examined is one thing that isotap wants of a server.
type Examined struct {
	What  string `json:"what"`
	There bool   `json:"there"`
	// Says is how it is, and Do what makes it so where it is not there: SQL, a setting or a command. Either may be
	// empty.
	Says string `json:"says"`
	Do   string `json:"do"`
}

// Examine says of each thing that isotap wants of a server whether it is there. It changes nothing, and fails where the
// server is not reached.
func Examine(ctx context.Context, target dsn.Target) (all []Examined, err error) {
	b := newBackend(&Options{Upstream: target, Logger: zap.NewNop()})
	if err := b.open(ctx, false); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var info history.Info
	b.describe(&info)
	all = append(all, Examined{What: "server", There: true,
		Says: fmt.Sprintf("%s %s", info.Server.Engine, info.Server.Version)})
	unwatched, err := b.unwatched(ctx)
	if err != nil {
		return nil, err
	}
	if len(unwatched) == 0 {
		all = append(all, Examined{What: "tables", There: true, Says: "all can be watched"})
	}
	for _, sentence := range unwatched {
		all = append(all, Examined{What: "tables", Says: sentence})
	}
	rights, err := b.rights(ctx)
	if err != nil {
		return nil, err
	}
	return append(append(all, rights...), examineLog(ctx, b)), nil
}

// examineLog opens the server's log, and closes it.
func examineLog(ctx context.Context, b backend) Examined {
	e := Examined{What: "the server's log"}
	began := time.Now()
	source, err := b.serverLog(func() int64 { return int64(time.Since(began)) })
	var stream serverlog.Stream
	if err == nil {
		stream, err = source.Open(ctx)
	}
	var unreadable *serverlog.Unreadable
	switch {
	case errors.As(err, &unreadable):
		e.Says, e.Do = unreadable.Reason, unreadable.Remedy
	case err != nil:
		e.Says = err.Error()
	default:
		e.There, e.Says = true, "it can be read"
		_ = stream.Close() // it was opened for this alone
	}
	return e
}
