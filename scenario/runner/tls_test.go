package runner

import (
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// The connections that go past isotap are encrypted as its own are.
func TestServersThatTakeTLSOnlyArePlayedOn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	testdb.Only(t, "it starts a server", "mariadb")
	server, err := testdb.StartPostgreSQL(t.Context(), testdb.PostgreSQLOptions{Authority: testdb.OpenAuthority(t),
		HBA: []string{"local all all trust",
			"hostssl all all 127.0.0.1/32 trust", "host all all all reject"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	for mode, works := range map[string]bool{"require": true, "prefer": true, "disable": false} {
		target, err := dsn.Parse(server.URL() + "?sslmode=" + mode)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), target, Options{})
		if (err == nil) != works {
			t.Errorf("%s: %v", mode, err)
		}
		if err != nil {
			continue
		}
		p, err := s.Play(t.Context(), read(t, lostUpdate), history.ReadCommitted)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if all := p.Unexpected(); len(all) > 0 {
			t.Errorf("%s: %q", mode, all)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
