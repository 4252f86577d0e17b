package e2e

import (
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/recorder"
)

// TestCountsBehindStatementsWithoutRowsAreTheClients asks for FOUND_ROWS() and ROW_COUNT() behind statements that show
// no rows and leave what they found, where isotap has asked something of its own before them or behind.
func TestCountsBehindStatementsWithoutRowsAreTheClients(t *testing.T) {
	for i, st := range []string{
		"INSERT INTO u SELECT id, v FROM t", "INSERT INTO u (SELECT id, v FROM t WHERE id < 3)", "REPLACE INTO u SELECT 1, 2 FROM t WHERE id = 1",
		"INSERT INTO u SELECT id, v FROM t ON DUPLICATE KEY UPDATE v = VALUES(v)", "INSERT INTO u SELECT 71, 5 FROM t WHERE 1 = 0",
		"SELECT id FROM t WHERE id = 2 INTO @a", "SELECT id INTO @a FROM t WHERE id = 77", "SELECT SUM(v) INTO @a FROM t", "SELECT id, v INTO @a, @b FROM t LIMIT 1",
		"INSERT INTO u SELECT id, none FROM t", "UPDATE t SET v = none",
		"DO 1", "DO (SELECT COUNT(*) FROM t)", "SET @x = 1", "SET @x = (SELECT COUNT(*) FROM t)",
		"INSERT INTO u VALUES (9, 9)", "INSERT INTO u VALUES (9, (SELECT MAX(v) FROM t))", "UPDATE t SET v = 5 WHERE id < 3",
		"UPDATE t JOIN w ON w.id = t.id SET t.v = 7", "DELETE FROM t WHERE id = 1", "DELETE t FROM t JOIN w ON w.id = t.id",
		"DELETE FROM t USING t JOIN w ON w.id = t.id AND w.id < 2", "CREATE TABLE c SELECT id FROM t WHERE id < 3", "TRUNCATE u",
	} {
		first, write := "SELECT id + 9 FROM t WHERE id < 4 ORDER BY id DESC", "UPDATE t SET v = v + 1 WHERE id > 0"
		t.Run(st, func(t *testing.T) {
			t.Parallel()
			var steps []string
			for _, asked := range []string{"SELECT FOUND_ROWS()", "SELECT ROW_COUNT()"} {
				for _, between := range [][]string{{first, write, pause, st}, {first, st, pause}, {first, st, "SHOW WARNINGS"},
					{first, write, pause, st, pause}, {first, write, pause, st, "SHOW WARNINGS"}} {
					steps = append(append(steps, between...), asked, "DELETE FROM u", "DROP TABLE IF EXISTS c")
				}
			}
			setup := append(someItems[:len(someItems):len(someItems)], "CREATE TABLE u (id INT PRIMARY KEY, v INT)",
				"CREATE TABLE w (id INT PRIMARY KEY)", "INSERT INTO w VALUES (1), (2)")
			play(t, script{st, setup, steps}, fmt.Sprint("behind", i), recorder.Relaxed, gomysql.CLIENT_DEPRECATE_EOF)
		})
	}
}
