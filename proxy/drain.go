package proxy

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// welcome is how long after it has connected a client may stay during a drain, or a quarter of the drain if that is
	// less: it came while clients were taken, and has had no time yet for what it came for.
	welcome = time.Second
	// drainReport is how often a drain says how many clients are left.
	drainReport = time.Second
)

// drain asks every connection to end after its transaction, and ends those that have not when
// Reloadable.Drain is over. Plain copies have no transactions that isotap knows of: they end at once. end has listeners
// resign no longer; accepts are done when no more clients come.
func (p *Proxy) drain(accepts *sync.WaitGroup, end context.CancelFunc) {
	began, limit := time.Now(), p.reloadable.Load().Drain
	log := p.cfg.Logger
	log.Info("drain begins: no more clients are taken", zap.Int("clients", len(p.all())), zap.Duration("limit", limit))
	accepted := make(chan struct{})
	go func() {
		accepts.Wait()
		close(accepted)
	}()
	p.dismissAll(began, began.Add(limit), accepted)
	end()
	cut := len(p.all())
	p.closeAll()
	<-accepted
	log.Info("drain ended", zap.Duration("took", time.Since(began)), zap.Int("clients_cut_off", cut))
}

// dismissAll has client connections end when they may, until none is left and none can come, or the deadline is over.
func (p *Proxy) dismissAll(began, deadline time.Time, accepted <-chan struct{}) {
	stay := min(welcome, deadline.Sub(began)/4)
	report := began.Add(drainReport)
	for now := began; now.Before(deadline); now = time.Now() {
		conns := p.all()
		if len(conns) == 0 && closed(accepted) {
			return
		}
		if now.After(report) {
			p.cfg.Logger.Info("draining", zap.Int("clients_left", len(conns)),
				zap.Duration("time_left", deadline.Sub(now)))
			report = now.Add(drainReport)
		}
		for _, l := range conns {
			if now.Sub(l.begun) >= stay {
				l.drain()
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
