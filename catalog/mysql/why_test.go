package mysql

import (
	"errors"
	"testing"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// TestWhyATestFailed has the server refuse a condition, somebody end the session, and nobody listen.
func TestWhyATestFailed(t *testing.T) {
	database := testdb.NewDatabase(t)
	target, err := dsn.Parse(testdb.Current(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMatching(t.Context(), target, oneTable{&sqlmysql.Table{Table: rewrite.Table{Name: database + ".parent"},
		Columns: columnsOf(rewrite.Column{Name: "id", Full: "int(11)", Type: "int"})}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	test := func(where string) error {
		p := history.Predicate{Table: database + ".parent", Of: quote(database) + ".`parent`", As: "parent", Where: where,
			Settings: history.LiteralSettings{TimeZone: "SYSTEM", Collation: "utf8mb4_general_ci"}}
		_, _, err := m.Test(t.Context(), database, []history.Predicate{p}, []string{",`id`)" + sqlmysql.ImageValues + "1)"})
		return err
	}
	hold := func(how string, err error, refused, reached bool) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: there is no error", how)
		} else if r, there := m.Why(err); r != refused || there != reached {
			t.Errorf("%s: refused %v, reached %v: %v", how, r, there, err)
		}
	}
	hold("no such function", test("nofunc(id)"), true, true)
	if _, err := testdb.Open(t, "").Exec("KILL ?", m.conn.client.GetConnectionID()); err != nil {
		t.Fatal(err)
	}
	hold("ended", test("id = 1"), false, true)
	if err := test("id = 1"); err != nil {
		t.Errorf("over a new connection: %v", err)
	}
	address := m.conn.target.Address
	m.conn.target.Address = "127.0.0.1:1"
	err = errors.Join(m.conn.client.Close(), test("id = 1"))
	hold("nobody there, yet", err, false, true)
	hold("nobody there", test("id = 1"), false, false)
	m.conn.target.Address = address
	if err := test("id = 1"); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}
