package postgres

import (
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/isotap/isotap/proxy/session"
)

// Isotap's connection to a database stays as long as sessions are known to be there.
func TestSessionIsExpectedBeginsAndEndsOnce(t *testing.T) {
	r := newRig(t, nil)
	c, err := pgx.Connect(t.Context(), "postgres://postgres@"+r.proxied+"/"+r.database+"?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE TABLE t (id int)"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := func(s session.Schema) session.Schema { s.Database = r.database; return s }
	want := []session.Schema{of(session.Schema{Expected: true}), of(session.Schema{Begins: true}),
		of(session.Schema{Ends: true})}
	told := func() []session.Schema {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.told
	}
	for began := time.Now(); len(told()) < len(want) && time.Since(began) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if got := told(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
}
