package main

import (
	"context"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
)

// An emptyHost is one whose URL names no database.
type emptyHost struct{}

func (emptyHost) target() dsn.Target                                 { return dsn.Target{Network: "tcp"} }
func (emptyHost) clients() proxyserver.ClientTLS                     { return proxyserver.ClientTLS{} }
func (emptyHost) listen(string) string                               { return "" }
func (emptyHost) facts(context.Context) (string, string, error)      { return "", "", nil }
func (emptyHost) renew(context.Context, []string) error              { return nil }
func (emptyHost) environment(network, address string) (env []string) { return nil }
func (emptyHost) close() error                                       { return nil }

// A databaseProgram remembers the database that its tests were to use.
type databaseProgram struct{ database string }

func (p *databaseProgram) prepare(context.Context, string, string) error { return nil }

func (p *databaseProgram) run(_ context.Context, s server, _ selection) (map[string]outcome, error) {
	p.database = s.at.Database
	return map[string]outcome{"reads": {result: passed}}, nil
}

func TestSuiteIsToldItsDatabase(t *testing.T) {
	p := &databaseProgram{}
	s := suite{driver: &driver{database: "shop", program: p}, host: emptyHost{}}
	if _, err := s.run(t.Context(), direct, selection{}); err != nil || p.database != "shop" {
		t.Errorf("the suite uses database %q, %v; want shop", p.database, err)
	}
}
