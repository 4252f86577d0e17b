// Package enginecheck asks a server whether it keeps what package robust's answers assume of it (5.4 of the paper):
// each assumption is a scenario that goes otherwise where it is not kept. They are played in databases (PostgreSQL:
// schemas) of their own, which are dropped.
//
// What they show is true of the schedules that they play. A server that keeps one there may break it elsewhere.
package enginecheck

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

//go:embed probes
var probes embed.FS

// The assumptions, in the order in which they are asked about.
var asked = []struct {
	file  string
	level history.Level
	// predicate says that it is about statements by predicate that write or lock.
	predicate bool
}{
	{"select", history.ReadCommitted, false},
	{"writes", history.ReadCommitted, false},
	{"update", history.ReadCommitted, true},
	{"snapshot", history.RepeatableRead, false},
	{"lock", history.RepeatableRead, false},
}

// An Answer says whether a server keeps an assumption.
type Answer struct {
	Assumption string
	Level      history.Level // that it is about
	Predicate  bool          // it is about statements by predicate that write or lock
	Broken     []string      // what was not as it should be; none: it is kept
	Server     history.Server
}

// String says it in one line.
func (a *Answer) String() string {
	at := fmt.Sprintf("%s %s at %s", a.Server.Engine, a.Server.Version, a.Level)
	if len(a.Broken) == 0 {
		return fmt.Sprintf("checked on %s: %s: kept", at, a.Assumption)
	}
	return fmt.Sprintf("checked on %s: %s: NOT kept (%s)", at, a.Assumption, a.Broken[0])
}

// Ask asks a server, as a user who may make databases (PostgreSQL: schemas) and see other connections.
func Ask(ctx context.Context, target dsn.Target) (answers []Answer, err error) {
	s, err := runner.Open(ctx, target, runner.Options{Direct: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, a := range asked {
		text, err := probes.ReadFile("probes/" + a.file + ".yaml")
		if err != nil {
			return nil, err
		}
		sc, err := scenario.Read(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		p, err := s.Play(ctx, sc, a.level)
		if err != nil {
			return nil, fmt.Errorf("asking whether %s: %w", sc.Name, err)
		}
		answers = append(answers, Answer{Assumption: sc.Name, Level: a.level, Predicate: a.predicate,
			Broken: p.Unexpected(), Server: s.Server})
	}
	return answers, nil
}
