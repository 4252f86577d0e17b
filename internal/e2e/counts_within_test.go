package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/recorder"
)

// TestCountsWithinStatementsAreTheClients asks for FOUND_ROWS() and ROW_COUNT() within unions, joins and subqueries,
// behind statements after which isotap has asked something of its own.
func TestCountsWithinStatementsAreTheClients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	union := "SELECT id FROM t WHERE v < 25 UNION SELECT id FROM t WHERE v < 15"
	for i, tc := range []struct {
		name   string
		before []string
	}{
		{"a union", []string{union}},
		{"a union and its warnings", []string{union, "SHOW WARNINGS"}},
		{"a union, read in a pause", []string{union, pause}},
		{"an update", []string{"SELECT id FROM t WHERE id < 3", "UPDATE t SET v = v + 1"}},
		{"an update, read in a pause", []string{"SELECT id FROM t WHERE id < 3", "UPDATE t SET v = v + 1", pause}},
	} {
		var steps []string
		for _, asking := range []string{
			"SELECT FOUND_ROWS() UNION SELECT 77", "SELECT 77 UNION SELECT FOUND_ROWS()", "SELECT ROW_COUNT() UNION SELECT 77",
			"SELECT 77 AS n UNION ALL SELECT ROW_COUNT()", "(SELECT FOUND_ROWS()) UNION (SELECT 77) ORDER BY 1 LIMIT 3",
			"SELECT FOUND_ROWS() AS n UNION SELECT id FROM t", "SELECT FOUND_ROWS() AS n UNION ALL SELECT id FROM t",
			"SELECT id, FOUND_ROWS() FROM t", "SELECT id FROM t WHERE id = FOUND_ROWS()", "SELECT id + ROW_COUNT() FROM t",
			"SELECT * FROM (SELECT FOUND_ROWS()) AS x", "SELECT id, (SELECT FOUND_ROWS()) FROM t", "SELECT DISTINCT FOUND_ROWS() FROM t",
			"SELECT COUNT(*), FOUND_ROWS() FROM t", "SELECT @@warning_count UNION SELECT FOUND_ROWS()",
			"SELECT id + 9, FOUND_ROWS() FROM t WHERE id > (SELECT COUNT(*) FROM t x WHERE x.id < 2)",
		} {
			steps = append(append(steps, tc.before...), asking)
			if !strings.Contains(asking, "UNION ALL") { // of these MariaDB counts more when they are executed again
				steps = append(append(steps, tc.before...), "execute "+asking)
			}
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			play(t, script{tc.name, someItems, steps}, fmt.Sprint("counts", i), recorder.Relaxed, gomysql.CLIENT_DEPRECATE_EOF)
		})
	}
}

// TestCountsBesideParametersAreTheClients executes them prepared, with parameters, by values of their types alone.
func TestCountsBesideParametersAreTheClients(t *testing.T) {
	b := newBench(t, nil, someItems...)
	c := b.conn(b.through)
	union, ask := "SELECT id FROM t WHERE v < 25 UNION SELECT id FROM t WHERE v < 15", "SELECT FOUND_ROWS() AS n UNION SELECT ?"
	asking, err := c.PrepareContext(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	for range 3 {
		for _, between := range []string{"SHOW WARNINGS", "SET @n = 1"} {
			answer(t.Context(), c, union)
			answer(t.Context(), c, between)
			time.Sleep(300 * time.Millisecond) // isotap reads what the union collected
			var counted, other int64
			rows, err := asking.QueryContext(t.Context(), int64(77))
			if err != nil || !rows.Next() || rows.Scan(&counted) != nil || !rows.Next() || rows.Scan(&other) != nil {
				t.Fatalf("%s: %v", ask, err)
			}
			rows.Close()
			if counted != 2 || other != 77 {
				t.Errorf("behind a union and %s it counts %d, not 2, and %d is 77", between, counted, other)
			}
		}
	}
}
