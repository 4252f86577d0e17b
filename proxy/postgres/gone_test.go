package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A client may be gone before it hears of what it sent. The server does with that what it would do without isotap,
// once, also where it refuses what isotap made of it: here the role may not ask for the log's position.
func TestWhatGoneClientsSentIsDoneOnce(t *testing.T) {
	r := newRig(t, nil, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_current_wal_insert_lsn() FROM PUBLIC",
		"CREATE TABLE t (id int PRIMARY KEY, n int)",
		"GRANT ALL ON t TO PUBLIC")
	terminate := &pgproto3.Terminate{}
	insert := func(id int) *pgproto3.Query {
		return &pgproto3.Query{String: fmt.Sprintf("INSERT INTO t VALUES (%d, 0)", id)}
	}
	extended := []pgproto3.FrontendMessage{parse("", "INSERT INTO t VALUES ($1, 0)"),
		bind("", "", nil, "1"), execute("", 0)}
	for name, last := range map[string][]pgproto3.FrontendMessage{
		"a query":                    {insert(1)},
		"and its end":                {insert(1), terminate},
		"the extended protocol":      append(extended[:3:3], syncs),
		"the extended, and its end":  append(extended[:3:3], syncs, terminate),
		"a segment without its Sync": append(extended[:3:3], &pgproto3.Flush{}),
		"nothing but its end":        append(extended[:3:3], terminate),
		"one text of two":            {&pgproto3.Query{String: "INSERT INTO t VALUES (1, 0); INSERT INTO t VALUES (2, 0)"}, terminate},
		"an open block":              {&pgproto3.Query{String: "BEGIN"}, insert(1)},
	} {
		t.Run(name, func(t *testing.T) {
			if want, got := afterAll(t, r, r.direct, last), afterAll(t, r, r.proxied, last); got != want {
				t.Errorf("the table has %s; directly %s", got, want)
			}
		})
	}
}

// afterAll returns what the table has when a client has sent its last messages and its backend has ended.
func afterAll(t *testing.T, r *rig, address string, last []pgproto3.FrontendMessage) string {
	t.Helper()
	other := connectTo(t, r.direct, r.database)
	mustExec(t, other, "TRUNCATE t")
	c := connectRaw(t, address, r.database)
	c.run(query("SET ROLE pg_monitor"))
	c.write(last)
	c.conn.Close()
	const backends = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'raw' AND datname = current_database()"
	for rowsOfQuery(t, other, backends) != `[["0"]]` {
		time.Sleep(10 * time.Millisecond)
	}
	return rowsOfQuery(t, other, "SELECT * FROM t ORDER BY id")
}
