package postgres

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

func facts(t *testing.T, to dsn.Target) Server {
	t.Helper()
	c, err := NewConn(to, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := ServerFacts(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServerFactsSayWhoTheServerIs(t *testing.T) {
	server := testdb.PostgreSQL(t)
	s := facts(t, target(t))
	if s.Engine != "postgresql" || s.Version != server.Version() || s.Major != server.Major() ||
		s.Level != history.ReadCommitted || s.InRecovery || s.BackslashQuotes || s.System == 0 {
		t.Errorf("%+v of %s", s, server.Version())
	}
}

func TestAnyRoleMayAskForTheServersFacts(t *testing.T) {
	database, _ := newDatabase(t, "")
	to := target(t)
	to.User = role(t, database, "LOGIN")
	if s := facts(t, to); s.Major != testdb.PostgreSQL(t).Major() {
		t.Errorf("%+v", s)
	}
}

// TestUnprivilegedLoginGetsNoSystemIdentifier: a login that may not ask for the system identifier gets none.
func TestUnprivilegedLoginGetsNoSystemIdentifier(t *testing.T) {
	database, db := newDatabase(t, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	to := target(t)
	to.User = role(t, database, "LOGIN")
	c, err := NewConn(to, database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := ServerFacts(t.Context(), c)
	if err != nil || s.System != 0 || s.Horizon == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	run(t, db, "GRANT EXECUTE ON FUNCTION pg_control_system() TO "+to.User)
	if s, err = ServerFacts(t.Context(), c); err != nil || s.System == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	run(t, db, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM "+to.User)
}

func TestTransactionsBelowTheHorizonHaveEnded(t *testing.T) {
	db := testdb.OpenPostgreSQL(t, "")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var open, nested, later uint64
	if err := tx.QueryRow("SELECT txid_current()").Scan(&open); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SAVEPOINT s; CREATE TEMPORARY TABLE made_inside ()"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT xmin::text FROM pg_class WHERE oid = 'made_inside'::regclass").Scan(&nested); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT txid_current()").Scan(&later); err != nil {
		t.Fatal(err)
	}
	s := facts(t, target(t))
	if s.Horizon > open {
		t.Errorf("transaction %d is open, and the horizon is %d", open, s.Horizon)
	}
	if r := s.Recent; r.From > open || r.To <= later || !slices.Contains(r.Running, open) ||
		!slices.Contains(r.Running, nested) || slices.Contains(r.Running, later) {
		t.Errorf("transaction %d with its %d runs, and %d does not: %+v", open, nested, later, r)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT txid_current()").Scan(&later); err != nil {
		t.Fatal(err)
	}
	// Others on the tests' server, such as autovacuum, may hold it back for a while.
	for facts(t, target(t)).Horizon <= later {
		if t.Context().Err() != nil {
			t.Fatalf("transaction %d has ended, and the horizon stays behind", later)
		}
	}
}

func TestConnectionErrorsDoNotShowThePassword(t *testing.T) {
	to := target(t)
	to.User, to.Password = "nobody_there", "s3cret"
	c, err := NewConn(to, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ServerFacts(t.Context(), c)
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "nobody_there") {
		t.Errorf("%v", err)
	}
	to.TLS = dsn.TLS{Mode: dsn.TLSVerifyFull, CA: "/no/such/file"}
	if _, err = NewConn(to, ""); err == nil || strings.Contains(err.Error(), "s3cret") ||
		!strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("%v", err)
	}
	if _, err = NewConn(dsn.Target{Address: "h:1"}, ""); err == nil || !strings.Contains(err.Error(), "MySQL") {
		t.Errorf("%v", err)
	}
}

func TestWhatKeepsFromTheServerIsToldOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	target, err := dsn.Parse("postgres://u@" + l.Addr().String() + "/d")
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConn(target, "d")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) || strings.Count(err.Error(), "refused") != 1 {
		t.Errorf("%v", err)
	}
}
