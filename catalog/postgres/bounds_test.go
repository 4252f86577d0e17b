package postgres

import (
	"runtime"
	"testing"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/lies"
	"github.com/isotap/isotap/internal/testdb"
)

// dataRow is the kind of a message that holds a row.
const dataRow = 'D'

// TestLengthOfAnAnswerIsNotBelieved has a server claim that a row is 900 MiB long, and send little of it: the second
// answer is the first that has a row.
func TestLengthOfAnAnswerIsNotBelieved(t *testing.T) {
	relay := lies.PostgreSQL(t, testdb.PostgreSQL(t).Addr(), 2, func(m []byte) []byte {
		if m[0] != dataRow {
			return m
		}
		return append([]byte{dataRow, 0x38, 0, 0, 0}, m[5:]...)
	})
	target, err := dsn.Parse(testdb.PostgreSQL(t).DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	target.Address = relay.Addr
	conn, err := NewConn(target, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = ServerFacts(t.Context(), conn)
	runtime.ReadMemStats(&after)
	if _, lied := relay.Lied(); err == nil || !lied {
		t.Errorf("it lied: %t; error %v", lied, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("isotap took %d MiB for it", took>>20)
	}
}
