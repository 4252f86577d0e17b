package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestDriverCompressesThroughIsotap has go-sql-driver compress, on values of many sizes, and ask the server whether it
// does.
func TestDriverCompressesThroughIsotap(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	b := newBench(t, nil, "CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)")
	c := driverConfig(t, b.srv, b.database)
	if err := c.Apply(mysql.EnableCompression(true)); err != nil {
		t.Fatal(err)
	}
	c.MaxAllowedPacket = 64 << 20
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var name, on string
	if err := db.QueryRow("SHOW STATUS LIKE 'Compression'").Scan(&name, &on); err != nil || on != "ON" {
		t.Errorf("the server says Compression is %q, %v", on, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, size := range []int{0, 1, 40, 50, 200, 70_000, 2 << 20} {
		for j, value := range [][]byte{bytes.Repeat([]byte("ab"), size/2), randomBytes(r, size)} {
			id := 10*i + j
			if _, err := db.Exec("INSERT INTO t VALUES (?, ?)", id, value); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			for range 2 {
				var got []byte
				if err := db.QueryRow(fmt.Sprintf("SELECT v FROM t WHERE id = %d", id)).Scan(&got); err != nil ||
					!bytes.Equal(got, value) {
					t.Fatalf("%d bytes come back as %d: %v", size, len(got), err)
				}
			}
		}
	}
	var rows int
	if err := db.QueryRow("SELECT COUNT(*) FROM t a JOIN t b").Scan(&rows); err != nil || rows != 196 {
		t.Errorf("%d rows, %v", rows, err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE t SET v = 'x' WHERE id < 20"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	for _, txn := range b.txns() {
		for _, st := range txn.Stmts {
			if strings.Contains(st.Shape, "UPDATE") && len(st.Accesses) != 4 {
				t.Errorf("%s: %v with %d accesses: %s", st.Shape, st.Observation, len(st.Accesses), st.Reason)
			}
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
