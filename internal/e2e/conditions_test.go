package e2e

import (
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/recorder"
)

// TestConditionsAreThoseOfTheClientsStatement asks for warnings and errors in every way, after statements
// with none, one and several, at once and after isotap has read what they captured.
func TestConditionsAreThoseOfTheClientsStatement(t *testing.T) {
	writes := []string{
		"UPDATE t SET v = v + 1",                          // none
		"UPDATE t SET s = REPEAT('x', 30) WHERE id = 1",   // one
		"UPDATE t SET s = REPEAT('y', 40)",                // several
		"UPDATE t SET s = (@x := 'own') WHERE id = 1",     // on MySQL the same warning as isotap's
		"UPDATE t SET s = (@x := REPEAT('z', 30))",        // both
		"UPDATE t SET id = 1 WHERE id = 2",                // an error
		"UPDATE IGNORE t SET id = 1, s = REPEAT('w', 30)", // warnings in the place of errors
		"INSERT IGNORE INTO t (id, s) VALUES (1, 'a'), (2, REPEAT('q', 30))",
		"DELETE FROM t WHERE id = 'abc'",
		"SELECT CAST('a' AS SIGNED), CAST('b' AS SIGNED)",
		"SET sort_buffer_size = 1",
		"UPDATE t SET s = REPEAT('x', 30), v = CAST('a' AS SIGNED), id = 1 WHERE id = 2", // warnings, and an error
		"DO 1",
	}
	questions := []string{
		"SHOW WARNINGS", "SHOW WARNINGS LIMIT 1", "SHOW WARNINGS LIMIT 1, 5", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS",
		"SHOW COUNT(*) ERRORS", "SELECT @@warning_count AS w", "SELECT @@error_count AS e",
	}
	steps := []string{"SET sql_mode = ''"}
	for _, write := range writes {
		for i, question := range questions {
			steps = append(steps, write)
			if i%4 == 0 {
				steps = append(steps, pause)
			}
			steps = append(steps, question, "SHOW WARNINGS", question, "SHOW COUNT(*) WARNINGS")
		}
	}
	steps = append(steps, "execute "+writes[1], "SHOW WARNINGS", "prepare "+writes[2], "run 2", "SHOW WARNINGS",
		"run 2", pause, "SHOW COUNT(*) WARNINGS",
		writes[2], pause, "execute SHOW WARNINGS", writes[1], "execute SHOW WARNINGS", "execute SHOW WARNINGS LIMIT 1",
		"prepare SELECT nothing FROM t", "SHOW WARNINGS")
	// One condition can be asked for in detail, if its message has no more than 128 characters.
	for _, write := range []string{writes[0], writes[1], writes[5]} {
		steps = append(steps, write, pause, "GET DIAGNOSTICS @n = NUMBER",
			"GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @e = MYSQL_ERRNO, @s = RETURNED_SQLSTATE",
			"SELECT @n, @m, @e, @s", "SET @m = NULL, @e = NULL, @s = NULL")
	}
	steps = append(steps, "BEGIN", writes[2], "SHOW WARNINGS", writes[5], "SHOW WARNINGS", "SHOW WARNINGS LIMIT 1",
		"COMMIT", "SHOW WARNINGS", "SHOW COUNT(*) WARNINGS")
	for name, durability := range map[string]recorder.Durability{"relaxed": recorder.Relaxed,
		"commit": recorder.Commit} {
		for kind, caps := range map[string]uint32{"old ends": 0,
			"tracking": gomysql.CLIENT_DEPRECATE_EOF | gomysql.CLIENT_SESSION_TRACK} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				play(t, script{"conditions", someItems, steps}, name[:1]+kind[:1], durability, caps)
			})
		}
	}
}

// TestAPingTellsWhatTheClientRaised: MySQL's reply to a ping counts what the statement before raised.
func TestAPingTellsWhatTheClientRaised(t *testing.T) {
	b := newBench(t, nil, someItems...)
	through := dialRaw(t, b.srv.Addr().String(), b.database, 0)
	for _, tt := range []struct {
		text string
		want byte
	}{{"UPDATE t SET v = v + 1", 0}, {"SELECT CAST('a' AS SIGNED), CAST('b' AS SIGNED)", 2}} {
		through.ask(append([]byte{gomysql.COM_QUERY}, tt.text...), "")
		through.write(0, []byte{gomysql.COM_PING})
		p := through.read() // OK, no row, no id, two bytes each of status and warnings
		if len(p) < 11 || p[4] != 0 || p[9] != tt.want && (testdb.EngineName() == testdb.MySQL.Name || p[9] != 0) {
			t.Errorf("%s: the ping is answered %q", tt.text, p)
		}
	}
}
