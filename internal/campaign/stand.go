//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/internal/analysis"
)

// roundsPerProxy is how many rounds one proxy of a stand lives through.
const roundsPerProxy = 10

// A link is what lies between two programs that talk over a network. It does harm while it is told to.
type link interface {
	// address is where the one that connects finds the other.
	address() string
	// harm begins to do harm, as random has it.
	harm(random *rand.Rand)
	// calm ends the harm, and returns how much there was.
	calm() (faults int64)
	close() error
}

// A stand is a proxy with a link before it and one behind it, and what its clients were told.
type stand struct {
	*job
	site      *site
	over      network
	near, far link       // between clients and the proxy, and between the proxy and its server
	space     *namespace // nil: the links are relays
	proxy     *proxy     // nil: none runs
	log       string
	recording string
	first     int // round of the proxy
	before    sample
	truth     *truth
}

// newStand starts a server, for proxies that reach it over a network.
func (j *job) newStand(ctx context.Context, over network) (*stand, error) {
	site, err := j.family.newSite(ctx, 2000, over)
	return &stand{job: j, site: site, over: over}, err
}

// close ends the proxy, with a last look, and the server.
func (s *stand) close(ctx context.Context, look func(context.Context) error) (err error) {
	if s.proxy != nil {
		err = s.finish(ctx, look)
	}
	return errors.Join(err, s.site.close())
}

// ready sees to it that a proxy runs: a new one on new tables where there is none, or the present one has had its
// rounds. look is for what that one recorded. Changes are for the bytes that the relays pass on while they do harm;
// nil: they do other harm.
func (s *stand) ready(ctx context.Context, near, far mutation, look func(context.Context) error) (err error) {
	if s.proxy != nil {
		if s.row.rounds-s.first < roundsPerProxy {
			return nil
		}
		if err := s.finish(ctx, look); err != nil {
			return err
		}
	}
	if err := s.site.run(ctx, "DROP TABLE IF EXISTS "+tokenTables, makeTokens, makePrey); err != nil {
		return err
	}
	if err := s.site.makeTables(ctx); err != nil {
		return err
	}
	s.first, s.truth = s.row.rounds, newTruth(s.job)
	s.recording = filepath.Join(s.dir, fmt.Sprintf("recording-%d", s.first))
	s.log = s.recording + ".log"
	if s.over == namespaces {
		err = s.startCabled(ctx)
	} else {
		err = s.startRelayed(ctx, near, far)
	}
	if err != nil {
		return err
	}
	if err := s.family.answers(ctx, s.near.address(), patience); err != nil {
		return err
	}
	s.before, err = s.proxy.sample(ctx)
	return err
}

// startRelayed starts a proxy between relays.
func (s *stand) startRelayed(ctx context.Context, near, far mutation) (err error) {
	if s.far, err = newRelay(s.site.Addr(), far); err != nil {
		return err
	}
	if s.proxy, err = startProxy(ctx, s.isotap, s.log, append(s.proxyArgs(), "--admin-pprof")...); err != nil {
		return err
	}
	s.near, err = newRelay(s.proxy.address, near)
	return err
}

// startCabled starts a proxy in a network namespace of its own.
func (s *stand) startCabled(ctx context.Context) (err error) {
	if s.space, err = newNamespace(ctx); err != nil {
		return err
	}
	s.near, s.far = s.space.near, s.space.far
	if err := s.space.connect(s.site.Addr()); err != nil {
		return errors.Join(err, s.space.close())
	}
	cmd := s.space.command(s.isotap, append([]string{"proxy", "--listen", s.space.listen(), "--admin", s.space.admin()},
		s.proxyArgs()...)...)
	if s.proxy, err = startCommand(ctx, cmd, s.log); err != nil {
		return errors.Join(err, s.space.close())
	}
	s.space.near.at = s.proxy.address
	return nil
}

// proxyArgs are the arguments of the proxy, but for where it listens.
func (s *stand) proxyArgs() []string {
	return []string{"--upstream", s.family.upstream(s.far.address()), "--recording", s.recording, "--durability",
		s.durability.String()}
}

// disconnect ends the links.
func (s *stand) disconnect() error {
	if s.space != nil {
		return s.space.close()
	}
	return errors.Join(s.near.close(), s.far.close())
}

// heal ends the harm, and looks whether the proxy is as it was before.
func (s *stand) heal(ctx context.Context) error {
	// First the far network heals: what clients left is then let go by the server's side, too.
	faults := s.far.calm() + s.near.calm()
	s.count(func(r *row) { r.faults += faults })
	if !s.proxy.alive() {
		s.wrong("the proxy ended: %v", s.proxy.err)
		return nil
	}
	if err := s.proxy.returnsTo(ctx, s.before, 4, patience); err != nil {
		s.wrong("%v", err)
	}
	if err := s.family.answers(ctx, s.near.address(), patience); err != nil {
		s.wrong("after the harm: %v", err)
	}
	return nil
}

// finish ends the proxy in order and holds database and recording against what clients were told.
func (s *stand) finish(ctx context.Context, look func(context.Context) error) error {
	p := s.proxy
	s.proxy = nil
	defer p.end(syscall.SIGKILL, patience)
	if err := p.stop(patience); err != nil {
		s.wrong("the proxy at its end: %v", err)
	}
	if err := s.disconnect(); err != nil {
		return err
	}
	found, err := panics(s.log)
	if err != nil {
		return err
	}
	s.count(func(r *row) { r.panics += found })
	if err := s.truth.compare(ctx, s.site); err != nil {
		return err
	}
	if err := look(ctx); err != nil {
		s.wrong("%v", err)
	}
	if s.row.bad() {
		return nil
	}
	return errors.Join(os.RemoveAll(s.recording), os.Remove(s.log))
}

// compareRecording looks for everything acknowledged in the recording.
func (s *stand) compareRecording(ctx context.Context) error {
	return s.truth.compareRecording(ctx, s.recording, func(time.Time) bool { return true })
}

// findNothing has a recording analyzed, of clients between whom there was no anomaly.
func (j *job) findNothing(ctx context.Context, recording string) error {
	result, err := analysis.Analyze(ctx, []string{recording}, analyzer.Options{})
	if err != nil {
		return err
	}
	for _, f := range result.Findings {
		j.wrong("a false alarm: %s %v: %s", f.Class, f.Anomaly, f.Summary)
	}
	return nil
}
